package money

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"stagedoor/state"
	"stagedoor/state/budget"
	"stagedoor/state/journal"
	"stagedoor/state/statetest"
)

func settle(request, key, model string, amount int64) Posting {
	return Posting{Kind: Settle, Amount: amount, Held: amount, Reason: "finished", Receipt: &Receipt{
		Request: request, Key: key, Model: model, Usage: ReceiptUsage{Input: 10, CacheRead: 4, Output: 5}}}
}

// ledgerState returns a state whose clock the test moves.
func ledgerState(t *testing.T, store journal.Store, now *time.Time) *state.State {
	t.Helper()
	s, err := state.Open(statetest.DecideTwice(store), func() time.Time { return *now }, Module())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func mustPost(t *testing.T, s *state.State, account string, ps ...Posting) []Posted {
	t.Helper()
	_, posted, err := CommitPostings(context.Background(), s, account, ps)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range posted {
		if p.Err != nil {
			t.Fatal(p.Err)
		}
	}
	return posted
}

func TestUsageIsGroupedByUserKeyAndModel(t *testing.T) {
	now := time.Date(2026, 3, 31, 12, 0, 0, 0, time.UTC)
	store := journal.NewMemory()
	s := ledgerState(t, store, &now)
	for _, account := range []string{"anna", "ben"} {
		mustPost(t, s, account, Posting{Kind: Credit, Amount: 1_000_000})
	}
	mustPost(t, s, "anna", settle("r1", "key_a", "m1", 100), settle("r2", "key_a", "m1", 20),
		settle("r3", "key_b", "m2", 3))
	mustPost(t, s, "ben", settle("r4", "key_c", "m1", 5000))
	now = now.Add(24 * time.Hour) // the next month, too
	posted := mustPost(t, s, "anna", settle("r5", "key_a", "m1", 7))
	if got := posted[0].Spends[0]; got.Total != 127 || got.OfDay != 7 || got.OfMonth != 7 {
		t.Errorf("the posting tells %+v, want 127 in all and 7 of day and month", got)
	}
	from, to := now.AddDate(0, 0, -3), now

	for name, c := range map[string]struct {
		ask  func(*state.State) ([]UsageRow, error)
		want []string
	}{
		"by day": {func(s *state.State) ([]UsageRow, error) {
			return QueryUsage(t.Context(), s, byDay("anna", from, to))
		},
			[]string{"2026-03-31|||m1|2|20|8|10|120", "2026-03-31|||m2|1|10|4|5|3", "2026-04-01|||m1|1|10|4|5|7"}},
		"by user": {func(s *state.State) ([]UsageRow, error) {
			return QueryUsage(t.Context(), s, UsageQuery{From: from, To: to, Per: PerAccount})
		},
			[]string{"|anna|||4|40|16|20|130", "|ben|||1|10|4|5|5000"}},
		"by key": {func(s *state.State) ([]UsageRow, error) {
			return QueryUsage(t.Context(), s, UsageQuery{Account: "anna", From: from, To: to, Per: PerAccount | PerKey})
		},
			[]string{"|anna|key_a||3|30|12|15|127", "|anna|key_b||1|10|4|5|3"}},
		"of a key's model": {func(s *state.State) ([]UsageRow, error) {
			return QueryUsage(t.Context(), s, UsageQuery{Account: "anna", Key: "key_b", Model: "m2",
				From: from, To: to})
		}, []string{"||||1|10|4|5|3"}},
		"of one day": {func(s *state.State) ([]UsageRow, error) {
			return QueryUsage(t.Context(), s, byDay("", from, now.AddDate(0, 0, -1)))
		},
			[]string{"2026-03-31|||m1|3|30|12|15|5120", "2026-03-31|||m2|1|10|4|5|3"}},
		"of an unknown user": {func(s *state.State) ([]UsageRow, error) {
			return QueryUsage(t.Context(), s, byDay("ann", from, to))
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			check := func(s *state.State) {
				t.Helper()
				rows, err := c.ask(s)
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, u := range rows {
					got = append(got, fmt.Sprintf("%s|%s|%s|%s|%d|%d|%d|%d|%d", u.Day, u.Account, u.Key, u.Model,
						u.Requests, u.InputTokens, u.CachedTokens, u.OutputTokens, u.Amount))
				}
				if strings.Join(got, "\n") != strings.Join(c.want, "\n") {
					t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
				}
			}
			check(s)
			again, err := state.Open(statetest.DecideTwice(store), func() time.Time { return now }, Module())
			if err != nil {
				t.Fatal(err)
			}
			defer again.Close()
			check(again)
		})
	}
}

// A clock that goes back neither loses usage nor stops the store.
func TestUsageSurvivesAClockThatGoesBack(t *testing.T) {
	start := time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)
	now := start
	s := ledgerState(t, journal.NewMemory(), &now)
	mustPost(t, s, "anna", Posting{Kind: Credit, Amount: 1_000_000}, settle("r1", "k", "m", 1))
	now = start.AddDate(0, 0, 9)
	mustPost(t, s, "anna", settle("r2", "k", "m", 10)) // the first row leaves memory
	now = start
	mustPost(t, s, "anna", settle("r3", "k", "m", 100))
	rows, err := QueryUsage(t.Context(), s, byDay("anna", start, start.AddDate(0, 0, 9)))
	if err != nil || len(rows) != 2 || rows[0].Amount != 1 || rows[1].Amount != 110 {
		t.Errorf("usage %+v (%v), want 1 and 110: the state's time does not go back", rows, err)
	}
	if spent := SpentByKey(s.View(), "k"); spent.Total != 111 || spent.In(budget.WindowDay, now) != 110 {
		t.Errorf("the key has spent %+v; what is spent in the past counts as the newest day's", spent)
	}
}

