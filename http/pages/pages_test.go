package pages

import (
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestDollarsHaveTwoToSixDecimals(t *testing.T) {
	for micros, want := range map[int64]string{0: "0.00", 1: "0.000001", 10: "0.00001", 12_500_000: "12.50", 12_000_000: "12.00", 1_234_567: "1.234567",
		1_230_000: "1.23", -1: "-0.000001", -2_500_000: "-2.50", math.MaxInt64: "9223372036854.775807", math.MinInt64: "-9223372036854.775808"} {
		if got := Dollars(micros); got != want {
			t.Errorf("Dollars(%d) = %s, want %s", micros, got, want)
		}
	}
}

func TestEveryPageIsDrawn(t *testing.T) {
	app := App{Name: "Weather", Host: "app.example.com", Scopes: []string{"profile", "balance"}}
	for name, v := range map[string]View{
		"sign in": &SignIn{Form: Form{"/a", "i", "t"}}, "sign in to an app": &SignIn{App: &app, Consents: true, Username: "u", Problem: "p"},
		"consent": &Consent{App: app, Username: "anna"}, "failure": &Failure{Title: "T", Message: "m", Detail: "<b>"},
		"top up": &TopUp{Username: "anna", Figures: &Figures{1, 2}, Notice: "n"}, "bare top up": &TopUp{Problem: "p", Code: "c"},
	} {
		w := httptest.NewRecorder()
		if err := Write(w, http.StatusTeapot, v); err != nil || w.Code != http.StatusTeapot {
			t.Errorf("%s: status %d, %v", name, w.Code, err)
		}
		body := w.Body.String()
		if !strings.HasPrefix(body, "<!DOCTYPE html>") || !strings.Contains(body, "</html>") || strings.Contains(body, "<b>") || strings.Contains(body, "ZgotmplZ") {
			t.Errorf("%s:\n%s", name, body)
		}
		if strings.Count(body, "<h1>") != 1 {
			t.Errorf("%s has not one heading", name)
		}
	}
}

func TestAssetsArePublishedUnderTheirContent(t *testing.T) {
	for name, media := range map[string]string{"stagedoor.css": "text/css; charset=utf-8", "icon.svg": "image/svg+xml"} {
		path := assetPath(name)
		r := httptest.NewRequest("GET", path, nil)
		r.SetPathValue("name", strings.TrimPrefix(path, AssetPrefix))
		w := httptest.NewRecorder()
		if !Asset(w, r) || w.Header().Get("Content-Type") != media || w.Body.Len() == 0 || !strings.Contains(w.Header().Get("Cache-Control"), "immutable") {
			t.Errorf("%s at %s: %v", name, path, w.Header())
		}
	}
	for _, name := range []string{"", "stagedoor.css", "../doc.go", "x"} {
		r := httptest.NewRequest("GET", "/assets/x", nil)
		r.SetPathValue("name", name)
		if Asset(httptest.NewRecorder(), r) {
			t.Errorf("%q is served", name)
		}
	}
}
