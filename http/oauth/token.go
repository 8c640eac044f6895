package oauth

import (
	"context"
	"net/http"
	"time"

	"stagedoor/actors/tokens"
)

// tokenAnswer is imagegen-and-oauth.md 2.3.
type tokenAnswer struct {
	Access    string `json:"access_token"`
	Type      string `json:"token_type"`
	ExpiresIn int64  `json:"expires_in"`
	Refresh   string `json:"refresh_token"`
	Scope     string `json:"scope"`
}

// grants are the values of grant_type.
var grants = map[string]func(*Service, context.Context, *call) (tokens.Tokens, error){
	"authorization_code": (*Service).exchange,
	"refresh_token":      (*Service).refresh,
}

// token serves both grants (imagegen-and-oauth.md 4.5).
func (s *Service) token(w http.ResponseWriter, r *http.Request) {
	c, err := s.readCall(w, r)
	if err != nil {
		s.refuseCall(w, r, c, err)
		return
	}
	t, err := s.grant(r.Context(), c)
	if err != nil {
		s.refuseCall(w, r, c, err)
		return
	}
	answer(w, http.StatusOK, tokenAnswer{Access: t.Access, Type: "Bearer", ExpiresIn: int64(t.ExpiresIn / time.Second),
		Refresh: t.Refresh, Scope: tokens.FormatScopes(t.Scopes)})
}

func (s *Service) grant(ctx context.Context, c *call) (tokens.Tokens, error) {
	name := c.form.get("grant_type")
	if name == "" {
		return tokens.Tokens{}, invalidRequest("grant_type is missing")
	}
	grant, ok := grants[name]
	if !ok {
		return tokens.Tokens{}, &refusal{status: http.StatusBadRequest, word: "unsupported_grant_type",
			text: "grant_type must be authorization_code or refresh_token"}
	}
	return grant(s, ctx, c)
}

// exchange redeems a code. What is missing or malformed is refused before the
// registry sees the code: it is not used up.
func (s *Service) exchange(ctx context.Context, c *call) (tokens.Tokens, error) {
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

// refresh rotates a refresh token.
func (s *Service) refresh(ctx context.Context, c *call) (tokens.Tokens, error) {
	if c.form.get("refresh_token") == "" {
		return tokens.Tokens{}, invalidRequest("refresh_token is missing")
	}
	scopes, err := tokens.ParseScopes(c.form.get("scope"))
	if err != nil {
		return tokens.Tokens{}, err
	}
	return s.options.Registry.Refresh(ctx, tokens.Refresh{Client: c.client, Token: c.form.get("refresh_token"), Scopes: scopes})
}
