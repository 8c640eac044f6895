package adminapi

import (
	"time"
)

// List is one page of a list.
type List[T any] struct {
	Data []T     `json:"data"`
	Next *string `json:"next" doc:"the value of after for the next page; null: this is the last one"`
}

// Balance shows an account's money in micro-dollars.
type Balance struct {
	Credits   int64 `json:"credits" doc:"sum of all payments and adjustments, in micro-dollars"`
	Spent     int64 `json:"spent" doc:"charged so far, in micro-dollars"`
	Held      int64 `json:"held" doc:"held for requests in flight, in micro-dollars"`
	Available int64 `json:"available" doc:"what can still be spent, in micro-dollars"`
}

// Account shows the balance of one account.
type Account struct {
	Account string `json:"account" doc:"the username"`
	Balance
}

// User shows a user with balance, spending and limits.
type User struct {
	ID       int64      `json:"id"`
	Username string     `json:"username"`
	Email    string     `json:"email"`
	Status   int        `json:"status" enum:"1,2" doc:"1: active, 2: disabled"`
	Admin    bool       `json:"admin" doc:"may administer the gateway in a browser"`
	Created  int64      `json:"created_time" doc:"Unix time in seconds"`
	Seen     *time.Time `json:"seen" doc:"last use of a page, rounded to 15 minutes; null: never"`
	Erased   *time.Time `json:"erased" doc:"when everything but the name and the ledger was erased; null: it was not"`
	Balance  Balance    `json:"balance"`
	Ceiling  Ceiling    `json:"ceiling" doc:"limits for all keys of the user"`
	Spent    Spent      `json:"spent" doc:"by the user's keys"`
	Group    *GroupName `json:"group" doc:"the group that the user is in; null: none"`

	SecondFactor bool `json:"second_factor" doc:"signing in takes a code as well"`
}

// Ceiling limits the keys of one user, or those of every member of a group.
type Ceiling struct {
	Scopes     *[]string `json:"scopes" doc:"scopes of keys; null: everything"`
	Models     *[]string `json:"models" doc:"patterns of the models that keys may use; null: all"`
	Budget     *Budget   `json:"budget" doc:"for all keys together, and for all members of a group; null: none"`
	CreateKeys bool      `json:"create_keys" doc:"whether keys and developer tokens may be created on the account page; if not, existing developer tokens are refused"`
}

// CeilingChange changes a ceiling. Absent members stay as they are.
type CeilingChange struct {
	Scopes     Optional[[]string]     `json:"scopes,omitzero" doc:"null: everything; empty: nothing"`
	Models     Optional[[]string]     `json:"models,omitzero" doc:"null: all; empty: none"`
	Budget     Optional[BudgetChange] `json:"budget,omitzero" doc:"null: none"`
	CreateKeys *bool                  `json:"create_keys,omitzero"`
}

