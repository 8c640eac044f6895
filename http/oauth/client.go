package oauth

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"stagedoor/actors/tokens"
	"stagedoor/http/auth"
)

// basicChallenge is sent to clients that used the Authorization header, as RFC 6749 5.2 requires.
const basicChallenge = `Basic realm="oauth"`

// onlyInBody lists the parameters that must not be in an address, because addresses are logged.
var onlyInBody = []string{"client_secret", "code", "code_verifier", "refresh_token", "token", "access_token",
	"password"}

// clientRequest is a form that an app's server sent to the token, revocation or introspection
// endpoint, with the client credentials that came with it.
type clientRequest struct {
	form   params
	client tokens.ClientCredentials
	basic  bool // the credentials were in the Authorization header
}

// readClientRequest reads the form and the credentials of r. It refuses a repeated parameter, a
// secret in the address, since addresses are logged, and two ways of client authentication. It does
// not check the credentials, because only the registry can.
func (s *Service) readClientRequest(w http.ResponseWriter, r *http.Request) (*clientRequest, error) {
	form, err := readForm(w, r)
	if err != nil {
		return nil, err
	}
	if name := form.repeated(); name != "" {
		return nil, invalidRequest(name + " is repeated")
	}
	query, err := parseQuery(r)
	if err != nil || slices.ContainsFunc(onlyInBody, func(name string) bool { return query.count(name) > 0 }) {
		return nil, invalidRequest("send the parameters in the body")
	}
	c := &clientRequest{form: form, client: tokens.ClientCredentials{ID: form.get("client_id"),
		Secret: form.get("client_secret"), From: auth.Remote(r)}}
	if len(r.Header["Authorization"]) > 0 {
		if err := c.readBasic(r.Header["Authorization"]); err != nil {
			return nil, err
		}
	}
	if c.client.ID == "" {
		return nil, invalidRequest("client_id is missing")
	}
	return c, nil
}

// readBasic reads the client credentials from the Authorization header. Clients form-encode id and
// secret before they join them (RFC 6749 2.3.1).
func (c *clientRequest) readBasic(headers []string) error {
	unreadable := &protocolError{status: http.StatusUnauthorized, code: "invalid_client",
		description: "the Authorization header cannot be read", challenge: basicChallenge}
	if len(headers) > 1 || c.client.Secret != "" {
		return invalidRequest("more than one way of client authentication")
	}
	scheme, encoded, _ := strings.Cut(headers[0], " ")
	if !strings.EqualFold(scheme, "Basic") {
		return unreadable
	}
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(encoded))
	if err != nil {
		return unreadable
	}
	id, secret, ok := strings.Cut(string(raw), ":")
	if !ok {
		return unreadable
	}
	if id, err = url.QueryUnescape(id); err != nil {
		return unreadable
	}
	if secret, err = url.QueryUnescape(secret); err != nil {
		return unreadable
	}
	if c.client.ID != "" && c.client.ID != id {
		return invalidRequest("two different client_id")
	}
	c.client.ID, c.client.Secret, c.basic = id, secret, true
	return nil
}

// writeClientError writes an error and adds the Basic challenge if the client used the
// Authorization header. c is nil if the request could not be read.
func (s *Service) writeClientError(w http.ResponseWriter, r *http.Request, c *clientRequest, err error) {
	f := *protocolErrorOf(err)
	if c != nil && c.basic && f.status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", basicChallenge)
	}
	s.writeError(w, r, err)
}
