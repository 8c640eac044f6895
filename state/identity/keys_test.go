package identity_test

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
	"stagedoor/state/identity"
	"stagedoor/state/journal"
)

func TestKeyLife(t *testing.T) {
	clock, store := newClock(), journal.NewMemory()
	s := open(t, store, clock.Now)
	k := newKey(t, 1)
	k.User, k.Scopes, k.Models = "usr_1", []string{}, []string{"gpt-*"}
	k.Limits, k.Budget = identity.Limits{RPM: 60, TPM: 1e6, Concurrency: 3}, 5_000_000
	k.AllowIPs = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8::/32")}
	k.Expires = start.Add(time.Hour)
	if err := identity.CreateKey(ctx, s, k); err != nil {
		t.Fatal(err)
	}
	got, ok := identity.AccessOf(s).Key(k.Hash)
	if !ok || !reflect.DeepEqual(got, k) {
		t.Fatalf("got %+v, want %+v", got, k)
	}
	sameAfterReload(t, s, store)

	changed, err := identity.ChangeKey(ctx, s, k.ID, func(k *identity.Key) error {
		k.ID, k.Enabled, k.Models[0] = "key_other", false, "claude-*"
		return nil
	})
	if err != nil || changed.ID != k.ID || changed.Enabled {
		t.Fatalf("ChangeKey: got %+v, %v", changed, err)
	}
	if got.Models[0] != "gpt-*" {
		t.Error("a change reached what a reader holds")
	}
	if got, _ := identity.AccessOf(s).Key(k.Hash); got.Enabled || got.Models[0] != "claude-*" {
		t.Errorf("after ChangeKey: got %+v", got)
	}
	clock.Add(time.Minute)
	for range 2 {
		revoked, err := identity.RevokeKey(ctx, s, k.ID)
		if err != nil || !revoked.Revoked.Equal(start.Add(time.Minute)) {
			t.Errorf("RevokeKey: got %v, %v", revoked.Revoked, err)
		}
		clock.Add(time.Minute)
	}
	sameAfterReload(t, s, store)
	if err := identity.DeleteKey(ctx, s, k.ID); err != nil {
		t.Fatal(err)
	}
	if _, ok := identity.AccessOf(s).Key(k.Hash); ok {
		t.Error("found after RemoveKey")
	}
	sameAfterReload(t, s, store)
}

func TestKeyRefusals(t *testing.T) {
	s := newState(t)
	k := newKey(t, 1)
	if err := identity.CreateKey(ctx, s, k); err != nil {
		t.Fatal(err)
	}
	sameHash := newKey(t, 2)
	sameHash.Hash = k.Hash
	bad := func(f func(*identity.Key)) error {
		k := newKey(t, 3)
		f(&k)
		return identity.CreateKey(ctx, s, k)
	}
	_, changeErr := identity.ChangeKey(ctx, s, "key_x", func(*identity.Key) error { return nil })
	_, revokeErr := identity.RevokeKey(ctx, s, "key_x")
	for name, c := range map[string]struct{ got, want error }{
		"twice":           {identity.CreateKey(ctx, s, k), state.ErrExists},
		"same hash":       {identity.CreateKey(ctx, s, sameHash), state.ErrExists},
		"change unknown":  {changeErr, state.ErrNotFound},
		"revoke unknown":  {revokeErr, state.ErrNotFound},
		"remove unknown":  {identity.DeleteKey(ctx, s, "key_x"), state.ErrNotFound},
		"no id":           {bad(func(k *identity.Key) { k.ID = "" }), state.ErrInvalid},
		"odd id":          {bad(func(k *identity.Key) { k.ID = "a/b" }), state.ErrInvalid},
		"no hash":         {bad(func(k *identity.Key) { k.Hash = state.Hash{} }), state.ErrInvalid},
		"negative limit":  {bad(func(k *identity.Key) { k.Limits.RPM = -1 }), state.ErrInvalid},
		"invalid scope":   {bad(func(k *identity.Key) { k.Scopes = []string{"chat", "a b"} }), state.ErrInvalid},
		"invalid network": {bad(func(k *identity.Key) { k.AllowIPs = make([]netip.Prefix, 1) }), state.ErrInvalid},
	} {
		if !errors.Is(c.got, c.want) {
			t.Errorf("%s: got %v, want %v", name, c.got, c.want)
		}
	}
	if n := len(identity.ListKeys(s.View(), identity.KeyFilter{})); n != 1 {
		t.Errorf("keys: got %d, want 1", n)
	}
}

