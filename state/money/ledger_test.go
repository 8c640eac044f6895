package money_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"stagedoor/state"
	"stagedoor/state/budget"
	"stagedoor/state/journal"
	"stagedoor/state/money"
)

func post(t testing.TB, s *state.State, account string, ps ...money.Posting) (money.Account, []money.Posted) {
	t.Helper()
	a, posted, err := money.CommitPostings(ctx, s, account, ps)
	if err != nil {
		t.Fatal(err)
	}
	return a, posted
}

func about(request string) *money.Receipt {
	return &money.Receipt{Request: request, Model: "m", Key: "key_1"}
}

func TestPostingsBeyondTheBalanceAreRefused(t *testing.T) {
	s := newState(t)
	steps := []struct {
		what                 money.Posting
		want                 error
		credits, spent, held int64
	}{
		{money.Posting{Kind: money.Begin, Amount: 1, Receipt: about("a")}, money.ErrInsufficient, 0, 0, 0},
		{
			money.Posting{Kind: money.Credit, Amount: 100, Reason: "gift"},
			nil,
			100,
			0,
			0,
		}, // 1
		{
			money.Posting{Kind: money.Begin, Amount: 60, Receipt: about("a")},
			nil,
			100,
			0,
			60,
		}, // 2
		{
			money.Posting{Kind: money.Begin, Amount: 41, Receipt: about("b")},
			money.ErrInsufficient,
			100,
			0,
			60,
		}, //
		{
			money.Posting{Kind: money.Extend, Hold: 2, Amount: 41},
			money.ErrInsufficient,
			100,
			0,
			60,
		}, //
		{
			money.Posting{Kind: money.Extend, Hold: 2, Amount: 40},
			nil,
			100,
			0,
			100,
		}, // 3
		{
			money.Posting{Kind: money.Adjust, Amount: -1},
			money.ErrInsufficient,
			100,
			0,
			100,
		}, //
		{
			money.Posting{Kind: money.Progress, Hold: 2, Amount: 7},
			nil,
			100,
			0,
			100,
		}, //
		{
			money.Posting{Kind: money.Settle, Hold: 2, Amount: 30, Reason: "stop", Receipt: about("a")},
			nil,
			100,
			30,
			0,
		}, // 4
		{
			money.Posting{Kind: money.Settle, Hold: 2, Amount: 1, Receipt: about("a")},
			state.ErrFinished,
			100,
			30,
			0,
		}, //
		{
			money.Posting{Kind: money.Release, Hold: 2, Receipt: about("a")},
			state.ErrFinished,
			100,
			30,
			0,
		}, //
		{
			money.Posting{Kind: money.Extend, Hold: 2, Amount: 1},
			state.ErrFinished,
			100,
			30,
			0,
		}, //
		{
			money.Posting{Kind: money.Settle, Held: 50, Amount: 20, Receipt: about("c")},
			nil,
			100,
			50,
			0,
		}, // 5
		{
			money.Posting{Kind: money.Release, Held: 50, Reason: "refused", Receipt: about("d")},
			nil,
			100,
			50,
			0,
		}, // 6
		{
			money.Posting{Kind: money.Adjust, Amount: -50},
			nil,
			50,
			50,
			0,
		}, // 7
		{money.Posting{Kind: money.Credit, Amount: -1}, state.ErrInvalid, 50, 50, 0},
		{money.Posting{Kind: money.Begin, Amount: -1, Receipt: about("f")}, state.ErrInvalid, 50, 50, 0},
		{money.Posting{Kind: money.Begin, Amount: 0, Receipt: about("")}, state.ErrInvalid, 50, 50, 0},
		{money.Posting{Kind: money.Credit, Amount: math.MaxInt64}, state.ErrInvalid, 50, 50, 0},
		{money.Posting{Kind: money.Adjust, Amount: math.MinInt64}, state.ErrInvalid, 50, 50, 0},
		{money.Posting{Kind: money.Credit, Amount: budget.MaxCredits}, state.ErrInvalid, 50, 50, 0},
		{money.Posting{Kind: money.Begin, Amount: 1}, state.ErrInvalid, 50, 50, 0},
		{money.Posting{Kind: money.Release, Held: 1}, state.ErrInvalid, 50, 50, 0},
		{money.Posting{Kind: "gift", Amount: 1}, state.ErrInvalid, 50, 50, 0},
		{
			money.Posting{Kind: money.Credit, Amount: 10},
			nil,
			60,
			50,
			0,
		}, // 8
		{
			money.Posting{Kind: money.Begin, Amount: 5, Receipt: about("g")},
			nil,
			60,
			50,
			5,
		}, // 9
		{
			money.Posting{Kind: money.Settle, Hold: 9, Amount: 25, Reason: "stop", Receipt: about("g")},
			nil,
			60,
			75,
			0,
		}, // 10: a debt
		{
			money.Posting{Kind: money.Begin, Amount: 0, Receipt: about("h")},
			money.ErrInsufficient,
			60,
			75,
			0,
		}, //
		{
			money.Posting{Kind: money.Settle, Held: 1, Amount: 2, Reason: "stop", Receipt: about("i")},
			nil,
			60,
			77,
			0,
		}, // 11
		{
			money.Posting{Kind: money.Credit, Amount: 18},
			nil,
			78,
			77,
			0,
		}, // 12
		{
			money.Posting{Kind: money.Begin, Amount: 1, Receipt: about("j")},
			nil,
			78,
			77,
			1,
		}, // 13
		{
			money.Posting{Kind: money.Settle, Hold: 13, Amount: 1, Reason: "stop", Receipt: about("j")},
			nil,
			78,
			78,
			0,
		}, // 14
	}
	for i, step := range steps {
		a, posted := post(t, s, "7", step.what)
		if !errors.Is(posted[0].Err, step.want) || (step.want == nil) != (posted[0].Err == nil) {
			t.Fatalf("step %d: got %v, want %v", i, posted[0].Err, step.want)
		}
		if a.Credits != step.credits || a.Spent != step.spent || a.Held != step.held {
			t.Fatalf("step %d: got %+v, want credits %d, spent %d, held %d", i, a, step.credits, step.spent, step.held)
		}
		if b := money.FindAccount(s.View(), "7"); b.Credits != a.Credits || b.Spent != a.Spent || b.Held != a.Held {
			t.Fatalf("step %d: the table says %+v, the command %+v", i, b, a)
		}
	}
	totals, err := money.CheckLedger(ctx, s)
	if err != nil || totals.Entries != 14 || totals.Open != 0 || totals.Spent != 78 {
		t.Errorf("totals: got %+v, %v", totals, err)
	}
}

