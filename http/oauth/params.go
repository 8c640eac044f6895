package oauth

import (
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"slices"

	"stagedoor/http/web/browser"
)

// Errors for bodies from which no parameter can be read.
var (
	errFormMedia = &protocolError{status: http.StatusBadRequest, code: "invalid_request",
		description: "the body must be application/x-www-form-urlencoded"}
	errFormSize = &protocolError{status: http.StatusRequestEntityTooLarge, code: "invalid_request",
		description: "the body is too large"}
	errFormText = &protocolError{status: http.StatusBadRequest, code: "invalid_request",
		description: "the body is not a form"}
)

// params holds the parameters of a query or form. RFC 6749 3.1 and 3.2 treat an empty parameter as
// absent and a repeated one as an error.
type params struct{ values url.Values }

// get returns the first value of a parameter, or "" if it is absent.
func (p params) get(name string) string { return p.values.Get(name) }

// count returns how often a parameter occurs.
func (p params) count(name string) int { return len(p.values[name]) }

// faultOf returns why a parameter that is needed cannot be used: it is missing or repeated. It returns "" if the
// parameter occurs once.
func (p params) faultOf(name string) string {
	switch {
	case p.count(name) > 1:
		return name + " is repeated"
	case p.get(name) == "":
		return name + " is missing"
	}
	return ""
}

// parameterName matches the names of parameters that an error may repeat: RFC 6749 5.2 limits the characters of
// a description, and RFC 6749 8.2 those of a name.
var parameterName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// repeated returns the name of a parameter that occurs more than once, the first in the alphabet if there are
// several, or "" if none does.
func (p params) repeated() string {
	var names []string
	for name, v := range p.values {
		if len(v) > 1 {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	if name := slices.Min(names); parameterName.MatchString(name) {
		return name
	}
	return "a parameter"
}

// parseQuery returns the parameters of a request's address.
func parseQuery(r *http.Request) (params, error) {
	v, err := url.ParseQuery(r.URL.RawQuery)
	return params{v}, err
}

// readForm returns the parameters in a request's body and ignores those in its address. An error is
// a *protocolError.
func readForm(w http.ResponseWriter, r *http.Request) (params, error) {
	values, err := browser.ReadForm(w, r)
	return params{values}, formError(err)
}

// readBody returns a request's body, which browser.ReadBody limits in size. An error is a
// *protocolError.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body, err := browser.ReadBody(w, r)
	return body, formError(err)
}

// formError returns the protocol error for an error of package browser.
func formError(err error) error {
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
