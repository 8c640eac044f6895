package oauth_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"stagedoor/actors/tokens"
)

// anchor is a case from the tests of an established authorization server. It is either repeated
// here or has a reason why it does not apply.
type anchor struct {
	from, name string
	grace      time.Duration
	play       func(t *testing.T, s *service)
	// without says why the case does not apply.
	without string
}

// anchors lists cases that other authorization servers test. The code is our own.
var anchors = []anchor{
	// The integration tests of fosite, most of which Authelia's fork has, too.
	{from: "fosite", name: "a code for a scope that there is not", play: func(t *testing.T, s *service) {
		if q := returned(t, s.signedIn().do("GET", s.query("scope", "profile unheard-of"),
			nil)); q.Get("error") != "invalid_scope" || q.Has("code") {
			t.Errorf("got %v", q)
		}
	}},
	{from: "fosite", name: "an audience is asked for", play: func(t *testing.T, s *service) {
		// Tokens have no audience but this service, so the unknown parameter is ignored (RFC 6749 3.1).
		s.works(t, s.redeemed(t, "audience", "https://api.example"))
	}},
	{from: "fosite", name: "a code brings a token that opens the resource",
		play: func(t *testing.T, s *service) { s.works(t, s.redeemed(t)) }},
	{from: "fosite", name: "a code twice", play: func(t *testing.T, s *service) {
		code := s.authorize()
		_, first := s.exchange(code)
		if status, body := s.exchange(code); status != http.StatusBadRequest || body["error"] != "invalid_grant" {
			t.Errorf("the second time: %d %v", status, body)
		}
		s.fails(t, first)
	}},
	{from: "fosite", name: "the verifier proves the challenge", play: func(t *testing.T, s *service) {
		code := s.authorize("code_challenge", challenge, "code_challenge_method", "S256")
		if status, body := s.exchange(code, "code_verifier", verifier); status != http.StatusOK {
			t.Errorf("got %d %v", status, body)
		}
	}},
	{from: "fosite", name: "another verifier, or none", play: func(t *testing.T, s *service) {
		for _, pairs := range [][]string{{"code_verifier", verifier[1:] + "x"}, nil} {
			code := s.authorize("code_challenge", challenge, "code_challenge_method", "S256")
			if status, body := s.exchange(code, pairs...); status != http.StatusBadRequest ||
				body["error"] != "invalid_grant" {
				t.Errorf("%v: %d %v", pairs, status, body)
			}
		}
	}},
	{from: "fosite", name: "a plain challenge", play: func(t *testing.T, s *service) {
		if q := returned(t, s.signedIn().do("GET", s.query("code_challenge", challenge, "code_challenge_method",
			"plain"), nil)); q.Get("error") != "invalid_request" {
			t.Errorf("got %v", q)
		}
	}},
	{from: "fosite", name: "public clients must send a challenge", without: "every app has a secret"},
	{from: "fosite", name: "response modes", play: func(t *testing.T, s *service) {
		// Only the query is offered; a response_mode is an unknown parameter.
		s.works(t, s.redeemed(t, "response_mode", "form_post"))
	}},
	{from: "fosite", name: "implicit and hybrid flows", play: func(t *testing.T, s *service) {
		for _, kind := range []string{"token", "id_token", "code token", "code id_token", "code id_token token"} {
			if q := returned(t, s.signedIn().do("GET", s.query("response_type", kind),
				nil)); q.Get("error") != "unsupported_response_type" || q.Has("access_token") {
				t.Errorf("%s: got %v", kind, q)
			}
		}
	}},
	{from: "fosite", name: "other grants", play: func(t *testing.T, s *service) {
		for _, kind := range []string{"password", "client_credentials", "implicit",
			"urn:ietf:params:oauth:grant-type:jwt-bearer", "urn:ietf:params:oauth:grant-type:device_code",
			"urn:ietf:params:oauth:grant-type:token-exchange"} {
			status, _, body := s.post(pathToken, append(s.authentication(), "grant_type", kind, "username", "anna",
				"password", password, "scope", "profile")...)
			if status != http.StatusBadRequest || body["error"] != "unsupported_grant_type" ||
				body["access_token"] != nil {
				t.Errorf("%s: %d %v", kind, status, body)
			}
		}
	}},
	{from: "fosite", name: "pushed authorization requests", without: "not offered, and not in the metadata"},
	{from: "fosite", name: "ID tokens", without: "this is no OpenID provider"},
	{from: "fosite", name: "a refresh token without an offline scope", play: func(t *testing.T, s *service) {
		// Every grant can be refreshed.
		if body := s.redeemed(t, "scope", "profile"); body["refresh_token"] == nil {
			t.Errorf("got %v", body)
		}
	}},
	{from: "fosite", name: "a refresh changes both tokens and not whose they are",
		play: func(t *testing.T, s *service) {
			before := s.redeemed(t)
			was := s.introspected(t, before["access_token"])
			s.pass(2 * time.Second)
			after := s.refreshed(t, before, http.StatusOK)
			is := s.introspected(t, after["access_token"])
			if before["access_token"] == after["access_token"] || before["refresh_token"] == after["refresh_token"] {
				t.Error("a token stayed the same")
			}
			for _, same := range []string{"active", "client_id", "scope", "sub"} {
				if was[same] != is[same] {
					t.Errorf("%s was %v and is %v", same, was[same], is[same])
				}
			}
			if is["exp"].(float64) <= was["exp"].(float64) || is["iat"].(float64) <= was["iat"].(float64) {
				t.Errorf("was %v, is %v", was, is)
			}
		}},
	{from: "fosite", name: "scope or audience taken from the client meanwhile",
		without: "scopes are the grant's, which its user can revoke"},
	{from: "fosite", name: "an expired refresh token, and one a moment before", play: func(t *testing.T, s *service) {
		body := s.redeemed(t)
		s.pass(30*24*time.Hour - time.Second)
		body = s.refreshed(t, body, http.StatusOK)
		s.pass(30 * 24 * time.Hour)
		s.refreshed(t, body, http.StatusBadRequest)
	}},
	{from: "fosite", name: "a refresh token that was rotated", play: func(t *testing.T, s *service) {
		first := s.redeemed(t)
		second := s.refreshed(t, first, http.StatusOK)
		s.refreshed(t, first, http.StatusBadRequest)
		s.refreshed(t, second, http.StatusBadRequest)
		s.fails(t, second)
	}},
	{from: "fosite", name: "an unknown token is revoked", play: func(t *testing.T, s *service) { s.revoke(t, "asdf") }},
	{from: "fosite", name: "an access token is revoked", play: func(t *testing.T, s *service) {
		body := s.redeemed(t)
		s.revoke(t, body["access_token"])
		s.fails(t, body)
		s.refreshed(t, body, http.StatusOK)
	}},
	{from: "fosite", name: "a refresh token is revoked", play: func(t *testing.T, s *service) {
		body := s.redeemed(t)
		s.revoke(t, body["refresh_token"])
		s.fails(t, body)
		s.refreshed(t, body, http.StatusBadRequest)
	}},
	{from: "fosite", name: "introspection by a bearer token", play: func(t *testing.T, s *service) {
		// Only clients introspect, with their own secret.
		access := s.redeemed(t)["access_token"].(string)
		r := httptest.NewRequest("POST", "/api/oauth2/introspect",
			strings.NewReader(url.Values{"token": {access}}.Encode()))
		r.Header.Set("Content-Type", formMedia)
		r.Header.Set("Authorization", "Bearer "+access)
		if status, _, body := s.send(r); status != http.StatusUnauthorized || body["error"] != "invalid_client" ||
			body["active"] != nil {
			t.Errorf("got %d %v", status, body)
		}
	}},
	{from: "fosite", name: "an introspected token that there is not", play: func(t *testing.T, s *service) {
		if body := s.introspected(t, "at_unheard-of"); body["active"] != false || len(body) != 1 {
			t.Errorf("got %v", body)
		}
	}},
	{from: "Authelia", name: "rich authorization requests, signed bindings and dynamic registration",
		without: "not offered: developers register apps by their own route"},

	// Hydra's tests of the code flow and of graceful rotation.
	{from: "Hydra", name: "the user says no", play: func(t *testing.T, s *service) {
		c := s.browser()
		w := c.decide(c.follow(c.signIn(c.do("GET", s.query(), nil), "anna")), "deny")
		if q := returned(t, w); q.Get("error") != "access_denied" || q.Get("state") != "xyz" || q.Has("code") {
			t.Errorf("got %v", q)
		}
	}},
	{from: "Hydra", name: "the access token of before a rotation", play: func(t *testing.T, s *service) {
		// Hydra ends it; here it lasts its two hours, as RFC 6749 leaves open.
		first := s.redeemed(t)
		s.refreshed(t, first, http.StatusOK)
		s.works(t, first)
		s.pass(7200 * time.Second)
		s.fails(t, first)
	}},
	{from: "Hydra", name: "an empty subject, login hints, prompt and max_age", without: "OpenID Connect's"},
	{from: "Hydra", name: "hooks before tokens are issued", without: "there are none"},
	{from: "Hydra", name: "within the grace the same successor again", grace: 10 * time.Second,
		play: func(t *testing.T, s *service) {
			first := s.redeemed(t)
			second := s.refreshed(t, first, http.StatusOK)
			s.pass(9 * time.Second)
			again := s.refreshed(t, first, http.StatusOK)
			if again["access_token"] != second["access_token"] || again["refresh_token"] != second["refresh_token"] {
				t.Errorf("got %v after %v", again, second)
			}
			s.works(t, second)
		}},
	{from: "Hydra", name: "after the grace the family ends", grace: 10 * time.Second,
		play: func(t *testing.T, s *service) {
			first := s.redeemed(t)
			second := s.refreshed(t, first, http.StatusOK)
			s.pass(10 * time.Second)
			s.refreshed(t, first, http.StatusBadRequest)
			s.fails(t, second)
		}},
	{from: "Hydra", name: "within the grace, but the successor was used", grace: 10 * time.Second,
		play: func(t *testing.T, s *service) {
			first := s.redeemed(t)
			third := s.refreshed(t, s.refreshed(t, first, http.StatusOK), http.StatusOK)
			s.refreshed(t, first, http.StatusBadRequest)
			s.fails(t, third)
			s.refreshed(t, third, http.StatusBadRequest)
		}},
	{from: "Hydra", name: "the consent is revoked", play: func(t *testing.T, s *service) {
		body := s.redeemed(t)
		must(t, s.registry.RevokeUserApp(t.Context(), s.user.ID, s.app.ID))
		s.fails(t, body)
		s.refreshed(t, body, http.StatusBadRequest)
	}},

	// dex's conformance tests of its stores.
	{from: "dex", name: "a client is removed", play: func(t *testing.T, s *service) {
		body := s.redeemed(t)
		must(t, s.registry.DisableApp(t.Context(), s.app.ID))
		s.fails(t, body)
		if status, _, body := s.post(pathToken, append(s.authentication(), "grant_type", "refresh_token",
			"refresh_token", body["refresh_token"].(string))...); status != http.StatusUnauthorized ||
			body["error"] != "invalid_client" {
			t.Errorf("got %d %v", status, body)
		}
	}},
	{from: "dex", name: "a code that expired", play: func(t *testing.T, s *service) {
		code := s.authorize()
		s.pass(time.Minute)
		if status, body := s.exchange(code); status != http.StatusBadRequest || body["error"] != "invalid_grant" {
			t.Errorf("got %d %v", status, body)
		}
	}},
	{from: "dex", name: "two updates at once", without: "updates are commands in one order: " +
		"TestHistoriesAreLinearizable of actors/tokens"},
	{from: "dex", name: "what has expired is collected", without: "TestSweepRemovesOnlyWhatIsDead of actors/tokens"},
	{from: "dex", name: "connectors and signing keys", without: "there are none"},
}