// GroupName identifies a group.
type GroupName struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`
}

// Group shows a group of users that share a ceiling and a budget.
type Group struct {
	ID      int64     `json:"id"`
	Name    string    `json:"name"`
	Ceiling Ceiling   `json:"ceiling" doc:"applies in addition to the ceiling of each member"`
	Spent   Spent     `json:"spent" doc:"by users while they were members"`
	Members int       `json:"members" doc:"number of members"`
	Created time.Time `json:"created"`
}

// NewGroup is the body that creates a group.
type NewGroup struct {
	Name    string                  `json:"name" doc:"1 to 64 letters, digits and ._@+-"`
	Ceiling Optional[CeilingChange] `json:"ceiling,omitzero" doc:"absent: no restriction"`
}

// GroupChange changes a group. Absent members stay as they are.
type GroupChange struct {
	Name    *string                 `json:"name,omitzero"`
	Ceiling Optional[CeilingChange] `json:"ceiling,omitzero" doc:"null: no restriction"`
}

// Member identifies a user in a group.
type Member struct {
	ID       int64  `json:"id"`
	Username string `json:"username"`
	Lead     bool   `json:"lead" doc:"the member leads the group"`
}

// NewMember is the body that adds a user to a group.
type NewMember struct {
	User string `json:"user" doc:"a username"`
}

// CreatedUser is the reply to the creation of a user.
type CreatedUser struct {
	User
	Password string `json:"password,omitzero" doc:"the generated password if none was sent; shown only here"`
}

// ErasedUser is the reply to the erasure of a user.
type ErasedUser struct {
	User
	Remaining int `json:"remaining" doc:"requests, responses and video jobs at work: erase again when they have ended"`
}

// NewDeveloperToken is the body that creates a developer token.
type NewDeveloperToken struct {
	Name string `json:"name" doc:"1 to 100 characters"`
}

// DeveloperToken lets a user's programs register apps.
type DeveloperToken struct {
	ID    string `json:"id"`
	User  string `json:"user" doc:"a username"`
	Name  string `json:"name"`
	Token string `json:"token" doc:"shown once"`
}

// Link is a one-time link of a user.
type Link struct {
	URL     string    `json:"url" doc:"a secret: its holder chooses the user's password"`
	Expires time.Time `json:"expires"`
}

// NewInvitation is the body that invites a person.
type NewInvitation struct {
	Username string `json:"username,omitzero" doc:"the suggested name, which the person may change"`
	Email    string `json:"email,omitzero" doc:"one of username and email must be given"`
	Admin    bool   `json:"admin,omitzero"`
	Group    int64  `json:"group,omitzero" doc:"id of the group in which the user will be; 0: none"`
}

// Invitation is an open invitation.
type Invitation struct {
	ID       string    `json:"id"`
	Username string    `json:"username"`
	Email    string    `json:"email"`
	Admin    bool      `json:"admin"`
	Group    int64     `json:"group" doc:"0: none"`
	By       string    `json:"by" doc:"the administrator who invites; empty: the operator"`
	Created  time.Time `json:"created"`
	Expires  time.Time `json:"expires"`
}

// InvitationLink is a new invitation with its link.
type InvitationLink struct {
	Invitation
	URL string `json:"url" doc:"a secret, shown only here: its holder makes the user"`
}

// NewUser is the body that creates a user.
type NewUser struct {
	Username string  `json:"username" doc:"1 to 64 letters, digits and ._@+-"`
	Email    string  `json:"email,omitzero"`
	Password *string `json:"password,omitzero" doc:"8 to 512 bytes; absent: one is generated and returned once"`
	Admin    bool    `json:"admin,omitzero"`
}

// UserChange changes a user. Absent members stay as they are.
type UserChange struct {
	Email    *string                 `json:"email,omitzero"`
	Password *string                 `json:"password,omitzero" doc:"8 to 512 bytes; ends all sessions"`
	Status   *int                    `json:"status,omitzero" enum:"1,2" doc:"1: active, 2: disabled, which ends all sessions"`
	Admin    *bool                   `json:"admin,omitzero"`
	Ceiling  Optional[CeilingChange] `json:"ceiling,omitzero" doc:"null: no restriction"`

	ResetSecondFactor bool `json:"reset_second_factor,omitzero" doc:"for a lost device"`
}

// Limits are the rate limits of a key. 0 means that the key has no limit of its own.
type Limits struct {
	RPM         int64 `json:"rpm,omitzero" min:"0" doc:"requests a minute; 0: no limit"`
	TPM         int64 `json:"tpm,omitzero" min:"0" doc:"tokens a minute; 0: no limit"`
	Concurrency int64 `json:"concurrency,omitzero" min:"0" doc:"requests at a time; 0: no limit"`
}

// LimitsChange changes limits. Absent members stay as they are.
type LimitsChange struct {
	RPM         Optional[int64] `json:"rpm,omitzero" min:"0" doc:"requests a minute; 0 or null: no limit"`
	TPM         Optional[int64] `json:"tpm,omitzero" min:"0" doc:"tokens a minute; 0 or null: no limit"`
	Concurrency Optional[int64] `json:"concurrency,omitzero" min:"0" doc:"requests at a time; 0 or null: no limit"`
}

// BudgetChange changes a budget. Absent members stay as they are.
type BudgetChange struct {
	Amount *int64  `json:"amount,omitzero" min:"1" doc:"micro-dollars"`
	Window *string `json:"window,omitzero" enum:"total,day,month" doc:"time window; days and months are in UTC; a new budget has total"`
}

// Budget is the amount that may be spent in a window of time.
type Budget struct {
	Amount int64  `json:"amount" min:"1" doc:"micro-dollars"`
	Window string `json:"window,omitzero" enum:"total,day,month" doc:"time window; days and months are in UTC; default total"`
}

// Spent shows what a key, user or group has spent.
type Spent struct {
	Requests int64 `json:"requests" doc:"ended requests for which money was held, whether charged or not"`
	Total    int64 `json:"total" doc:"micro-dollars"`
	Day      int64 `json:"day" doc:"micro-dollars today, UTC"`
	Month    int64 `json:"month" doc:"micro-dollars this month, UTC"`
}

// Key shows a gateway key without its secret.
type Key struct {
	ID         string     `json:"id"`
	Prefix     string     `json:"prefix" doc:"how the key begins"`
	Name       string     `json:"name"`
	User       string     `json:"user" doc:"the username that is charged; empty: requests are not charged"`
	State      string     `json:"state" enum:"active,disabled,expired,revoked"`
	Enabled    bool       `json:"enabled"`
	DisabledBy *string    `json:"disabled_by" enum:"owner,lead,operator" doc:"who disabled it; each of them enables what itself and those before it in this list have disabled; null: it is enabled"`
	Scopes     *[]string  `json:"scopes" doc:"permissions; null: everything"`
	Models     *[]string  `json:"models" doc:"patterns of the models that the key may use; null: all"`
	Limits     Limits     `json:"limits"`
	Budget     *Budget    `json:"budget" doc:"null: none"`
	Spent      Spent      `json:"spent"`
	AllowIPs   []string   `json:"allow_ips" doc:"networks that requests may come from; empty: any"`
	Created    time.Time  `json:"created"`
	Expires    *time.Time `json:"expires" doc:"null: never"`
	Revoked    *time.Time `json:"revoked" doc:"null: no"`
	Previous   *time.Time `json:"previous_secret_until" doc:"until when the previous secret works; null: it does not"`

	OnDisconnect *string `json:"on_disconnect" enum:"cancel,finish,detach" doc:"null: as the model says"`

	RecordedUntil *time.Time `json:"recorded_until" doc:"until when it is recorded; null: it is not"`
}

// Rotation is the body that gives a key or an app a new secret.
type Rotation struct {
	Overlap *int64 `json:"overlap_seconds,omitzero" min:"0" max:"2592000" doc:"how long the old one is accepted; a day"`
}

// CreatedKey is the reply to the creation and to the rotation of a key. No other reply contains the secret.
type CreatedKey struct {
	Key
	Secret string `json:"key" doc:"the key, which is shown only here"`
}

// KeyChange changes a key. Absent members stay as they are.
type KeyChange struct {
	Name     *string                `json:"name,omitzero" doc:"1 to 100 characters"`
	Scopes   Optional[[]string]     `json:"scopes,omitzero" doc:"null: everything; empty: nothing"`
	Models   Optional[[]string]     `json:"models,omitzero" doc:"null: all; empty: none"`
	Limits   Optional[LimitsChange] `json:"limits,omitzero" doc:"null: none at all"`
	Budget   Optional[BudgetChange] `json:"budget,omitzero" doc:"null: none"`
	AllowIPs Optional[[]string]     `json:"allow_ips,omitzero" doc:"addresses and networks; null or empty: any"`
	Expires  Optional[time.Time]    `json:"expires,omitzero" doc:"null: never"`
	Enabled  *bool                  `json:"enabled,omitzero"`

	OnDisconnect Optional[string] `json:"on_disconnect,omitzero" enum:"cancel,finish,detach" doc:"null: as models say"`

	RecordedUntil Optional[time.Time] `json:"recorded_until,omitzero" doc:"at most 7 days from now; null: end that"`
}

// NewKey is the body that creates a key. An absent member does not restrict the key.
type NewKey struct {
	User string `json:"user,omitzero" doc:"the username that is charged; absent: requests are not charged"`
	KeyChange
}

// Payment is the body that adds money to an account or takes money from it.
type Payment struct {
	Amount int64  `json:"amount" min:"-1000000000000000" max:"1000000000000000" doc:"micro-dollars; a negative amount takes money out"`
	Reason string `json:"reason,omitzero" doc:"at most 200 bytes, for the ledger"`
	ID     string `json:"id,omitzero" doc:"idempotency key; a payment whose id was used for the account before is not repeated. The header Idempotency-Key means the same"`
}

// Paid is the reply to a payment.
type Paid struct {
	Account
	Amount   int64 `json:"amount" doc:"micro-dollars"`
	Repeated bool  `json:"repeated" doc:"the payment had been made before and was not repeated"`
}

// NewCodes is the body that creates redeem codes.
type NewCodes struct {
	Count   int        `json:"count,omitzero" min:"1" max:"1000" doc:"default 1"`
	Amount  int64      `json:"amount" min:"1" max:"1000000000000000" doc:"micro-dollars, each"`
	Expires *time.Time `json:"expires,omitzero" doc:"absent: never"`
}

// Code shows a redeem code without its secret.
type Code struct {
	ID        string     `json:"id"`
	Hint      string     `json:"hint" doc:"last characters of the code"`
	Amount    int64      `json:"amount" doc:"micro-dollars"`
	State     string     `json:"state" enum:"open,used,expired,cancelled"`
	MintedBy  string     `json:"minted_by"`
	Created   time.Time  `json:"created"`
	Expires   *time.Time `json:"expires" doc:"null: never"`
	UsedBy    string     `json:"used_by" doc:"the account that used it; empty: none"`
	Used      *time.Time `json:"used" doc:"null: no"`
	Cancelled *time.Time `json:"cancelled" doc:"null: no"`
}

// MintedCode shows a new redeem code with its secret.
type MintedCode struct {
	Code
	Secret string `json:"code" doc:"the code, which is shown only here"`
}

// MintedCodes is the reply to the creation of redeem codes.
type MintedCodes struct {
	Data []MintedCode `json:"data"`
}

// NewApp is the body that registers an OAuth app.
type NewApp struct {
	Owner       string `json:"owner" doc:"a username"`
	Name        string `json:"name" doc:"1 to 100 characters"`
	Description string `json:"description,omitzero" doc:"at most 2000 characters"`
	RedirectURI string `json:"redirect_uri" doc:"https, or http on loopback"`

	MoreURIs []string `json:"more_redirect_uris,omitzero" doc:"at most 9 further addresses"`
}

// AppChange changes an app. Absent members stay as they are.
type AppChange struct {
	Name         *string          `json:"name,omitzero" doc:"1 to 100 characters"`
	Description  *string          `json:"description,omitzero" doc:"at most 2000 characters"`
	RedirectURIs *[]string        `json:"redirect_uris,omitzero" doc:"1 to 10 addresses; https, or http on loopback"`
	Logo         Optional[string] `json:"logo,omitzero" doc:"a PNG or JPEG of at most 256 KB, in base64; null: none"`
	Enabled      *bool            `json:"enabled,omitzero" doc:"false refuses the app and all its tokens"`
}

// App shows an OAuth app without its secret.
type App struct {
	ID          int64      `json:"id"`
	ClientID    string     `json:"client_id"`
	Owner       string     `json:"owner" doc:"a username"`
	Name        string     `json:"name"`
	Description string     `json:"description"`
	RedirectURI string     `json:"redirect_uri" doc:"the first of redirect_uris"`
	Created     time.Time  `json:"created"`
	Disabled    *time.Time `json:"disabled" doc:"null: no"`
	Previous    *time.Time `json:"previous_secret_until" doc:"when the previous secret expires; null: there is none"`

	RedirectURIs []string   `json:"redirect_uris"`
	Logo         bool       `json:"logo" doc:"whether it has a picture"`
	SecretEnd    string     `json:"secret_end" doc:"the last characters of the secret; empty: unknown"`
	SecretUsed   *time.Time `json:"secret_used" doc:"when it last brought tokens, to the hour; null: never"`
	PreviousEnd  string     `json:"previous_secret_end" doc:"the last characters; empty: there is none, or unknown"`
	PreviousUsed *time.Time `json:"previous_secret_used" doc:"as secret_used"`
	Users        int        `json:"users" doc:"how many users have allowed the app now"`
}

// AppSecret shows an app with its new secret.
type AppSecret struct {
	App
	Secret string `json:"client_secret" doc:"shown only here"`
}

// Change shows one entry of the audit log.
type Change struct {
	ID      int64         `json:"id" doc:"1, 2, ... without gaps"`
	Time    time.Time     `json:"time"`
	Actor   ChangeActor   `json:"actor"`
	Action  string        `json:"action" doc:"such as key.create, user.change and sign_in"`
	Target  ChangeTarget  `json:"target"`
	Changes []FieldChange `json:"changes" doc:"the fields that differ; secrets are shown as hidden"`
}

// ChangeActor shows who made a change, and how.
type ChangeActor struct {
	Kind    string `json:"kind" enum:"user,admin_token,control_socket,command,configuration,app,visitor,gateway"`
	Name    string `json:"name" doc:"of the user or the app"`
	Via     string `json:"via" doc:"page, api, oauth or command; empty: the gateway itself"`
	Address string `json:"address" doc:"of the client"`
	Request string `json:"request_id"`
}

// ChangeTarget shows what was changed.
type ChangeTarget struct {
	Kind string `json:"kind"`
	ID   string `json:"id"`
	Name string `json:"name"`
}

// FieldChange shows a field before and after a change.
type FieldChange struct {
	Field  string `json:"field"`
	Before any    `json:"before" doc:"null: there was none"`
	After  any    `json:"after" doc:"null: there is none any more"`
}

// Receipt shows what a request cost and how the cost was calculated.
type Receipt struct {
	Request  string `json:"request_id"`
	Account  string `json:"account" doc:"a username"`
	Key      string `json:"key" doc:"a key's id"`
	Model    string `json:"model" doc:"as requested by the client"`
	Upstream string `json:"upstream_model"`
	Provider string `json:"provider"`
	Attempts int    `json:"attempts"`

	Usage  ReceiptUsage `json:"usage"`
	Prices []PriceRow   `json:"prices"`
	// Prices of the operator are of no list.
	Catalog string `json:"catalog" doc:"the version of the list of models that the prices are from"`

	Held    int64     `json:"held" doc:"micro-dollars held for the request"`
	Charged int64     `json:"charged" doc:"micro-dollars charged"`
	Reason  string    `json:"end_reason" doc:"how the request ended"`
	Flags   []string  `json:"flags" doc:"irregularities of the reported usage"`
	Began   time.Time `json:"began"`
	Ended   time.Time `json:"ended"`
}

// ReceiptUsage shows the usage that was charged.
type ReceiptUsage struct {
	Input      int64 `json:"input_tokens" doc:"includes cached and cache-writing tokens"`
	CacheRead  int64 `json:"cached_input_tokens"`
	CacheWrite int64 `json:"cache_write_tokens"`
	Output     int64 `json:"output_tokens" doc:"includes reasoning"`
	Reasoning  int64 `json:"reasoning_tokens"`
	Images     int64 `json:"images"`
	Seconds    int64 `json:"seconds"`
	Estimated  bool  `json:"estimated" doc:"estimated by the gateway because the provider reported no usage"`
}

// PriceRow is one item of a charge: a quantity times a price.
type PriceRow struct {
	What     string `json:"what"`
	Quantity int64  `json:"quantity"`
	Price    int64  `json:"price" doc:"micro-dollars"`
	Per      int64  `json:"per" doc:"the quantity that the price is for"`
}

// Usage is a report of usage and spending over a range of days.
type Usage struct {
	From  string     `json:"from" doc:"the first day, 2006-01-02, UTC"`
	To    string     `json:"to" doc:"the last day"`
	Data  []UsageRow `json:"data"`
	Total UsageSum   `json:"total"`
}

// UsageRow is one row of a report. A column that the report does not distinguish is absent.
type UsageRow struct {
	Day   string `json:"day,omitzero"`
	User  string `json:"user,omitzero"`
	Key   string `json:"key,omitzero" doc:"a key's id"`
	Model string `json:"model,omitzero"`
	UsageSum
}

// UsageSum holds the sums of a row.
type UsageSum struct {
	Requests     int64 `json:"requests" doc:"ended requests for which money was held, whether charged or not"`
	InputTokens  int64 `json:"input_tokens"`
	CachedTokens int64 `json:"cached_input_tokens" doc:"of the input tokens"`
	OutputTokens int64 `json:"output_tokens"`
	Images       int64 `json:"images"`
	Seconds      int64 `json:"seconds"`
	Amount       int64 `json:"amount" doc:"micro-dollars"`
}

// Failure is the body of every error.
type Failure struct {
	Error FailureDetail `json:"error"`
}

// FailureDetail says what was wrong and in which field.
type FailureDetail struct {
	Message string  `json:"message"`
	Type    *string `json:"type"`
	Param   *string `json:"param" doc:"the field or parameter that is wrong"`
	Code    *string `json:"code"`
}

// Empty is the body of routes that take no parameters.
type Empty struct{}