func TestChangedHashFindsOnlyTheNewOne(t *testing.T) {
	s := newState(t)
	k := newKey(t, 1)
	if err := identity.CreateKey(ctx, s, k); err != nil {
		t.Fatal(err)
	}
	fresh := state.HashSecret("sd-rotated")
	if _, err := identity.ChangeKey(ctx, s, k.ID, func(k *identity.Key) error {
		k.Hash = fresh
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if _, ok := identity.AccessOf(s).Key(k.Hash); ok {
		t.Error("the old hash still finds the key")
	}
	if _, ok := identity.AccessOf(s).Key(fresh); !ok {
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
		if err := identity.CreateKey(ctx, s, k); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := identity.RevokeKey(ctx, s, newKey(t, 4).ID); err != nil {
		t.Fatal(err)
	}
	clock.Add(time.Hour)
	for want, f := range map[string]identity.KeyFilter{
		"key 0,key 1,key 2,key 3,key 4,key 5": {},
		"key 0,key 2,key 4":                   {User: "usr_0"},
		"key 0,key 1,key 3,key 5":             {Live: true},
		"key 0":                               {User: "usr_0", Live: true},
		"":                                    {User: "usr_9"},
	} {
		var names []string
		for _, k := range identity.ListKeys(s.View(), f) {
			names = append(names, k.Name)
		}
		if got := strings.Join(names, ","); got != want {
			t.Errorf("%+v: got %s, want %s", f, got, want)
		}
	}
}

func TestWatchAccessWakesOnEveryKindOfChange(t *testing.T) {
	s := newState(t)
	k := newKey(t, 1)
	for name, change := range []func() error{
		func() error { return identity.CreateKey(ctx, s, k) },
		func() error { _, err := identity.RevokeKey(ctx, s, k.ID); return err },
		func() error { return identity.DeleteKey(ctx, s, k.ID) },
	} {
		changed := identity.AccessOf(s).WatchAccess()
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
		p, err := identity.ParseNetworks(s)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for _, c := range []struct {
		name         string
		change       func(*identity.Key)
		scope, model string
		ip           string
		want         error
	}{
		{"everything", func(*identity.Key) {}, "chat", "gpt", "", nil},
		{"revoked", func(k *identity.Key) { k.Revoked = now }, "chat", "gpt", "", identity.ErrKeyRevoked},
		{"expires now", func(k *identity.Key) { k.Expires = now }, "chat", "gpt", "", identity.ErrKeyExpired},
		{"expires later", func(k *identity.Key) { k.Expires = now.Add(1) }, "chat", "gpt", "", nil},
		{"disabled", func(k *identity.Key) { k.Enabled = false }, "chat", "gpt", "", identity.ErrKeyDisabled},
		{"nil scopes", func(k *identity.Key) { k.Scopes = nil }, "videos", "", "", nil},
		{"no scopes", func(k *identity.Key) { k.Scopes = []string{} }, "chat", "", "", identity.ErrScopeForbidden},
		{"a scope", func(k *identity.Key) { k.Scopes = []string{"chat"} }, "chat", "", "", nil},
		{"another scope", func(k *identity.Key) { k.Scopes = []string{"chat"} }, "images", "", "",
			identity.ErrScopeForbidden},
		{"no scope asked for", func(k *identity.Key) { k.Scopes = []string{} }, "", "", "", nil},
		{"no models", func(k *identity.Key) { k.Models = []string{} }, "chat", "gpt", "", identity.ErrModelForbidden},
		{"a model", func(k *identity.Key) { k.Models = []string{"a", "g*"} }, "chat", "gpt", "", nil},
		{"another model", func(k *identity.Key) { k.Models = []string{"a", "g*"} }, "chat", "claude", "",
			identity.ErrModelForbidden},
		{"no model asked for", func(k *identity.Key) { k.Models = []string{} }, "models", "", "", nil},
		{"a network", func(k *identity.Key) { k.AllowIPs = networks("10.0.0.0/8") }, "chat", "", "", nil},
		{"an address", func(k *identity.Key) { k.AllowIPs = networks("10.1.2.3") }, "chat", "", "", nil},
		{"another network", func(k *identity.Key) { k.AllowIPs = networks("192.168.0.0/16", "::/0") }, "chat", "", "",
			identity.ErrAddressForbidden},
		{"mapped address", func(k *identity.Key) { k.AllowIPs = networks("10.0.0.0/8") }, "chat", "",
			"::ffff:10.9.9.9", nil},
		{"mapped network", func(k *identity.Key) { k.AllowIPs = networks("::ffff:10.0.0.0/104") }, "chat", "",
			"10.9.9.9", nil},
		{"zone", func(k *identity.Key) { k.AllowIPs = networks("fe80::/10") }, "chat", "", "fe80::1%eth0", nil},
		{"no address", func(k *identity.Key) { k.AllowIPs = networks("0.0.0.0/0", "::/0") }, "chat", "", "-",
			identity.ErrAddressForbidden},
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
		if p, err := identity.ParseNetworks([]string{s}); !errors.Is(err, state.ErrInvalid) {
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
		if got := identity.MatchModel(c.glob, c.model); got != c.want {
			t.Errorf("MatchModel(%q, %q): got %v", c.glob, c.model, got)
		}
	}
}

func FuzzMatchModel(f *testing.F) {
	f.Add("a*b?c", "aXbYc")
	f.Add("***", "")
	f.Fuzz(func(t *testing.T, glob, model string) {
		got := identity.MatchModel(glob, model)
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
		secret, prefix, hash, err := identity.NewSecret(seeded(uint64(i)))
		if err != nil {
			t.Fatal(err)
		}
		if len(secret) != 46 || !strings.HasPrefix(secret, "sd-"+prefix) || len(prefix) != 8 ||
			hash != state.HashSecret(secret) {
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
	if secret, _, _, err := identity.NewSecret(strings.NewReader(strings.Repeat("\x00", 32))); err != nil ||
		len(secret) != 46 {
		t.Errorf("all zero bits: got %q, %v", secret, err)
	}
	if _, _, _, err := identity.NewSecret(strings.NewReader("short")); err == nil {
		t.Error("too little randomness is accepted")
	}
	if _, _, err := identity.NewKey(start, strings.NewReader("short")); err == nil {
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
	for i := range 10_000 {
		id, err := state.NewID("resp_", start.Add(time.Duration(i)*time.Microsecond), seeded(uint64(i)))
		if err != nil || len(id) != 53 || id <= last {
			t.Fatalf("got %q after %q, %v", id, last, err)
		}
		last = id
	}
}
