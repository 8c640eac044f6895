package oauth

import (
	"net/http"
	"strconv"

	"stagedoor/actors/tokens"
	"stagedoor/http/web/pages"
)

// revoke handles POST /api/oauth2/revoke (RFC 7009). The response is the same whether the token
// existed or not, as the RFC requires.
func (s *Service) revoke(w http.ResponseWriter, r *http.Request) {
	c, err := s.readTokenRequest(w, r)
	if err == nil {
		err = s.options.Registry.Revoke(r.Context(), c.client, c.form.get("token"))
	}
	if err != nil {
		s.writeClientError(w, r, c, err)
		return
	}
	pages.NoStore(w.Header())
	// The body is empty, but some clients require this content type.
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", "0")
	w.WriteHeader(http.StatusOK)
}

// introspection is the response of RFC 7662 2.2. It reveals about a token only what its owner could
// read with the token itself.
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

// introspect handles POST /api/oauth2/introspect. A client can introspect only its own tokens.
func (s *Service) introspect(w http.ResponseWriter, r *http.Request) {
	c, err := s.readTokenRequest(w, r)
	if err != nil {
		s.writeClientError(w, r, c, err)
		return
	}
	i, err := s.options.Registry.Introspect(r.Context(), c.client, c.form.get("token"))
	if err != nil {
		s.writeClientError(w, r, c, err)
		return
	}
	writeJSON(w, http.StatusOK, s.introspectionOf(&i))
}

// introspectionOf returns the response for i. An inactive token reveals nothing else.
func (s *Service) introspectionOf(i *tokens.Introspection) introspection {
	if !i.Active {
		return introspection{}
	}
	a := introspection{Active: true, Scope: tokens.FormatScopes(i.Scopes), ClientID: i.ClientID,
		Expires: i.Expires.Unix(),
		Issued:  i.Issued.Unix(), Subject: strconv.FormatInt(i.User.ID, 10), Issuer: s.options.Issuer}
	if !i.Refresh {
		a.Type = "Bearer"
	}
	profile := tokens.Access{Scopes: i.Scopes}
	if profile.Allows(tokens.ScopeProfile) {
		a.Username = i.User.Username
	}
	return a
}

// readTokenRequest reads a request about one token. It ignores token_type_hint, because a token's
// prefix says which type it is.
func (s *Service) readTokenRequest(w http.ResponseWriter, r *http.Request) (*clientRequest, error) {
	c, err := s.readClientRequest(w, r)
	if err == nil && c.form.get("token") == "" {
		err = invalidRequest("token is missing")
	}
	return c, err
}
