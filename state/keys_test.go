package state_test

import (
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"stagedoor/state"
	"stagedoor/state/journal"
)

func TestKeyLife(t *testing.T) {
	clock, store := newClock(), journal.NewMemory()
	s := open(t, store, clock.Now)
	k := newKey(t, 1)
	k.User, k.Scopes, k.Models = "usr_1", []string{}, []string{"gpt-*"}
	k.Limits, k.Budget = state.Limits{RPM: 60, TPM: 1e6, Concurrency: 3}, 5_000_000
	k.AllowIPs = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8::/32")}
	k.Expires = start.Add(time.Hour)
	if err := s.AddKey(ctx, k); err != nil {
		t.Fatal(err)
	}
	got, ok := s.Key(k.Hash)
	if !ok || !reflect.DeepEqual(got, k) {
		t.Fatalf("got %+v, want %+v", got, k)
	}
	sameAfterReload(t, s, store)

	changed, err := s.ChangeKey(ctx, k.ID, func(k *state.Key) error {
		k.ID, k.Enabled, k.Models[0] = "key_other", false, "claude-*"
		return nil
	})
	if err != nil || changed.ID != k.ID || changed.Enabled {
		t.Fatalf("ChangeKey: got %+v, %v", changed, err)
	}
	if got.Models[0] != "gpt-*" {
		t.Error("a change reached what a reader holds")
	}
	if got, _ := s.Key(k.Hash); got.Enabled || got.Models[0] != "claude-*" {
		t.Errorf("after ChangeKey: got %+v", got)
	}
	clock.Add(time.Minute)
	for range 2 {
		revoked, err := s.RevokeKey(ctx, k.ID)
		if err != nil || !revoked.Revoked.Equal(start.Add(time.Minute)) {
			t.Errorf("RevokeKey: got %v, %v", revoked.Revoked, err)
		}
		clock.Add(time.Minute)
	}
	sameAfterReload(t, s, store)
	if err := s.RemoveKey(ctx, k.ID); err != nil {
		t.Fatal(err)
	}
	if _, ok := s.Key(k.Hash); ok {
		t.Error("found after RemoveKey")
	}
	sameAfterReload(t, s, store)
}

func TestKeyRefusals(t *testing.T) {
	s := newState(t)
	k := newKey(t, 1)
	if err := s.AddKey(ctx, k); err != nil {
		t.Fatal(err)
	}
	sameHash := newKey(t, 2)
	sameHash.Hash = k.Hash
	bad := func(f func(*state.Key)) error {
		k := newKey(t, 3)
		f(&k)
		return s.AddKey(ctx, k)
	}
	_, changeErr := s.ChangeKey(ctx, "key_x", func(*state.Key) error { return nil })
	_, revokeErr := s.RevokeKey(ctx, "key_x")
	for name, c := range map[string]struct{ got, want error }{
		"twice":           {s.AddKey(ctx, k), state.ErrExists},
		"same hash":       {s.AddKey(ctx, sameHash), state.ErrExists},
		"change unknown":  {changeErr, state.ErrNotFound},
		"revoke unknown":  {revokeErr, state.ErrNotFound},
		"remove unknown":  {s.RemoveKey(ctx, "key_x"), state.ErrNotFound},
		"no id":           {bad(func(k *state.Key) { k.ID = "" }), state.ErrInvalid},
		"odd id":          {bad(func(k *state.Key) { k.ID = "a/b" }), state.ErrInvalid},
		"no hash":         {bad(func(k *state.Key) { k.Hash = state.Hash{} }), state.ErrInvalid},
		"negative limit":  {bad(func(k *state.Key) { k.Limits.RPM = -1 }), state.ErrInvalid},
		"invalid scope":   {bad(func(k *state.Key) { k.Scopes = []string{"chat", "a b"} }), state.ErrInvalid},
		"invalid network": {bad(func(k *state.Key) { k.AllowIPs = make([]netip.Prefix, 1) }), state.ErrInvalid},
	} {
		if !errors.Is(c.got, c.want) {
			t.Errorf("%s: got %v, want %v", name, c.got, c.want)
		}
	}
	if n := len(s.Keys(state.KeyFilter{})); n != 1 {
		t.Errorf("keys: got %d, want 1", n)
	}
}

func TestChangedHashFindsOnlyTheNewOne(t *testing.T) {
	s := newState(t)
	k := newKey(t, 1)
	if err := s.AddKey(ctx, k); err != nil {
		t.Fatal(err)
	}
	fresh := state.HashSecret("sd-rotated")
	if _, err := s.ChangeKey(ctx, k.ID, func(k *state.Key) error { k.Hash = fresh; return nil }); err != nil {
		t.Fatal(err)
	}
	if _, ok := s.Key(k.Hash); ok {
		t.Error("the old hash still finds the key")
	}
	if _, ok := s.Key(fresh); !ok {
		t.Error("the new hash does not find the key")
	}
}

