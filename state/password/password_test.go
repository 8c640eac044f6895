package password

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"stagedoor/state/share"
)

var ctx = context.Background()

func TestOnlyThePasswordItselfIsRight(t *testing.T) {
	h := New()
	stored, err := h.Hash(ctx, "ann", "correct horse")
	if err != nil || !strings.HasPrefix(stored, "$argon2id$v=19$m=19456,t=2,p=1$") {
		t.Fatalf("got %q, %v", stored, err)
	}
	other, err := h.Hash(ctx, "ann", "correct horse")
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
		if got, err := h.Verify(ctx, "ann", c.stored, c.password); got != c.want || err != nil {
			t.Errorf("%q against %q: got %v, %v", c.password, c.stored, got, err)
		}
	}
}

// TestKnownHash holds the standard cost against what OpenSSL computes for the
// same salt.
func TestKnownHash(t *testing.T) {
	const known = "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$K13EBUiG7JV+9ZxztmHFTdb7J0WQsnj2V8bZaqyPptE"
	if ok, err := New().Verify(ctx, "ann", known, "password"); err != nil || !ok {
		t.Errorf("got %v, %v", ok, err)
	}
	if ok, err := New().Verify(ctx, "ann", strings.Replace(known, "argon2id", "argon2i", 1), "password"); ok ||
		!errors.Is(err, errPHC) {
		t.Errorf("as argon2i: got %v, %v", ok, err)
	}
}

func TestOthersStringsAreRefused(t *testing.T) {
	h := New()
	good, err := h.Hash(ctx, "ann", "x")
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
		if ok, err := h.Verify(ctx, "ann", bad, "x"); ok || !errors.Is(err, errPHC) {
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

func TestTwoRunManyWaitAndTheRestIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := New()
		var running, refused, done atomic.Int32
		hold := make(chan struct{})
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				err := h.run(ctx, strconv.Itoa(i), func() { running.Add(1); <-hold; running.Add(-1); done.Add(1) })
				if full := (*share.Refused)(nil); errors.As(err, &full) && full.Pool == share.Passwords && !full.Share {
					refused.Add(1)
				}
			})
		}
		synctest.Wait()
		if running.Load() != Parallel || refused.Load() != 100-Parallel-Queue {
			t.Errorf("got %d running, %d refused", running.Load(), refused.Load())
		}
		close(hold)
		wg.Wait()
		if done.Load() != Parallel+Queue {
			t.Errorf("done: got %d, want %d", done.Load(), Parallel+Queue)
		}
		if err := h.run(ctx, "", func() {}); err != nil || h.Places().Used() != 0 {
			t.Errorf("afterwards: %v, %d places in use", err, h.Places().Used())
		}
	})
}

func TestAFloodOfOneAddressDoesNotKeepOthersFromSigningIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, hold := New(), make(chan struct{})
		var refused atomic.Int32
		var wg sync.WaitGroup
		for range 1000 {
			wg.Go(func() {
				err := h.run(ctx, "flood", func() { <-hold })
				if own := (*share.Refused)(nil); errors.As(err, &own) && own.Pool == share.Passwords && own.Share {
					refused.Add(1)
				}
			})
		}
		synctest.Wait()
		if want := int32(1000 - (Parallel+Queue)/2); refused.Load() != want {
			t.Errorf("%d calls of the flood are refused by its share, want %d", refused.Load(), want)
		}
		ran := atomic.Int32{}
		for _, owner := range []string{"ann", "bob", "cem"} {
			wg.Go(func() {
				if err := h.run(ctx, owner, func() { ran.Add(1) }); err != nil {
					t.Errorf("%s: %v", owner, err)
				}
			})
		}
		synctest.Wait()
		close(hold)
		wg.Wait()
		if ran.Load() != 3 {
			t.Errorf("%d of three others were served", ran.Load())
		}
	})
}

func TestACallThatLeavesTheQueueMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, left := New(), errors.New("the client has left")
		hold := make(chan struct{})
		var wg sync.WaitGroup
		for i := range Parallel {
			wg.Go(func() { _ = h.run(ctx, strconv.Itoa(i), func() { <-hold }) })
		}
		synctest.Wait() // they run, the others wait
		leaving, leave := context.WithCancelCause(ctx)
		for i := range Queue {
			wg.Go(func() {
				if err := h.run(leaving, strconv.Itoa(Parallel+i), func() { t.Error("it ran") }); !errors.Is(err,
					left) {
					t.Errorf("got %v, want the cause", err)
				}
			})
		}
		synctest.Wait()
		if full := (*share.Refused)(nil); !errors.As(h.run(ctx, "ann", func() {}), &full) {
			t.Error("a call was accepted although all places are taken")
		}
		leave(left)
		synctest.Wait()
		ran := false
		wg.Go(func() { _ = h.run(ctx, "ann", func() { ran = true }) })
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
	stored, err := h.Hash(ctx, "ann", "correct horse")
	if err != nil {
		b.Fatal(err)
	}
	for name, stored := range map[string]string{"known": stored, "unknown": ""} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := h.Verify(ctx, "ann", stored, "correct horsf"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
