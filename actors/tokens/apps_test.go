package tokens_test

import (
	"errors"
	"strings"
	"testing"

	"stagedoor/actors/tokens"
)

func TestRedirectRules(t *testing.T) {
	b := newBench(t, tokens.Config{})
	for uri, ok := range map[string]bool{
		"https://app.example.com/cb":                        true,
		"https://app.example.com":                           true,
		"https://app.example.com:8443/cb?tenant=1":          true,
		"https://xn--mnchen-3ya.example/cb":                 true,
		"http://localhost:3000/cb":                          true,
		"http://127.0.0.1/cb":                               true,
		"http://[::1]:8080/cb":                              true,
		"https://a.example/" + strings.Repeat("x", 2048-18): true,
		"https://a.example/" + strings.Repeat("x", 2049-18): false,
		"":                               false,
		"/cb":                            false,
		"//app.example.com/cb":           false,
		"http://app.example.com/cb":      false,
		"http://localhost.example.com/":  false,
		"http://127.0.0.1.example.com/":  false,
		"http://127.1/cb":                false,
		"http://2130706433/cb":           false,
		"http://[::ffff:127.0.0.1]/cb":   false,
		"http://192.168.0.1/cb":          false,
		"https:///cb":                    false,
		"https://app.example.com:65535/": true,
		"https://app.example.com:65536/": false,
		"https://:443/cb":                false,
		"https:app.example.com/cb":       false,
		"https:/app.example.com/cb":      false,
		`https:\\app.example.com\cb`:     false,
		"https://app.example.com/cb#f":   false,
		"https://app.example.com/cb#":    false,
		"https://user@app.example.com/":  false,
		"https://@app.example.com/":      false,
		"https://*.example.com/cb":       false,
		"https://app.example.com/*":      false,
		" https://app.example.com/cb":    false,
		"https://app.example.com/cb ":    false,
		"https://app.example.com/c\tb":   false,
		"https://app.example.com/c\r\nb": false,
		"https://app.example.com/c\x00b": false,
		"https://bücher.example/cb":      false,
		"https://app.example.com/%zz":    false,
		"javascript:alert(1)":            false,
		"data:text/html,x":               false,
		"myapp:/cb":                      false,
		"ftp://app.example.com/cb":       false,
		"HTTPS://app.example.com/cb":     true,
	} {
		_, a, err := b.RegisterApp(ctx, tokens.NewApp{Owner: b.user.ID, Name: "x", RedirectURI: uri})
		if (err == nil) != ok {
			t.Errorf("%.60q: got %v, want ok %v", uri, err, ok)
		}
		var field *tokens.FieldError
		if !ok && (!errors.As(err, &field) || field.Field != "redirect_uri") {
			t.Errorf("%.60q: got %v, want redirect_uri named", uri, err)
		}
		if ok && a.RedirectURI != uri {
			t.Errorf("%q became %q", uri, a.RedirectURI)
		}
	}
}

