package oauth

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"stagedoor/actors/tokens"
	"stagedoor/http/web/pages"
)

var errDenied = &refusal{word: "access_denied", text: "the user denied access"}

// redirect sends the browser back to the app with an error (RFC 6749 4.1.2.1).
func (s *Service) redirect(w http.ResponseWriter, r *http.Request, status int, req *request, err error) {
	f := refusalOf(err)
	if f.word == "server_error" || errors.Is(err, tokens.ErrUnavailable) {
		s.options.Logger.Error("authorization service", "path", r.URL.Path, "cause", err)
	}
	s.send(w, status, req, "error", f.word, "error_description", f.text)
}

// send sends the browser back to the app with parameters.
func (s *Service) send(w http.ResponseWriter, status int, req *request, pairs ...string) {
	pages.NoStore(w.Header())
	w.Header().Set("Location", s.appAddress(req, pairs...))
	w.WriteHeader(status)
}

// appAddress returns the registered address of the app with parameters, to which state
// and iss are added (RFC 9207). What the registered address has of its own stays as it
// is, byte by byte.
func (s *Service) appAddress(req *request, pairs ...string) string {
	if req.state != "" {
		pairs = append(pairs, "state", req.state)
	}
	pairs = append(pairs, "iss", s.options.Issuer)
	var b strings.Builder
	b.WriteString(req.app.RedirectURI)
	separator := byte('?')
	if at := strings.IndexByte(req.app.RedirectURI, '?'); at >= 0 {
		separator = '&'
		if at == len(req.app.RedirectURI)-1 {
			separator = 0
		}
	}
	for i := 0; i < len(pairs); i += 2 {
		if separator != 0 {
			b.WriteByte(separator)
		}
		separator = '&'
		b.WriteString(pairs[i] + "=" + url.QueryEscape(pairs[i+1]))
	}
	return b.String()
}

// hostOf is what people are told of an address: where it is.
func hostOf(redirectURI string) (host string, loopback bool) {
	u, err := url.Parse(redirectURI)
	if err != nil {
		return redirectURI, false // the registry keeps none of these
	}
	return u.Host, u.Scheme == "http"
}
