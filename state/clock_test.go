package state_test

import (
	"testing"
	"time"

	"stagedoor/state"
	"stagedoor/state/identity"
	"stagedoor/state/journal"
)

func access(n int, expires time.Time) func(*state.Tx) error {
	return func(tx *state.Tx) error {
		if err := identity.PutGrant(tx, identity.Grant{ID: "grt_1", User: 1, App: 1, Family: hash(1),
			Code: identity.Code{Hash: hash(1)}, Expires: expires.Add(time.Hour)}); err != nil {
			return err
		}
		return identity.PutAccessToken(tx,
			identity.AccessToken{ID: "acc_1", Hash: hash(n), Grant: "grt_1", Expires: expires})
	}
}

func lives(s *state.State, n int) bool {
	_, _, ok := identity.FindAccessToken(s.View(), hash(n))
	return ok
}

// TestClockSetBackRevivesNothing: in a running process, after a restart, and
// after a kill (design: oauth.md K3).
func TestClockSetBackRevivesNothing(t *testing.T) {
	for _, c := range []struct {
		name          string
		restart, kill bool
	}{{"running", false, false}, {"restarted", true, false}, {"killed", false, true}} {
		t.Run(c.name, func(t *testing.T) {
			clock, store := newClock(), journal.NewMemory()
			s := open(t, store, clock.Now)
			must(t, s, access(1, start.Add(time.Minute)))
			if !lives(s, 1) {
				t.Fatal("not alive to begin with")
			}
			clock.Add(2 * time.Minute)
			if lives(s, 1) {
				t.Fatal("alive after it expired")
			}
			if c.kill { // what Sweep kept a moment before is what counts
				if _, err := s.Sweep(ctx, 0); err != nil {
					t.Fatal(err)
				}
				must(t, s, access(1, start.Add(time.Minute))) // swept: there again
			}
			if c.restart {
				s.Close()
			}
			clock.Add(-time.Hour)
			if c.restart || c.kill {
				s = open(t, store, clock.Now)
			}
			before := s.Now()
			if lives(s, 1) || before.Before(start.Add(2*time.Minute)) {
				t.Errorf("revived: it is %v", before)
			}
			clock.Add(time.Minute)
			if after := s.Now(); after.Sub(before) != 30*time.Second {
				t.Errorf("a minute of a slow clock is %v, want half speed", after.Sub(before))
			}
			clock.Add(3 * time.Hour)
			if now := s.Now(); !now.Equal(clock.Now()) {
				t.Errorf("it is %v, not %v: the clock does not catch up", now, clock.Now())
			}
		})
	}
}

func TestClockSetForwardExpiresEarly(t *testing.T) {
	clock := newClock()
	s := open(t, journal.NewMemory(), clock.Now)
	must(t, s, access(1, start.Add(time.Hour)))
	clock.Add(24 * time.Hour)
	if lives(s, 1) {
		t.Error("alive a day later")
	}
	clock.Add(-24 * time.Hour)
	if lives(s, 1) {
		t.Error("expired things stay expired")
	}
}

func TestMarkIsRareAndPartOfOtherCommits(t *testing.T) {
	clock, store := newClock(), journal.NewMemory()
	s := open(t, store, clock.Now)
	mark := func() (rev uint64) {
		rec, err := store.Get(ctx, journal.Meta, []byte("clock/mark"))
		if err != nil {
			return 0
		}
		return rec.Rev
	}
	for i := range 5 {
		if err := identity.CreateKey(ctx, s, newKey(t, i)); err != nil {
			t.Fatal(err)
		}
		clock.Add(time.Second)
	}
	if lsn := s.Stats().Journal.LSN; lsn != 5 || mark() != 1 {
		t.Errorf("%d commits, mark written %d times, want 5 and 1", lsn, mark())
	}
	clock.Add(time.Minute)
	if n, err := s.Sweep(ctx, 0); n != 0 || err != nil || mark() != 2 {
		t.Errorf("sweep: %d, %v, mark written %d times", n, err, mark())
	}
	clock.Add(time.Second)
	s.Close()
	if mark() != 3 {
		t.Error("Close does not keep the time")
	}
}