func TestAppRules(t *testing.T) {
	b := newBench(t, tokens.Config{})
	for name, c := range map[string]struct {
		change func(*tokens.NewApp)
		want   error
	}{
		"no name":         {func(n *tokens.NewApp) { n.Name = "" }, tokens.ErrInvalid},
		"blank name":      {func(n *tokens.NewApp) { n.Name = " " }, tokens.ErrInvalid},
		"long name":       {func(n *tokens.NewApp) { n.Name = strings.Repeat("é", 101) }, tokens.ErrInvalid},
		"name of 100":     {func(n *tokens.NewApp) { n.Name = strings.Repeat("é", 100) }, nil},
		"markup":          {func(n *tokens.NewApp) { n.Name = `<script>"'&` }, nil},
		"lines in name":   {func(n *tokens.NewApp) { n.Name = "a\nb" }, tokens.ErrInvalid},
		"lines in text":   {func(n *tokens.NewApp) { n.Description = "a\nb" }, nil},
		"control in text": {func(n *tokens.NewApp) { n.Description = "a\x1bb" }, tokens.ErrInvalid},
		"long text":       {func(n *tokens.NewApp) { n.Description = strings.Repeat("x", 2001) }, tokens.ErrInvalid},
		"invalid UTF-8":   {func(n *tokens.NewApp) { n.Name = "a\xff" }, tokens.ErrInvalid},
		"of no user":      {func(n *tokens.NewApp) { n.Owner = 99 }, tokens.ErrNotFound},
	} {
		n := tokens.NewApp{Owner: b.user.ID, Name: "x", RedirectURI: callback}
		c.change(&n)
		secret, a, err := b.RegisterApp(ctx, n)
		if !errors.Is(err, c.want) || (err == nil) != strings.HasPrefix(secret, "as_") {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
		if err == nil && (a.Name != n.Name || a.Description != n.Description) {
			t.Errorf("%s: got %+v", name, a)
		}
	}
}

func TestAppsAreListedAndFew(t *testing.T) {
	b := newBench(t, tokens.Config{})
	for range 99 {
		b.register(t, "x", callback)
	}
	n := tokens.NewApp{Owner: b.user.ID, Name: "x", RedirectURI: callback}
	if _, _, err := b.RegisterApp(ctx, n); !errors.Is(err, tokens.ErrTooMany) {
		t.Errorf("the 101st: got %v", err)
	}
	if err := b.DisableApp(ctx, 50); err != nil {
		t.Fatal(err)
	}
	n.RedirectURI += "/another"
	if _, _, err := b.RegisterApp(ctx, n); err != nil {
		t.Errorf("after one was disabled: %v", err)
	}
	for owner, want := range map[int64]int{b.user.ID: 101, 0: 101, 99: 0} {
		list := b.Apps(owner)
		if len(list) != want {
			t.Errorf("apps of %d: got %d, want %d", owner, len(list), want)
		}
		for i, a := range list {
			if a.ID != int64(i+1) {
				t.Fatalf("number %d is app %d", i, a.ID)
			}
		}
	}
	for name, err := range map[string]error{
		"rotate":  func() error { _, _, err := b.RotateSecret(ctx, 999, 0); return err }(),
		"disable": b.DisableApp(ctx, 999),
		"enable":  second(b.UpdateApp(ctx, 999, tokens.AppChange{Enabled: new(true)})),
		"app":     second(b.App(999)),
		"client":  second(b.AppByClientID("ci_x")),
	} {
		if !errors.Is(err, tokens.ErrNotFound) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestDeveloperTokens(t *testing.T) {
	b := newBench(t, tokens.Config{})
	token, d, err := b.CreateDeveloperToken(ctx, b.user.ID, "ci")
	if err != nil || !strings.HasPrefix(token, "dt_") || d.User != b.user.ID || d.Name != "ci" {
		t.Fatalf("got %+v, %v", d, err)
	}
	b.reopen(t, tokens.Config{})
	if u, err := b.Developer(token); err != nil || u != b.user {
		t.Errorf("got %+v, %v", u, err)
	}
	if err := b.RevokeDeveloperToken(ctx, 99, d.ID); !errors.Is(err, tokens.ErrNotFound) {
		t.Errorf("another user's: got %v", err)
	}
	for _, status := range []int{tokens.StatusDisabled, tokens.StatusActive} {
		if _, err := b.SetUserStatus(ctx, b.user.ID, status); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Developer(token); (err == nil) != (status == tokens.StatusActive) {
			t.Errorf("status %d: got %v", status, err)
		}
	}
	for range 2 {
		if err := b.RevokeDeveloperToken(ctx, b.user.ID, d.ID); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{token, "", "dt_x", token + "x"} {
		if _, err := b.Developer(bad); !errors.Is(err, tokens.ErrNoDeveloper) {
			t.Errorf("%.5s: got %v", bad, err)
		}
	}
	if list := b.DeveloperTokens(b.user.ID); len(list) != 1 || list[0].Revoked.IsZero() {
		t.Errorf("got %+v", list)
	}
	if _, _, err := b.CreateDeveloperToken(ctx, b.user.ID, "\n"); !errors.Is(err, tokens.ErrInvalid) {
		t.Errorf("name: got %v", err)
	}
	if _, _, err := b.CreateDeveloperToken(ctx, 99, "x"); !errors.Is(err, tokens.ErrNotFound) {
		t.Errorf("user: got %v", err)
	}
}

func TestDeveloperTokensAreFewAndRevokedOnesFade(t *testing.T) {
	b := newBench(t, tokens.Config{})
	var ids []string
	make1 := func() error {
		_, d, err := b.CreateDeveloperToken(ctx, b.user.ID, "x")
		ids = append(ids, d.ID)
		return err
	}
	for range 50 {
		if err := make1(); err != nil {
			t.Fatal(err)
		}
	}
	if err := make1(); !errors.Is(err, tokens.ErrTooMany) {
		t.Errorf("the 51st: got %v", err)
	}
	for i := range 80 {
		if err := b.RevokeDeveloperToken(ctx, b.user.ID, ids[i]); err != nil && ids[i] != "" {
			t.Fatal(err)
		}
		if err := make1(); err != nil && ids[i] != "" {
			t.Fatal(err)
		}
	}
	if n := len(b.DeveloperTokens(b.user.ID)); n != 100 {
		t.Errorf("kept %d, want 100", n)
	}
}
