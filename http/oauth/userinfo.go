package oauth

import (
	"net/http"
	"strconv"
	"strings"

	"stagedoor/actors/tokens"
	"stagedoor/http/web/pages"
)

// userInfo is the reply of imagegen-and-oauth.md 2.4, with sub. A field whose scope
// was not granted is absent (decisions).
type userInfo struct {
	Subject   string  `json:"sub"` // the id as text: OpenID clients refuse a reply without it
	ID        int64   `json:"id"`
	Username  *string `json:"username,omitempty"`
	Email     *string `json:"email,omitempty"`
	Quota     *int64  `json:"quota,omitempty"`
	UsedQuota *int64  `json:"used_quota,omitempty"`
	Balance   *string `json:"balance_formatted,omitempty"`
	Created   int64   `json:"created_time"`
	Status    int     `json:"status"`
}

// userInfo tells an app about its user (imagegen-and-oauth.md 4.6).
func (s *Service) userInfo(w http.ResponseWriter, r *http.Request) {
	a, err := s.access(r)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	u := userInfo{Subject: strconv.FormatInt(a.User.ID, 10), ID: a.User.ID, Created: a.User.Created.Unix(), Status: a.User.Status}
	if a.Allows(tokens.ScopeProfile) {
		u.Username, u.Email = &a.User.Username, &a.User.Email
	}
	if a.Allows(tokens.ScopeBalance) {
		remaining, spent := s.balance(a.User.Username)
		text := pages.Dollars(remaining)
		u.Quota, u.UsedQuota, u.Balance = &remaining, &spent, &text
	}
	answer(w, http.StatusOK, u)
}

// balance is what a user has left and what was spent. What is held for requests
// under way may come back: it is not spent yet.
func (s *Service) balance(username string) (remaining, spent int64) {
	credits, spent, _ := s.options.Accounts.Balance(username)
	return credits - spent, spent
}

// access is what the access token of a request stands for. It is taken from the
// header only (RFC 6750 2.1): addresses end up in logs.
func (s *Service) access(r *http.Request) (tokens.Access, error) {
	token, err := bearer(r)
	if err != nil {
		return tokens.Access{}, err
	}
	a, err := s.options.Registry.Lookup(token)
	if err != nil {
		f := *refusalOf(err)
		f.challenge = `Bearer realm="oauth", error="` + f.word + `", error_description="` + describable(f.text) + `"`
		return tokens.Access{}, &f
	}
	return a, nil
}

// bearer is the token of the Authorization header (RFC 6750 3).
func bearer(r *http.Request) (string, error) {
	malformed := &refusal{status: http.StatusBadRequest, word: "invalid_request", text: "send one access token, in the Authorization header",
		challenge: `Bearer realm="oauth", error="invalid_request"`}
	query, err := parseQuery(r)
	if err != nil || query.count("access_token") > 0 {
		return "", malformed
	}
	switch headers := r.Header["Authorization"]; len(headers) {
	case 0:
		return "", &refusal{status: http.StatusUnauthorized, word: "invalid_token", text: "an access token is needed", challenge: `Bearer realm="oauth"`}
	case 1:
		scheme, token, _ := strings.Cut(headers[0], " ")
		token = strings.Trim(token, " ")
		if !strings.EqualFold(scheme, "Bearer") || token == "" || strings.ContainsAny(token, " ,\t") {
			return "", malformed
		}
		return token, nil
	}
	return "", malformed
}
