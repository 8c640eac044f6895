package ledger_test

import (
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"

	"stagedoor/actors/kit/kittest"
	"stagedoor/actors/ledger"
	"stagedoor/providers/dialogue"
	"stagedoor/state"
	"stagedoor/state/budget"
	"stagedoor/state/identity"
	"stagedoor/state/journal"
	"stagedoor/state/money"
)

var quiet = slog.New(slog.DiscardHandler)

// BenchmarkHoldAndSettle measures the cost of charging a text request: a hold, a charge and
// a settlement that is durable, on disk. All callers share one account, which is
// the worst case.
func BenchmarkHoldAndSettle(b *testing.B) {
	for _, durable := range []bool{false, true} {
		for _, callers := range []int{1, 16, 256} {
			b.Run(fmt.Sprintf("durable=%v/callers=%d", durable, callers), func(b *testing.B) {
				store, err := journal.OpenBolt(b.TempDir(), journal.Options{LowWater: -1})
				if err != nil {
					b.Fatal(err)
				}
				b.Cleanup(func() { store.Close() })
				s := open(b, store)
				b.Cleanup(func() { s.Close() })
				c := start(b, kittest.Start(b), s)
				credit(b, c, "7", budget.MaxCredits)
				if err := identity.CreateKey(ctx, s,
					identity.Key{ID: "key_7", Hash: state.Hash{7}, User: "7", Budget: budget.MaxCredits}); err != nil {
					b.Fatal(err)
				}
				var n atomic.Int64
				work := func() {
					ask := ledger.Ask{
						Account:   "7",
						RequestID: fmt.Sprintf("req_%016d", n.Add(1)),
						Amount:    ledger.Estimate(price, ledger.Demand{Prompt: 1000}, 1000),
						Durable:   durable,
						Key:       "key_7",
					}
					h, err := c.Hold(ctx, ask)
					if err != nil {
						b.Error(err)
						return
					}
					bill := ledger.Charge(
						ledger.Work{Price: price, Reported: usage(1000, 100), Counted: dialogue.NoUsage},
					)
					receipt := &money.Receipt{
						Model:    "m",
						Upstream: "m",
						Provider: "p",
						Attempts: 1,
						Usage:    bill.Usage,
						Prices:   bill.Prices,
					}
					if err := h.Settle(ctx, ledger.Settlement{Amount: bill.Amount, Reason: "finished",
						Receipt: receipt}); err != nil {
						b.Error(err)
					}
				}
				b.ReportAllocs()
				b.ResetTimer()
				if callers == 1 {
					for range b.N {
						work()
					}
				} else {
					b.SetParallelism(callers / 2) // times GOMAXPROCS
					b.RunParallel(func(pb *testing.PB) {
						for pb.Next() {
							work()
						}
					})
				}
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
			})
		}
	}
}
