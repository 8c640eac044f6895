package oauth

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"time"
	"unicode/utf8"
)

// maxForm bounds a form; the largest parameter is a few kilobytes.
const maxForm = 64 << 10

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
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/x-www-form-urlencoded" {
		return params{}, errFormMedia
	}
	body, err := readBody(w, r)
	if err != nil {
		return params{}, err
	}
	values, err := url.ParseQuery(string(body))
	if err != nil {
		return params{}, errFormText
	}
	for name, all := range values {
		for _, v := range append(all, name) {
			if !utf8.ValidString(v) {
				return params{}, errFormText
			}
		}
	}
	return params{values}, nil
}

func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxForm))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, errFormSize
	case err != nil:
		return nil, errFormText // the client left or stalled
	}
	// The server bounded how long the body may take; the answer, which may
	// queue behind other passwords, is not the client's to be late with.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // not every writer has one
	return body, nil
}
