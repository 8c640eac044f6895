package tokens

import (
	"fmt"
	"time"

	"stagedoor/state/share"
)

// Error is one of the refusals below: the set is closed, and each stands for a
// word of the protocol. Compare with errors.Is.
type Error struct {
	// Word is the error code that OAuth clients know (RFC 6749 5.2, RFC 6750
	// 3.1); "": the refusal is not OAuth's.
	Word string
	// Description may be shown to anybody: it tells nothing that the client does
	// not know.
	Description string
}

func (e *Error) Error() string { return e.Description }

// The refusals of OAuth. An unknown, expired, used and revoked code or token are
// told apart nowhere.
var (
	ErrInvalidRequest = &Error{"invalid_request", "the request is malformed"}
	ErrInvalidClient  = &Error{"invalid_client", "client authentication failed"}
	ErrInvalidGrant   = &Error{"invalid_grant", "the code or refresh token is invalid, expired, revoked, or was issued to another client"}
	ErrInvalidScope   = &Error{"invalid_scope", "the scope is unknown or exceeds what was granted"}
	// ErrInvalidToken: the access token of a resource request (401).
	ErrInvalidToken = &Error{"invalid_token", "the access token is invalid, expired or revoked"}
	// ErrLimited: too many failures or logins, 429. It always comes as *Limited.
	ErrLimited = &Error{"temporarily_unavailable", "too many attempts, try again later"}
	// ErrUnavailable: nothing was done, or nobody can say whether it was; 503. A
	// code or token that was sent is not used up unless the store failed just
	// while it was being used.
	ErrUnavailable = &Error{"temporarily_unavailable", "the service is temporarily unavailable"}
)

// The refusals of users, apps and pages.
var (
	// ErrLogin: no such user, or another password. Which of both stays open.
	ErrLogin = &Error{"", "wrong username or password"}
	// ErrUserDisabled is told only to those who know the password.
	ErrUserDisabled = &Error{"", "this account is disabled"}
	ErrNoSession    = &Error{"", "not signed in"}
	// ErrNoDeveloper: the developer token is unknown or revoked, or its user
	// disabled (401).
	ErrNoDeveloper = &Error{"", "the developer token is invalid or revoked"}
	// ErrConsentRequired: the user has to be asked before this app gets a code.
	ErrConsentRequired = &Error{"", "consent is required"}
	// ErrUsed: the form or link worked before, and works once.
	ErrUsed     = &Error{"", "used already"}
	ErrNotFound = &Error{"", "not found"}
	// ErrExists: the username is taken.
	ErrExists = &Error{"", "already taken"}
	// ErrTooMany: the user has as many keys, apps or developer tokens as one may have.
	// It always comes as *TooMany.
	ErrTooMany = &Error{"", "a limit of the account is reached"}
	// ErrKeysForbidden: the ceiling of the user or of the user's group forbids to create keys and tokens.
	ErrKeysForbidden = &Error{"", "this user may not create keys or tokens: ask the operator for one"}
	// ErrHasMembers: the group cannot be deleted.
	ErrHasMembers = &Error{"", "the group has members: remove them first"}
	// ErrOperatorOnly: the operator disabled the key, and only the operator can enable it.
	ErrOperatorOnly = &Error{"", "the operator disabled this key, and only the operator can enable it"}
	// ErrInvalid always comes as *FieldError.
	ErrInvalid = &Error{"", "a field breaks a rule"}
)

// Limited is an ErrLimited that says when to come back. Busy, if set, is the pool that had no
// place, with the owner's share of it or all of it taken. Otherwise there were too many failures.
type Limited struct {
	RetryAfter time.Duration
	Busy       *share.Refused
}

func (e *Limited) Error() string {
	if e.Busy != nil {
		return "too many passwords are being checked, try again later"
	}
	return ErrLimited.Description
}

func (e *Limited) Unwrap() []error {
	if e.Busy != nil {
		return []error{ErrLimited, e.Busy}
	}
	return []error{ErrLimited}
}

// TooMany is an ErrTooMany that names the limit.
type TooMany struct {
	Things string // in the plural
	Most   int
	Remedy string // what makes room, as an imperative
}

func (e *TooMany) Error() string {
	return fmt.Sprintf("a user may have at most %d %s: %s", e.Most, e.Things, e.Remedy)
}

func (e *TooMany) Unwrap() error { return ErrTooMany }

// FieldError is an ErrInvalid that names the field and the rule. Both may be
// shown.
type FieldError struct{ Field, Rule string }

func (e *FieldError) Error() string { return fmt.Sprintf("%s %s", e.Field, e.Rule) }

func (e *FieldError) Unwrap() error { return ErrInvalid }
