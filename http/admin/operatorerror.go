package admin

import (
	"net/http"

	"stagedoor/providers/dialogue"
)

// operatorError is an error with a text for the operator and the status of the response.
type operatorError struct {
	status int
	text   string
	cause  error
}

func (r *operatorError) Error() string { return r.text }

func (r *operatorError) Unwrap() error { return r.cause }

// envelope returns the error as the socket's client gets it.
func (r *operatorError) envelope() *dialogue.Error {
	e := dialogue.Refusal(r.status, "invalid_value", r.text)
	e.Cause = r.cause
	if r.status == http.StatusConflict {
		e.Code = "too_many"
	}
	return e
}
