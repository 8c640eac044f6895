package password

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

var ctx = context.Background()

func TestOnlyThePasswordItselfIsRight(t *testing.T) {
	h := New()
	stored, err := h.Hash(ctx, "correct horse")
	if err != nil || !strings.HasPrefix(stored, "$argon2id$v=19$m=19456,t=2,p=1$") {
		t.Fatalf("got %q, %v", stored, err)
	}
	other, err := h.Hash(ctx, "correct horse")
	if err != nil || other == stored {
		t.Errorf("twice the same hash %q, %v: there is no salt", other, err)
	}
	for _, c := range []struct {
		stored, password string
		want             bool
	}{
		{stored, "correct horse", true},
		{other, "correct horse", true},
		{stored, "correct horsf", false},
		{stored, "correct horse\x00", false},
		{stored, "", false},
		{"", "correct horse", false},
		{"", "", false},
	} {
		if got, err := h.Verify(ctx, c.stored, c.password); got != c.want || err != nil {
			t.Errorf("%q against %q: got %v, %v", c.password, c.stored, got, err)
		}
	}
}

// TestKnownHash holds the standard cost against what OpenSSL computes for the
// same salt.
func TestKnownHash(t *testing.T) {
	const known = "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$K13EBUiG7JV+9ZxztmHFTdb7J0WQsnj2V8bZaqyPptE"
	if ok, err := New().Verify(ctx, known, "password"); err != nil || !ok {
		t.Errorf("got %v, %v", ok, err)
	}
	if ok, err := New().Verify(ctx, strings.Replace(known, "argon2id", "argon2i", 1), "password"); ok || !errors.Is(err, errPHC) {
		t.Errorf("as argon2i: got %v, %v", ok, err)
	}
}

func TestOthersStringsAreRefused(t *testing.T) {
	h := New()
	good, err := h.Hash(ctx, "x")
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{
		"x", "$", "$$$$$", good + "$", good[1:],
		strings.Replace(good, "argon2id", "argon2i", 1),
		strings.Replace(good, "v=19", "v=16", 1),
		strings.Replace(good, "m=19456", "m=0", 1),
		strings.Replace(good, "m=19456", "m=4294967295", 1),
		strings.Replace(good, "m=19456", "m=99999999999", 1),
		strings.Replace(good, "t=2", "t=17", 1),
		strings.Replace(good, "p=1", "p=256", 1),
		strings.Replace(good, "t=2,p=1", "p=1,t=2", 1),
		strings.Replace(good, ",p=1", "", 1),
		good[:len(good)-40],
		good + "=",
	} {
		if ok, err := h.Verify(ctx, bad, "x"); ok || !errors.Is(err, errPHC) {
			t.Errorf("%q: got %v, %v, want errPHC", bad, ok, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")
	f.Fuzz(func(t *testing.T, s string) {
		h, err := parse(s)
		if err != nil {
			return
		}
		if h.memory > most.memory || h.passes > most.passes || h.lanes > most.lanes {
			t.Fatalf("%q asks for %+v", s, h.cost)
		}
		if again, err := parse(h.String()); err != nil || again.String() != h.String() {
			t.Fatalf("%q became %q", s, h.String())
		}
	})
}

func TestFewRunManyWaitTheRestIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := New()
		var running, busy, done atomic.Int32
		hold := make(chan struct{})
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				err := h.turn(ctx, func() { running.Add(1); <-hold; running.Add(-1); done.Add(1) })
				if errors.Is(err, ErrBusy) {
					busy.Add(1)
				}
			})
		}
		synctest.Wait()
		if running.Load() != Parallel || busy.Load() != 100-Parallel-Queue {
			t.Errorf("got %d running, %d refused", running.Load(), busy.Load())
		}
		close(hold)
		wg.Wait()
		if done.Load() != Parallel+Queue {
			t.Errorf("done: got %d, want %d", done.Load(), Parallel+Queue)
		}
		if err := h.turn(ctx, func() {}); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	})
}

func TestWhoLeavesTheQueueMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, gone := New(), errors.New("gone")
		hold := make(chan struct{})
		var wg sync.WaitGroup
		for range Parallel {
			wg.Go(func() { _ = h.turn(ctx, func() { <-hold }) })
		}
		synctest.Wait() // they run, the others wait
		leaving, leave := context.WithCancelCause(ctx)
		for range Queue {
			wg.Go(func() {
				if err := h.turn(leaving, func() { t.Error("it ran") }); !errors.Is(err, gone) {
					t.Errorf("got %v, want the cause", err)
				}
			})
		}
		synctest.Wait()
		if err := h.turn(ctx, func() {}); !errors.Is(err, ErrBusy) {
			t.Errorf("full: got %v, want ErrBusy", err)
		}
		leave(gone)
		synctest.Wait()
		ran := false
		wg.Go(func() { _ = h.turn(ctx, func() { ran = true }) })
		synctest.Wait()
		close(hold)
		wg.Wait()
		if !ran {
			t.Error("the next one did not run")
		}
	})
}

func BenchmarkVerify(b *testing.B) {
	h := New()
	stored, err := h.Hash(ctx, "correct horse")
	if err != nil {
		b.Fatal(err)
	}
	for name, stored := range map[string]string{"known": stored, "unknown": ""} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := h.Verify(ctx, stored, "correct horsf"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
