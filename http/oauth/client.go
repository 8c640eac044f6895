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

// basicChallenge answers clients that used the Authorization header (RFC 6749
// 5.2).
const basicChallenge = `Basic realm="oauth"`

// onlyInBody are the parameters that addresses, and with them logs, must not
// have.
var onlyInBody = []string{"client_secret", "code", "code_verifier", "refresh_token", "token", "access_token", "password"}

// call is a request of a client to an endpoint of clients: a form, and who sent
// it.
type call struct {
	form   params
	client tokens.ClientCredentials
	basic  bool // the client authenticates with the Authorization header
}

// readCall reads a call. Whether the client is who it says is the registry's to
// decide.
func (s *Service) readCall(w http.ResponseWriter, r *http.Request) (*call, error) {
	form, err := readForm(w, r)
	if err != nil {
		return nil, err
	}
	if form.repeated() {
		return nil, invalidRequest("a parameter is repeated")
	}
	query, err := parseQuery(r)
	if err != nil || slices.ContainsFunc(onlyInBody, func(name string) bool { return query.count(name) > 0 }) {
		return nil, invalidRequest("parameters belong into the body")
	}
	c := &call{form: form, client: tokens.ClientCredentials{ID: form.get("client_id"), Secret: form.get("client_secret"), From: auth.Remote(r)}}
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

// readBasic takes the credentials from the header. Id and secret are encoded as
// in a form before they are joined (RFC 6749 2.3.1).
func (c *call) readBasic(headers []string) error {
	unreadable := &refusal{status: http.StatusUnauthorized, word: "invalid_client", text: "the Authorization header cannot be read", challenge: basicChallenge}
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

// refuseCall is refuse with the challenge that a client with the Authorization
// header is owed.
func (s *Service) refuseCall(w http.ResponseWriter, r *http.Request, c *call, err error) {
	f := *refusalOf(err)
	if c != nil && c.basic && f.status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", basicChallenge)
	}
	s.refuse(w, r, err)
}
