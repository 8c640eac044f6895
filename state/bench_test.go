package state_test

import (
	"fmt"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"stagedoor/state"
	"stagedoor/state/identity"
	"stagedoor/state/journal"
	"stagedoor/state/work"
)

// BenchmarkDurableDo is one acknowledged command on disk; more writers share a
// commit.
func BenchmarkDurableDo(b *testing.B) {
	for _, writers := range []int{1, 16, 256} {
		b.Run(fmt.Sprint("writers=", writers), func(b *testing.B) {
			store, err := journal.OpenBolt(b.TempDir(), journal.Options{LowWater: -1})
			if err != nil {
				b.Fatal(err)
			}
			defer store.Close()
			s := open(b, store, time.Now)
			defer s.Close()
			var n atomic.Int64
			b.SetParallelism(max(writers/2, 1)) // times GOMAXPROCS
			b.ReportAllocs()
			b.ResetTimer()
			work := func() {
				r := work.StoredResponse{Body: []byte(`{"output":[]}`)}
				r.ID, r.Owner, r.Status = fmt.Sprintf("resp_%012d", n.Add(1)), me, "completed"
				if err := work.PutResponse(ctx, s, r); err != nil {
					b.Error(err)
				}
			}
			if writers == 1 {
				for range b.N {
					work()
				}
			} else {
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						work()
					}
				})
			}
			b.ReportMetric(float64(s.Stats().Commands)/float64(s.Stats().Groups), "commands/commit")
		})
	}
}

// BenchmarkKey is the lookup of every request: hash, find, ask.
func BenchmarkKey(b *testing.B) {
	s := open(b, journal.NewMemory(), newClock().Now)
	var secret string
	for i := range 1000 {
		made, k, err := identity.NewKey(start, seeded(uint64(i)))
		if err != nil {
			b.Fatal(err)
		}
		k.Scopes, k.Models = []string{"models", "chat"}, []string{"claude-*", "gpt-*"}
		k.AllowIPs = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
		if err := identity.CreateKey(ctx, s, k); err != nil {
			b.Fatal(err)
		}
		secret = made
	}
	hash, ip := state.HashSecret(secret), netip.MustParseAddr("10.1.2.3")
	b.Run("find", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, ok := identity.AccessOf(s).Key(hash); !ok {
				b.Fatal("not found")
			}
		}
	})
	b.Run("hash, find and ask", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			k, _ := identity.AccessOf(s).Key(state.HashSecret(secret))
			if err := k.Permits("chat", "gpt-4o", ip, start); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func TestKeyLookupAllocatesNothing(t *testing.T) {
	s := newState(t)
	k := newKey(t, 1)
	if err := identity.CreateKey(ctx, s, k); err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() { identity.AccessOf(s).Key(k.Hash) }); n > 0 {
		t.Errorf("got %v allocations", n)
	}
}
