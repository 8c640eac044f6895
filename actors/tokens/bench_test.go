package tokens_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"stagedoor/actors/tokens"
	"stagedoor/state"
	"stagedoor/state/identity"
	"stagedoor/state/journal"
)

// durable is a bench on disk whose clock runs.
func durable(b *testing.B) *bench {
	store, err := journal.OpenBolt(b.TempDir(), journal.Options{LowWater: -1})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { store.Close() })
	return newBenchOn(b, store, tokens.Config{})
}

// share divides n among callers and waits for them.
func share(n, callers int, work func(i int)) {
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for i := c; i < n; i += callers {
				work(i)
			}
		})
	}
	wg.Wait()
}

func BenchmarkDurableExchange(b *testing.B) {
	for _, callers := range []int{1, 16, 256} {
		b.Run(fmt.Sprint("callers=", callers), func(b *testing.B) {
			s := durable(b)
			codes := make([]string, b.N)
			share(b.N, 64, func(i int) {
				if i%50 == 0 {
					s.clock.Add(time.Millisecond)
				}
				codes[i] = approveForManyUsers(b, s, i)
			})
			before := s.state.Stats()
			b.ReportAllocs()
			b.ResetTimer()
			share(b.N, callers, func(i int) {
				if _, err := s.exchange(codes[i]); err != nil {
					b.Error(err)
				}
			})
			report(b, before, s.state.Stats())
		})
	}
}

func BenchmarkDurableRefresh(b *testing.B) {
	for _, callers := range []int{1, 16, 256} {
		b.Run(fmt.Sprint("callers=", callers), func(b *testing.B) {
			s := durable(b)
			pairs := make([]tokens.Tokens, callers)
			share(callers, 64, func(i int) {
				var err error
				if pairs[i], err = s.exchange(approveForManyUsers(b, s, i)); err != nil {
					b.Error(err)
				}
			})
			before := s.state.Stats()
			b.ReportAllocs()
			b.ResetTimer()
			share(b.N, callers, func(i int) {
				next, err := s.refresh(pairs[i%callers].Refresh)
				if err != nil {
					b.Error(err)
				}
				pairs[i%callers] = next
			})
			report(b, before, s.state.Stats())
		})
	}
}

// approveForManyUsers spreads grants over users, because a user has at most 100 grants of an app.
func approveForManyUsers(b *testing.B, s *bench, i int) string {
	a := s.approval()
	a.User = s.numberedUser(b, i/90)
	code, err := s.Approve(ctx, a)
	if err != nil {
		b.Error(err)
	}
	return code
}

func (b *bench) numberedUser(t testing.TB, n int) int64 {
	name := fmt.Sprint("user", n)
	u, err := state.Do(ctx, b.state, func(tx *state.Tx) (identity.User, error) {
		if u, ok := identity.FindUserByName(tx.View(), name); ok {
			return u, nil
		}
		return identity.AddUser(tx, identity.User{Username: name, Status: identity.UserActive})
	})
	if err != nil {
		t.Error(err)
	}
	return u.ID
}

func report(b *testing.B, before, after state.Stats) {
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s")
	b.ReportMetric(float64(after.Commands-before.Commands)/float64(after.Groups-before.Groups), "commands/commit")
}

func BenchmarkLookup(b *testing.B) {
	s := newBench(b, tokens.Config{})
	var access string
	for range 200 {
		access = s.tokens(b).Access
		s.clock.Add(time.Millisecond)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Lookup(access); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkIntrospect(b *testing.B) {
	s := newBench(b, tokens.Config{})
	access := s.tokens(b).Access
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Introspect(ctx, s.creds, access); err != nil {
			b.Fatal(err)
		}
	}
}
