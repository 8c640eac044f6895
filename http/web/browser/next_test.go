package browser_test

import (
	"net/url"
	"strings"
	"testing"

	"stagedoor/http/web/browser"
)

func TestOnlyPathsOfThisServiceAreComeBackTo(t *testing.T) {
	for _, next := range []string{"/", "/account", "/account/keys?done=revoked#list", "/admin/users/1", "/a:b",
		"/account?u=https://example.com/"} {
		if got := browser.LocalPath(next, "fallback"); got != next {
			t.Errorf("%q: %q", next, got)
		}
	}
	for _, next := range []string{"", "account", "//evil.example", "///evil.example", `/\evil.example`,
		`\/evil.example`, "https://evil.example", "javascript:alert(1)",
		"/\t/evil.example", "/\n/evil.example", " /account", "/account ", "/%5Cevil.example", "/a//b",
		"/%2F/evil.example", "/é", "/" + strings.Repeat("a", 2000), "/%zz"} {
		if got := browser.LocalPath(next, "fallback"); got != "fallback" {
			t.Errorf("%q: %q", next, got)
		}
	}
}

func FuzzLocalPathStaysHere(f *testing.F) {
	for _, s := range []string{"/account", "//x", `/\x`, "/%2f%2fx", "/..//x", "/a?b#c"} {
		f.Add(s)
	}
	base, err := url.Parse("https://here.example/signin")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, next string) {
		got := browser.LocalPath(next, "/account")
		// What a browser makes of it.
		text := strings.ReplaceAll(strings.NewReplacer("\t", "", "\n", "", "\r", "").Replace(got), `\`, "/")
		u, err := base.Parse(text)
		if err != nil || u.Host != base.Host || u.Scheme != base.Scheme || strings.HasPrefix(text, "//") {
			t.Errorf("%q leads to %v, %v", next, u, err)
		}
	})
}
