package oauth

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"stagedoor/actors/tokens"
	"stagedoor/http/web/pages"
)

var errDenied = &protocolError{code: "access_denied", description: "the user denied access"}

// redirectError sends the browser back to the app with an error code and description (RFC 6749
// 4.1.2.1). The cause of an internal error is logged and not sent.
func (s *Service) redirectError(w http.ResponseWriter, r *http.Request, status int, req *authRequest, err error) {
	f := protocolErrorOf(err)
	if f.code == "server_error" || errors.Is(err, tokens.ErrUnavailable) {
		s.options.Logger.Error("authorization service", "path", r.URL.Path, "cause", err)
	}
	s.redirectToApp(w, status, req, "error", f.code, "error_description", f.description)
}

// redirectToApp sends the browser to the app's address of the request with the given parameters.
func (s *Service) redirectToApp(w http.ResponseWriter, status int, req *authRequest, pairs ...string) {
	pages.NoStore(w.Header())
	w.Header().Set("Location", s.appURL(req, pairs...))
	w.WriteHeader(status)
}

// appURL returns the app's address of the request with the given parameters, state and iss (RFC 9207)
// appended. A query of the registered address itself is kept byte by byte.
func (s *Service) appURL(req *authRequest, pairs ...string) string {
	if req.state != "" {
		pairs = append(pairs, "state", req.state)
	}
	pairs = append(pairs, "iss", s.options.Issuer)
	var b strings.Builder
	b.WriteString(req.redirect)
	separator := byte('?')
	if at := strings.IndexByte(req.redirect, '?'); at >= 0 {
		separator = '&'
		if at == len(req.redirect)-1 {
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

// redirectHost returns the host of a redirect address for display, with its port, and whether the
// scheme is http. The registry accepts http only for addresses on the user's own machine, so http
// means loopback. A loopback address with https counts as any other host.
func redirectHost(redirectURI string) (host string, loopback bool) {
	u, err := url.Parse(redirectURI)
	if err != nil {
		return redirectURI, false // the registry accepts only addresses that can be parsed
	}
	return u.Host, u.Scheme == "http"
}