func TestHoldsOfOtherAccountsAreNotFound(t *testing.T) {
	s := newState(t)
	_, posted := post(t, s, "a", money.Posting{Kind: money.Credit, Amount: 10},
		money.Posting{Kind: money.Begin, Amount: 5, Receipt: about("r")})
	post(t, s, "b", money.Posting{Kind: money.Credit, Amount: 10})
	_, theirs := post(t, s, "b",
		money.Posting{Kind: money.Settle, Hold: posted[1].Sequence, Amount: 1, Receipt: about("r")})
	if !errors.Is(theirs[0].Err, state.ErrFinished) {
		t.Errorf("got %v, want ErrFinished", theirs[0].Err)
	}
	if got := money.ListHolds(s.View(), "a"); len(got) != 1 || got[0].Amount != 5 || got[0].Receipt.Request != "r" {
		t.Errorf("holds of a: got %+v", got)
	}
	if got := money.ListHolds(s.View(), "b"); len(got) != 0 {
		t.Errorf("holds of b: got %+v", got)
	}
	for _, name := range []string{"", "x\x00y", "line\nbreak", string(make([]byte, 200))} {
		if _, _, err := money.CommitPostings(ctx, s, name, nil); !errors.Is(err, state.ErrInvalid) {
			t.Errorf("account %q: got %v, want ErrInvalid", name, err)
		}
	}
}

