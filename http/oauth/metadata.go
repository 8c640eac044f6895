package oauth

import (
	"encoding/json"
	"net/http"
	"strconv"

	"stagedoor/actors/tokens"
)

// metadata is the authorization server metadata of RFC 8414 2. It lists only what this service
// implements.
type metadata struct {
	Issuer             string   `json:"issuer"`
	Authorization      string   `json:"authorization_endpoint"`
	Token              string   `json:"token_endpoint"`
	Revocation         string   `json:"revocation_endpoint"`
	Introspection      string   `json:"introspection_endpoint"`
	UserInfo           string   `json:"userinfo_endpoint"`
	Scopes             []string `json:"scopes_supported"`
	ResponseTypes      []string `json:"response_types_supported"`
	ResponseModes      []string `json:"response_modes_supported"`
	GrantTypes         []string `json:"grant_types_supported"`
	TokenAuth          []string `json:"token_endpoint_auth_methods_supported"`
	RevocationAuth     []string `json:"revocation_endpoint_auth_methods_supported"`
	IntrospectionAuth  []string `json:"introspection_endpoint_auth_methods_supported"`
	ChallengeMethods   []string `json:"code_challenge_methods_supported"`
	IssuerInRedirects  bool     `json:"authorization_response_iss_parameter_supported"`
	BearerOnlyInHeader []string `json:"bearer_methods_supported"`
}

// buildMetadata returns the encoded metadata. All addresses begin with the configured issuer, so
// the document does not depend on the request.
func buildMetadata(issuer string) []byte {
	auth := []string{"client_secret_post", "client_secret_basic"}
	b, err := json.Marshal(metadata{Issuer: issuer, Authorization: issuer + pathAuthorize, Token: issuer + pathToken,
		Revocation: issuer + pathRevoke, Introspection: issuer + pathIntrospect, UserInfo: issuer + pathUserInfo,
		Scopes: tokens.Scopes(), ResponseTypes: []string{"code"}, ResponseModes: []string{"query"},
		GrantTypes: []string{"authorization_code",
			"refresh_token"}, TokenAuth: auth, RevocationAuth: auth, IntrospectionAuth: auth,
		ChallengeMethods: []string{"S256"}, IssuerInRedirects: true, BearerOnlyInHeader: []string{"header"}})
	if err != nil {
		panic(err) // cannot happen: the fields are strings and lists of strings
	}
	return b
}

// serveMetadata handles GET /.well-known/oauth-authorization-server.
func (s *Service) serveMetadata(w http.ResponseWriter, _ *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(s.metadata)))
	h.Set("Cache-Control", "public, max-age=300")
	h.Set("X-Content-Type-Options", "nosniff")
	w.Write(s.metadata)
}
