package money

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"stagedoor/state"
	"stagedoor/state/journal"
)

// noon is the time of the entries of these tests.
var noon = time.Date(2026, 3, 31, 12, 0, 0, 123456789, time.UTC)

// withReceipt returns the complete receipt of an entry.
func withReceipt(e Entry, r Receipt) Receipt {
	r.Request, r.Account, r.Hold, r.Model = e.Request, e.Account, e.Hold, e.Model
	r.Held, r.Charged, r.Reason, r.Ended = e.Held, e.Amount, e.Reason, e.At
	if r.Prices == nil {
		r.Prices = []PriceRow{}
	}
	return r
}

func commitAll(t rapid.TB, store journal.Store, ops []journal.Op) {
	t.Helper()
	if _, err := store.Commit(context.Background(), []journal.Batch{{Ops: ops}}); err != nil {
		t.Fatal(err)
	}
}

// trade posts on two accounts: holds that close at once and later, several with the same request
// id, and one that stays open.
func trade(t *testing.T, s *state.State) {
	t.Helper()
	for _, account := range []string{"anna", "bert"} {
		mustPost(t, s, account, Posting{Kind: Credit, Amount: 1_000_000})
		begin := func(request string) Posting {
			return Posting{Kind: Begin, Amount: 50, Receipt: &Receipt{Request: request, Model: "m1"}}
		}
		end := func(hold uint64, request string, kind EntryKind, amount int64) Posting {
			p := settle(request, "key_"+account, "m1", amount)
			p.Kind, p.Hold, p.Reason = kind, hold, "finished"
			p.Receipt.Upstream, p.Receipt.Prices, p.Receipt.Flags = "m1-2026", []PriceRow{
				{"input", amount, 1, 1},
			}, []string{
				"flag",
			}
			return p
		}
		begun := mustPost(t, s, account, begin("mine"), begin("theirs"), begin("open"))
		mustPost(t, s, account, end(begun[0].Sequence, "mine", Settle, 40), end(0, "mine", Settle, 7),
			end(begun[1].Sequence, "theirs", Release, 0))
		mustPost(t, s, account, end(0, "mine", Settle, 8), end(0, "own_"+account, Settle, 9))
	}
}

// receiptKey returns the key of a record of the index whose first entry has the sequence.
func receiptKey(request, account string, sequence uint64) []byte {
	p := placeOf(request)
	return append(p.accountPrefix(account), state.SequenceKey(sequence)...)
}

// gatewayID returns an id as the gateway makes it at a time.
func gatewayID(t testing.TB, at time.Time, n int) string {
	t.Helper()
	id, err := state.NewID("req_", at, strings.NewReader(fmt.Sprintf("%04d%014d", n, n)))
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// The keys of the receipt tables lead to the entries with the receipts.
func TestIndexLeadsToTheEntry(t *testing.T) {
	ctx := context.Background()
	store := journal.NewMemory()
	s := ledgerState(t, store, &noon)
	defer s.Close()
	trade(t, s) // anna's: 2, 3 and 4 begin, 5 to 9 end
	for sequence, request := range map[uint64]string{5: "mine", 6: "mine", 7: "theirs", 8: "mine", 9: "own_anna"} {
		if rec, err := store.Get(ctx, journal.ByHash, receiptKey(request, "anna", sequence)); err != nil ||
			len(rec.Value) != 0 ||
			len(rec.Key) != 24 {
			t.Errorf("%s of entry %d: got %+v, %v", request, sequence, rec, err)
		}
	}
	for request, want := range map[string][]int64{"mine": {40, 7, 8}, "theirs": {0}, "own_anna": {9}} {
		got, err := Receipts(ctx, s, "anna", request)
		if err != nil || len(got) != len(want) {
			t.Fatalf("%s: got %+v, %v, want %d", request, got, err, want)
		}
		for i := range got {
			if got[i].Charged != want[i] || got[i].Account != "anna" {
				t.Errorf("%s: got %+v, want %d", request, got[i], want[i])
			}
		}
	}
	if _, err := Receipts(ctx, s, "anna", "open"); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("of a hold that is open: %v, want ErrNotFound", err)
	}
}

