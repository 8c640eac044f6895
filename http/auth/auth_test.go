package auth_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"stagedoor/http/auth"
	"stagedoor/providers/dialogue"
	"stagedoor/state"
	"stagedoor/state/identity"
	"stagedoor/state/journal"
	"stagedoor/state/schema"
)

const secret, other = "sd-first-secret", "sd-second-secret"

// keys is a store of keys by hash.
type keys map[state.Hash]identity.Key

func (k keys) Key(hash state.Hash) (identity.Key, bool) { key, ok := k[hash]; return key, ok }

func (k keys) KeyByID(id string) (identity.Key, error) {
	for _, key := range k {
		if key.ID == id {
			return key, nil
		}
	}
	return identity.Key{}, state.ErrNotFound
}

func (k keys) UserPermits(account, scope, model string) error { return nil }

func (k keys) Blocked(account string) bool { return account == "disabled" }

func (k keys) AccessVersion() uint64 { return 0 }

func (k keys) WatchAccess() <-chan struct{} { return nil }

func key(id, secret string) identity.Key {
	return identity.Key{ID: id, Hash: state.HashSecret(secret), Enabled: true}
}

func newAuth() *auth.Authenticator {
	store := keys{}
	for _, k := range []identity.Key{key("stored", secret), key("other", other)} {
		store[k.Hash] = k
	}
	return auth.New(store, time.Now)
}

func TestOneKeyInAnyOfItsPlaces(t *testing.T) {
	a := newAuth()
	for _, c := range []struct {
		name    string
		headers []string
		query   string
		third   bool
		code    string // "": known
	}{
		{"bearer", []string{"Authorization", "Bearer " + secret}, "", false, ""},
		{"bearer in any case", []string{"Authorization", "bEARER  " + secret + " "}, "", false, ""},
		{"x-api-key", []string{"X-Api-Key", secret}, "", false, ""},
		{"api-key", []string{"Api-Key", secret}, "", false, ""},
		{"x-goog-api-key", []string{"X-Goog-Api-Key", secret}, "", false, ""},
		{"query of the third shape", nil, "key=" + secret, true, ""},
		{"query of another shape", nil, "key=" + secret, false, "missing_api_key"},
		{"the same twice", []string{"Authorization", "Bearer " + secret, "X-Api-Key", secret}, "key=" + secret, true,
			""},
		{"an empty header beside it", []string{"Authorization", "Bearer ", "X-Api-Key", secret}, "", false, ""},
		{"nothing", nil, "", true, "missing_api_key"},
		{"another scheme", []string{"Authorization", "Basic " + secret}, "", false, "missing_api_key"},
		{"no scheme", []string{"Authorization", secret}, "", false, "missing_api_key"},
		{"unknown", []string{"X-Api-Key", "sd-unknown"}, "", false, "invalid_api_key"},
		{"two different headers", []string{"Authorization", "Bearer " + secret, "X-Api-Key", other}, "", false,
			"invalid_api_key"},
		{"three, the last as the first", []string{"Authorization", "Bearer " + secret, "X-Api-Key", other,
			"X-Goog-Api-Key", secret}, "", false, "invalid_api_key"},
		{"header and query differ", []string{"X-Api-Key", secret}, "key=" + other, true, "invalid_api_key"},
		{"two in one header name", []string{"X-Api-Key", secret, "X-Api-Key", other}, "", false, "invalid_api_key"},
		{"two in the query", nil, "key=" + secret + "&key=" + other, true, "invalid_api_key"},
		{"too long", []string{"X-Api-Key", strings.Repeat("a", 100<<10)}, "", false, "invalid_api_key"},
		{"not ASCII", []string{"X-Api-Key", "sd-ключ\xff"}, "", false, "invalid_api_key"},
	} {
		r := httptest.NewRequest("POST", "/v1/x?"+c.query, nil)
		for i := 0; i < len(c.headers); i += 2 {
			r.Header.Add(c.headers[i], c.headers[i+1])
		}
		k, err := a.Authenticate(r, c.third)
		if c.code == "" {
			if err != nil || k.ID != "stored" {
				t.Errorf("%s: %v, key %q", c.name, err, k.ID)
			}
			continue
		}
		var e *dialogue.Error
		if !errors.As(err, &e) || e.Status != http.StatusUnauthorized || e.Type != dialogue.TypeAuthentication ||
			e.Code != c.code {
			t.Errorf("%s: got %v, want 401 %s", c.name, err, c.code)
		} else if strings.Contains(e.Message, secret) {
			t.Errorf("%s: the message holds the key", c.name)
		}
	}
}

