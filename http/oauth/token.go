package oauth

import (
	"context"
	"net/http"
	"time"

	"stagedoor/actors/tokens"
)

// tokenResponse is the success response of RFC 6749 5.1.
type tokenResponse struct {
	Access    string `json:"access_token"`
	Type      string `json:"token_type"`
	ExpiresIn int64  `json:"expires_in"`
	Refresh   string `json:"refresh_token"`
	Scope     string `json:"scope"`
}

// grants maps each accepted value of grant_type to its handler.
var grants = map[string]func(*Service, context.Context, *clientRequest) (tokens.Tokens, error){
	"authorization_code": (*Service).exchange,
	"refresh_token":      (*Service).refresh,
}

// token handles POST /api/oauth2/token for both grant types.
func (s *Service) token(w http.ResponseWriter, r *http.Request) {
	c, err := s.readClientRequest(w, r)
	if err != nil {
		s.writeClientError(w, r, c, err)
		return
	}
	t, err := s.grant(r.Context(), c)
	if err != nil {
		s.writeClientError(w, r, c, err)
		return
	}
	writeJSON(w, http.StatusOK, tokenResponse{Access: t.Access, Type: "Bearer",
		ExpiresIn: int64(t.ExpiresIn / time.Second),
		Refresh:   t.Refresh, Scope: tokens.FormatScopes(t.Scopes)})
}

// grant runs the handler of the request's grant_type.
func (s *Service) grant(ctx context.Context, c *clientRequest) (tokens.Tokens, error) {
	name := c.form.get("grant_type")
	if name == "" {
		return tokens.Tokens{}, invalidRequest("grant_type is missing")
	}
	grant, ok := grants[name]
	if !ok {
		return tokens.Tokens{}, &protocolError{status: http.StatusBadRequest, code: "unsupported_grant_type",
			description: "grant_type must be authorization_code or refresh_token"}
	}
	return grant(s, ctx, c)
}

// exchange redeems an authorization code. Requests with missing or malformed parameters are refused
// before the registry sees the code, so they do not use it up.
func (s *Service) exchange(ctx context.Context, c *clientRequest) (tokens.Tokens, error) {
	for _, name := range []string{"code", "redirect_uri"} {
		if c.form.get(name) == "" {
			return tokens.Tokens{}, invalidRequest(name + " is missing")
		}
	}
	verifier := c.form.get("code_verifier")
	if verifier != "" && !tokens.ValidVerifier(verifier) {
		return tokens.Tokens{}, invalidRequest("code_verifier is malformed")
	}
	return s.options.Registry.Exchange(ctx, tokens.Exchange{Client: c.client, Code: c.form.get("code"),
		RedirectURI: c.form.get("redirect_uri"), Verifier: verifier})
}

// refresh exchanges a refresh token for a new pair of tokens.
func (s *Service) refresh(ctx context.Context, c *clientRequest) (tokens.Tokens, error) {
	if c.form.get("refresh_token") == "" {
		return tokens.Tokens{}, invalidRequest("refresh_token is missing")
	}
	scopes, err := tokens.ParseScopes(c.form.get("scope"))
	if err != nil {
		return tokens.Tokens{}, err
	}
	return s.options.Registry.Refresh(ctx, tokens.Refresh{Client: c.client, Token: c.form.get("refresh_token"),
		Scopes: scopes})
}
