package oauth

import (
	"net/http"
	"strconv"

	"stagedoor/actors/tokens"
	"stagedoor/http/web/pages"
)

// revoke ends a token (RFC 7009). Whether there was one is told to nobody.
func (s *Service) revoke(w http.ResponseWriter, r *http.Request) {
	c, err := s.readTokenCall(w, r)
	if err == nil {
		err = s.options.Registry.Revoke(r.Context(), c.client, c.form.get("token"))
	}
	if err != nil {
		s.refuseCall(w, r, c, err)
		return
	}
	pages.NoStore(w.Header())
	// The answer is empty. Some clients want to hear that it is JSON all the same.
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", "0")
	w.WriteHeader(http.StatusOK)
}

// introspection is RFC 7662 2.2. A client learns of a token nothing that it
// could not learn with it.
type introspection struct {
	Active   bool   `json:"active"`
	Scope    string `json:"scope,omitempty"`
	ClientID string `json:"client_id,omitempty"`
	Username string `json:"username,omitempty"`
	Type     string `json:"token_type,omitempty"`
	Expires  int64  `json:"exp,omitempty"`
	Issued   int64  `json:"iat,omitempty"`
	Subject  string `json:"sub,omitempty"`
	Issuer   string `json:"iss,omitempty"`
}

// introspect tells a client about its own token.
func (s *Service) introspect(w http.ResponseWriter, r *http.Request) {
	c, err := s.readTokenCall(w, r)
	if err != nil {
		s.refuseCall(w, r, c, err)
		return
	}
	i, err := s.options.Registry.Introspect(r.Context(), c.client, c.form.get("token"))
	if err != nil {
		s.refuseCall(w, r, c, err)
		return
	}
	answer(w, http.StatusOK, s.introspectionOf(&i))
}

func (s *Service) introspectionOf(i *tokens.Introspection) introspection {
	if !i.Active {
		return introspection{}
	}
	a := introspection{Active: true, Scope: tokens.FormatScopes(i.Scopes), ClientID: i.ClientID, Expires: i.Expires.Unix(),
		Issued: i.Issued.Unix(), Subject: strconv.FormatInt(i.User.ID, 10), Issuer: s.options.Issuer}
	if !i.Refresh {
		a.Type = "Bearer"
	}
	profile := tokens.Access{Scopes: i.Scopes}
	if profile.Allows(tokens.ScopeProfile) {
		a.Username = i.User.Username
	}
	return a
}

// readTokenCall reads a call about one token. token_type_hint is only a hint: a
// token says itself what it is.
func (s *Service) readTokenCall(w http.ResponseWriter, r *http.Request) (*call, error) {
	c, err := s.readCall(w, r)
	if err == nil && c.form.get("token") == "" {
		err = invalidRequest("token is missing")
	}
	return c, err
}