func TestKeysAreListedByFilterInOrder(t *testing.T) {
	clock := newClock()
	s := open(t, journal.NewMemory(), clock.Now)
	for i := range 6 {
		k := newKey(t, 5-i)
		k.User = fmt.Sprint("usr_", (5-i)%2)
		if 5-i == 2 {
			k.Expires = start.Add(time.Hour)
		}
		if err := s.AddKey(ctx, k); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.RevokeKey(ctx, newKey(t, 4).ID); err != nil {
		t.Fatal(err)
	}
	clock.Add(time.Hour)
	for want, f := range map[string]state.KeyFilter{
		"key 0,key 1,key 2,key 3,key 4,key 5": {},
		"key 0,key 2,key 4":                   {User: "usr_0"},
		"key 0,key 1,key 3,key 5":             {Live: true},
		"key 0":                               {User: "usr_0", Live: true},
		"":                                    {User: "usr_9"},
	} {
		var names []string
		for _, k := range s.Keys(f) {
			names = append(names, k.Name)
		}
		if got := strings.Join(names, ","); got != want {
			t.Errorf("%+v: got %s, want %s", f, got, want)
		}
	}
}

func TestWatchKeysWakesOnEveryKindOfChange(t *testing.T) {
	s := newState(t)
	k := newKey(t, 1)
	for name, change := range []func() error{
		func() error { return s.AddKey(ctx, k) },
		func() error { _, err := s.RevokeKey(ctx, k.ID); return err },
		func() error { return s.RemoveKey(ctx, k.ID) },
	} {
		changed := s.WatchKeys()
		if err := change(); err != nil {
			t.Fatal(err)
		}
		select {
		case <-changed:
		default:
			t.Errorf("change %d did not wake", name)
		}
	}
}

func TestPermits(t *testing.T) {
	now, ip := start, netip.MustParseAddr("10.1.2.3")
	networks := func(s ...string) []netip.Prefix {
		p, err := state.ParseNetworks(s)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for _, c := range []struct {
		name         string
		change       func(*state.Key)
		scope, model string
		ip           string
		want         error
	}{
		{"everything", func(*state.Key) {}, "chat", "gpt", "", nil},
		{"revoked", func(k *state.Key) { k.Revoked = now }, "chat", "gpt", "", state.ErrKeyRevoked},
		{"expires now", func(k *state.Key) { k.Expires = now }, "chat", "gpt", "", state.ErrKeyExpired},
		{"expires later", func(k *state.Key) { k.Expires = now.Add(1) }, "chat", "gpt", "", nil},
		{"disabled", func(k *state.Key) { k.Enabled = false }, "chat", "gpt", "", state.ErrKeyDisabled},
		{"nil scopes", func(k *state.Key) { k.Scopes = nil }, "videos", "", "", nil},
		{"no scopes", func(k *state.Key) { k.Scopes = []string{} }, "chat", "", "", state.ErrScopeForbidden},
		{"a scope", func(k *state.Key) { k.Scopes = []string{"chat"} }, "chat", "", "", nil},
		{"another scope", func(k *state.Key) { k.Scopes = []string{"chat"} }, "images", "", "", state.ErrScopeForbidden},
		{"no scope asked for", func(k *state.Key) { k.Scopes = []string{} }, "", "", "", nil},
		{"no models", func(k *state.Key) { k.Models = []string{} }, "chat", "gpt", "", state.ErrModelForbidden},
		{"a model", func(k *state.Key) { k.Models = []string{"a", "g*"} }, "chat", "gpt", "", nil},
		{"another model", func(k *state.Key) { k.Models = []string{"a", "g*"} }, "chat", "claude", "", state.ErrModelForbidden},
		{"no model asked for", func(k *state.Key) { k.Models = []string{} }, "models", "", "", nil},
		{"a network", func(k *state.Key) { k.AllowIPs = networks("10.0.0.0/8") }, "chat", "", "", nil},
		{"an address", func(k *state.Key) { k.AllowIPs = networks("10.1.2.3") }, "chat", "", "", nil},
		{"another network", func(k *state.Key) { k.AllowIPs = networks("192.168.0.0/16", "::/0") }, "chat", "", "", state.ErrAddressForbidden},
		{"mapped address", func(k *state.Key) { k.AllowIPs = networks("10.0.0.0/8") }, "chat", "", "::ffff:10.9.9.9", nil},
		{"mapped network", func(k *state.Key) { k.AllowIPs = networks("::ffff:10.0.0.0/104") }, "chat", "", "10.9.9.9", nil},
		{"zone", func(k *state.Key) { k.AllowIPs = networks("fe80::/10") }, "chat", "", "fe80::1%eth0", nil},
		{"no address", func(k *state.Key) { k.AllowIPs = networks("0.0.0.0/0", "::/0") }, "chat", "", "-", state.ErrAddressForbidden},
	} {
		k := newKey(t, 1)
		c.change(&k)
		from := ip
		switch {
		case c.ip == "-":
			from = netip.Addr{}
		case c.ip != "":
			from = netip.MustParseAddr(c.ip)
		}
		if got := k.Permits(c.scope, c.model, from, now); !errors.Is(got, c.want) || (got == nil) != (c.want == nil) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
	for _, s := range []string{"", "10.0.0.0/33", "host", "fe80::1%eth0", "::ffff:0:0/90"} {
		if p, err := state.ParseNetworks([]string{s}); !errors.Is(err, state.ErrInvalid) {
			t.Errorf("ParseNetworks %q: got %v, %v, want ErrInvalid", s, p, err)
		}
	}
}

func TestMatchModel(t *testing.T) {
	for _, c := range []struct {
		glob, model string
		want        bool
	}{
		{"*", "anything/at:all", true}, {"*", "", true}, {"", "", true}, {"", "a", false},
		{"gpt-4o", "gpt-4o", true}, {"gpt-4o", "gpt-4o-mini", false}, {"gpt-4o*", "gpt-4o-mini", true},
		{"*/llama-*", "meta/llama-3", true}, {"*/llama-*", "llama-3", false}, {"*mini", "gpt-4o-mini", true},
		{"a*b*c", "aXbYbZc", true}, {"a*b*c", "aXcYb", false}, {"gpt-?", "gpt-5", true}, {"gpt-?", "gpt-", false},
		{"[a]", "[a]", true}, {"[a]", "a", false}, {"**", "x", true}, {"*?", "", false}, {"A", "a", false},
	} {
		if got := state.MatchModel(c.glob, c.model); got != c.want {
			t.Errorf("MatchModel(%q, %q): got %v", c.glob, c.model, got)
		}
	}
}

func FuzzMatchModel(f *testing.F) {
	f.Add("a*b?c", "aXbYc")
	f.Add("***", "")
	f.Fuzz(func(t *testing.T, glob, model string) {
		got := state.MatchModel(glob, model)
		if len(glob)*len(model) < 1<<10 && got != matchSlow(glob, model) {
			t.Errorf("MatchModel(%q, %q): got %v", glob, model, got)
		}
	})
}

// matchSlow is the definition of a glob.
func matchSlow(glob, model string) bool {
	if glob == "" {
		return model == ""
	}
	reach := make([]bool, len(model)+1) // which beginnings of model match the glob so far
	reach[0] = true
	for _, g := range []byte(glob) {
		next := make([]bool, len(reach))
		for i := range reach {
			switch {
			case g == '*':
				next[i] = slices.Contains(reach[:i+1], true)
			case i > 0:
				next[i] = reach[i-1] && (g == '?' || g == model[i-1])
			}
		}
		reach = next
	}
	return reach[len(model)]
}

func TestSecretsAreLongRandomAndHashed(t *testing.T) {
	seen := map[string]bool{}
	for i := range 200 {
		secret, prefix, hash, err := state.NewSecret(seeded(uint64(i)))
		if err != nil {
			t.Fatal(err)
		}
		if len(secret) != 46 || !strings.HasPrefix(secret, "sd-"+prefix) || len(prefix) != 8 || hash != state.HashSecret(secret) {
			t.Fatalf("got %q, prefix %q", secret, prefix)
		}
		if strings.ContainsFunc(secret[3:], func(r rune) bool {
			return !strings.ContainsRune("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", r)
		}) {
			t.Fatalf("%q has other characters than letters and digits", secret)
		}
		seen[secret] = true
	}
	if len(seen) != 200 {
		t.Errorf("%d different of 200", len(seen))
	}
	if secret, _, _, err := state.NewSecret(strings.NewReader(strings.Repeat("\x00", 32))); err != nil || len(secret) != 46 {
		t.Errorf("all zero bits: got %q, %v", secret, err)
	}
	if _, _, _, err := state.NewSecret(strings.NewReader("short")); err == nil {
		t.Error("too little randomness is accepted")
	}
	if _, _, err := state.NewKey(start, strings.NewReader("short")); err == nil {
		t.Error("too little randomness is accepted for a key")
	}
}

func TestKeysDoNotReachLogs(t *testing.T) {
	k := newKey(t, 1)
	if got := k.LogValue().String(); strings.Contains(got, fmt.Sprintf("%x", k.Hash)) || !strings.Contains(got, k.ID) {
		t.Errorf("got %s", got)
	}
}

func TestIDsSortByTime(t *testing.T) {
	last := ""
	for i := range 100 {
		id, err := state.NewID("resp_", start.Add(time.Duration(i)*time.Millisecond), seeded(uint64(i)))
		if err != nil || len(id) != 53 || id <= last {
			t.Fatalf("got %q after %q, %v", id, last, err)
		}
		last = id
	}
}