func TestUsageBoundsTheModelsOfADay(t *testing.T) {
	now := time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)
	s := ledgerState(t, journal.NewMemory(), &now)
	mustPost(t, s, "anna", Posting{Kind: Credit, Amount: 1_000_000})
	for i := range maxUsageModels + 20 {
		mustPost(t, s, "anna", settle(fmt.Sprintf("r%d", i), "k", fmt.Sprintf("m%d", i), 1))
	}
	mustPost(t, s, "anna", settle("x", "k", "mx", 1), settle("y", "k", "my", 1))
	mustPost(t, s, "anna", settle("long", "k", strings.Repeat("é\x00", 200), 1))
	rows, err := QueryUsage(t.Context(), s, byDay("anna", now, now))
	if err != nil || len(rows) != maxUsageModels+1 || rows[0].Model != OtherModels || rows[0].Amount != 23 {
		t.Errorf("%d rows (%v), the first %+v; want %d and 23 of %s", len(rows), err, rows[0], maxUsageModels+1,
			OtherModels)
	}
}

func TestUsageRefusesLongSpans(t *testing.T) {
	now := time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)
	s := ledgerState(t, journal.NewMemory(), &now)
	for _, from := range []time.Time{now.AddDate(0, 0, 1), now.AddDate(0, 0, -MaxUsageDays)} {
		if _, err := QueryUsage(t.Context(), s, byDay("", from, now)); err == nil {
			t.Errorf("usage from %s to %s was answered", from, now)
		}
	}
}

func TestUsageNameFitsADurableKey(t *testing.T) {
	for in, want := range map[string]string{
		"m": "m", "a\x00b": "a?b", "\xff": "?", strings.Repeat("é", 100): strings.Repeat("é", 64),
		strings.Repeat("x", 127) + "é": strings.Repeat("x", 127),
	} {
		if got := usageName(in); got != want {
			t.Errorf("usageName(%q) = %q, want %q", in, got, want)
		}
	}
}

// byDay returns the usage of an account by day and model.
func byDay(account string, from, to time.Time) UsageQuery {
	return UsageQuery{Account: account, From: from, To: to, Per: PerDay | PerModel}
}
