package ledger_test

import (
	"testing"

	"pgregory.net/rapid"

	"stagedoor/actors/ledger"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
)

// TestBillDependsOnWhatTheProviderDid: a provider delivers pieces and reports usage that may be
// negative, huge, missing, repeated or decreasing, and the client leaves after any event. The
// bill never falls while more is delivered, is never below the delivered pieces if the client
// left, and never above what the model gives.
func TestBillDependsOnWhatTheProviderDid(t *testing.T) {
	price := &catalog.Price{Input: 1_000_000, Output: 10_000_000}
	counts := rapid.OneOf(rapid.Int64Range(0, 200),
		rapid.SampledFrom([]int64{-1, dialogue.NegativeCount, -50, 0, 1 << 40}))
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.Int64Range(1, 300).Draw(t, "model maximum")
		prompt := rapid.Int64Range(0, 100).Draw(t, "prompt")
		reported, delivered := dialogue.NoUsage, int64(0)
		for range rapid.IntRange(0, 20).Draw(t, "events") {
			if rapid.Bool().Draw(t, "usage") {
				report := dialogue.NoUsage
				report.OutputTotal = counts.Draw(t, "output")
				reported.Merge(report)
			} else {
				delivered += rapid.Int64Range(1, 20).Draw(t, "piece")
			}
			work := ledger.Work{
				Price:      price,
				Accepted:   true,
				Reported:   reported,
				Counted:    usage(prompt, delivered),
				MostOutput: most,
				Exact:      true,
			}
			for _, end := range []ledger.Ending{ledger.Left, ledger.Exhausted, ledger.Finished} {
				work.End = end
				amount := ledger.Charge(work).Amount
				if amount < prompt || amount > prompt+10*most {
					t.Fatalf("end %v after %d delivered tokens, reported %d: charged %d, want %d to %d", end,
						delivered, reported.OutputTotal, amount, prompt, prompt+10*most)
				}
				if end != ledger.Finished && amount < prompt+10*min(delivered, most) {
					t.Fatalf("end %v: %d tokens were delivered and %d charged", end, delivered, amount)
				}
				more := work
				more.Counted.OutputTotal++
				if ledger.Charge(more).Amount < amount {
					t.Fatalf("end %v: a token more lowers the bill of %d", end, amount)
				}
			}
		}
	})
}
