package tokens

import (
	"fmt"
	"time"

	"stagedoor/state/share"
)

// Error is the type of the refusals below, which are all there are. Each stands for an error code of the
// protocol. Compare them with errors.Is.
type Error struct {
	// Word is the error code of OAuth (RFC 6749 5.2, RFC 6750 3.1), or "" if the refusal is not OAuth's.
	Word string
	// Description may be shown to the client. It says nothing that the client does not know.
	Description string
}

// Error implements error. The description is for the client.
func (e *Error) Error() string { return e.Description }

// Refusals of OAuth. They do not distinguish unknown, expired, used and revoked codes and tokens.
var (
	ErrInvalidRequest = &Error{"invalid_request", "the request is malformed"}
	ErrInvalidClient  = &Error{"invalid_client", "client authentication failed"}
	ErrInvalidGrant   = &Error{
		"invalid_grant",
		"the code or refresh token is invalid, expired, revoked, or was issued to another client",
	}
	ErrInvalidScope = &Error{"invalid_scope", "the scope is unknown or exceeds what was granted"}
	// ErrInvalidToken refuses the access token of a resource request (401).
	ErrInvalidToken = &Error{"invalid_token", "the access token is invalid, expired or revoked"}
	// ErrLimited is returned after too many failures or logins (429). It always comes as *Limited.
	ErrLimited = &Error{"temporarily_unavailable", "too many attempts, try again later"}
	// ErrUnavailable means that nothing was done, or that the result is unknown (503). A code or token of
	// the request stays usable unless the store failed while it was being used.
	ErrUnavailable = &Error{"temporarily_unavailable", "the service is temporarily unavailable"}
)

// Refusals of users, apps and pages.
var (
	// ErrLogin does not reveal whether the user or the password is wrong.
	ErrLogin = &Error{"", "wrong username or password"}
	// ErrUserDisabled is returned only if the password was right.
	ErrUserDisabled = &Error{"", "this account is disabled"}
	// ErrCode is returned if a code of the second factor is wrong, or was used.
	ErrCode = &Error{"", "the code is wrong or was used already"}
	// ErrUnlinked is returned if no user has linked a person whom a provider has authenticated.
	ErrUnlinked = &Error{"", "no account is linked to this sign-in"}
	// ErrPasskey is returned if a passkey is unknown, or its answer is not valid.
	ErrPasskey = &Error{"", "the passkey is not known here"}
	// ErrOnlySignIn is returned if a user without a password wants to remove the last way to sign in.
	ErrOnlySignIn = &Error{"", "this is the only way in which the account can be signed in to"}
	// ErrStale is returned if a change needs a session that was opened just now.
	ErrStale     = &Error{"", "the session is too old for this change: sign in again"}
	ErrNoSession = &Error{"", "not signed in"}
	// ErrNoDeveloper is returned if the developer token is unknown or revoked, or its user disabled (401).
	ErrNoDeveloper = &Error{"", "the developer token is invalid or revoked"}
	// ErrConsentRequired is returned if the user must be asked before this app gets a code.
	ErrConsentRequired = &Error{"", "consent is required"}
	// ErrUsed is returned if the form or link was used before.
	ErrUsed     = &Error{"", "used already"}
	ErrNotFound = &Error{"", "not found"}
	// ErrExists is returned if the username is taken.
	ErrExists = &Error{"", "already taken"}
	// ErrTooMany is returned if the user has reached the number of keys, apps or developer tokens. It always
	// comes as *TooMany.
	ErrTooMany = &Error{"", "a limit of the account is reached"}
	// ErrKeysForbidden is returned if the ceiling of the user or of the user's group forbids keys and tokens.
	ErrKeysForbidden = &Error{"", "this user may not create keys or tokens: ask the operator for one"}
	// ErrHasMembers is returned if the group cannot be deleted.
	ErrHasMembers = &Error{"", "the group has members: remove them first"}
	// ErrOperatorOnly is returned if the operator disabled the key.
	ErrOperatorOnly = &Error{"", "the operator disabled this key, and only the operator can enable it"}
	// ErrLeadOnly is returned if a lead of the group disabled the key.
	ErrLeadOnly = &Error{"", "a lead of your group disabled this key, and a lead or the operator can enable it"}
	// ErrAppDisabled is returned to the owner of an app that the operator disabled.
	ErrAppDisabled = &Error{"", "the operator disabled this app, and only the operator can delete it"}
	// ErrInvalid always comes as *FieldError.
	ErrInvalid = &Error{"", "a field breaks a rule"}
)

// Limited is an ErrLimited with the time after which to try again. Busy, if set, is the refusal of a pool that is
// full, as a whole or for this owner. If Busy is nil, there were too many failures.
type Limited struct {
	RetryAfter time.Duration
	Busy       *share.Refused
}

// Error implements error.
func (e *Limited) Error() string {
	if e.Busy != nil {
		return "too many passwords are being checked, try again later"
	}
	return ErrLimited.Description
}

// Unwrap lets callers find ErrLimited, and the refusal of the pool if places for password checks are the cause.
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
	Remedy string // how to make room, as an imperative
}

// Error implements error. The text says what the user can do about it.
func (e *TooMany) Error() string {
	return fmt.Sprintf("a user may have at most %d %s: %s", e.Most, e.Things, e.Remedy)
}

// Unwrap lets callers find ErrTooMany.
func (e *TooMany) Unwrap() error { return ErrTooMany }

// FieldError is an ErrInvalid that names the field and the rule, which may both be shown.
type FieldError struct{ Field, Rule string }

// Error implements error.
func (e *FieldError) Error() string { return fmt.Sprintf("%s %s", e.Field, e.Rule) }

// Unwrap lets callers find ErrInvalid.
func (e *FieldError) Unwrap() error { return ErrInvalid }
