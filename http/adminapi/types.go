package adminapi

import (
	"time"
)

// List is a page of a list.
type List[T any] struct {
	Data []T `json:"data"`
	// Next is what after must be for the next page; null: this is the last.
	Next *string `json:"next" doc:"the value of after for the next page; null: this is the last one"`
}

// Balance is what an account has, in micro-dollars.
type Balance struct {
	Credits   int64 `json:"credits" doc:"all that was ever put in, less adjustments, in micro-dollars"`
	Spent     int64 `json:"spent" doc:"charged so far, in micro-dollars"`
	Held      int64 `json:"held" doc:"kept for requests under way, in micro-dollars"`
	Available int64 `json:"available" doc:"what can still be spent, in micro-dollars"`
}

// Account is the money of a user.
type Account struct {
	Account string `json:"account" doc:"the username"`
	Balance
}

// User is an account of a person.
type User struct {
	ID       int64      `json:"id"`
	Username string     `json:"username"`
	Email    string     `json:"email"`
	Status   int        `json:"status" enum:"1,2" doc:"1: active, 2: disabled"`
	Admin    bool       `json:"admin" doc:"may administer the gateway in a browser"`
	Created  int64      `json:"created_time" doc:"seconds since 1970"`
	Balance  Balance    `json:"balance"`
	Ceiling  Ceiling    `json:"ceiling" doc:"what none of the user's keys exceeds"`
	Spent    Spent      `json:"spent" doc:"by the user's keys"`
	Group    *GroupName `json:"group" doc:"the group that the user is in; null: none"`
}

// Ceiling is what a user, or each member of a group, may do at most.
type Ceiling struct {
	Scopes     *[]string `json:"scopes" doc:"what keys may do; null: everything"`
	Models     *[]string `json:"models" doc:"patterns of the models that keys may use; null: all"`
	Budget     *Budget   `json:"budget" doc:"for all keys together, and for all members of a group; null: none"`
	CreateKeys bool      `json:"create_keys" doc:"whether keys and developer tokens may be created on the account page; if not, existing developer tokens are refused"`
}

// CeilingChange changes a ceiling; what is absent stays.
type CeilingChange struct {
	Scopes     Optional[[]string]     `json:"scopes,omitzero" doc:"null: everything; empty: nothing"`
	Models     Optional[[]string]     `json:"models,omitzero" doc:"null: all; empty: none"`
	Budget     Optional[BudgetChange] `json:"budget,omitzero" doc:"null: none"`
	CreateKeys *bool                  `json:"create_keys,omitzero"`
}

