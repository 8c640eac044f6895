package idp_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"stagedoor/http/web/idp"
	"stagedoor/http/web/idp/idptest"
	"stagedoor/state/share"
)

const origin = "https://gateway.example.net"

// fixture is a client with one provider.
type fixture struct {
	*idptest.Provider
	client *idp.Client
	config idp.Provider
	later  time.Duration
}

func newFixture(t *testing.T) *fixture {
	f := &fixture{Provider: idptest.New(t)}
	f.Redirect = origin + idp.Callback("corp")
	f.config = idp.Provider{Name: "corp", Label: "Corp", Issuer: f.URL, ClientID: idptest.ClientID,
		ClientSecret: idptest.ClientSecret, Scopes: []string{"profile"}, GroupsClaim: "groups"}
	f.client = idp.New(origin, func() time.Time { return time.Now().Add(f.later) })
	f.client.Configure([]idp.Provider{f.config})
	return f
}

// signIn makes a whole attempt.
func (f *fixture) signIn(t *testing.T) (idp.Person, error) {
	t.Helper()
	address, a, err := f.client.Begin(t.Context(), "192.0.2.1", "corp", false)
	if err != nil {
		return idp.Person{}, err
	}
	path, answer, err := f.SignIn(address)
	if err != nil || path != idp.Callback("corp") {
		t.Fatal(path, err)
	}
	who, _, err := f.client.Finish(t.Context(), "192.0.2.1", &a, answer)
	return who, err
}

func TestAProviderSaysWhoAPersonIs(t *testing.T) {
	f := newFixture(t)
	f.Person = map[string]any{"sub": "s1", "email": "anna@example.com", "email_verified": true,
		"preferred_username": "anna", "groups": []string{"staff"}}
	who, err := f.signIn(t)
	if err != nil || who.Issuer != f.URL || who.Subject != "s1" || who.Email != "anna@example.com" ||
		who.Username != "anna" || len(who.Groups) != 1 {
		t.Errorf("%+v, %v", who, err)
	}
	f.Person = map[string]any{"sub": "s2", "email": "root@example.com"}
	if who, err = f.signIn(t); err != nil || who.Email != "" || who.Username != "root" {
		t.Errorf("with an address that is not verified: %+v, %v", who, err)
	}
}

func TestClaimsThatTheTokenLacksAreReadFromTheUserInfo(t *testing.T) {
	f := newFixture(t)
	f.config.Administrators = []string{"ops"}
	f.client.Configure([]idp.Provider{f.config})
	f.UserInfo = map[string]any{"sub": "248289761001", "groups": "ops"}
	who, err := f.signIn(t)
	if _, admin := f.config.Rights(&who); err != nil || admin == nil || !*admin {
		t.Errorf("%+v, %v", who, err)
	}
	f.UserInfo["sub"] = "another"
	if _, err := f.signIn(t); !errors.Is(err, idp.ErrInvalid) {
		t.Errorf("the user info of another person: %v", err)
	}
}

func TestATokenThatIsNotForThisAttemptIsRefused(t *testing.T) {
	none := func(claims map[string]any) string {
		body, _ := json.Marshal(claims)
		return base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." +
			base64.RawURLEncoding.EncodeToString(body) + "."
	}
	set := func(name string, value any) func(map[string]any) { return func(c map[string]any) { c[name] = value } }
	for name, c := range map[string]struct {
		mangle func(map[string]any)
		forge  func(map[string]any) string
	}{
		"another nonce":           {mangle: set("nonce", "x")},
		"no nonce":                {mangle: func(c map[string]any) { delete(c, "nonce") }},
		"another audience":        {mangle: set("aud", "another client")},
		"several audiences":       {mangle: set("aud", []string{idptest.ClientID, "other"})},
		"another party":           {mangle: set("azp", "other")},
		"another issuer":          {mangle: set("iss", "https://evil.example")},
		"expired":                 {mangle: set("exp", time.Now().Add(-time.Second).Unix())},
		"not yet valid":           {mangle: set("nbf", time.Now().Add(time.Hour).Unix())},
		"no subject":              {mangle: set("sub", "")},
		"a long subject":          {mangle: set("sub", strings.Repeat("x", 256))},
		"another access token":    {mangle: set("at_hash", "AAAAAAAAAAAAAAAAAAAAAA")},
		"no signature":            {forge: none},
		"no token":                {forge: func(map[string]any) string { return "" }},
		"the key of another":      {forge: idptest.New(t).Sign},
		"a claim in other places": {mangle: set("_claim_names", map[string]string{"groups": "src1"})},
	} {
		f := newFixture(t)
		f.Mangle, f.Forge = c.mangle, c.forge
		if who, err := f.signIn(t); !errors.Is(err, idp.ErrInvalid) {
			t.Errorf("%s: %+v, %v", name, who, err)
		} else if strings.Contains(err.Error(), "\n") || len(err.Error()) > 500 {
			t.Errorf("%s: the log gets %q", name, err)
		}
	}
}

