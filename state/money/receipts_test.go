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

// The newest records are on few pages of the durable store.
func TestGatewayRequestsAreIndexedByTime(t *testing.T) {
	before := []byte{}
	for n := range 100 {
		id, err := state.NewID("req_", noon.Add(time.Duration(n)*time.Second),
			strings.NewReader(strings.Repeat("x", 18)))
		if err != nil {
			t.Fatal(err)
		}
		slot := requestSlot(id)
		if bytes.Compare(before, slot[:]) >= 0 {
			t.Fatalf("%x is not behind %x", slot, before)
		}
		before = slot[:]
	}
	for _, id := range []string{"a", "req_", "req_" + strings.Repeat("g", 48), "req-" + strings.Repeat("0", 48),
		"req_" + strings.Repeat("f", 48)} {
		if slot := requestSlot(id); slot[0]&0x80 == 0 {
			t.Errorf("%q: %x is among those of the gateway", id, slot)
		}
	}
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
	read := func(key []byte) journal.Record {
		rec, err := store.Get(ctx, journal.ByHash, key)
		if err != nil {
			t.Fatal(err)
		}
		return rec
	}
	folded, lost := read(receiptKey("mine", "anna", 5)), read(receiptKey("mine", "anna", 8))
	now = now.Add(time.Hour)
	if n, err := Fold(ctx, s, now, 6); n != 7 || err != nil {
		t.Fatal(n, err)
	}
	if r, err := (&entryReader{state: s}).receiptOf(ctx, folded); r != nil || err != nil {
		t.Errorf("folded: got %+v, %v", r, err)
	}
	commitAll(t, store,
		[]journal.Op{{Kind: journal.Delete, Table: journal.Ledger, Key: state.SequenceKey(9)}}) // of 8, too
	if r, err := (&entryReader{state: s}).receiptOf(ctx, lost); r != nil || !errors.Is(err, journal.ErrCorrupt) {
		t.Errorf("lost: got %+v, %v, want ErrCorrupt", r, err)
	}
	if r, err := Receipts(ctx, s, "anna", "mine"); !errors.Is(err, journal.ErrCorrupt) {
		t.Errorf("lost: got %+v, %v, want ErrCorrupt", r, err)
	}
	s.Close()
	if r, err := (&entryReader{state: s}).receiptOf(ctx, folded); r != nil || err == nil ||
		errors.Is(err, journal.ErrCorrupt) {
		t.Errorf("cannot be decided: got %+v, %v", r, err)
	}
}

// The test changes one record at a time.
func TestVerifyFollowsTheIndex(t *testing.T) {
	mine := receiptKey("mine", "anna", 5)
	index := func(key, value []byte) journal.Op {
		return journal.Op{Table: receiptTable(key), Key: key, Value: value}
	}
	const nothing, nowhere, form = "but its receipt is missing", "has no ledger entry", "an unknown form"
	for name, c := range map[string]struct {
		op   journal.Op
		want string
		read error
	}{
		"leads to another entry":    {index(receiptKey("mine", "anna", 7), nil), nowhere, journal.ErrCorrupt},
		"leads to an entry without": {index(receiptKey("mine", "anna", 1), nil), nowhere, journal.ErrCorrupt},
		"leads nowhere":             {index(receiptKey("mine", "anna", 99), nil), nowhere, journal.ErrCorrupt},
		"is of another account":     {index(receiptKey("mine", "bert", 5), nil), nowhere, nil},
		"is not there":              {journal.Op{Kind: journal.Delete, Table: journal.ByHash, Key: mine}, nothing, nil},
		"is no key":                 {index([]byte("12345678"), nil), form, nil},
		"has a value":               {index(mine, []byte("1234567")), form, journal.ErrCorrupt},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			store := journal.NewMemory()
			s := ledgerState(t, store, &noon)
			defer s.Close()
			trade(t, s)
			commitAll(t, store, []journal.Op{c.op})
			v, err := state.Verify(ctx, store, Module())
			if err != nil || !strings.Contains(strings.Join(v.Problems, "\n"), c.want) {
				t.Errorf("got %q, %v, want one with %q", v.Problems, err, c.want)
			}
			if _, err := Receipts(ctx, s, "anna", "mine"); !errors.Is(err, c.read) {
				t.Errorf("reading: got %v, want %v", err, c.read)
			}
		})
	}
}