func TestHistoryHasOneAccountNewestFirst(t *testing.T) {
	s := newState(t)
	for i := range int64(5) {
		post(t, s, "a", money.Posting{Kind: money.Credit, Amount: i + 1})
		post(t, s, "b", money.Posting{Kind: money.Credit, Amount: 100})
	}
	page, err := money.History(ctx, s, "a", 0, 2)
	if err != nil || len(page) != 2 || page[0].Amount != 5 || page[1].Amount != 4 {
		t.Fatalf("first page: got %+v, %v", page, err)
	}
	page, err = money.History(ctx, s, "a", page[1].Sequence, 9)
	if err != nil || len(page) != 3 || page[0].Amount != 3 || page[2].Amount != 1 {
		t.Errorf("second page: got %+v, %v", page, err)
	}
}

func TestSequencesContinueAfterARestart(t *testing.T) {
	store := journal.NewMemory()
	s := open(t, store, newClock().Now)
	post(t, s, "a", money.Posting{Kind: money.Credit, Amount: 10},
		money.Posting{Kind: money.Begin, Amount: 5, Receipt: about("r")})
	post(t, s, "b", money.Posting{Kind: money.Credit, Amount: 10})
	s.Close()
	s = open(t, store, newClock().Now)
	_, posted := post(t, s, "a", money.Posting{Kind: money.Credit, Amount: 1})
	if posted[0].Sequence != 4 {
		t.Errorf("got sequence %d, want 4", posted[0].Sequence)
	}
	if h := money.ListHolds(s.View(), ""); len(h) != 1 || h[0].ID != 2 {
		t.Errorf("holds: got %+v, want the one of entry 2", h)
	}
	if _, err := money.CheckLedger(ctx, s); err != nil {
		t.Error(err)
	}
}

func TestReceiptIsShownOnlyToItsOwner(t *testing.T) {
	clock := newClock()
	s := open(t, journal.NewMemory(), clock.Now)
	r := about("req_1")
	r.Prices = []money.PriceRow{{What: "input", Quantity: 10, Price: 3, Per: 1_000_000}}
	_, posted := post(t, s, "a", money.Posting{Kind: money.Credit, Amount: 10},
		money.Posting{Kind: money.Begin, Amount: 5, Receipt: r})
	if _, err := money.Receipts(ctx, s, "a", "req_1"); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("before the end: got %v, want ErrNotFound", err)
	}
	clock.Add(time.Second)
	post(t, s, "a", money.Posting{Kind: money.Settle, Hold: posted[1].Sequence, Amount: 3, Reason: "stop", Receipt: r},
		money.Posting{Kind: money.Release, Held: 2, Reason: "refused", Receipt: r})
	got, err := money.Receipts(ctx, s, "a", "req_1")
	if err != nil || len(got) != 2 {
		t.Fatalf("got %+v, %v", got, err)
	}
	if first := got[0]; first.Held != 5 || first.Charged != 3 || first.Reason != "stop" || !first.Began.Equal(start) ||
		!first.Ended.Equal(start.Add(time.Second)) ||
		len(first.Prices) != 1 ||
		first.Hold != posted[1].Sequence ||
		first.Account != "a" {
		t.Errorf("settled: got %+v", first)
	}
	if second := got[1]; second.Held != 2 || second.Charged != 0 || second.Reason != "refused" {
		t.Errorf("released: got %+v", second)
	}
	for _, of := range [][2]string{{"b", "req_1"}, {"a", "req_"}, {"a", "req_12"}, {"a\x00", "req_1"}, {"", ""},
		{"a", "../x"}} {
		if got, err := money.Receipts(ctx, s, of[0], of[1]); !errors.Is(err, state.ErrNotFound) {
			t.Errorf("%q: got %+v, %v, want ErrNotFound", of, got, err)
		}
	}
}

