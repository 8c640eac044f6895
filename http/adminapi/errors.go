package adminapi

import (
	"errors"
	"net/http"

	"stagedoor/actors/tokens"
	"stagedoor/http/envelope"
	"stagedoor/providers/dialogue"
	"stagedoor/state"
	"stagedoor/state/journal"
	"stagedoor/state/money"
	"stagedoor/state/share"
)

// notFound returns a 404 about a parameter.
func notFound(param, message string) *dialogue.Error {
	return dialogue.Refusal(http.StatusNotFound, "not_found", message).About(param)
}

// conflict returns a 409 about a parameter. code says which rule the change would break.
func conflict(param, code, message string) *dialogue.Error {
	return dialogue.Refusal(http.StatusConflict, code, message).About(param)
}

// asEnvelopeError maps the errors of the registry, the ledger and the state to errors of the API.
// An unknown error is returned unchanged and becomes a 500.
func asEnvelopeError(err error) error {
	var known *dialogue.Error
	var field *tokens.FieldError
	var limited *tokens.Limited
	var refused *share.Refused
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &field):
		return dialogue.Invalid(field.Field, field.Rule)
	case errors.As(err, &refused):
		return envelope.From(refused)
	case errors.As(err, &limited):
		return dialogue.RateLimited("too many attempts", limited.RetryAfter, nil)
	case errors.Is(err, tokens.ErrNotFound), errors.Is(err, state.ErrNotFound):
		return notFound("", "the object does not exist")
	case errors.Is(err, tokens.ErrExists), errors.Is(err, state.ErrExists):
		return conflict("", "already_exists", "the object exists already")
	case errors.Is(err, tokens.ErrKeysForbidden):
		return dialogue.Refusal(http.StatusForbidden, "permission_denied", err.Error())
	case errors.Is(err, tokens.ErrTooMany):
		return conflict("", "too_many", err.Error())
	case errors.Is(err, tokens.ErrHasMembers):
		return conflict("id", "has_members", tokens.ErrHasMembers.Description)
	case errors.Is(err, money.ErrInsufficient):
		return conflict("amount", "insufficient_balance", "amount: is more than the account has available")
	case errors.Is(err, money.ErrReused):
		return conflict("id", "idempotency_key_reused", "id: was used for a payment of another amount")
	case errors.Is(err, money.ErrRedeemed):
		return conflict("id", "already_used", "the code was used already")
	case errors.Is(err, state.ErrTooLarge):
		return dialogue.BadRequest("too_large",
			"the reply would be too long: choose fewer days, or fewer columns in per")
	case errors.Is(err, state.ErrInvalid):
		return dialogue.BadRequest("invalid_value", err.Error())
	}
	if e := Unavailable(err); e != nil {
		return e
	}
	return err
}

// Unavailable returns the error for a change that could not be stored, or nil if err has another
// cause. It says if the disk is nearly full, so use it only for administrators.
func Unavailable(err error) *dialogue.Error {
	if !errors.Is(err, state.ErrUnavailable) && !errors.Is(err, tokens.ErrUnavailable) {
		return nil
	}
	e := dialogue.StorageUnavailable("keep changes", err)
	if errors.Is(err, journal.ErrReadOnly) {
		e.Message = "the disk is nearly full: the gateway keeps no changes until there is room"
	}
	return e
}

// describeNotFound replaces a not-found error by one that names the parameter and what is missing.
// It returns any other error unchanged.
func describeNotFound(err error, param, missing string) error {
	if errors.Is(err, tokens.ErrNotFound) || errors.Is(err, state.ErrNotFound) {
		return notFound(param, missing)
	}
	return err
}
