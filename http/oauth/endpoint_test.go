package oauth_test

import (
	"bytes"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"stagedoor/actors/tokens"
	"stagedoor/http/oauth"
	"stagedoor/providers/dialogue"
)

// Errors have the flat body of RFC 6749 5.2, and a code is not used up by a request that does not
// reach the registry (attacks H2 and H3).
func TestTokenRequestsThatAreRefused(t *testing.T) {
	s := start(t, nil)
	code := s.authorize()
	good := url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {callback},
		"client_id": {s.app.ClientID}, "client_secret": {s.secret}}
	without := func(names ...string) url.Values {
		form := with(good)
		for _, n := range names {
			form.Del(n)
		}
		return form
	}
	twice := with(good)
	twice["code"] = []string{code, code}
	refresh := url.Values{"grant_type": {"refresh_token"}, "client_id": {s.app.ClientID}, "client_secret": {s.secret}}
	post := basic(s.app.ClientID, s.secret)
	for name, test := range map[string]struct {
		body          string
		media         string
		query         string
		authorization []string
		status        int
		word          string
		challenge     string
	}{
		"JSON": {body: `{"grant_type":"authorization_code"}`, media: "application/json",
			status: 400, word: "invalid_request"},
		"no content type": {body: good.Encode(), media: "-", status: 400, word: "invalid_request"},
		"BOM": {body: "\ufeff" + "grant_type=refresh_token&client_id=x&client_secret=y",
			status: 400, word: "invalid_request"},
		"semicolons": {body: strings.ReplaceAll(good.Encode(), "&", ";"), status: 400,
			word: "invalid_request"},
		"broken escape": {body: good.Encode() + "&x=%zz", status: 400, word: "invalid_request"},
		"invalid UTF-8": {body: good.Encode() + "&x=%ff", status: 400, word: "invalid_request"},
		"1 MB":          {body: "x=" + strings.Repeat("a", 1<<20), status: 413, word: "invalid_request"},
		"empty":         {status: 400, word: "invalid_request"},
		"code twice":    {body: twice.Encode(), status: 400, word: "invalid_request"},
		"no grant_type": {body: without("grant_type").Encode(), status: 400, word: "invalid_request"},
		"password grant": {body: with(good, "grant_type", "password").Encode(), status: 400,
			word: "unsupported_grant_type"},
		"client_credentials": {body: with(good, "grant_type", "client_credentials").Encode(), status: 400,
			word: "unsupported_grant_type"},
		"grant_type in capitals": {body: with(good, "grant_type", "AUTHORIZATION_CODE").Encode(), status: 400,
			word: "unsupported_grant_type"},
		"no code":         {body: without("code").Encode(), status: 400, word: "invalid_request"},
		"no redirect_uri": {body: without("redirect_uri").Encode(), status: 400, word: "invalid_request"},
		"no client_id":    {body: without("client_id").Encode(), status: 400, word: "invalid_request"},
		"no secret":       {body: without("client_secret").Encode(), status: 401, word: "invalid_client"},
		"wrong secret": {body: with(good, "client_secret", "as_wrong").Encode(), status: 401,
			word: "invalid_client"},
		"unknown client": {body: with(good, "client_id", "ci_unknown").Encode(), status: 401,
			word: "invalid_client"},
		"short verifier": {body: with(good, "code_verifier", verifier[:42]).Encode(), status: 400,
			word: "invalid_request"},
		"long verifier": {body: with(good, "code_verifier", strings.Repeat("v", 129)).Encode(),
			status: 400, word: "invalid_request"},
		"verifier with a space": {body: with(good, "code_verifier", verifier+" ").Encode(), status: 400,
			word: "invalid_request"},
		"secret in the address": {body: without("client_secret").Encode(), query: "?client_secret=" + s.secret,
			status: 400, word: "invalid_request"},
		"code in the address": {body: without("code").Encode(), query: "?code=" + code, status: 400,
			word: "invalid_request"},
		"broken address": {body: good.Encode(), query: "?%zz", status: 400, word: "invalid_request"},
		"Basic and secret": {body: good.Encode(), authorization: []string{post}, status: 400,
			word: "invalid_request"},
		"Basic twice": {body: without("client_id", "client_secret").Encode(),
			authorization: []string{post, post}, status: 400, word: "invalid_request"},
		"Basic and another id": {body: with(without("client_secret"), "client_id", "ci_other").Encode(),
			authorization: []string{post}, status: 400, word: "invalid_request"},
		"Basic with a wrong secret": {body: without("client_id", "client_secret").Encode(),
			authorization: []string{basic(s.app.ClientID,
				"as_wrong")}, status: 401, word: "invalid_client", challenge: `Basic realm="oauth"`},
		"Basic without a colon": {body: without("client_id", "client_secret").Encode(),
			authorization: []string{"Basic eA=="}, status: 401, word: "invalid_client",
			challenge: `Basic realm="oauth"`},
		"Basic that is no base64": {body: without("client_id", "client_secret").Encode(),
			authorization: []string{"Basic !!!"}, status: 401, word: "invalid_client",
			challenge: `Basic realm="oauth"`},
		"Bearer": {body: without("client_id", "client_secret").Encode(),
			authorization: []string{"Bearer x"}, status: 401, word: "invalid_client", challenge: `Basic realm="oauth"`},
		"no refresh_token": {body: refresh.Encode(), status: 400, word: "invalid_request"},
		"unknown refresh_token": {body: with(refresh, "refresh_token", "rt_x").Encode(), status: 400,
			word: "invalid_grant"},
		"unknown scope of a refresh": {body: with(refresh, "refresh_token", "rt_x", "scope", "admin").Encode(),
			status: 400, word: "invalid_scope"},
		"unknown code": {body: with(good, "code", "ac_x").Encode(), status: 400, word: "invalid_grant"},
	} {
		r := httptest.NewRequest("POST", pathToken+test.query, strings.NewReader(test.body))
		if r.Header.Set("Content-Type", formMedia); test.media == "-" {
			r.Header.Del("Content-Type")
		} else if test.media != "" {
			r.Header.Set("Content-Type", test.media)
		}
		r.Header["Authorization"] = test.authorization
		// vary the address so that no limit applies
		r.RemoteAddr = "192.0.2." + strings.Repeat("1", len(name)%3+1) + ":1"
		status, h, body := s.send(r)
		description, _ := body["error_description"].(string)
		if status != test.status || body["error"] != test.word || len(body) != 2 ||
			h.Get("WWW-Authenticate") != test.challenge {
			t.Errorf("%s: %d %v %q, want %d %s", name, status, body, h.Get("WWW-Authenticate"), test.status, test.word)
		}
		if description == "" || strings.ContainsAny(description, "\"\\\r\n") {
			t.Errorf("%s: description %q", name, description)
		}
		if h.Get("Cache-Control") != "no-store" || h.Get("Pragma") != "no-cache" ||
			h.Get("Content-Type") != "application/json" {
			t.Errorf("%s: headers %v", name, h)
		}
	}
	// After all of that the code is good still.
	if status, body := s.exchange(code); status != http.StatusOK {
		t.Errorf("the code: %d %v", status, body)
	}
}