// The test posts random postings in random groups.
func TestLedgerBalancesWhateverIsPosted(t *testing.T) {
	kinds := []money.EntryKind{
		money.Credit,
		money.Adjust,
		money.Begin,
		money.Extend,
		money.Settle,
		money.Release,
		money.Progress,
	}
	rapid.Check(t, func(rt *rapid.T) {
		store := journal.NewMemory()
		s := open(t, store, newClock().Now)
		for range rapid.IntRange(1, 20).Draw(rt, "commands") {
			account := rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "account")
			postings := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) money.Posting {
				return money.Posting{
					Kind:   rapid.SampledFrom(kinds).Draw(rt, "kind"),
					Amount: rapid.Int64Range(-5, 50).Draw(rt, "amount"),
					Hold: rapid.Uint64Range(0, 40).
						Draw(rt, "hold"),
					Held:    rapid.Int64Range(0, 50).Draw(rt, "held"),
					Receipt: about("r"),
				}
			}), 1, 5).Draw(rt, "postings")
			if _, _, err := money.CommitPostings(ctx, s, account, postings); err != nil {
				rt.Fatal(err)
			}
		}
		before, err := money.CheckLedger(ctx, s)
		if err != nil {
			rt.Fatal(err)
		}
		s.Close()
		again := open(t, store, newClock().Now)
		defer again.Close()
		if after, err := money.CheckLedger(ctx, again); err != nil || after != before {
			rt.Fatalf("after reloading: got %+v, %v, want %+v", after, err, before)
		}
	})
}

// The test changes the tables in the store.
func TestCheckLedgerFindsEveryError(t *testing.T) {
	gift := func(sequence, previous uint64) money.Entry {
		return money.Entry{Sequence: sequence, Previous: previous, Account: "a", Kind: money.Credit, At: start}
	}
	tests := []struct {
		name string
		op   journal.Op
	}{
		{
			"a balance",
			journal.Op{
				Table: journal.Balance,
				Key:   []byte("a"),
				Value: []byte(`{"id":"a","credits":100,"spent":9,"held":20,"last":5}`),
			},
		},
		{"an account gone", journal.Op{Kind: journal.Delete, Table: journal.Balance, Key: []byte("a")}},
		{"a page gone", journal.Op{Kind: journal.Delete, Table: journal.Ledger, Key: []byte{0, 0, 0, 0, 0, 0, 0, 5}}},
		{
			"an entry gone",
			journal.Op{
				Table: journal.Ledger,
				Key:   []byte{0, 0, 0, 0, 0, 0, 0, 5},
				Value: money.PageOf(money.Entry{Sequence: 5, Account: "a", Kind: money.Credit, Amount: 100, At: start}),
			},
		},
		{
			"entries twice",
			journal.Op{
				Table: journal.Ledger,
				Key:   []byte{0, 0, 0, 0, 0, 0, 0, 6},
				Value: money.PageOf(gift(5, 4), gift(6, 5)),
			},
		},
		{"a hold gone", journal.Op{Kind: journal.DeletePrefix, Table: journal.Hold, Key: []byte{0, 0, 0, 0}}},
		{
			"a second end",
			journal.Op{
				Table: journal.Ledger,
				Key:   []byte{0, 0, 0, 0, 0, 0, 0, 9},
				Value: money.PageOf(
					money.Entry{
						Sequence: 9,
						Previous: 5,
						Account:  "a",
						Kind:     money.Settle,
						Held:     10,
						Hold:     2,
						At:       start,
					},
				),
			},
		},
		{
			"an unknown kind",
			journal.Op{
				Table: journal.Ledger,
				Key:   []byte{0, 0, 0, 0, 0, 0, 0, 9},
				Value: money.PageOf(
					money.Entry{Sequence: 9, Previous: 5, Account: "a", Kind: "gift", Amount: 1, At: start},
				),
			},
		},
		{"no entry", journal.Op{Table: journal.Ledger, Key: []byte{0, 0, 0, 0, 0, 0, 0, 9}, Value: []byte(`[]`)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			store := journal.NewMemory()
			s := open(t, store, newClock().Now)
			post(
				t,
				s,
				"a",
				money.Posting{Kind: money.Credit, Amount: 100},
				money.Posting{Kind: money.Begin, Amount: 10, Receipt: about("r")},
				money.Posting{
					Kind:    money.Settle,
					Hold:    2,
					Amount:  8,
					Receipt: about("r"),
				},
				money.Posting{Kind: money.Begin, Amount: 20, Receipt: about("q")},
				money.Posting{Kind: money.Settle, Held: 5, Amount: 0, Receipt: about("p")},
			)
			if _, err := money.CheckLedger(ctx, s); err != nil {
				t.Fatal(err)
			}
			s.Close()
			if _, err := store.Commit(ctx, []journal.Batch{{Ops: []journal.Op{tt.op}}}); err != nil {
				t.Fatal(err)
			}
			if _, err := money.CheckLedger(ctx, open(t, store, newClock().Now)); !errors.Is(err, journal.ErrCorrupt) {
				t.Errorf("got %v, want ErrCorrupt", err)
			}
		})
	}
}

