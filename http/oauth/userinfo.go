package oauth

import (
	"net/http"
	"strconv"
	"strings"

	"stagedoor/actors/tokens"
	"stagedoor/http/web/pages"
)

// userInfo is the response of userinfo. A field whose scope was not granted is absent.
type userInfo struct {
	Subject   string  `json:"sub"` // the id as a string, which OpenID clients require
	ID        int64   `json:"id"`
	Username  *string `json:"username,omitempty"`
	Email     *string `json:"email,omitempty"`
	Quota     *int64  `json:"quota,omitempty"`
	UsedQuota *int64  `json:"used_quota,omitempty"`
	Balance   *string `json:"balance_formatted,omitempty"`
	Created   int64   `json:"created_time"`
	Status    int     `json:"status"`
}

// userInfo handles GET /api/oauth2/userinfo and returns the user of an access token to the app.
func (s *Service) userInfo(w http.ResponseWriter, r *http.Request) {
	a, err := s.access(r)
	if err != nil {
		s.writeError(w, r, err)
		return
	}
	u := userInfo{Subject: strconv.FormatInt(a.User.ID, 10), ID: a.User.ID, Created: a.User.Created.Unix(),
		Status: a.User.Status}
	if a.Allows(tokens.ScopeProfile) {
		u.Username, u.Email = &a.User.Username, &a.User.Email
	}
	if a.Allows(tokens.ScopeBalance) {
		remaining, spent := s.balance(a.User.Username)
		text := pages.Dollars(remaining)
		u.Quota, u.UsedQuota, u.Balance = &remaining, &spent, &text
	}
	writeJSON(w, http.StatusOK, u)
}

// balance returns what a user has left and what was spent, in micro-dollars. Amounts held for
// requests in flight count as left, because they may be returned.
func (s *Service) balance(username string) (remaining, spent int64) {
	credits, spent, _ := s.options.Accounts.Balance(username)
	return credits - spent, spent
}

// access returns the user, app and scopes of the request's access token. Only the header is read,
// because tokens in addresses end up in logs (RFC 6750 2.1).
func (s *Service) access(r *http.Request) (tokens.Access, error) {
	token, err := bearer(r)
	if err != nil {
		return tokens.Access{}, err
	}
	a, err := s.options.Registry.Lookup(token)
	if err != nil {
		f := *protocolErrorOf(err)
		f.challenge = `Bearer realm="oauth", error="` + f.code + `", error_description="` + errorText(f.description) +
			`"`
		return tokens.Access{}, &f
	}
	return a, nil
}

// bearer returns the token of the Authorization header. A request with another scheme has sent no token (RFC 6750 3.1).
func bearer(r *http.Request) (string, error) {
	malformed := &protocolError{status: http.StatusBadRequest, code: "invalid_request",
		description: "send one access token, in the Authorization header",
		challenge:   `Bearer realm="oauth", error="invalid_request"`}
	query, err := parseQuery(r)
	if err != nil || query.count("access_token") > 0 {
		return "", malformed
	}
	none := &protocolError{status: http.StatusUnauthorized, code: "invalid_token",
		description: "an access token is needed", challenge: `Bearer realm="oauth"`}
	switch headers := r.Header["Authorization"]; len(headers) {
	case 0:
		return "", none
	case 1:
		scheme, token, _ := strings.Cut(headers[0], " ")
		token = strings.Trim(token, " ")
		switch {
		case token == "" || strings.EqualFold(scheme, "Bearer") && strings.ContainsAny(token, " ,\t"):
			return "", malformed
		case !strings.EqualFold(scheme, "Bearer"):
			return "", none
		}
		return token, nil
	}
	return "", malformed
}