// An error names the parameter that is repeated, unless its name is not one that a description can hold.
func TestARepeatedParameterIsNamed(t *testing.T) {
	s := start(t, nil)
	for body, want := range map[string]string{
		"client_id=x&code=a&code=b&grant_type=y":                         "code is repeated",
		"state=1&state=2&code=a&code=b":                                  "code is repeated",
		"%22%0a=1&%22%0a=2":                                              "a parameter is repeated",
		strings.Repeat("a", 65) + "=1&" + strings.Repeat("a", 65) + "=2": "a parameter is repeated",
	} {
		r := httptest.NewRequest("POST", pathToken, strings.NewReader(body))
		r.Header.Set("Content-Type", formMedia)
		status, _, reply := s.send(r)
		if status != http.StatusBadRequest || reply["error"] != "invalid_request" ||
			reply["error_description"] != want {
			t.Errorf("%s: %d %v, want %s", body, status, reply, want)
		}
	}
}

func TestMultipartIsNoForm(t *testing.T) {
	s := start(t, nil)
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	must(t, w.WriteField("grant_type", "refresh_token"))
	must(t, w.Close())
	r := httptest.NewRequest("POST", pathToken, &body)
	r.Header.Set("Content-Type", w.FormDataContentType())
	if status, _, b := s.send(r); status != http.StatusBadRequest || b["error"] != "invalid_request" {
		t.Errorf("%d %v", status, b)
	}
}

