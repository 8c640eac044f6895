package tokens_test

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"stagedoor/actors/tokens"
)

// family holds the model's state of one grant.
type family struct {
	code     string
	made     time.Time
	used     bool
	dead     bool
	refresh  []string // all generations, the last one is good
	rotated  time.Time
	accesses map[string]time.Time // until when
}

func (f *family) codeGood(now time.Time) bool {
	return !f.dead && !f.used && now.Before(f.made.Add(time.Minute))
}

func (f *family) familyGood(now time.Time) bool {
	return !f.dead && f.used && now.Before(f.rotated.Add(30*24*time.Hour))
}

func (f *family) accessGood(token string, now time.Time) bool {
	return !f.dead && now.Before(f.accesses[token])
}

func (f *family) took(pair tokens.Tokens, now time.Time) {
	f.rotated = now
	f.refresh = append(f.refresh, pair.Refresh)
	f.accesses[pair.Access] = now.Add(7200 * time.Second)
}

// TestRegistryIsItsModel drives random steps of the protocol, restarts among
// them, beside a model.
func TestRegistryIsItsModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := newBench(t, tokens.Config{})
		_, other := b.register(t, "Other", callback)
		var all []*family
		pick := func(rt *rapid.T) *family {
			if len(all) == 0 {
				rt.Skip("no grant yet")
			}
			return rapid.SampledFrom(all).Draw(rt, "grant")
		}
		outcome := func(rt *rapid.T, err error, ok bool) {
			if ok != (err == nil) || (!ok && !errors.Is(err, tokens.ErrInvalidGrant)) {
				rt.Fatalf("got %v, want ok %v", err, ok)
			}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"approve": func(*rapid.T) {
				all = append(all, &family{code: b.code(t), made: b.clock.Now(), accesses: map[string]time.Time{}})
			},
			"exchange": func(rt *rapid.T) {
				f, now := pick(rt), b.clock.Now()
				good := f.codeGood(now)
				pair, err := b.exchange(f.code)
				outcome(rt, err, good)
				if good {
					f.used = true
					f.took(pair, now)
				} else if f.used {
					f.dead = true
				}
			},
			"inject": func(rt *rapid.T) {
				f := pick(rt)
				_, err := b.Exchange(ctx, tokens.Exchange{Client: other, Code: f.code, RedirectURI: callback})
				outcome(rt, err, false)
				f.dead = f.dead || f.used
			},
			"refresh": func(rt *rapid.T) {
				f, now := pick(rt), b.clock.Now()
				if len(f.refresh) == 0 {
					rt.Skip("no token yet")
				}
				n := rapid.IntRange(max(len(f.refresh)-3, 0), len(f.refresh)-1).Draw(rt, "generation")
				good := f.familyGood(now) && n == len(f.refresh)-1
				pair, err := b.refresh(f.refresh[n])
				outcome(rt, err, good)
				if good {
					f.took(pair, now)
				} else if f.familyGood(now) {
					f.dead = true
				}
			},
			"steal": func(rt *rapid.T) {
				f := pick(rt)
				if len(f.refresh) == 0 {
					rt.Skip("no token yet")
				}
				_, err := b.Refresh(ctx, tokens.Refresh{Client: other, Token: f.refresh[len(f.refresh)-1]})
				outcome(rt, err, false)
			},
			"revoke access": func(rt *rapid.T) {
				f := pick(rt)
				for token := range f.accesses {
					if err := b.Revoke(ctx, b.creds, token); err != nil {
						rt.Fatal(err)
					}
					delete(f.accesses, token)
					break
				}
			},
			"revoke family": func(rt *rapid.T) {
				f := pick(rt)
				if len(f.refresh) == 0 {
					rt.Skip("no token yet")
				}
				if err := b.Revoke(ctx, b.creds, f.refresh[0]); err != nil {
					rt.Fatal(err)
				}
				f.dead = true
			},
			"revoke app": func(rt *rapid.T) {
				if rapid.IntRange(0, 3).Draw(rt, "rarely") > 0 {
					rt.Skip("rarely")
				}
				if err := b.RevokeUserApp(ctx, b.user.ID, b.app.ID); err != nil {
					rt.Fatal(err)
				}
				for _, f := range all {
					f.dead = true
				}
			},
			"wait": func(rt *rapid.T) {
				b.clock.Add(
					rapid.SampledFrom([]time.Duration{time.Second, time.Minute, 2 * time.Hour, 20 * 24 * time.Hour}).
						Draw(rt, "time"),
				)
			},
			"sweep": func(rt *rapid.T) {
				if _, err := b.state.Sweep(ctx, rapid.IntRange(1, 5).Draw(rt, "limit")); err != nil {
					rt.Fatal(err)
				}
			},
			"restart": func(*rapid.T) { b.reopen(t, tokens.Config{}) },
			"": func(rt *rapid.T) {
				now, live := b.clock.Now(), 0
				for _, f := range all {
					for token := range f.accesses {
						if _, err := b.Lookup(token); (err == nil) != f.accessGood(token, now) {
							rt.Fatalf("access token: got %v, want ok %v", err, f.accessGood(token, now))
						}
					}
					if f.familyGood(now) {
						live++
					}
				}
				if n := b.devices(); n != live {
					rt.Fatalf("grants: got %d, want %d", n, live)
				}
			},
		})
	})
}
