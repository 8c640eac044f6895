package money_test

import (
	"fmt"
	"testing"
	"time"

	"stagedoor/state"
	"stagedoor/state/journal"
	"stagedoor/state/money"
	"stagedoor/state/schema"
	"stagedoor/state/statetest"
)

// benchRequests is the number of priced requests that BenchmarkBytesPerRequest writes.
const benchRequests = 100_000

// BenchmarkBytesPerRequest reports the bytes that a priced request takes in the store's file: while
// the gateway runs, after a compaction, and after the ledger is folded. Each request is posted
// alone, as under light load. 50 users have two keys each, and every tenth request starts with a
// durable hold. The ids are the gateway's own or, for "client", random ones.
func BenchmarkBytesPerRequest(b *testing.B) {
	for name, id := range requestIDs(b) {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				measureRequests(b, id)
			}
		})
	}
}

// requestIDs has functions that return the id of the nth request, which began at a time.
func requestIDs(t testing.TB) map[string]func(now time.Time, n int) string {
	return map[string]func(now time.Time, n int) string{
		"gateway": func(now time.Time, n int) string {
			id, err := state.NewID("req_", now, seeded(uint64(n)))
			if err != nil {
				t.Fatal(err)
			}
			return id
		},
		"client": func(_ time.Time, n int) string { h := hash(n); return fmt.Sprintf("%x-%x", h[:8], h[8:16]) },
	}
}

func measureRequests(b *testing.B, id func(now time.Time, n int) string) {
	dir, clock := b.TempDir(), newClock()
	store, err := journal.OpenBolt(dir, journal.Options{LowWater: -1})
	if err != nil {
		b.Fatal(err)
	}
	s := open(b, store, clock.Now)
	creditUsers(b, s)
	before := used(store)
	payRequests(b, s, clock, id, 0, benchRequests)
	report := func(unit string) {
		b.ReportMetric(float64(used(store)-before)/benchRequests, unit)
	}
	// reopen leaves the redo log out of the figure: it has a fixed size.
	reopen := func(compact bool) {
		s.Close()
		if err := store.Close(); err != nil {
			b.Fatal(err)
		}
		if compact {
			if _, err := journal.Compact(ctx, dir, journal.Options{LowWater: -1}); err != nil {
				b.Fatal(err)
			}
		}
		if store, err = journal.OpenBolt(dir, journal.Options{LowWater: -1}); err != nil {
			b.Fatal(err)
		}
		s = open(b, store, clock.Now)
	}
	reopen(false)
	b.ReportMetric(float64(store.Stats().Size)/benchRequests, "file-B/request")
	report("B/request")
	reopen(true)
	report("compact-B/request")
	if v, err := schema.Verify(ctx, store); err != nil || !v.Sound() {
		b.Fatal(v.Problems, err)
	}
	for n := money.MaxFold; n >= money.MaxFold; {
		if n, err = money.Fold(ctx, s, clock.Now().Add(time.Hour), 0); err != nil {
			b.Fatal(err)
		}
	}
	reopen(true)
	report("folded-B/request")
	s.Close()
	if err := store.Close(); err != nil {
		b.Fatal(err)
	}
}