// encoding/json reads the same values from the records that jsonObject writes.
func TestRecordsAreWrittenAsTheyAreRead(t *testing.T) {
	text := rapid.OneOf(rapid.String(),
		rapid.SampledFrom([]string{"", "plain", "quote\"", "back\\slash", "line\nbreak", "\u2028<&>", "日本"}))
	number := rapid.Int64Range(0, 1<<50)
	rapid.Check(t, func(rt *rapid.T) {
		s := open(t, journal.NewMemory(), newClock().Now)
		defer s.Close()
		n := func(name string) int64 { return number.Draw(rt, name) }
		r := money.Receipt{
			Request:  "r",
			Prices:   []money.PriceRow{},
			Key:      text.Draw(rt, "key"),
			Model:    text.Draw(rt, "model"),
			Upstream: text.Draw(rt, "upstream"),
			Provider: text.Draw(rt, "provider"),
			Attempts: rapid.IntRange(0, 9).Draw(rt, "attempts"),
			Flags:    rapid.SliceOfN(text, 0, 3).Draw(rt, "flags"),
			Usage: money.ReceiptUsage{
				Input:      n("in"),
				CacheRead:  n("read"),
				CacheWrite: n("write"),
				Output:     n("out"),
				Reasoning:  n("reasoning"),
				Images:     n("images"),
				Seconds:    n("seconds"),
				Estimated:  rapid.Bool().Draw(rt, "estimated"),
			},
		}
		for range rapid.IntRange(0, 3).Draw(rt, "rows") {
			r.Prices = append(r.Prices,
				money.PriceRow{What: text.Draw(rt, "what"), Quantity: n("quantity"), Price: n("price"), Per: n("per")})
		}
		reason := text.Draw(rt, "reason")
		_, posted, err := money.CommitPostings(
			ctx,
			s,
			"a",
			[]money.Posting{
				{Kind: money.Credit, Amount: 10, Reason: reason},
				{Kind: money.Settle, Held: 7, Amount: 5, Reason: reason, Receipt: &r},
			},
		)
		if err != nil {
			rt.Fatal(err)
		}
		got, err := money.Receipts(ctx, s, "a", "r")
		if err != nil || len(got) != 1 {
			rt.Fatalf("%+v, %v", got, err)
		}
		want := r
		want.Account, want.Hold, want.Held, want.Charged, want.Reason, want.Began, want.Ended = "a", posted[1].Sequence,
			7, 5, reason, got[0].Began, got[0].Ended
		if !got[0].Ended.Equal(start) {
			rt.Errorf("ended: got %v", got[0].Ended)
		}
		g, err := json.Marshal(got[0])
		if err != nil {
			rt.Fatal(err)
		}
		w, err := json.Marshal(want)
		if err != nil {
			rt.Fatal(err)
		}
		if !bytes.Equal(g, w) {
			rt.Errorf("got %s, want %s", g, w)
		}
		entries, err := money.History(ctx, s, "a", 0, 9)
		if err != nil || len(entries) != 2 || entries[0].Reason != reason || entries[0].Model != r.Model ||
			!entries[0].At.Equal(start) ||
			entries[1].Reason != reason {
			rt.Errorf("entries: %+v, %v", entries, err)
		}
	})
}