func TestCasesOfOtherAuthorizationServers(t *testing.T) {
	for _, a := range anchors {
		t.Run(a.from+": "+a.name, func(t *testing.T) {
			if (a.play == nil) == (a.without == "") {
				t.Fatal("a case is played, or there is a reason")
			}
			if a.play != nil {
				a.play(t, start(t, func(o *options) { o.config = tokens.Config{RefreshGrace: a.grace} }))
			}
		})
	}
}

// signedIn returns a browser in which the user anna has signed in.
func (s *service) signedIn() *client {
	s.t.Helper()
	c := s.browser()
	c.signIn(c.do("GET", s.query(), nil), "anna")
	return c
}

func (s *service) authentication() []string {
	return []string{"client_id", s.app.ClientID, "client_secret", s.secret}
}

// redeemed completes the whole flow and returns the token response.
func (s *service) redeemed(t *testing.T, pairs ...string) map[string]any {
	t.Helper()
	status, body := s.exchange(s.authorize(pairs...))
	if status != http.StatusOK {
		t.Fatalf("exchange: %d %v", status, body)
	}
	return body
}

// refreshed uses the refresh token of a token response and checks the status.
func (s *service) refreshed(t *testing.T, reply map[string]any, want int) map[string]any {
	t.Helper()
	token, _ := reply["refresh_token"].(string)
	status, _, body := s.post(pathToken, append(s.authentication(), "grant_type", "refresh_token", "refresh_token",
		token)...)
	if status != want || want == http.StatusBadRequest && body["error"] != "invalid_grant" {
		t.Errorf("refresh: %d %v, want %d", status, body, want)
	}
	return body
}

func (s *service) introspected(t *testing.T, token any) map[string]any {
	t.Helper()
	status, _, body := s.post("/api/oauth2/introspect", append(s.authentication(), "token", token.(string))...)
	if status != http.StatusOK {
		t.Fatalf("introspect: %d %v", status, body)
	}
	return body
}

func (s *service) revoke(t *testing.T, token any) {
	t.Helper()
	if status, _, body := s.post("/api/oauth2/revoke",
		append(s.authentication(), "token", token.(string))...); status != http.StatusOK {
		t.Errorf("revoke: %d %v", status, body)
	}
}

// works checks that the access token of a token response is accepted.
func (s *service) works(t *testing.T, reply map[string]any) { s.opens(t, reply, http.StatusOK) }

// fails checks that the access token of a token response is refused.
func (s *service) fails(t *testing.T, reply map[string]any) {
	s.opens(t, reply, http.StatusUnauthorized)
}

func (s *service) opens(t *testing.T, reply map[string]any, want int) {
	t.Helper()
	token, _ := reply["access_token"].(string)
	if status, _, body := s.get("/api/oauth2/userinfo", token); status != want {
		t.Errorf("userinfo: %d %v, want %d", status, body, want)
	}
}