// seen is everything that readers return for a state.
func seen(t *testing.T, s *state.State) string {
	t.Helper()
	ctx := context.Background()
	var b strings.Builder
	tell := func(v any, err error) {
		text, marshalErr := json.Marshal(v)
		if marshalErr != nil {
			t.Fatal(marshalErr)
		}
		if err != nil && !errors.Is(err, state.ErrNotFound) {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s %v\n", text, err)
	}
	for _, account := range []string{"anna", "bert"} {
		for _, request := range []string{"mine", "theirs", "open", "own_anna"} {
			tell(Receipts(ctx, s, account, request))
		}
		tell(History(ctx, s, account, 0, 100))
		for _, limit := range []int{1, 100} {
			list, next, err := ListReceipts(ctx, s, ReceiptQuery{Account: account, Limit: limit})
			tell(list, err)
			tell(next, nil)
		}
	}
	tell(RequestReceipts(ctx, s, "mine"))
	list, next, err := ListReceipts(ctx, s, ReceiptQuery{Key: "key_bert"})
	tell(list, err)
	tell(next, nil)
	tell(CheckLedger(ctx, s))
	return b.String()
}

// The newest records are on few pages of the durable store, and requests of one time have one record.
func TestGatewayRequestsAreIndexedByTime(t *testing.T) {
	before := place{}
	for n := range 100 {
		at := placeOf(gatewayID(t, noon.Add(time.Duration(n)<<indexTime*time.Millisecond), n))
		if !at.timed || bytes.Compare(before.start[:], at.start[:]) >= 0 || at.mark == before.mark {
			t.Fatalf("%+v is not behind %+v", at, before)
		}
		if next := placeOf(gatewayID(t, noon.Add(time.Duration(n)<<indexTime*time.Millisecond), n+1000)); next.start !=
			at.start {
			t.Fatalf("%+v is not at the time of %+v", next, at)
		}
		before = at
	}
	for _, id := range []string{"a", "req_", "req_" + strings.Repeat("g", 48), "req-" + strings.Repeat("0", 48),
		"req_" + strings.Repeat("f", 48)} {
		if placeOf(id).timed {
			t.Errorf("%q is among those of the gateway", id)
		}
	}
}

// TestRequestsOfAPostShareARecord: they are found by it before and after their pages are packed, and it is removed with
// them. The clock stands still, so that only the pages themselves say which entries are of one Post.
func TestRequestsOfAPostShareARecord(t *testing.T) {
	ctx := context.Background()
	now := noon
	store := journal.NewMemory()
	s := ledgerState(t, store, &now)
	defer s.Close()
	state.MemoryOf[*ledgerMemory](s).packEntries = 5
	long := now.Add(-time.Hour) // a request that began long before
	for _, account := range []string{"anna", "bert"} {
		mustPost(t, s, account, Posting{Kind: Credit, Amount: 1_000_000})
	}
	for n := range 20 { // two Posts of each account
		account := []string{"anna", "bert"}[n/5%2]
		if n%5 == 0 {
			var all []Posting
			for i := n; i < n+5; i++ {
				began := now
				if i%5 == 3 {
					began = long
				}
				all = append(all, settle(gatewayID(t, began, i), "key", "m", int64(100+i)))
			}
			mustPost(t, s, account, all...)
		}
	}
	check := func(when string, records int) {
		t.Helper()
		got := 0
		count := func(journal.Record) error { got++; return nil }
		if err := store.Range(ctx, journal.Receipt, nil, nil, 0, count); err != nil {
			t.Fatal(err)
		}
		if got != records {
			t.Errorf("%s: %d records in the index, not %d", when, got, records)
		}
		if v, err := state.Verify(ctx, store, Module()); err != nil || !v.Sound() {
			t.Errorf("%s: %q, %v", when, v.Problems, err)
		}
		for n := range 20 {
			began, account := now, []string{"anna", "bert"}[n/5%2]
			if n%5 == 3 {
				began = long
			}
			id := gatewayID(t, began, n)
			found, err := Receipts(ctx, s, account, id)
			all, allErr := RequestReceipts(ctx, s, id)
			if records == 0 {
				if !errors.Is(err, state.ErrNotFound) || !errors.Is(allErr, state.ErrNotFound) {
					t.Errorf("%s: receipt %d: got %+v, %v, %+v, %v", when, n, found, err, all, allErr)
				}
			} else if err != nil || allErr != nil || len(found) != 1 || len(all) != 1 || found[0].Request != id ||
				found[0].Charged != int64(100+n) || all[0].Account != account {
				t.Errorf("%s: receipt %d: got %+v, %v, %+v, %v", when, n, found, err, all, allErr)
			}
		}
	}
	check("at first", 8)
	if n, err := Pack(ctx, s, 0); n == 0 || err != nil {
		t.Fatal(n, err)
	}
	check("packed", 8)
	now = now.Add(time.Hour)
	fold := now
	now = noon
	if n, err := Fold(ctx, s, fold, 0); n != 22 || err != nil {
		t.Fatal(n, err)
	}
	check("folded", 0)
}

// Keys are shortened hashes, so an entry is compared with the request before it is returned.
func TestOthersWithTheSameSlotAreLeftOut(t *testing.T) {
	ctx := context.Background()
	s := ledgerState(t, journal.NewMemory(), &noon)
	defer s.Close()
	mustPost(t, s, "anna", Posting{Kind: Credit, Amount: 1_000_000})
	ids := []string{
		"req_" + strings.Repeat("0", 47) + "1",
		"req_" + strings.Repeat("0", 47) + "2",
		"video_" + strings.Repeat("0", 47) + "1",
	}
	for i, id := range ids {
		mustPost(t, s, "anna", settle(id, "key_a", "m", int64(10+i)))
	}
	for i, id := range ids {
		if got, err := Receipts(ctx, s, "anna", id); err != nil || len(got) != 1 || got[0].Request != id ||
			got[0].Charged != int64(10+i) {
			t.Errorf("%s: got %+v, %v", id, got, err)
		}
		if got, err := RequestReceipts(ctx, s, id); err != nil || len(got) != 1 || got[0].Request != id {
			t.Errorf("%s of any account: got %+v, %v", id, got, err)
		}
		if got, err := Receipts(ctx, s, "bert", id); !errors.Is(err, state.ErrNotFound) {
			t.Errorf("%s of bert: got %+v, %v", id, got, err)
		}
	}
}

// A receipt that is folded between two reads is not found. One whose entry is missing otherwise is
// damage.
func TestReceiptIsFoldedWithItsEntry(t *testing.T) {
	ctx := context.Background()
	now := noon
	store := journal.NewMemory()
	s := ledgerState(t, store, &now)
	defer s.Close()
	trade(t, s)
	mine := func(sequence uint64) (*Receipt, error) {
		key := receiptKey("mine", "anna", sequence)
		return (&entryReader{state: s}).receiptOf(ctx, journal.ByHash, key, sequence)
	}
	now = now.Add(time.Hour)
	if n, err := Fold(ctx, s, now, 6); n != 7 || err != nil {
		t.Fatal(n, err)
	}
	if r, err := mine(5); r != nil || err != nil {
		t.Errorf("folded: got %+v, %v", r, err)
	}
	commitAll(t, store,
		[]journal.Op{{Kind: journal.Delete, Table: journal.Ledger, Key: state.SequenceKey(9)}}) // of 8, too
	if r, err := mine(8); r != nil || !errors.Is(err, journal.ErrCorrupt) {
		t.Errorf("lost: got %+v, %v, want ErrCorrupt", r, err)
	}
	if r, err := Receipts(ctx, s, "anna", "mine"); !errors.Is(err, journal.ErrCorrupt) {
		t.Errorf("lost: got %+v, %v, want ErrCorrupt", r, err)
	}
	s.Close()
	if r, err := mine(5); r != nil || err == nil || errors.Is(err, journal.ErrCorrupt) {
		t.Errorf("cannot be decided: got %+v, %v", r, err)
	}
}

// The test changes one record at a time.
func TestVerifyFollowsTheIndex(t *testing.T) {
	mine := receiptKey("mine", "anna", 5)
	first, second := gatewayID(t, noon, 1), gatewayID(t, noon, 2)
	timed := receiptKey(first, "anna", 19)
	marks := func(gap byte, ids ...string) []byte {
		var value []byte
		for i, id := range ids {
			if i > 0 {
				value = append(value, gap)
			}
			m := placeOf(id).mark
			value = append(value, m[:]...)
		}
		return value
	}
	byHash := func(key, value []byte) journal.Op {
		return journal.Op{Table: journal.ByHash, Key: key, Value: value}
	}
	byTime := func(key, value []byte) journal.Op {
		return journal.Op{Table: journal.Receipt, Key: key, Value: value}
	}
	const nothing, nowhere, form = "its receipt is missing, or one", "has no ledger entry", "an unknown form"
	notFound := state.ErrNotFound
	for name, c := range map[string]struct {
		op   journal.Op
		want string
		read error // of the request "mine" or, in the table of times, of the second one
	}{
		"leads to another entry":    {byHash(receiptKey("mine", "anna", 7), nil), nowhere, journal.ErrCorrupt},
		"leads to an entry without": {byHash(receiptKey("mine", "anna", 1), nil), nowhere, journal.ErrCorrupt},
		"leads nowhere":             {byHash(receiptKey("mine", "anna", 99), nil), nowhere, journal.ErrCorrupt},
		"is of another account":     {byHash(receiptKey("mine", "bert", 5), nil), nowhere, nil},
		"is not there":              {journal.Op{Kind: journal.Delete, Table: journal.ByHash, Key: mine}, nothing, nil},
		"is no key":                 {byHash([]byte("12345678"), nil), form, nil},
		"has a value":               {byHash(mine, []byte("1234567")), form, journal.ErrCorrupt},
		"is at another time": {byTime(receiptKey(gatewayID(t, noon.Add(time.Hour), 1), "anna", 19),
			marks(1, first)), nowhere, nil},
		"leads from the second on": {byTime(receiptKey(first, "anna", 20), marks(1, second)), nowhere, nil},
		"leaves the second out":    {byTime(timed, marks(1, first)), nothing, notFound},
		"leads to one that is new": {byTime(timed, marks(2, first, second)), nothing, journal.ErrCorrupt},
		"leads from another mark":  {byTime(timed, marks(1, first, first)), nothing, notFound},
		"of a time is not there": {journal.Op{Kind: journal.Delete, Table: journal.Receipt, Key: timed}, nothing,
			notFound},
		"of a time has no value":    {byTime(timed, nil), form, journal.ErrCorrupt},
		"of a time has half a mark": {byTime(timed, marks(1, first, second)[:7]), form, journal.ErrCorrupt},
		"of a time ends in a gap":   {byTime(timed, append(marks(1, first), 1)), form, journal.ErrCorrupt},
		"of a time stands still":    {byTime(timed, marks(0, first, second)), form, journal.ErrCorrupt},
		"of a time is no key":       {byTime([]byte("1234"), marks(1, first)), form, nil},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			store := journal.NewMemory()
			s := ledgerState(t, store, &noon)
			defer s.Close()
			trade(t, s)
			mustPost(t, s, "anna", settle(first, "key", "m", 1), settle(second, "key", "m", 2))
			commitAll(t, store, []journal.Op{c.op})
			v, err := state.Verify(ctx, store, Module())
			if err != nil || !strings.Contains(strings.Join(v.Problems, "\n"), c.want) {
				t.Errorf("got %q, %v, want one with %q", v.Problems, err, c.want)
			}
			request := "mine"
			if c.op.Table == journal.Receipt {
				request = second
			}
			if _, err := Receipts(ctx, s, "anna", request); !errors.Is(err, c.read) {
				t.Errorf("reading: got %v, want %v", err, c.read)
			}
		})
	}
}
