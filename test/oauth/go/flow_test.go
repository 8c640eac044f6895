// Package oauth_test runs the whole flow with golang.org/x/oauth2 against a running
// gateway, which ../run.sh starts. It is a module of its own, so that the gateway does
// not depend on the client.
package oauth_test

import (
	"context"
	"encoding/json"
	"html"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"
)

func need(t *testing.T, name string) string {
	t.Helper()
	v := os.Getenv(name)
	if v == "" {
		t.Fatalf("%s is not set; start the suite with ../run.sh", name)
	}
	return v
}

var (
	action = regexp.MustCompile(`<form method="post" action="([^"]+)"`)
	hidden = regexp.MustCompile(`<input type="hidden" name="(id|token)" value="([^"]*)">`)
)

// authorize goes through the pages as a browser does and returns the parameters
// of the callback.
func authorize(t *testing.T, address string) url.Values {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	base, callback := need(t, "STAGEDOOR_URL"), need(t, "STAGEDOOR_REDIRECT_URI")
	browser := &http.Client{Jar: jar,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := browser.Get(address)
	for range 6 {
		if err != nil {
			t.Fatal(err)
		}
		var page strings.Builder
		if err := res.Write(&page); err != nil {
			t.Fatal(err)
		}
		if to := res.Header.Get("Location"); strings.HasPrefix(to, callback) {
			u, err := url.Parse(to)
			if err != nil {
				t.Fatal(err)
			}
			return u.Query()
		} else if to != "" {
			res, err = browser.Get(base + to)
			continue
		}
		form := url.Values{"username": {need(t, "STAGEDOOR_USERNAME")}, "password": {need(t, "STAGEDOOR_PASSWORD")}}
		if strings.Contains(page.String(), `value="allow"`) {
			form = url.Values{"decision": {"allow"}}
		}
		for _, m := range hidden.FindAllStringSubmatch(page.String(), 2) {
			form.Set(m[1], html.UnescapeString(m[2]))
		}
		to := action.FindStringSubmatch(page.String())
		if to == nil {
			t.Fatalf("no form:\n%s", page.String())
		}
		res, err = browser.PostForm(base+to[1], form)
	}
	t.Fatal("the pages do not end")
	return nil
}

func TestWholeFlow(t *testing.T) {
	base := need(t, "STAGEDOOR_URL")
	for name, style := range map[string]oauth2.AuthStyle{"form": oauth2.AuthStyleInParams, "header": oauth2.AuthStyleInHeader, "unknown": oauth2.AuthStyleAutoDetect} {
		t.Run(name, func(t *testing.T) {
			config := oauth2.Config{ClientID: need(t, "STAGEDOOR_CLIENT_ID"),
				ClientSecret: need(t, "STAGEDOOR_CLIENT_SECRET"),
				RedirectURL:  need(t, "STAGEDOOR_REDIRECT_URI"), Scopes: []string{"profile", "balance"},
				Endpoint: oauth2.Endpoint{AuthURL: base + "/api/oauth2/authorize", TokenURL: base + "/api/oauth2/token",
					AuthStyle: style}}
			verifier := oauth2.GenerateVerifier()
			q := authorize(t, config.AuthCodeURL("xyz", oauth2.S256ChallengeOption(verifier)))
			if q.Get("state") != "xyz" || q.Get("iss") != base {
				t.Errorf("callback %v", q)
			}
			token, err := config.Exchange(t.Context(), q.Get("code"), oauth2.VerifierOption(verifier))
			if err != nil {
				t.Fatal(err)
			}
			if token.TokenType != "Bearer" || time.Until(token.Expiry) < 7100*time.Second || token.Extra("scope") != "profile balance" {
				t.Errorf("token type %s, expiry %v, scope %v", token.TokenType, token.Expiry, token.Extra("scope"))
			}
			first := token.RefreshToken
			token.Expiry = time.Now().Add(-time.Hour)
			source := config.TokenSource(t.Context(), token)
			fresh, err := source.Token()
			if err != nil || fresh.RefreshToken == first {
				t.Fatalf("refresh: %v", err)
			}
			res, err := oauth2.NewClient(context.Background(), source).Get(base + "/api/oauth2/userinfo")
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			var info struct{ Username string }
			if err := json.NewDecoder(res.Body).Decode(&info); err != nil || info.Username != need(t, "STAGEDOOR_USERNAME") {
				t.Errorf("userinfo: %d %+v %v", res.StatusCode, info, err)
			}
		})
	}
}