// payRequests posts the priced requests from one number up to another and packs them.
func payRequests(t testing.TB, s *state.State, clock *statetest.Clock, id func(now time.Time, n int) string,
	from, to int) {
	t.Helper()
	const commit = 100
	for n := from; n < to; n += commit {
		clock.Add(10 * time.Second)
		if err := try(s, func(tx *state.Tx) error {
			for i := n; i < n+commit; i++ {
				if err := payRequest(tx, id(tx.Now().Add(-time.Duration(i*7919%9973)*time.Millisecond), i),
					i); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if n%10_000 == 0 {
			pack(t, s)
		}
	}
	pack(t, s)
}

// A priced request takes about 150 bytes, as docs/operating.md says. The space of folded entries is
// reused without a compaction.
func TestAPricedRequestTakesFewBytes(t *testing.T) {
	const most = 200
	requests := 10_000
	if testing.Short() {
		requests = 4_000
	}
	dir, clock := t.TempDir(), newClock()
	id := requestIDs(t)["gateway"]
	var store journal.Store
	var s *state.State
	reopen := func() int64 { // leaves the redo log out, which has a fixed size
		t.Helper()
		if s != nil {
			s.Close()
			if err := store.Close(); err != nil {
				t.Fatal(err)
			}
		}
		var err error
		if store, err = journal.OpenBolt(dir, journal.Options{LowWater: -1}); err != nil {
			t.Fatal(err)
		}
		s = open(t, store, clock.Now)
		return used(store)
	}
	reopen()
	creditUsers(t, s)
	before := reopen()
	for round := range 3 {
		payRequests(t, s, clock, id, round*requests, (round+1)*requests)
		each := (reopen() - before) / int64(requests)
		t.Logf("round %d: %d bytes a request", round, each)
		if each < 1 || each > most {
			t.Errorf("round %d: a request takes %d bytes, of at most %d", round, each, most)
		}
		for n := money.MaxFold; n >= money.MaxFold; {
			var err error
			if n, err = money.Fold(ctx, s, clock.Now().Add(time.Hour), 0); err != nil {
				t.Fatal(err)
			}
		}
		if left := (reopen() - before) / int64(requests); left > most/4 { // later rounds count what earlier ones leave
			t.Errorf("round %d: a folded request leaves %d bytes", round, left)
		}
	}
	s.Close()
	if err := store.Close(); err != nil {
		t.Error(err)
	}
}

// used returns the number of bytes in use in the store's file.
func used(store journal.Store) int64 { return store.Stats().Size - store.Stats().Free }

// payRequest posts one priced request as the ledger actor does.
func payRequest(tx *state.Tx, request string, n int) error {
	account := fmt.Sprint("user", n%50)
	in, out := int64(200+n*7919%5000), int64(50+n*104729%900)
	amount := (in*3 + out*15) / 1000
	receipt := money.Receipt{
		Request:  request,
		Key:      fmt.Sprintf("key_%048x", n%100*7919),
		Model:    "gpt-5",
		Upstream: "gpt-5-2026-03-01",
		Provider: "openai",
		Attempts: 1,
		Usage: money.ReceiptUsage{
			Input:  in,
			Output: out,
		},
		Prices: []money.PriceRow{
			{What: "input", Quantity: in, Price: 3000, Per: 1e6},
			{What: "output", Quantity: out, Price: 15000, Per: 1e6},
		},
	}
	end := money.Posting{
		Kind:    money.Settle,
		Amount:  amount,
		Held:    4 * amount,
		Reason:  "finished",
		Receipt: &receipt,
		Began:   tx.Now().Add(-time.Duration(n*6151%8000) * 1_000_003),
	}
	if n%10 == 0 {
		begun, err := postTo(tx, account,
			money.Posting{Kind: money.Begin, Amount: 4 * amount, Receipt: &receipt, Began: end.Began})
		if err != nil {
			return err
		}
		end.Hold = begun
	}
	_, err := postTo(tx, account, end)
	return err
}

func postTo(tx *state.Tx, account string, p money.Posting) (uint64, error) {
	_, posted, err := money.Post(tx, account, []money.Posting{p})
	if err != nil {
		return 0, err
	}
	return posted[0].Sequence, posted[0].Err
}

// creditUsers gives the users of payRequest enough credits.
func creditUsers(t testing.TB, s *state.State) {
	must(t, s, func(tx *state.Tx) error {
		for user := range 50 {
			if _, err := postTo(tx, fmt.Sprint("user", user),
				money.Posting{Kind: money.Credit, Amount: 1e12}); err != nil {
				return err
			}
		}
		return nil
	})
}

// pack packs the ledger as the maintenance loop does.
func pack(t testing.TB, s *state.State) {
	for n := money.MaxFold; n >= money.MaxFold; {
		var err error
		if n, err = money.Pack(ctx, s, 0); err != nil {
			t.Fatal(err)
		}
	}
}
