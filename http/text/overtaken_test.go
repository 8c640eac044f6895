package text

import (
	"slices"
	"testing"
	"time"

	"stagedoor/state/money"
)

// A receipt names the providers that were overtaken during its request, whichever of them ended first, and lists those
// of earlier requests with the same id apart.
func TestTheReceiptOfAHedgedRequestNamesAllProviders(t *testing.T) {
	at := func(seconds int64) time.Time { return time.Unix(seconds, 0) }
	r := func(provider, reason string, from, to int64) money.Receipt {
		return money.Receipt{Provider: provider, Reason: reason, Began: at(from), Ended: at(to), Hold: 1, Charged: 5}
	}
	old, oldLoser := r("old", "finished", 1, 9), r("old loser", money.ReasonOvertaken, 1, 5)
	winner := r("winner", "finished", 12, 20)
	before, during := r("before", money.ReasonOvertaken, 10, 12), r("during", money.ReasonOvertaken, 13, 21)
	for name, test := range map[string]struct {
		all                []money.Receipt
		overtaken, earlier []string
	}{
		"alone":                  {[]money.Receipt{winner}, nil, nil},
		"the loser ended before": {[]money.Receipt{before, winner}, []string{"before"}, nil},
		"the loser ended after":  {[]money.Receipt{winner, during}, []string{"during"}, nil},
		"an id that is used twice": {[]money.Receipt{oldLoser, old, before, winner, during},
			[]string{"during", "before"}, []string{"old", "old loser"}},
	} {
		got := receiptOf(test.all)
		names := func(all []settledReceipt) (names []string) {
			for _, r := range all {
				names = append(names, r.Provider)
			}
			return names
		}
		if got.Provider != "winner" || !slices.Equal(names(got.Overtaken), test.overtaken) ||
			!slices.Equal(names(got.Earlier), test.earlier) {
			t.Errorf("%s: %s, overtaken %v, earlier %v", name, got.Provider, names(got.Overtaken), names(got.Earlier))
		}
	}
}