func TestAnAnswerThatIsNotForThisAttemptIsRefused(t *testing.T) {
	long := strings.Repeat("x", 5000)
	for name, c := range map[string]struct {
		answer func(url.Values)
		later  time.Duration
		want   error
	}{
		"another state":      {answer: func(q url.Values) { q.Set("state", "x") }, want: idp.ErrForeign},
		"no state":           {answer: func(q url.Values) { q.Del("state") }, want: idp.ErrForeign},
		"two states":         {answer: func(q url.Values) { q.Add("state", "x") }, want: idp.ErrForeign},
		"another issuer":     {answer: func(q url.Values) { q.Set("iss", "https://evil") }, want: idp.ErrInvalid},
		"no issuer":          {answer: func(q url.Values) { q.Del("iss") }, want: idp.ErrInvalid},
		"no code":            {answer: func(q url.Values) { q.Del("code") }, want: idp.ErrInvalid},
		"another code":       {answer: func(q url.Values) { q.Set("code", "x") }, want: idp.ErrInvalid},
		"a long code":        {answer: func(q url.Values) { q.Set("code", long) }, want: idp.ErrInvalid},
		"a refusal":          {answer: func(q url.Values) { q.Set("error", "access_denied") }, want: idp.ErrDenied},
		"too late":           {later: idp.Life, want: idp.ErrForeign},
		"at the last moment": {later: idp.Life - time.Minute},
	} {
		f := newFixture(t)
		f.Answer = c.answer
		address, a, err := f.client.Begin(t.Context(), "o", "corp", false)
		if err != nil {
			t.Fatal(err)
		}
		_, answer, err := f.SignIn(address)
		if err != nil {
			t.Fatal(err)
		}
		if f.later = c.later; name == "at the last moment" {
			f.Mangle = func(claims map[string]any) { claims["exp"] = time.Now().Add(time.Hour).Unix() }
		}
		if _, _, err := f.client.Finish(t.Context(), "o", &a, answer); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func TestACodeIsRedeemedOnce(t *testing.T) {
	f := newFixture(t)
	address, a, err := f.client.Begin(t.Context(), "o", "corp", false)
	if err != nil {
		t.Fatal(err)
	}
	_, answer, err := f.SignIn(address)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []error{nil, idp.ErrInvalid} {
		if _, _, err := f.client.Finish(t.Context(), "o", &a, answer); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
	if f.Reused != 1 { // by this test, and not by trying two ways of client authentication
		t.Errorf("codes came %d times too often", f.Reused)
	}
}

func TestAProviderThatIsDownOrTalksTooMuchIsUnavailable(t *testing.T) {
	flood := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Write([]byte(`{"access_token":"` + strings.Repeat("x", 300<<10) + `"}`))
	}
	elsewhere := func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://169.254.169.254/latest", http.StatusFound)
	}
	down := func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "<b>down</b>", http.StatusBadGateway) }
	for _, path := range []string{"/.well-known/openid-configuration", "/token"} {
		for name, broken := range map[string]http.HandlerFunc{"flood": flood, "elsewhere": elsewhere, "down": down} {
			f := newFixture(t)
			f.Broken[path] = broken
			_, err := f.signIn(t)
			if !errors.Is(err, idp.ErrUnavailable) && (path != "/token" || !errors.Is(err, idp.ErrInvalid)) {
				t.Errorf("%s at %s: %v", name, path, err)
			}
			if delete(f.Broken, path); path == "/token" {
				continue
			}
			if _, err := f.signIn(t); !errors.Is(err, idp.ErrUnavailable) {
				t.Errorf("a provider that failed just now was asked again: %v", err)
			}
			f.later = 3 * time.Second
			if _, err := f.signIn(t); err != nil {
				t.Errorf("%s is over: %v", name, err)
			}
		}
	}
}

// A provider that is not trusted otherwise must not make the gateway call what only the gateway can reach.
func TestAProviderCannotNameAPrivateHost(t *testing.T) {
	f, inside := newFixture(t), idptest.New(t)
	f.Broken["/.well-known/openid-configuration"] = func(w http.ResponseWriter, _ *http.Request) {
		json.NewEncoder(w).Encode(map[string]any{"issuer": f.URL, "authorization_endpoint": f.URL + "/authorize",
			"token_endpoint": inside.URL + "/token", "jwks_uri": f.URL + "/keys",
			"authorization_response_iss_parameter_supported": true})
	}
	called := false
	inside.Broken["/token"] = func(http.ResponseWriter, *http.Request) { called = true }
	if _, err := f.signIn(t); !errors.Is(err, idp.ErrUnavailable) || called {
		t.Errorf("called %v: %v", called, err)
	}
}

func TestOnlyTheDomainsOfAProviderSignIn(t *testing.T) {
	f := newFixture(t)
	f.config.Domains = []string{"example.com"}
	f.client.Configure([]idp.Provider{f.config})
	for email, c := range map[string]struct {
		verified any
		want     error
	}{
		"anna@EXAMPLE.com":             {true, nil},
		"ben@example.com":              {"true", nil},
		"anna@example.com ":            {true, idp.ErrDomain},
		"carl@example.com":             {false, idp.ErrDomain},
		"dora@sub.example.com":         {true, idp.ErrDomain},
		"eve@evil.example@example.com": {true, idp.ErrDomain},
		"":                             {true, idp.ErrDomain},
	} {
		f.Person = map[string]any{"sub": "s", "email": email, "email_verified": c.verified}
		if _, err := f.signIn(t); !errors.Is(err, c.want) {
			t.Errorf("%q, verified %v: %v, want %v", email, c.verified, err, c.want)
		}
	}
}

func TestConversationsWithProvidersAreBoundedInAllAndPerAddress(t *testing.T) {
	f := newFixture(t)
	pool := f.client.Places()
	for pool.Take("192.0.2.1", 1) == nil {
	}
	var refused *share.Refused
	if _, _, err := f.client.Begin(t.Context(), "192.0.2.1", "corp", false); !errors.As(err, &refused) {
		t.Errorf("an address beyond its share: %v", err)
	}
	if _, _, err := f.client.Begin(t.Context(), "192.0.2.2", "corp", false); err != nil {
		t.Errorf("another address: %v", err)
	}
	if used := pool.Held("192.0.2.2"); used != 0 {
		t.Errorf("%d places were not given back", used)
	}
}
