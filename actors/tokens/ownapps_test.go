package tokens_test

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"stagedoor/actors/tokens"
	"stagedoor/state/identity"
	"stagedoor/state/schema"
)

func TestAnAppHasSeveralAddressesAndEachIsExact(t *testing.T) {
	b := newBench(t, tokens.Config{})
	const other = "https://b.example/cb?x=1"
	uris := []string{callback, other}
	if _, err := b.UpdateApp(ctx, b.app.ID, tokens.AppChange{RedirectURIs: &uris}); err != nil {
		t.Fatal(err)
	}
	codeAt := func(uri string) (string, error) {
		a := b.approval()
		a.RedirectURI = uri
		return b.Approve(ctx, a)
	}
	for uri, want := range map[string]error{callback: nil, other: nil, other + "&y": tokens.ErrInvalidRequest,
		"https://b.example/cb": tokens.ErrInvalidRequest, "https://B.example/cb?x=1": tokens.ErrInvalidRequest} {
		if _, err := codeAt(uri); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", uri, err, want)
		}
	}
	code, err := codeAt(other)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.exchange(code); !errors.Is(err, tokens.ErrInvalidGrant) {
		t.Errorf("a code for one address brought tokens with another: %v", err)
	}
	uris = uris[:1]
	if _, err := b.UpdateApp(ctx, b.app.ID, tokens.AppChange{RedirectURIs: &uris}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Exchange(ctx, tokens.Exchange{Client: b.creds, Code: code, RedirectURI: other}); !errors.Is(err,
		tokens.ErrInvalidGrant) {
		t.Errorf("a code for an address that was removed brought tokens: %v", err)
	}
	if _, err := codeAt(other); !errors.Is(err, tokens.ErrInvalidRequest) {
		t.Errorf("an address that was removed got a code: %v", err)
	}
	var many []string
	for i := range 11 {
		many = append(many, callback+strings.Repeat("x", i))
	}
	for name, uris := range map[string][]string{"none": {}, "twice": {callback, callback}, "11": many,
		"http": {"http://a.example/"}, "a second with a fragment": {callback, "https://a.example/#f"}} {
		_, err := b.UpdateApp(ctx, b.app.ID, tokens.AppChange{RedirectURIs: &uris})
		if !errors.Is(err, tokens.ErrInvalid) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestBothSecretsOfAnAppWorkUntilTheOldOneEnds(t *testing.T) {
	b := newBench(t, tokens.Config{})
	old := b.creds
	rotate := func(overlap time.Duration) {
		t.Helper()
		secret, a, err := b.RotateSecret(ctx, b.app.ID, overlap)
		if err != nil || !strings.HasSuffix(secret, a.SecretEnd) || len(a.SecretEnd) != 4 {
			t.Fatalf("got %+v, %v", a, err)
		}
		b.creds.Secret = secret
	}
	works := func(c tokens.ClientCredentials, want error) {
		t.Helper()
		_, err := b.Exchange(ctx, tokens.Exchange{Client: c, Code: b.code(t), RedirectURI: callback})
		if !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
	}
	works(old, nil)
	first := b.clock.Now()
	rotate(7 * 24 * time.Hour)
	b.clock.Add(time.Minute)
	works(old, nil)
	works(b.creds, nil)
	a, err := b.App(b.app.ID)
	if err != nil || !strings.HasSuffix(old.Secret, a.PreviousEnd) || !a.PreviousUsed.Equal(first) ||
		!a.SecretUsed.Equal(b.clock.Now()) {
		t.Errorf("the use is noted once an hour: %+v, %v", a, err)
	}
	b.clock.Add(time.Hour)
	if _, err := b.EndPreviousSecret(ctx, b.app.ID); err != nil {
		t.Fatal(err)
	}
	works(old, tokens.ErrInvalidClient)
	works(b.creds, nil)
	if a, _ = b.App(b.app.ID); a.PreviousEnd != "" || !a.PreviousSecretUntil.IsZero() ||
		!a.SecretUsed.Equal(b.clock.Now()) {
		t.Errorf("got %+v", a)
	}
	before := b.creds
	rotate(0)
	works(before, tokens.ErrInvalidClient)
	works(b.creds, nil)
	for _, overlap := range []time.Duration{-1, 31 * 24 * time.Hour} {
		if _, _, err := b.RotateSecret(ctx, b.app.ID, overlap); !errors.Is(err, tokens.ErrInvalid) {
			t.Errorf("an overlap of %v: %v", overlap, err)
		}
	}
}

func TestADeletedAppEndsWithAllThatItGot(t *testing.T) {
	b := newBench(t, tokens.Config{})
	pair, code := b.tokens(t), b.code(t)
	if err := b.DeleteApp(ctx, b.app.ID); err != nil {
		t.Fatal(err)
	}
	if a, ok := identity.FindApp(b.state.View(), b.app.ID); !ok || a.RedirectURI != "" || len(a.RedirectURIs()) != 0 {
		t.Errorf("the record keeps addresses: %+v", a)
	}
	check := func() {
		t.Helper()
		if _, err := b.Lookup(pair.Access); !errors.Is(err, tokens.ErrInvalidToken) {
			t.Errorf("the access token: %v", err)
		}
		if _, err := b.refresh(pair.Refresh); !errors.Is(err, tokens.ErrInvalidClient) {
			t.Errorf("the refresh token: %v", err)
		}
		if _, err := b.exchange(code); !errors.Is(err, tokens.ErrInvalidClient) {
			t.Errorf("the code: %v", err)
		}
		if _, err := b.Approve(ctx, b.approval()); !errors.Is(err, tokens.ErrInvalidClient) {
			t.Errorf("a further grant: %v", err)
		}
		if len(b.AllowedApps(b.user.ID)) != 0 || len(b.Apps(0)) != 0 {
			t.Error("lists still have the app")
		}
		for name, err := range map[string]error{"get": second(b.App(b.app.ID)), "delete": b.DeleteApp(ctx, b.app.ID),
			"change": second(b.UpdateApp(ctx, b.app.ID, tokens.AppChange{}))} {
			if !errors.Is(err, tokens.ErrNotFound) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if r, err := schema.Verify(ctx, b.store); err != nil || len(r.Problems) > 0 {
			t.Errorf("verify: %v, %v", r.Problems, err)
		}
	}
	check()
	b.reopen(t, tokens.Config{})
	check()
	// The record leaves after the last grant and consent, and its id does not come back.
	b.clock.Add(91 * 24 * time.Hour)
	if _, err := b.state.Sweep(ctx, 0); err != nil {
		t.Fatal(err)
	}
	if _, ok := identity.FindApp(b.state.View(), b.app.ID); ok || identity.CountApps(b.state.View(), b.user.ID) != 0 {
		t.Error("the record is still there")
	}
	if r, err := schema.Verify(ctx, b.store); err != nil || len(r.Problems) > 0 {
		t.Errorf("verify after the sweep: %v, %v", r.Problems, err)
	}
	unused, _ := b.register(t, "Unused", callback)
	if unused.ID != b.app.ID+1 {
		t.Errorf("the next app has the id %d", unused.ID)
	}
	if err := b.DeleteApp(ctx, unused.ID); err != nil || identity.CountApps(b.state.View(), b.user.ID) != 0 {
		t.Errorf("an app without grants leaves at once: %v", err)
	}
}

func TestTheUsersOfAnAppAreCountedAndNotNamed(t *testing.T) {
	b := newBench(t, tokens.Config{})
	b.tokens(t)
	b.tokens(t)
	b.code(t) // was not redeemed
	other := b.signUp(t, "bob")
	a := b.approval()
	a.User, a.Scopes = other.ID, []string{tokens.ScopeBalance}
	code, err := b.Approve(ctx, a)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.exchange(code); err != nil {
		t.Fatal(err)
	}
	use := b.AppUse(b.app.ID)
	if use.Users != 2 || use.Grants != 3 || use.Scopes[tokens.ScopeProfile] != 1 ||
		use.Scopes[tokens.ScopeBalance] != 2 || use.First.IsZero() || use.Latest.Before(use.First) {
		t.Errorf("got %+v", use)
	}
	if err := b.RevokeUserApp(ctx, other.ID, b.app.ID); err != nil {
		t.Fatal(err)
	}
	if use = b.AppUse(b.app.ID); use.Users != 1 || use.Grants != 2 {
		t.Errorf("after a revocation: %+v", use)
	}
}

// picture returns a file of w times h pixels, noisy so that it does not compress.
func picture(t *testing.T, w, h int, encode func(*bytes.Buffer, image.Image) error) []byte {
	t.Helper()
	m := image.NewNRGBA(image.Rect(0, 0, w, h))
	noise := rand.New(rand.NewPCG(1, uint64(w*h)))
	for y := range h {
		for x := range w {
			m.Set(x, y, color.NRGBA{uint8(noise.Uint32()), uint8(noise.Uint32()), uint8(noise.Uint32()), 255})
		}
	}
	var out bytes.Buffer
	if err := encode(&out, m); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func asPNG(out *bytes.Buffer, m image.Image) error  { return png.Encode(out, m) }
func asJPEG(out *bytes.Buffer, m image.Image) error { return jpeg.Encode(out, m, nil) }

func TestALogoIsDrawnAnewAndBounded(t *testing.T) {
	b := newBench(t, tokens.Config{})
	set := func(file []byte) (tokens.App, error) {
		return b.UpdateApp(ctx, b.app.ID, tokens.AppChange{Logo: &file})
	}
	for name, file := range map[string][]byte{"png": picture(t, 100, 50, asPNG), "jpeg": picture(t, 16, 300, asJPEG),
		"png with a tail": append(picture(t, 96, 96, asPNG), "<script>alert(1)</script>"...)} {
		a, err := set(file)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		m, err := png.Decode(bytes.NewReader(a.Logo))
		if err != nil || m.Bounds() != image.Rect(0, 0, 96, 96) || bytes.Contains(a.Logo, []byte("script")) {
			t.Errorf("%s: %v, %v", name, m.Bounds(), err)
			continue
		}
		if _, _, _, alpha := m.At(0, 0).RGBA(); (alpha == 0) != (name != "png with a tail") {
			t.Errorf("%s: the edges of a picture that is not square are transparent: %d", name, alpha)
		}
	}
	whole := picture(t, 64, 64, asPNG)
	for name, file := range map[string][]byte{"text": []byte("<svg/>"),
		"gif":  []byte("GIF89a\x40\x00\x40\x00\x00\x00\x00;"),
		"half": whole[:len(whole)/2], "wide": picture(t, 1025, 16, asPNG), "narrow": picture(t, 15, 64, asPNG),
		"large file": append(bytes.Clone(whole), make([]byte, tokens.MaxLogo)...)} {
		if _, err := set(file); !errors.Is(err, tokens.ErrInvalid) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	noisy := picture(t, 96, 96, asPNG)
	if _, err := set(noisy); err != nil {
		t.Fatal(err)
	}
	refused := 0
	for range 20 {
		other, _ := b.register(t, "x", callback)
		if _, err := b.UpdateApp(ctx, other.ID, tokens.AppChange{Logo: &noisy}); errors.Is(err, tokens.ErrInvalid) {
			refused++
		}
	}
	total := 0
	for _, a := range b.Apps(b.user.ID) {
		total += len(a.Logo)
	}
	if refused == 0 || total > 512<<10 {
		t.Errorf("logos of one owner have %d bytes, %d were refused", total, refused)
	}
	if a, err := set(nil); err != nil || a.Logo != nil {
		t.Errorf("the logo was not removed: %v", err)
	}
}

// TestTheOwnerNeitherDeletesNorRepeatsAnAppThatTheOperatorHasDisabled: the record stays, without effect, until the
// operator enables or deletes the app.
func TestTheOwnerNeitherDeletesNorRepeatsAnAppThatTheOperatorHasDisabled(t *testing.T) {
	b := newBench(t, tokens.Config{})
	if err := b.DisableApp(ctx, b.app.ID); err != nil {
		t.Fatal(err)
	}
	if err := b.DeleteOwnApp(ctx, b.app.ID); !errors.Is(err, tokens.ErrAppDisabled) {
		t.Errorf("deleted: %v", err)
	}
	again := tokens.NewApp{Owner: b.user.ID, Name: "again", RedirectURI: "https://else.example/cb",
		MoreURIs: []string{b.app.RedirectURI}}
	if _, _, err := b.RegisterApp(ctx, again); !errors.Is(err, tokens.ErrInvalid) {
		t.Errorf("made again: %v", err)
	}
	again.MoreURIs = nil
	_, other, err := b.RegisterApp(ctx, again)
	if err != nil {
		t.Fatal(err)
	}
	uris := []string{b.app.RedirectURI}
	_, err = b.UpdateOwnApp(ctx, other.ID, tokens.AppChange{RedirectURIs: &uris})
	if !errors.Is(err, tokens.ErrInvalid) {
		t.Errorf("changed into it: %v", err)
	}
	if _, err := b.UpdateApp(ctx, b.app.ID, tokens.AppChange{Enabled: new(true)}); err != nil {
		t.Fatal(err)
	}
	if err := b.DeleteOwnApp(ctx, b.app.ID); err != nil {
		t.Errorf("an enabled app: %v", err)
	}
}
