package oauth

import (
	"errors"
	"net/http"
	"net/url"

	"stagedoor/http/web/browser"
)

// Mistakes of a request that no parameter can be read from.
var (
	errFormMedia = &refusal{status: http.StatusBadRequest, word: "invalid_request", text: "the body must be application/x-www-form-urlencoded"}
	errFormSize  = &refusal{status: http.StatusRequestEntityTooLarge, word: "invalid_request", text: "the body is too large"}
	errFormText  = &refusal{status: http.StatusBadRequest, word: "invalid_request", text: "the body is not a form"}
)

// params are the parameters of a query or form. One that is empty is as good as
// absent, one that comes twice is a mistake whatever it is (RFC 6749 3.1, 3.2).
type params struct{ values url.Values }

// get is a parameter, "" if it is absent. It is the first of those that come
// twice.
func (p params) get(name string) string { return p.values.Get(name) }

// count is how often a parameter comes.
func (p params) count(name string) int { return len(p.values[name]) }

// repeated tells whether any parameter comes twice.
func (p params) repeated() bool {
	for _, v := range p.values {
		if len(v) > 1 {
			return true
		}
	}
	return false
}

// parseQuery reads the query of a request.
func parseQuery(r *http.Request) (params, error) {
	v, err := url.ParseQuery(r.URL.RawQuery)
	return params{v}, err
}

// readForm reads the form in a body. Parameters in the query are no part of it.
func readForm(w http.ResponseWriter, r *http.Request) (params, error) {
	values, err := browser.ReadForm(w, r)
	return params{values}, formRefusal(err)
}

func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body, err := browser.ReadBody(w, r)
	return body, formRefusal(err)
}

func formRefusal(err error) error {
	switch {
	case errors.Is(err, browser.ErrFormMedia):
		return errFormMedia
	case errors.Is(err, browser.ErrFormSize):
		return errFormSize
	case err != nil:
		return errFormText
	}
	return nil
}