func TestConfiguredKeysCountAtOnceAndFirst(t *testing.T) {
	a := newAuth()
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("X-Api-Key", "sd-configured")
	if _, err := a.Authenticate(r, false); err == nil {
		t.Error("a key that is not configured is accepted")
	}
	a.SetFixed([]identity.Key{key("fixed", "sd-configured"), key("shadow", secret)})
	if k, err := a.Authenticate(r, false); err != nil || k.ID != "fixed" {
		t.Errorf("got %q, %v", k.ID, err)
	}
	r.Header.Set("X-Api-Key", secret)
	if k, err := a.Authenticate(r, false); err != nil || k.ID != "shadow" {
		t.Errorf("got %q, %v", k.ID, err)
	}
	a.SetFixed(nil)
	if k, err := a.Authenticate(r, false); err != nil || k.ID != "stored" {
		t.Errorf("got %q, %v", k.ID, err)
	}
	if _, err := auth.New(nil, time.Now).Authenticate(r, false); err == nil {
		t.Error("without a store a stored key is known")
	}
}

func TestWhatAKeyMayDo(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	a := auth.New(nil, func() time.Time { return now })
	for _, c := range []struct {
		name         string
		change       func(*identity.Key)
		scope, model string
		remote       string
		status       int
		code         string
	}{
		{"anything", nil, "chat", "m", "", 0, ""},
		{"a scope it has", func(k *identity.Key) { k.Scopes = []string{"chat"} }, "chat", "", "", 0, ""},
		{"a scope it has not", func(k *identity.Key) { k.Scopes = []string{"chat"} }, "messages", "", "", 403,
			"permission_denied"},
		{"no scope at all", func(k *identity.Key) { k.Scopes = []string{} }, "chat", "", "", 403, "permission_denied"},
		{"a model it has", func(k *identity.Key) { k.Models = []string{"g*"} }, "", "gpt", "", 0, ""},
		{"a model it has not", func(k *identity.Key) { k.Models = []string{"g*"} }, "", "claude", "", 403,
			"model_not_allowed"},
		{"no model at all", func(k *identity.Key) { k.Models = []string{} }, "", "gpt", "", 403, "model_not_allowed"},
		{"disabled", func(k *identity.Key) { k.Enabled = false }, "chat", "", "", 401, "invalid_api_key"},
		{"revoked", func(k *identity.Key) { k.Revoked = now }, "chat", "", "", 401, "invalid_api_key"},
		{"expired", func(k *identity.Key) { k.Expires = now }, "chat", "", "", 401, "invalid_api_key"},
		{"not expired", func(k *identity.Key) { k.Expires = now.Add(1) }, "chat", "", "", 0, ""},
		{"its network", allow("10.0.0.0/8"), "chat", "", "10.1.2.3:5", 0, ""},
		{"its network, spelt as v6", allow("10.0.0.0/8"), "chat", "", "[::ffff:10.1.2.3]:5", 0, ""},
		{"another network", allow("10.0.0.0/8"), "chat", "", "11.1.2.3:5", 403, "permission_denied"},
		{"no address", allow("10.0.0.0/8"), "chat", "", "@", 403, "permission_denied"},
	} {
		k := key("k", secret)
		if c.change != nil {
			c.change(&k)
		}
		r := httptest.NewRequest("POST", "/", nil)
		r.Header.Set("X-Forwarded-For", "10.1.2.3") // not believed
		if c.remote != "" {
			r.RemoteAddr = c.remote
		}
		err := a.Permit(&k, r, c.scope, c.model)
		var e *dialogue.Error
		switch {
		case c.status == 0 && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.status != 0 && (!errors.As(err, &e) || e.Status != c.status || e.Code != c.code):
			t.Errorf("%s: got %v, want %d %s", c.name, err, c.status, c.code)
		case c.code == "permission_denied" && k.Scopes != nil && !strings.HasSuffix(e.Message, "scope "+c.scope):
			t.Errorf("%s: got %q, which does not name the scope", c.name, e.Message)
		}
	}
}

func allow(network string) func(*identity.Key) {
	return func(k *identity.Key) { k.AllowIPs = []netip.Prefix{netip.MustParsePrefix(network)} }
}