func TestClientsMayUseTheAuthorizationHeader(t *testing.T) {
	s := start(t, nil)
	for _, id := range []string{"", s.app.ClientID} {
		form := url.Values{"grant_type": {"authorization_code"}, "code": {s.authorize()}, "redirect_uri": {callback}}
		if id != "" {
			form.Set("client_id", id)
		}
		r := httptest.NewRequest("POST", pathToken, strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", formMedia+"; charset=UTF-8")
		r.Header.Set("Authorization", basic(s.app.ClientID, s.secret))
		if status, _, body := s.send(r); status != http.StatusOK {
			t.Errorf("client_id %q in the body: %d %v", id, status, body)
		}
	}
}

// A client library that does not know how to authenticate tries the header first and repeats the
// request with the same code and the credentials in the form.
func TestFailedAuthenticationLeavesTheCode(t *testing.T) {
	s := start(t, nil)
	code := s.authorize("code_challenge", challenge, "code_challenge_method", "S256")
	if status, body := s.exchange(code, "client_secret", "as_wrong"); status != http.StatusBadRequest {
		t.Errorf("the secret twice: %d %v", status, body)
	}
	if status, _, body := s.post(pathToken, "grant_type", "authorization_code", "code", code, "redirect_uri", callback,
		"client_id", s.app.ClientID,
		"client_secret", "as_wrong", "code_verifier", verifier); status != http.StatusUnauthorized {
		t.Errorf("wrong secret: %d %v", status, body)
	}
	if status, body := s.exchange(code, "code_verifier", verifier); status != http.StatusOK {
		t.Errorf("then the right one: %d %v", status, body)
	}
}

func TestWrongRedirectURILeavesTheCode(t *testing.T) {
	s := start(t, nil)
	code := s.authorize()
	for _, uri := range []string{"https://app.example.com/cb/", "https://app.example.com/%63b",
		"https://evil.example/"} {
		status, _, body := s.post(pathToken, "grant_type", "authorization_code", "code", code, "redirect_uri", uri,
			"client_id", s.app.ClientID, "client_secret", s.secret)
		if status != http.StatusBadRequest || body["error"] != "invalid_grant" {
			t.Errorf("%s: %d %v", uri, status, body)
		}
	}
	if status, body := s.exchange(code); status != http.StatusOK {
		t.Errorf("then the right one: %d %v", status, body)
	}
}

func TestTheAppBeyondTheLimitIsAConflictThatNamesIt(t *testing.T) {
	s := start(t, nil)
	token, _, err := s.registry.CreateDeveloperToken(t.Context(), s.user.ID, "laptop")
	must(t, err)
	register := func() (int, map[string]any) {
		r := httptest.NewRequest("POST", "/api/oauth_apps",
			strings.NewReader(`{"name":"N","redirect_uri":"https://notes.example.com/cb"}`))
		r.Header.Set("Authorization", "Bearer "+token)
		status, _, body := s.send(r)
		return status, body
	}
	for range 99 { // the service starts with one app
		if status, body := register(); status != http.StatusOK {
			t.Fatalf("%d %v", status, body)
		}
	}
	status, body := register()
	if message, _ := body["message"].(string); status != http.StatusConflict || !strings.Contains(message,
		"at most 100") || body["success"] != false {
		t.Errorf("the 101st app: %d %v", status, body)
	}
}

func TestLeakedCodesAreRevoked(t *testing.T) {
	for name, misuse := range map[string][]string{
		"wrong verifier": {"code_verifier", strings.Repeat("v", 43)},
	} {
		s := start(t, nil)
		code := s.authorize("code_challenge", challenge, "code_challenge_method", "S256")
		form := []string{"grant_type", "authorization_code", "code", code, "client_id", s.app.ClientID, "client_secret",
			s.secret}
		right := map[string]string{"redirect_uri": callback, "code_verifier": verifier}
		right[misuse[0]] = misuse[1]
		for field, value := range right {
			form = append(form, field, value)
		}
		if status, _, body := s.post(pathToken, form...); status != http.StatusBadRequest ||
			body["error"] != "invalid_grant" {
			t.Errorf("%s: %d %v", name, status, body)
		}
		if status, body := s.exchange(code, "code_verifier", verifier); status != http.StatusBadRequest ||
			body["error"] != "invalid_grant" {
			t.Errorf("%s, then right: %d %v", name, status, body)
		}
	}
}

func TestReplayedCodeEndsWhatItBrought(t *testing.T) {
	s := start(t, nil)
	code := s.authorize()
	_, body := s.exchange(code)
	access := body["access_token"].(string)
	if status, again := s.exchange(code); status != http.StatusBadRequest || again["error"] != "invalid_grant" {
		t.Errorf("the second time: %d %v", status, again)
	}
	if status, _, _ := s.get("/api/oauth2/userinfo", access); status != http.StatusUnauthorized {
		t.Errorf("the access token is answered %d", status)
	}
}

// A token that is not in the header is refused (RFC 6750 3, attack F3).
func TestResourceRequestsThatAreRefused(t *testing.T) {
	s := start(t, nil)
	access, _ := s.tokens()
	for name, test := range map[string]struct {
		authorization []string
		query         string
		status        int
		challenge     string
	}{
		"nothing": {nil, "", 401, `Bearer realm="oauth"`},
		"unknown": {[]string{"Bearer at_x"}, "", 401,
			`Bearer realm="oauth", error="invalid_token", error_description="`},
		"refresh token":  {[]string{"Bearer rt_x"}, "", 401, `Bearer realm="oauth", error="invalid_token"`},
		"another scheme": {[]string{"Basic eDp5"}, "", 401, `Bearer realm="oauth"`},
		"no scheme":      {[]string{access}, "", 400, `Bearer realm="oauth", error="invalid_request"`},
		"no token":       {[]string{"Bearer "}, "", 400, `Bearer realm="oauth", error="invalid_request"`},
		"two tokens": {[]string{"Bearer " + access + " " + access}, "", 400,
			`Bearer realm="oauth", error="invalid_request"`},
		"two headers": {[]string{"Bearer " + access, "Bearer " + access}, "", 400,
			`Bearer realm="oauth", error="invalid_request"`},
		"in the address": {nil, "?access_token=" + access, 400, `Bearer realm="oauth", error="invalid_request"`},
		"in both": {[]string{"Bearer " + access}, "?access_token=" + access, 400,
			`Bearer realm="oauth", error="invalid_request"`},
		"broken address": {[]string{"Bearer " + access}, "?%zz", 400, `Bearer realm="oauth", error="invalid_request"`},
	} {
		for _, path := range []string{"/api/oauth2/userinfo", "/api/oauth2/topup"} {
			r := httptest.NewRequest("GET", path+test.query, nil)
			r.Header["Authorization"] = test.authorization
			status, h, body := s.send(r)
			if status != test.status || !strings.HasPrefix(h.Get("WWW-Authenticate"), test.challenge) ||
				body["error"] == nil || h.Get("Cache-Control") != "no-store" {
				t.Errorf("%s %s: %d %q %v, want %d", name, path, status, h.Get("WWW-Authenticate"), body, test.status)
			}
			if (name == "nothing" || name == "another scheme") && strings.Contains(h.Get("WWW-Authenticate"), "error") {
				t.Errorf("%s: a request without a token got an error code: %s", path, h.Get("WWW-Authenticate"))
			}
		}
	}
	if status, _, _ := s.get("/api/oauth2/userinfo", access); status != http.StatusOK {
		t.Errorf("the right one: %d", status)
	}
	if strings.Contains(s.log.String(), access) {
		t.Error("the token is in the log")
	}
}

// A revoked token is refused from the response of the revocation on (attack I1).
func TestRevokedTokensAreDeadAtOnce(t *testing.T) {
	s := start(t, nil)
	client := []string{"client_id", s.app.ClientID, "client_secret", s.secret}
	for range 20 {
		access, refresh := s.tokens()
		token := access
		for i, other := range []string{access, refresh} {
			status, h, body := s.post("/api/oauth2/revoke", append(client, "token", other, "token_type_hint",
				"nonsense")...)
			if status != http.StatusOK || body != nil || h.Get("Cache-Control") != "no-store" {
				t.Fatalf("revoke: %d %v", status, body)
			}
			if status, _, _ := s.get("/api/oauth2/userinfo", token); status != http.StatusUnauthorized {
				t.Fatalf("after the revoke answer %d: %d", i, status)
			}
		}
		if status, _, body := s.post(pathToken, append(client, "grant_type", "refresh_token", "refresh_token",
			refresh)...); status != http.StatusBadRequest || body["error"] != "invalid_grant" {
			t.Fatalf("refresh: %d %v", status, body)
		}
	}
	// Who knows no token learns nothing.
	for _, token := range []string{"", "at_x", "rt_x", "nonsense"} {
		want := http.StatusOK
		if token == "" {
			want = http.StatusBadRequest
		}
		if status, _, _ := s.post("/api/oauth2/revoke", append(client, "token", token)...); status != want {
			t.Errorf("revoke %q: %d", token, status)
		}
	}
	if status, _, body := s.post("/api/oauth2/revoke", "client_id", s.app.ClientID, "client_secret", "as_x", "token",
		"at_x"); status != http.StatusUnauthorized {
		t.Errorf("revoke without authentication: %d %v", status, body)
	}
}

func TestIntrospectionShowsAClientItsOwnTokens(t *testing.T) {
	s := start(t, nil)
	secret, other, err := s.registry.RegisterApp(t.Context(), tokens.NewApp{Owner: s.user.ID, Name: "Other",
		RedirectURI: "https://other.example/cb"})
	must(t, err)
	access, refresh := s.tokens("scope", "balance")
	introspect := func(id, secret, token string) map[string]any {
		status, h, body := s.post("/api/oauth2/introspect", "client_id", id, "client_secret", secret, "token", token)
		if status != http.StatusOK || h.Get("Cache-Control") != "no-store" {
			t.Fatalf("%d %v", status, body)
		}
		return body
	}
	own := introspect(s.app.ClientID, s.secret, access)
	if own["active"] != true || own["scope"] != "balance" || own["client_id"] != s.app.ClientID ||
		own["token_type"] != "Bearer" ||
		own["exp"].(float64)-own["iat"].(float64) != 7200 || own["sub"] != "1" || own["username"] != nil ||
		own["iss"] != issuer {
		t.Errorf("its own: %v", own)
	}
	if r := introspect(s.app.ClientID, s.secret, refresh); r["active"] != true || r["token_type"] != nil {
		t.Errorf("its own refresh token: %v", r)
	}
	for name, body := range map[string]map[string]any{"another's": introspect(other.ClientID, secret, access),
		"unknown": introspect(s.app.ClientID, s.secret, "at_x")} {
		if len(body) != 1 || body["active"] != false {
			t.Errorf("%s: %v", name, body)
		}
	}
	if status, _, body := s.post("/api/oauth2/introspect", "client_id", s.app.ClientID, "client_secret", "as_x",
		"token", access); status != http.StatusUnauthorized || body["error"] != "invalid_client" {
		t.Errorf("without authentication: %d %v", status, body)
	}
}

// Unknown clients and wrong secrets get the same response (attack G1). Package actors/tokens tests
// that they cost the same work.
func TestGuessesAreTreatedAlike(t *testing.T) {
	s := start(t, nil)
	call := func(id, secret string) (int, string) {
		r := httptest.NewRequest("POST", "/api/oauth2/introspect",
			strings.NewReader(url.Values{"client_id": {id}, "client_secret": {secret}, "token": {"at_x"}}.Encode()))
		r.Header.Set("Content-Type", formMedia)
		w := httptest.NewRecorder()
		s.handler.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	unknown := s.app.ClientID[:len(s.app.ClientID)-1] + "~"
	status, body := call(s.app.ClientID, "as_wrong")
	if other, text := call(unknown, "as_wrong"); status != http.StatusUnauthorized || other != status || text != body {
		t.Errorf("unknown client: %d %s, wrong secret: %d %s", other, text, status, body)
	}
}

func TestErrorsWithoutAHandlerHaveTheSameBody(t *testing.T) {
	e := &dialogue.Error{Status: 405, Message: `method "PUT" is not allowed`}
	for path, want := range map[string]string{
		"/api/oauth2/token":   `{"error":"invalid_request","error_description":"method 'PUT' is not allowed"}`,
		"/api/oauth2/unknown": `{"error":"invalid_request","error_description":"method 'PUT' is not allowed"}`,
		"/api/oauth_apps":     `{"success":false,"message":"method \"PUT\" is not allowed"}`,
	} {
		if got := string(oauth.Dialect(path)(e)); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	if got := string(oauth.Dialect("/api/oauth2/token")(&dialogue.Error{Status: 500,
		Message: "x"})); !strings.Contains(got, "server_error") {
		t.Errorf("a panic: %s", got)
	}
	if oauth.Dialect("/v1/models") != nil || oauth.Dialect("/api/oauth_appsx") != nil {
		t.Error("another's path is claimed")
	}
}

// Retry-After is 60 s at most (decisions, Errors), also where a pause is longer.
func TestRetryAfterIsAMinuteAtMost(t *testing.T) {
	s := start(t, nil)
	guess := func() (int, string) {
		status, h, _ := s.post(pathToken, "grant_type", "refresh_token", "refresh_token", "rt_x",
			"client_id", s.app.ClientID, "client_secret", "as_wrong")
		return status, h.Get("Retry-After")
	}
	for range 5 {
		guess()
	}
	if status, wait := guess(); status != http.StatusTooManyRequests || wait != "60" {
		t.Fatalf("the first pause: %d, Retry-After %q", status, wait)
	}
	s.pass(time.Minute)
	guess()
	if status, wait := guess(); status != http.StatusTooManyRequests || wait != "60" {
		t.Errorf("the second pause, which is longer: %d, Retry-After %q", status, wait)
	}
}
