package oauth_test

import (
	"bytes"
	"image"
	"image/png"
	"net/http"
	"strings"
	"testing"

	"stagedoor/actors/tokens"
)

func TestEachRegisteredAddressOfAnAppIsUsedExactly(t *testing.T) {
	s := start(t, nil)
	const other = "https://other.example.com/back"
	uris := []string{callback, other}
	_, err := s.registry.UpdateApp(t.Context(), s.app.ID, tokens.AppChange{RedirectURIs: &uris})
	must(t, err)
	c := s.browser()
	page := c.follow(c.signIn(c.do("GET", s.query("redirect_uri", other), nil), "anna"))
	if !strings.Contains(page.Body.String(), "other.example.com") {
		t.Errorf("the page does not say where the browser goes:\n%s", page.Body)
	}
	w := c.decide(page, "allow")
	if !strings.HasPrefix(w.Header().Get("Location"), other+"?code=") {
		t.Errorf("sent to %s", w.Header().Get("Location"))
	}
	if status, body := s.exchange(codeOf(t, w), "redirect_uri", other); status == http.StatusOK {
		t.Errorf("two redirect addresses brought tokens: %v", body)
	}
	pending := c.do("GET", s.query("redirect_uri", other), nil)
	uris = uris[:1]
	_, err = s.registry.UpdateApp(t.Context(), s.app.ID, tokens.AppChange{RedirectURIs: &uris})
	must(t, err)
	if w := c.decide(pending, "allow"); w.Code != http.StatusBadRequest || w.Header().Get("Location") != "" {
		t.Errorf("a request to an address that was removed meanwhile: %d to %q", w.Code, w.Header().Get("Location"))
	}
	if w := c.do("GET", s.query("redirect_uri", other), nil); w.Code != http.StatusBadRequest {
		t.Errorf("an address that was removed: %d", w.Code)
	}
}

func TestTheLogoIsServedAsAPictureOnly(t *testing.T) {
	s := start(t, nil)
	var file bytes.Buffer
	must(t, png.Encode(&file, image.NewGray(image.Rect(0, 0, 32, 32))))
	logo := file.Bytes()
	_, err := s.registry.UpdateApp(t.Context(), s.app.ID, tokens.AppChange{Logo: &logo})
	must(t, err)
	c := s.browser()
	page := c.do("GET", s.query(), nil)
	consent := c.follow(c.signIn(page, "anna")).Body.String()
	_, rest, _ := strings.Cut(consent, `<img class="logo" src="`)
	path, _, ok := strings.Cut(rest, `"`)
	if !ok || !strings.Contains(page.Body.String(), path) ||
		!strings.Contains(consent, "registered by <bdi>anna</bdi>") ||
		!strings.Contains(consent, "No user of this gateway") {
		t.Fatalf("the pages show no logo, owner and users:\n%s", consent)
	}
	w := s.browser().do("GET", path, nil)
	h := w.Header()
	if m, err := png.Decode(w.Body); err != nil || w.Code != http.StatusOK || m.Bounds().Dx() != 96 {
		t.Errorf("%d, %v", w.Code, err)
	}
	if h.Get("Content-Type") != "image/png" || h.Get("X-Content-Type-Options") != "nosniff" ||
		!strings.Contains(h.Get("Content-Security-Policy"), "default-src 'none'; sandbox") {
		t.Errorf("headers %v", h)
	}
	must(t, s.registry.DisableApp(t.Context(), s.app.ID))
	for _, path := range []string{path, "/api/oauth2/logos/ci_unknown"} {
		if w := c.do("GET", path, nil); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}
