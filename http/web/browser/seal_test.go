package browser_test

import (
	"crypto/rand"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"stagedoor/http/web/browser"
)

func TestSealedTextsOpenInTheirBrowserForTheirPurposeAndInTimeOnly(t *testing.T) {
	now := time.Unix(1000, 0)
	clocked := func(key string) *browser.Guard {
		g, err := browser.New(
			browser.Options{
				Registry: registry{},
				Origin:   "https://a.example",
				Key:      []byte(key),
				Now:      func() time.Time { return now },
				Random:   rand.Reader,
			},
		)
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	g := clocked("key")
	mine, err := g.EnsureVisitor(httptest.NewRecorder(), request())
	if err != nil {
		t.Fatal(err)
	}
	other, err := g.EnsureVisitor(httptest.NewRecorder(), request())
	if err != nil {
		t.Fatal(err)
	}
	var unknown browser.Visitor
	const secret = "a payload that must not be readable"
	text, err := g.Seal("consent", &mine, time.Minute, secret)
	if err != nil {
		t.Fatal(err)
	}
	free, err := g.Seal("ticket", nil, time.Minute, secret)
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := g.Seal("consent", &mine, time.Minute, secret); again == text || strings.Contains(text, "payload") {
		t.Error("two seals of one payload are the same text, or it is readable")
	}
	for name, test := range map[string]struct {
		guard   *browser.Guard
		purpose string
		visitor *browser.Visitor
		text    string
		after   time.Duration
		want    error
	}{
		"right":                  {g, "consent", &mine, text, 0, nil},
		"at the last moment":     {g, "consent", &mine, text, time.Minute - time.Millisecond, nil},
		"too late":               {g, "consent", &mine, text, time.Minute, browser.ErrExpired},
		"another browser":        {g, "consent", &other, text, 0, browser.ErrForged},
		"a browser without name": {g, "consent", &unknown, text, 0, browser.ErrForged},
		"no browser":             {g, "consent", nil, text, 0, browser.ErrForged},
		"another purpose":        {g, "ticket", &mine, text, 0, browser.ErrForged},
		"another installation":   {clocked("other"), "consent", &mine, text, 0, browser.ErrForged},
		"unbound":                {g, "ticket", nil, free, 0, nil},
		"unbound, in a browser":  {g, "ticket", &mine, free, 0, browser.ErrForged},
		"empty":                  {g, "consent", &mine, "", 0, browser.ErrForged},
		"no base64":              {g, "consent", &mine, "*" + text[1:], 0, browser.ErrForged},
		"cut":                    {g, "consent", &mine, text[:len(text)-4], 0, browser.ErrForged},
		"long":                   {g, "consent", &mine, strings.Repeat("A", 1<<20), 0, browser.ErrForged},
	} {
		now = time.Unix(1000, 0).Add(test.after)
		var got string
		if err := test.guard.Unseal(test.purpose, test.visitor, test.text, &got); !errors.Is(err, test.want) ||
			(got == secret) != (test.want == nil) {
			t.Errorf("%s: %q, %v, want %v", name, got, err, test.want)
		}
	}
	now = time.Unix(1000, 0)
	_, err = g.Seal("consent", &mine, time.Minute, strings.Repeat("x", 48<<10))
	if !errors.Is(err, browser.ErrTooLong) {
		t.Errorf("a text that could not be opened again is sealed: %v", err)
	}
	long, err := g.Seal("consent", &mine, time.Minute, strings.Repeat("x", 32<<10))
	var opened string
	if err == nil {
		err = g.Unseal("consent", &mine, long, &opened)
	}
	if err != nil || len(opened) != 32<<10 {
		t.Errorf("a long text is opened with %d bytes: %v", len(opened), err)
	}
	for i := range text {
		changed := text[:i] + string(text[i]^1) + text[i+1:]
		var got string
		if err := g.Unseal("consent", &mine, changed, &got); !errors.Is(err, browser.ErrForged) {
			t.Fatalf("changed at %d: %q, %v", i, got, err)
		}
	}
}
