// Package idptest is an OpenID provider for tests, as strict as vendors are: it compares redirect addresses byte by
// byte, demands PKCE and one way of client authentication, and lets a code be used once. Its people sign in without a
// click. Fields of a Provider make it misbehave.
//
// # Usage
//
// A test starts a Provider with New, configures an idp.Client with its issuer, and lets SignIn play the browser: it
// follows the address of Begin and returns the answer for Finish. Sign makes an ID token with any claims, for answers
// that no honest provider gives.
//
// A real provider was not used, because tests must run without a network and need answers that are wrong in one point
// only: another issuer, audience or nonce, a key that is unknown, an old token.
package idptest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// The gateway at the provider.
const (
	ClientID     = "stagedoor"
	ClientSecret = "a secret: with signs/+&"
)

// Provider is a running provider. A test sets the fields before the requests that they are for.
type Provider struct {
	*httptest.Server
	// Redirect is the only address to which it sends people back.
	Redirect string
	// Person has the claims of the person who signs in there, beside those of every ID token.
	Person map[string]any
	// Mangle changes the claims of an ID token before it is signed.
	Mangle func(claims map[string]any)
	// Forge replaces the ID token.
	Forge func(claims map[string]any) string
	// UserInfo has claims that are not in the ID token.
	UserInfo map[string]any
	// Answer changes the parameters with which the person comes back.
	Answer func(url.Values)
	// EndSession is the address at which people sign out there; "": there is none.
	EndSession string
	// Broken replaces the reply at a path.
	Broken map[string]http.HandlerFunc
	// Reused counts codes that came twice.
	Reused int

	key   *ecdsa.PrivateKey
	mu    sync.Mutex
	codes map[string]*request
}

// request is an authorization request that was answered with a code.
type request struct {
	challenge, nonce string
	used             bool
}

// New starts a provider, which ends with the test.
func New(t testing.TB) *Provider {
	p := &Provider{Person: map[string]any{"sub": "248289761001"}, codes: map[string]*request{},
		Broken: map[string]http.HandlerFunc{}}
	var err error
	if p.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	serve := map[string]http.HandlerFunc{"/.well-known/openid-configuration": p.describe, "/authorize": p.authorize,
		"/token": p.token, "/userinfo": func(w http.ResponseWriter, _ *http.Request) { reply(w, p.UserInfo) },
		"/keys": func(w http.ResponseWriter, _ *http.Request) {
			public := jose.JSONWebKey{Key: p.key.Public(), KeyID: "k1", Algorithm: "ES256", Use: "sig"}
			reply(w, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{public}})
		}}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		handler := p.Broken[r.URL.Path]
		if handler == nil {
			handler = serve[r.URL.Path]
		}
		if handler == nil {
			handler = http.NotFound
		}
		handler(w, r)
	}))
	t.Cleanup(p.Close)
	return p
}

// reply writes JSON.
func reply(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body)
}

// describe serves the document of the provider.
func (p *Provider) describe(w http.ResponseWriter, _ *http.Request) {
	d := map[string]any{"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize",
		"token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys", "response_types_supported": []string{"code"},
		"subject_types_supported":               []string{"public"},
		"id_token_signing_alg_values_supported": []string{"ES256"},
		"token_endpoint_auth_methods_supported": []string{"client_secret_basic"},

		"authorization_response_iss_parameter_supported": true}
	if p.EndSession != "" {
		d["end_session_endpoint"] = p.EndSession
	}
	if p.UserInfo != nil {
		d["userinfo_endpoint"] = p.URL + "/userinfo"
	}
	reply(w, d)
}

// authorize checks a request as a strict provider does and sends the browser back with a code.
func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	refuse := func(why string) { http.Error(w, why, http.StatusBadRequest) }
	switch {
	case q.Get("client_id") != ClientID:
		refuse("unknown client")
		return
	case q.Get("redirect_uri") != p.Redirect:
		refuse("redirect_uri is not registered: " + q.Get("redirect_uri"))
		return
	case q.Get("response_type") != "code" || !strings.Contains(" "+q.Get("scope")+" ", " openid "):
		refuse("no OpenID request")
		return
	case q.Get("code_challenge_method") != "S256" || len(q.Get("code_challenge")) != 43:
		refuse("PKCE is required")
		return
	case q.Get("state") == "" || q.Get("nonce") == "":
		refuse("state and nonce are required")
		return
	}
	code := rand.Text()
	p.codes[code] = &request{challenge: q.Get("code_challenge"), nonce: q.Get("nonce")}
	back := url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {p.URL}}
	if p.Answer != nil {
		p.Answer(back)
	}
	http.Redirect(w, r, p.Redirect+"?"+back.Encode(), http.StatusFound)
}

// token exchanges a code, once. Errors have text that must never reach a page.
func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	refuse := func(status int, code string) {
		w.WriteHeader(status)
		reply(w, map[string]string{"error": code, "error_description": "<b>secret words</b>"})
	}
	id, secret, ok := r.BasicAuth()
	id, _ = url.QueryUnescape(id)
	secret, _ = url.QueryUnescape(secret)
	if !ok || id != ClientID || secret != ClientSecret || r.PostFormValue("client_secret") != "" {
		refuse(http.StatusUnauthorized, "invalid_client")
		return
	}
	issued := p.codes[r.PostFormValue("code")]
	if issued != nil && issued.used {
		p.Reused++
	}
	sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	if issued == nil || issued.used || r.PostFormValue("grant_type") != "authorization_code" ||
		r.PostFormValue("redirect_uri") != p.Redirect ||
		base64.RawURLEncoding.EncodeToString(sum[:]) != issued.challenge {
		refuse(http.StatusBadRequest, "invalid_grant")
		return
	}
	issued.used = true
	access := rand.Text()
	hash := sha256.Sum256([]byte(access))
	now := time.Now()
	claims := map[string]any{"iss": p.URL, "aud": ClientID, "exp": now.Add(time.Minute).Unix(), "iat": now.Unix(),
		"nonce": issued.nonce, "at_hash": base64.RawURLEncoding.EncodeToString(hash[:16])}
	for name, value := range p.Person {
		claims[name] = value
	}
	if p.Mangle != nil {
		p.Mangle(claims)
	}
	signed := p.Sign(claims)
	if p.Forge != nil {
		signed = p.Forge(claims)
	}
	reply(w, map[string]any{"access_token": access, "token_type": "Bearer", "expires_in": 60, "id_token": signed})
}

// Sign returns an ID token with these claims.
func (p *Provider) Sign(claims map[string]any) string {
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: p.key, KeyID: "k1"}},
		nil)
	if err != nil {
		panic(err) // the key is of this algorithm
	}
	body, err := json.Marshal(claims)
	if err != nil {
		panic(err) // of a test's own claims
	}
	token, err := signer.Sign(body)
	if err != nil {
		panic(err)
	}
	text, err := token.CompactSerialize()
	if err != nil {
		panic(err)
	}
	return text
}

// SignIn opens an address of the provider as a browser does, and returns the path and the query with which the person
// comes back to the gateway.
func (p *Provider) SignIn(address string) (path string, answer url.Values, err error) {
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Get(address)
	if err != nil {
		return "", nil, err
	}
	defer res.Body.Close()
	to, err := res.Location()
	if err != nil {
		return "", nil, fmt.Errorf("status %d: %w", res.StatusCode, err)
	}
	return to.Path, to.Query(), nil
}