// An address that sends many unknown keys gets a 429. Its requests with a known key are served, and
// so are other addresses.
func TestUnknownKeysOfAnAddressAreCounted(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 15, 0, time.UTC)
	a := auth.New(keys{state.HashSecret(secret): key("stored", secret)}, func() time.Time { return now })
	ask := func(from, secret string) error {
		r := httptest.NewRequest(http.MethodGet, "/v1/models", nil)
		r.RemoteAddr = from
		if secret != "" {
			r.Header.Set("X-Api-Key", secret)
		}
		_, err := a.Authenticate(r, false)
		return err
	}
	status := func(err error) int {
		var e *dialogue.Error
		if !errors.As(err, &e) {
			return 0
		}
		return e.Status
	}
	const here = "192.0.2.1:1"
	for range 5 {
		if got := status(ask(here, "sd-unknown")); got != 401 {
			t.Fatalf("without a limit: %d", got)
		}
	}
	now = now.Add(time.Minute)
	a.LimitFailures(3)
	for i, secret := range []string{"sd-a", "sd-b", strings.Repeat("c", 600)} {
		if got := status(ask(here, secret)); got != 401 {
			t.Fatalf("failure %d: %d", i+1, got)
		}
	}
	var e *dialogue.Error
	if err := ask(here, "sd-d"); !errors.As(err, &e) || e.Status != 429 || e.RetryAfter != 45*time.Second ||
		!e.NoRetry {
		t.Errorf("beyond the limit: %v", err)
	}
	if got := status(ask(here, secret)); got != 0 {
		t.Errorf("a known key from there: %d", got)
	}
	if got := status(ask(here, "")); got != 401 {
		t.Errorf("no key at all from there: %d", got)
	}
	// One other address may share the slot, two will not.
	if got, again := status(ask("198.51.100.7:1", "sd-a")), status(ask("203.0.113.9:1", "sd-a")); got != 401 &&
		again != 401 {
		t.Errorf("other addresses: %d, %d", got, again)
	}
	now = now.Add(45 * time.Second)
	if got := status(ask(here, "sd-a")); got != 401 {
		t.Errorf("a minute later: %d", got)
	}
	for i := range 4 { // addresses of one customer are one
		want := 401
		if i == 3 {
			want = 429
		}
		if got := status(ask(fmt.Sprintf("[2001:db8::%d]:1", i+1), "sd-a")); got != want {
			t.Errorf("address %d of a network: %d, want %d", i, got, want)
		}
	}
}

func TestKeysOfDisabledUsersAreRefused(t *testing.T) {
	mine, fixed := key("mine", secret), key("fixed", other)
	mine.User, fixed.User = "disabled", "disabled"
	a := auth.New(keys{mine.Hash: mine}, time.Now)
	a.SetFixed([]identity.Key{fixed})
	for _, sent := range []string{secret, other} {
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.Header.Set("Authorization", "Bearer "+sent)
		_, err := a.Authenticate(r, false)
		var refused *dialogue.Error
		if !errors.As(err, &refused) || refused.Status != http.StatusUnauthorized ||
			!strings.Contains(refused.Message, "disabled") {
			t.Errorf("%s: %v", sent, err)
		}
	}
}

// TestCeilingsAreChecked: the refusal names whose ceiling it is, and is a 403 like that of a key's own limits.
func TestCeilingsAreChecked(t *testing.T) {
	s, err := schema.Open(journal.NewMemory(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := state.Do(t.Context(), s, func(tx *state.Tx) (any, error) {
		g, err := identity.AddGroup(tx, identity.Group{Name: "staff",
			Ceiling: identity.Ceiling{Models: []string{"gpt-*"}}})
		if err == nil {
			_, err = identity.AddUser(tx, identity.User{Username: "anna", Status: identity.UserActive, Group: g.ID,
				Ceiling: identity.Ceiling{Scopes: []string{"chat"}}})
		}
		return nil, err
	}); err != nil {
		t.Fatal(err)
	}
	a := auth.New(identity.AccessOf(s), time.Now)
	key := &identity.Key{ID: "fixed", User: "anna", Enabled: true} // one of the configuration file, too
	r := httptest.NewRequest("POST", "/v1/chat/completions", nil)
	for _, c := range []struct{ scope, model, code, message string }{
		{"chat", "gpt-4o", "", ""},
		{"images", "", "permission_denied", "the key's user may not use the scope images"},
		{"chat", "claude", "model_not_allowed", "the group of the key's user may not use the model"},
	} {
		var e *dialogue.Error
		err := a.Permit(key, r, c.scope, c.model)
		switch {
		case c.code == "" && err == nil:
		case !errors.As(err, &e) || e.Status != 403 || e.Code != c.code || !strings.Contains(e.Message, c.message):
			t.Errorf("%s %s: %v", c.scope, c.model, err)
		}
	}
	if allocs := testing.AllocsPerRun(100, func() { _ = a.Permit(key, r, "chat", "gpt-4o") }); allocs != 0 {
		t.Errorf("%v allocations a request", allocs)
	}
}
