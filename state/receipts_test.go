package state

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"stagedoor/state/journal"
)

// noon is when the entries of these tests are made.
var noon = time.Date(2026, 3, 31, 12, 0, 0, 123456789, time.UTC)

// withReceipt is the whole receipt of an entry.
func withReceipt(e Entry, r Receipt) Receipt {
	r.Request, r.Account, r.Hold, r.Model = e.Request, e.Account, e.Hold, e.Model
	r.Held, r.Charged, r.Reason, r.Ended = e.Held, e.Amount, e.Reason, e.At
	if r.Prices == nil {
		r.Prices = []PriceRow{}
	}
	return r
}

// checkReceipt: got is what the form of schema 7 gave for want.
func checkReceipt(t rapid.TB, got *Receipt, want Receipt) {
	t.Helper()
	old, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	was, err := decodeReceipt(journal.Record{Value: old})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, &was) {
		t.Errorf("got %+v, want %+v", got, was)
	}
}

// asBefore gives pages the form of schema 7: each entry is a record of its own, and
// so is its receipt. Which are those of which this is true of their first entry.
func asBefore(t rapid.TB, store journal.Store, which func(*Entry) bool) {
	t.Helper()
	var ops []journal.Op
	put := func(table journal.Table, key []byte, v any) {
		value, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		ops = append(ops, journal.Op{Table: table, Key: key, Value: value})
	}
	err := store.Range(context.Background(), journal.Ledger, nil, nil, 0, func(rec journal.Record) error {
		entries, err := decodePage(rec)
		if err != nil || !which(&entries[0]) {
			return err
		}
		for _, e := range entries {
			if e.receipt != nil {
				put(journal.Receipt, receiptKey(e.Request, e.Account, e.Hold), e.receipt)
			}
			if e.Hold == e.Sequence {
				e.Hold = 0
			}
			put(journal.Ledger, sequenceKey(e.Sequence), e)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	commitAll(t, store, ops)
}

func commitAll(t rapid.TB, store journal.Store, ops []journal.Op) {
	t.Helper()
	if _, err := store.Commit(context.Background(), []journal.Batch{{Ops: ops}}); err != nil {
		t.Fatal(err)
	}
}

// trade posts on two accounts: holds that end at once and later, several of one
// request id, and one that stays open.
func trade(t *testing.T, s *State) {
	t.Helper()
	for _, account := range []string{"anna", "bert"} {
		mustPost(t, s, account, Posting{Kind: Credit, Amount: 1_000_000})
		begin := func(request string) Posting {
			return Posting{Kind: Begin, Amount: 50, Receipt: &Receipt{Request: request, Model: "m1"}}
		}
		end := func(hold uint64, request string, kind EntryKind, amount int64) Posting {
			p := settle(request, "key_"+account, "m1", amount)
			p.Kind, p.Hold, p.Reason = kind, hold, "finished"
			p.Receipt.Upstream, p.Receipt.Prices, p.Receipt.Flags = "m1-2026", []PriceRow{{"input", amount, 1, 1}}, []string{"flag"}
			return p
		}
		begun := mustPost(t, s, account, begin("mine"), begin("theirs"), begin("open"))
		mustPost(t, s, account, end(begun[0].Sequence, "mine", Settle, 40), end(0, "mine", Settle, 7), end(begun[1].Sequence, "theirs", Release, 0))
		mustPost(t, s, account, end(0, "mine", Settle, 8), end(0, "own_"+account, Settle, 9))
	}
}

// TestIndexLeadsToTheEntry: how requests are found, in bytes.
func TestIndexLeadsToTheEntry(t *testing.T) {
	ctx := context.Background()
	store := journal.NewMemory()
	s := ledgerState(t, store, &noon)
	defer s.Close()
	trade(t, s) // anna's: 2, 3 and 4 begin, 5 to 9 end
	for _, c := range []struct {
		request string
		hold    uint64
		want    []byte
	}{{"mine", 2, sequenceKey(5)}, {"mine", 6, []byte{}}, {"theirs", 3, sequenceKey(7)}, {"mine", 8, []byte{}}, {"own_anna", 9, []byte{}}} {
		if rec, err := store.Get(ctx, journal.Receipt, receiptKey(c.request, "anna", c.hold)); err != nil || !bytes.Equal(rec.Value, c.want) {
			t.Errorf("%s of hold %d: got %q, %v, want %q", c.request, c.hold, rec.Value, err, c.want)
		}
	}
	for request, want := range map[string][]int64{"mine": {40, 7, 8}, "theirs": {0}, "own_anna": {9}} {
		got, err := s.Receipts(ctx, "anna", request)
		if err != nil || len(got) != len(want) {
			t.Fatalf("%s: got %+v, %v, want %d", request, got, err, want)
		}
		for i := range got {
			if got[i].Charged != want[i] || got[i].Account != "anna" {
				t.Errorf("%s: got %+v, want %d", request, got[i], want[i])
			}
		}
	}
	if _, err := s.Receipts(ctx, "anna", "open"); !errors.Is(err, ErrNotFound) {
		t.Errorf("of a hold that is open: %v, want ErrNotFound", err)
	}
}

// seen is what every reader tells of a state.
func seen(t *testing.T, s *State) string {
	t.Helper()
	ctx := context.Background()
	var b strings.Builder
	tell := func(v any, err error) {
		text, marshalErr := json.Marshal(v)
		if marshalErr != nil {
			t.Fatal(marshalErr)
		}
		if err != nil && !errors.Is(err, ErrNotFound) {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s %v\n", text, err)
	}
	for _, account := range []string{"anna", "bert"} {
		for _, request := range []string{"mine", "theirs", "open", "own_anna"} {
			tell(s.Receipts(ctx, account, request))
		}
		tell(s.History(ctx, account, 0, 100))
		for _, limit := range []int{1, 100} {
			list, next, err := s.ReceiptList(ctx, ReceiptQuery{Account: account, Limit: limit})
			tell(list, err)
			tell(next, nil)
		}
	}
	tell(s.RequestReceipts(ctx, "mine"))
	list, next, err := s.ReceiptList(ctx, ReceiptQuery{Key: "key_bert"})
	tell(list, err)
	tell(next, nil)
	tell(s.CheckBooks(ctx))
	return b.String()
}

// TestOldReceiptsAreReadBesideNewOnes: a store in which some receipts are records of
// their own tells the same as one in which all are carried, and none after them.
func TestOldReceiptsAreReadBesideNewOnes(t *testing.T) {
	for name, old := range map[string]func(*Entry) bool{
		"none":       func(*Entry) bool { return false },
		"some":       func(e *Entry) bool { return e.Sequence%2 == 0 },
		"the others": func(e *Entry) bool { return e.Sequence%2 != 0 },
		"all":        func(*Entry) bool { return true },
	} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			now := noon
			store, err := journal.OpenBolt(t.TempDir(), journal.Options{LowWater: -1})
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			s := ledgerState(t, store, &now)
			trade(t, s)
			want := seen(t, s)
			s.Close()
			asBefore(t, store, old)

			s = ledgerState(t, store, &now)
			defer s.Close()
			if got := seen(t, s); got != want {
				t.Errorf("got\n%s, want\n%s", got, want)
			}
			var text bytes.Buffer
			if _, err := journal.Export(ctx, store, &text); err != nil {
				t.Fatal(err)
			}
			sound := func(store journal.Store) error {
				if v, err := Verify(ctx, store); err != nil || !v.Sound() {
					return fmt.Errorf("%+v, %w", v, errors.Join(err, errors.New("not sound")))
				}
				return nil
			}
			if _, err := journal.Import(ctx, t.TempDir()+"/copy", &text, sound); err != nil {
				t.Errorf("its copy: %v", err)
			}
			now = now.Add(time.Hour)
			for left := 18; left > 0; { // entries
				if err := sound(store); err != nil {
					t.Fatalf("%d left: %v", left, err)
				}
				n, err := s.Fold(ctx, now, 3)
				if n < 2 || n > 5 || err != nil { // it ends with a page, of up to 3
					t.Fatalf("%d left: folded %d, %v", left, n, err)
				}
				left -= n
			}
			if err := sound(store); err != nil {
				t.Fatal(err)
			}
			if some, err := s.some(ctx, journal.Receipt); some || err != nil {
				t.Errorf("receipts are left (%v)", err)
			}
		})
	}
}

// TestReceiptIsGoneWithItsEntry: one that is folded between two reads is not there,
// one whose entry is lost is damage.
func TestReceiptIsGoneWithItsEntry(t *testing.T) {
	ctx := context.Background()
	now := noon
	store := journal.NewMemory()
	s := ledgerState(t, store, &now)
	defer s.Close()
	trade(t, s)
	read := func(key []byte) journal.Record {
		rec, err := store.Get(ctx, journal.Receipt, key)
		if err != nil {
			t.Fatal(err)
		}
		return rec
	}
	folded, lost := read(receiptKey("mine", "anna", 2)), read(receiptKey("mine", "anna", 8))
	now = now.Add(time.Hour)
	if n, err := s.Fold(ctx, now, 6); n != 7 || err != nil {
		t.Fatal(n, err)
	}
	if r, err := (&entryReader{state: s}).follow(ctx, folded); r != nil || err != nil {
		t.Errorf("folded: got %+v, %v", r, err)
	}
	commitAll(t, store, []journal.Op{{Kind: journal.Delete, Table: journal.Ledger, Key: sequenceKey(9)}}) // of 8, too
	if r, err := (&entryReader{state: s}).follow(ctx, lost); r != nil || !errors.Is(err, journal.ErrCorrupt) {
		t.Errorf("lost: got %+v, %v, want ErrCorrupt", r, err)
	}
	if r, err := s.Receipts(ctx, "anna", "mine"); !errors.Is(err, journal.ErrCorrupt) {
		t.Errorf("lost: got %+v, %v, want ErrCorrupt", r, err)
	}
	s.Close()
	if r, err := (&entryReader{state: s}).follow(ctx, folded); r != nil || err == nil || errors.Is(err, journal.ErrCorrupt) {
		t.Errorf("nobody can say: got %+v, %v", r, err)
	}
}

// TestVerifyFollowsTheIndex changes one record at a time.
func TestVerifyFollowsTheIndex(t *testing.T) {
	mine, own := receiptKey("mine", "anna", 2), receiptKey("own_anna", "anna", 9)
	index := func(key, value []byte) journal.Op {
		return journal.Op{Table: journal.Receipt, Key: key, Value: value}
	}
	whole := []byte(`{"request_id":"own_anna","account":"anna","hold":9,"charged":9}`)
	const nothing, nowhere = "and no receipt is found that says so", "has no ledger entry"
	for name, c := range map[string]struct {
		old  bool // whether receipts are records of their own
		op   journal.Op
		want string
		read error
	}{
		"leads to another entry":    {false, index(mine, sequenceKey(7)), nothing, journal.ErrCorrupt},
		"leads to an entry without": {false, index(mine, sequenceKey(1)), nothing, journal.ErrCorrupt},
		"leads nowhere":             {false, index(mine, sequenceKey(99)), nothing, journal.ErrCorrupt},
		"leads to its hold":         {false, index(mine, nil), nothing, journal.ErrCorrupt},
		"is not there":              {false, journal.Op{Kind: journal.Delete, Table: journal.Receipt, Key: mine}, nothing, nil},
		"is too many":               {false, index(receiptKey("mine", "anna", 3), nil), nowhere, journal.ErrCorrupt},
		"is no key":                 {false, index([]byte("12345678"), nil), "a form that is not known", nil},
		"is no sequence":            {false, index(mine, []byte("1234567")), "a form that is not known", journal.ErrCorrupt},
		"is whole beside a new one": {false, index(own, whole), nothing, nil},
		"old, of another amount":    {true, index(own, bytes.Replace(whole, []byte(`"charged":9`), []byte(`"charged":8`), 1)), nothing, nil},
		"old, of another hold":      {true, index(own, bytes.Replace(whole, []byte(`"hold":9`), []byte(`"hold":8`), 1)), "another request's receipt", nil},
		"old, and not there":        {true, journal.Op{Kind: journal.Delete, Table: journal.Receipt, Key: own}, nothing, nil},
		"old, but leads":            {true, index(own, nil), nothing, nil},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			store := journal.NewMemory()
			s := ledgerState(t, store, &noon)
			defer s.Close()
			trade(t, s)
			if c.old {
				asBefore(t, store, func(*Entry) bool { return true })
			}
			commitAll(t, store, []journal.Op{c.op})
			v, err := Verify(ctx, store)
			if err != nil || !strings.Contains(strings.Join(v.Problems, "\n"), c.want) {
				t.Errorf("got %q, %v, want one with %q", v.Problems, err, c.want)
			}
			if _, err := s.Receipts(ctx, "anna", "mine"); !errors.Is(err, c.read) {
				t.Errorf("reading: got %v, want %v", err, c.read)
			}
		})
	}
}