// GroupName names a group.
type GroupName struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`
}

// Group is some users with one ceiling and one budget.
type Group struct {
	ID      int64     `json:"id"`
	Name    string    `json:"name"`
	Ceiling Ceiling   `json:"ceiling" doc:"it binds beside the ceiling of each member"`
	Spent   Spent     `json:"spent" doc:"by users while they were members"`
	Members int       `json:"members" doc:"how many users are in it"`
	Created time.Time `json:"created"`
}

// NewGroup makes a group.
type NewGroup struct {
	Name    string                  `json:"name" doc:"1 to 64 letters, digits and ._@+-"`
	Ceiling Optional[CeilingChange] `json:"ceiling,omitzero" doc:"absent: it restricts nothing"`
}

// GroupChange changes a group; what is absent stays.
type GroupChange struct {
	Name    *string                 `json:"name,omitzero"`
	Ceiling Optional[CeilingChange] `json:"ceiling,omitzero" doc:"null: it restricts nothing"`
}

// Member is a user in a group.
type Member struct {
	ID       int64  `json:"id"`
	Username string `json:"username"`
}

// NewMember names the user to add.
type NewMember struct {
	User string `json:"user" doc:"a username"`
}

// CreatedUser is a user who was just made.
type CreatedUser struct {
	User
	Password string `json:"password,omitzero" doc:"as it was made up, if none was given; shown once"`
}

// NewUser makes a user.
type NewUser struct {
	Username string  `json:"username" doc:"1 to 64 letters, digits and ._@+-"`
	Email    string  `json:"email,omitzero"`
	Password *string `json:"password,omitzero" doc:"8 to 512 bytes; absent: one is made up and answered once"`
	Admin    bool    `json:"admin,omitzero"`
}

// UserChange changes a user; what is absent stays.
type UserChange struct {
	Email    *string                 `json:"email,omitzero"`
	Password *string                 `json:"password,omitzero" doc:"8 to 512 bytes; ends all sessions"`
	Status   *int                    `json:"status,omitzero" enum:"1,2" doc:"1: active, 2: disabled, which ends all sessions"`
	Admin    *bool                   `json:"admin,omitzero"`
	Ceiling  Optional[CeilingChange] `json:"ceiling,omitzero" doc:"null: it restricts nothing"`
}

// Limits are what a key may use at most; 0: no limit of its own.
type Limits struct {
	RPM         int64 `json:"rpm,omitzero" min:"0" doc:"requests a minute; 0: no limit"`
	TPM         int64 `json:"tpm,omitzero" min:"0" doc:"tokens a minute; 0: no limit"`
	Concurrency int64 `json:"concurrency,omitzero" min:"0" doc:"requests at a time; 0: no limit"`
}

// LimitsChange changes limits; what is absent stays.
type LimitsChange struct {
	RPM         Optional[int64] `json:"rpm,omitzero" min:"0" doc:"requests a minute; 0 or null: no limit"`
	TPM         Optional[int64] `json:"tpm,omitzero" min:"0" doc:"tokens a minute; 0 or null: no limit"`
	Concurrency Optional[int64] `json:"concurrency,omitzero" min:"0" doc:"requests at a time; 0 or null: no limit"`
}

// BudgetChange changes a budget; what is absent stays.
type BudgetChange struct {
	Amount *int64  `json:"amount,omitzero" min:"1" doc:"micro-dollars"`
	Window *string `json:"window,omitzero" enum:"total,day,month" doc:"what it is for; days and months are of UTC; total for a new budget"`
}

// Budget bounds what a key may spend.
type Budget struct {
	Amount int64  `json:"amount" min:"1" doc:"micro-dollars"`
	Window string `json:"window,omitzero" enum:"total,day,month" doc:"what it is for; days and months are of UTC; default total"`
}

// Spent is what a key has spent, in micro-dollars.
type Spent struct {
	Requests int64 `json:"requests" doc:"that were held for and ended, charged or not"`
	Total    int64 `json:"total" doc:"micro-dollars"`
	Day      int64 `json:"day" doc:"micro-dollars today, UTC"`
	Month    int64 `json:"month" doc:"micro-dollars this month, UTC"`
}

// Key is a gateway key. The key itself is not among it.
type Key struct {
	ID         string     `json:"id"`
	Prefix     string     `json:"prefix" doc:"how the key begins"`
	Name       string     `json:"name"`
	User       string     `json:"user" doc:"the username that is charged; empty: nobody is"`
	State      string     `json:"state" enum:"active,disabled,expired,revoked"`
	Enabled    bool       `json:"enabled"`
	DisabledBy *string    `json:"disabled_by" enum:"owner,operator" doc:"who disabled it: its user can enable it only if it was the user (owner); null: it is enabled"`
	Scopes     *[]string  `json:"scopes" doc:"what it may do; null: everything"`
	Models     *[]string  `json:"models" doc:"patterns of the models it may use; null: all"`
	Limits     Limits     `json:"limits"`
	Budget     *Budget    `json:"budget" doc:"null: none"`
	Spent      Spent      `json:"spent"`
	AllowIPs   []string   `json:"allow_ips" doc:"networks it may come from; empty: any"`
	Created    time.Time  `json:"created"`
	Expires    *time.Time `json:"expires" doc:"null: never"`
	Revoked    *time.Time `json:"revoked" doc:"null: it is not"`
}

// CreatedKey is a key that was just made.
type CreatedKey struct {
	Key
	Secret string `json:"key" doc:"the key, which is shown once"`
}

// KeyChange changes a key; what is absent stays.
type KeyChange struct {
	Name     *string                `json:"name,omitzero" doc:"1 to 100 characters"`
	Scopes   Optional[[]string]     `json:"scopes,omitzero" doc:"null: everything; empty: nothing"`
	Models   Optional[[]string]     `json:"models,omitzero" doc:"null: all; empty: none"`
	Limits   Optional[LimitsChange] `json:"limits,omitzero" doc:"null: none at all"`
	Budget   Optional[BudgetChange] `json:"budget,omitzero" doc:"null: none"`
	AllowIPs Optional[[]string]     `json:"allow_ips,omitzero" doc:"addresses and networks; null or empty: any"`
	Expires  Optional[time.Time]    `json:"expires,omitzero" doc:"null: never"`
	Enabled  *bool                  `json:"enabled,omitzero"`
}

// NewKey makes a key. What is absent is as free as can be.
type NewKey struct {
	User string `json:"user,omitzero" doc:"the username that is charged; absent: nobody is"`
	KeyChange
}

// Payment puts money in, or takes it out.
type Payment struct {
	Amount int64  `json:"amount" min:"-1000000000000000" max:"1000000000000000" doc:"micro-dollars; negative: taken out"`
	Reason string `json:"reason,omitzero" doc:"at most 200 bytes, for the ledger"`
	ID     string `json:"id,omitzero" doc:"the payer's own; a payment with an id that was used for the account before is not made again. The header Idempotency-Key is the same"`
}

// Paid answers a payment.
type Paid struct {
	Account
	Amount   int64 `json:"amount" doc:"micro-dollars"`
	Repeated bool  `json:"repeated" doc:"it had been made before, and was not made again"`
}

// NewCodes mints redeem codes.
type NewCodes struct {
	Count   int        `json:"count,omitzero" min:"1" max:"1000" doc:"default 1"`
	Amount  int64      `json:"amount" min:"1" max:"1000000000000000" doc:"micro-dollars, each"`
	Expires *time.Time `json:"expires,omitzero" doc:"absent: never"`
}

// Code is a redeem code. The code itself is not among it.
type Code struct {
	ID        string     `json:"id"`
	Hint      string     `json:"hint" doc:"its last characters"`
	Amount    int64      `json:"amount" doc:"micro-dollars"`
	State     string     `json:"state" enum:"open,used,expired,cancelled"`
	MintedBy  string     `json:"minted_by"`
	Created   time.Time  `json:"created"`
	Expires   *time.Time `json:"expires" doc:"null: never"`
	UsedBy    string     `json:"used_by" doc:"an account; empty: nobody"`
	Used      *time.Time `json:"used" doc:"null: it is not"`
	Cancelled *time.Time `json:"cancelled" doc:"null: it is not"`
}

// MintedCode is a code that was just made.
type MintedCode struct {
	Code
	Secret string `json:"code" doc:"the code, which is shown once"`
}

// MintedCodes are codes that were just made.
type MintedCodes struct {
	Data []MintedCode `json:"data"`
}

// NewApp registers an OAuth app.
type NewApp struct {
	Owner       string `json:"owner" doc:"a username"`
	Name        string `json:"name" doc:"1 to 100 characters"`
	Description string `json:"description,omitzero" doc:"at most 2000 characters"`
	RedirectURI string `json:"redirect_uri" doc:"https, or http on loopback"`
}

// App is an OAuth app. Its secret is not among it.
type App struct {
	ID          int64      `json:"id"`
	ClientID    string     `json:"client_id"`
	Owner       string     `json:"owner" doc:"a username"`
	Name        string     `json:"name"`
	Description string     `json:"description"`
	RedirectURI string     `json:"redirect_uri"`
	Created     time.Time  `json:"created"`
	Disabled    *time.Time `json:"disabled" doc:"null: it is not"`
	Previous    *time.Time `json:"previous_secret_until" doc:"when the secret before the last rotation ends; null: there is none"`
}

// AppSecret is an app with a secret that was just made.
type AppSecret struct {
	App
	Secret string `json:"client_secret" doc:"shown once"`
}

// Receipt says what a request cost and why.
type Receipt struct {
	Request  string `json:"request_id"`
	Account  string `json:"account" doc:"a username"`
	Key      string `json:"key" doc:"a key's id"`
	Model    string `json:"model" doc:"as it was asked for"`
	Upstream string `json:"upstream_model"`
	Provider string `json:"provider"`
	Attempts int    `json:"attempts"`

	Usage  ReceiptUsage `json:"usage"`
	Prices []PriceRow   `json:"prices"`

	Held    int64     `json:"held" doc:"micro-dollars that were kept for it"`
	Charged int64     `json:"charged" doc:"micro-dollars that it cost"`
	Reason  string    `json:"end_reason" doc:"how the request ended"`
	Flags   []string  `json:"flags" doc:"what was odd about its usage"`
	Began   time.Time `json:"began"`
	Ended   time.Time `json:"ended"`
}

// ReceiptUsage is what was used, as far as it was charged.
type ReceiptUsage struct {
	Input      int64 `json:"input_tokens" doc:"cached and cache-writing ones included"`
	CacheRead  int64 `json:"cached_input_tokens"`
	CacheWrite int64 `json:"cache_write_tokens"`
	Output     int64 `json:"output_tokens" doc:"reasoning included"`
	Reasoning  int64 `json:"reasoning_tokens"`
	Images     int64 `json:"images"`
	Seconds    int64 `json:"seconds"`
	Estimated  bool  `json:"estimated" doc:"counted by the gateway, not told by the provider"`
}

// PriceRow is one product of a charge.
type PriceRow struct {
	What     string `json:"what"`
	Quantity int64  `json:"quantity"`
	Price    int64  `json:"price" doc:"micro-dollars"`
	Per      int64  `json:"per" doc:"for how many"`
}

// Usage is what was used and spent.
type Usage struct {
	From  string     `json:"from" doc:"the first day, 2006-01-02, UTC"`
	To    string     `json:"to" doc:"the last day"`
	Data  []UsageRow `json:"data"`
	Total UsageSum   `json:"total"`
}

// UsageRow is a sum over what its absent names would tell apart.
type UsageRow struct {
	Day   string `json:"day,omitzero"`
	User  string `json:"user,omitzero"`
	Key   string `json:"key,omitzero" doc:"a key's id"`
	Model string `json:"model,omitzero"`
	UsageSum
}

// UsageSum is what was used and spent.
type UsageSum struct {
	Requests     int64 `json:"requests" doc:"that were held for and ended, charged or not"`
	InputTokens  int64 `json:"input_tokens"`
	CachedTokens int64 `json:"cached_input_tokens" doc:"of the input tokens"`
	OutputTokens int64 `json:"output_tokens"`
	Images       int64 `json:"images"`
	Seconds      int64 `json:"seconds"`
	Amount       int64 `json:"amount" doc:"micro-dollars"`
}

// Failure is the envelope of every error.
type Failure struct {
	Error FailureDetail `json:"error"`
}

// FailureDetail is an error.
type FailureDetail struct {
	Message string  `json:"message"`
	Type    *string `json:"type"`
	Param   *string `json:"param" doc:"the field or parameter it is about"`
	Code    *string `json:"code"`
}

// Empty is the body of routes that take none.
type Empty struct{}
