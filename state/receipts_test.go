package state

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"stagedoor/state/journal"
)

// noon is when the entries of these tests are made.
var noon = time.Date(2026, 3, 31, 12, 0, 0, 123456789, time.UTC)

// TestStoredEntries pins what is in files: it must be readable for ever.
func TestStoredEntries(t *testing.T) {
	usual := Receipt{Key: "key_1", Model: "m", Upstream: "m", Provider: "p", Attempts: 2, Began: noon.Add(-time.Second),
		Usage: ReceiptUsage{Input: 100, Output: 7, Estimated: true}, Prices: []PriceRow{{"input", 100, 3, 1_000_000}, {"image", 2, 30_000, 1}}, Flags: []string{"odd"}}
	renamed, nameless := usual, usual
	renamed.Upstream, renamed.Prices, renamed.Flags = "m-2026", nil, nil
	nameless.Upstream, nameless.Prices, nameless.Flags = "", []PriceRow{{"seconds", 0, 5, 0}}, nil
	for name, c := range map[string]struct {
		entry   Entry
		receipt *Receipt
		want    string
	}{
		"a credit": {Entry{Sequence: 9, Previous: 4, Account: "a", Kind: Credit, Amount: 5, Reason: "gift", At: noon}, nil,
			`{"previous":4,"account":"a","kind":"credit","amount":5,"reason":"gift","at":"2026-03-31T12:00:00.123456789Z"}`},
		"ended as it began": {Entry{Sequence: 9, Account: "a", Kind: Settle, Amount: 5, Held: 6, Hold: 9, Request: "r", Model: "m", At: noon}, &usual,
			`{"account":"a","kind":"settle","amount":5,"held":6,"request":"r","model":"m","at":"2026-03-31T12:00:00.123456789Z","receipt":` +
				`{"key":"key_1","provider":"p","attempts":2,"usage":{"input_tokens":100,"output_tokens":7,"estimated":true},"prices":[["input",100,3],["image",2,30000,1]],"flags":["odd"],"began":"2026-03-31T11:59:59.123456789Z"}}`},
		"ended later": {Entry{Sequence: 9, Account: "a", Kind: Release, Held: 6, Hold: 3, Request: "r", Model: "m", Reason: "failed", At: noon}, &renamed,
			`{"account":"a","kind":"release","held":6,"hold":3,"request":"r","model":"m","reason":"failed","at":"2026-03-31T12:00:00.123456789Z","receipt":` +
				`{"key":"key_1","upstream_model":"m-2026","provider":"p","attempts":2,"usage":{"input_tokens":100,"output_tokens":7,"estimated":true},"prices":[],"began":"2026-03-31T11:59:59.123456789Z"}}`},
		"no model upstream": {Entry{Sequence: 9, Account: "a", Kind: Settle, Hold: 9, Request: "r", Model: "m", At: noon}, &nameless,
			`{"account":"a","kind":"settle","request":"r","model":"m","at":"2026-03-31T12:00:00.123456789Z","receipt":` +
				`{"key":"key_1","upstream_model":"","provider":"p","attempts":2,"usage":{"input_tokens":100,"output_tokens":7,"estimated":true},"prices":[["seconds",0,5,0]],"began":"2026-03-31T11:59:59.123456789Z"}}`},
	} {
		got := c.entry.encode(nil, appendTime(nil, c.entry.At), c.receipt)
		if string(got) != c.want {
			t.Errorf("%s: got\n%s, want\n%s", name, got, c.want)
		}
		back, err := decodeEntry(journal.Record{Key: sequenceKey(9), Value: got})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if receipt := back.receipt; c.receipt != nil {
			checkReceipt(t, receipt, withReceipt(c.entry, *c.receipt))
			back.receipt = nil
		}
		if !reflect.DeepEqual(back, c.entry) {
			t.Errorf("%s: read %+v, want %+v", name, back, c.entry)
		}
	}
}

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

// TestEveryReceiptIsCarried: whatever it says, it comes back as it did when it was
// a record of its own.
func TestEveryReceiptIsCarried(t *testing.T) {
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "m", "quote\"", "back\\slash", "line\nbreak", "\u2028<&>", "日本", "\xff"}))
	number := rapid.OneOf(rapid.Int64(), rapid.SampledFrom([]int64{0, 1, perMillion}))
	sequence := rapid.Uint64Range(1, math.MaxInt64)
	moment := rapid.Custom(func(rt *rapid.T) time.Time {
		at := time.Unix(rapid.Int64Range(-1e9, 1e11).Draw(rt, "seconds"), rapid.Int64Range(0, 999_999_999).Draw(rt, "nanoseconds"))
		return at.In(time.FixedZone("", 60*rapid.IntRange(-720, 840).Draw(rt, "zone")))
	})
	row := rapid.Custom(func(rt *rapid.T) PriceRow {
		return PriceRow{What: text.Draw(rt, "what"), Quantity: number.Draw(rt, "quantity"), Price: number.Draw(rt, "price"), Per: number.Draw(rt, "per")}
	})
	rapid.Check(t, func(rt *rapid.T) {
		n := func(name string) int64 { return number.Draw(rt, name) }
		s := func(name string) string { return text.Draw(rt, name) }
		e := Entry{Sequence: sequence.Draw(rt, "sequence"), Account: s("account"), Kind: rapid.SampledFrom([]EntryKind{Settle, Release}).Draw(rt, "kind"),
			Amount: n("amount"), Held: n("held"), Request: s("request"), Model: s("model"), Reason: s("reason"), At: moment.Draw(rt, "at")}
		if e.Hold = e.Sequence; rapid.Bool().Draw(rt, "begun before") {
			e.Hold = sequence.Draw(rt, "hold")
		}
		r := Receipt{Key: s("key"), Model: e.Model, Upstream: s("upstream"), Provider: s("provider"), Attempts: rapid.Int().Draw(rt, "attempts"),
			Usage: ReceiptUsage{Input: n("in"), CacheRead: n("read"), CacheWrite: n("write"), Output: n("out"), Reasoning: n("reasoning"),
				Images: n("images"), Seconds: n("seconds"), Estimated: rapid.Bool().Draw(rt, "estimated")},
			Prices: rapid.SliceOfN(row, 0, 3).Draw(rt, "prices"), Flags: rapid.SliceOfN(text, 0, 3).Draw(rt, "flags"), Began: moment.Draw(rt, "began")}
		if rapid.Bool().Draw(rt, "same name") {
			r.Upstream = r.Model
		}
		back, err := decodeEntry(journal.Record{Key: sequenceKey(e.Sequence), Value: e.encode(nil, appendTime(nil, e.At), &r)})
		if err != nil {
			rt.Fatal(err)
		}
		checkReceipt(rt, back.receipt, withReceipt(e, r))
	})
}

// FuzzEntry: what is not an entry is refused as such, and what is one can be
// written and says the same.
func FuzzEntry(f *testing.F) {
	for _, seed := range []string{`{}`, `[]`, `{"kind":"credit","amount":5}`, `{"kind":"credit","receipt":{}}`, `{"kind":"settle","hold":3,"receipt":null}`,
		`{"account":"a","kind":"settle","amount":5,"request":"r","model":"m","at":"2026-03-31T12:00:00.5Z","receipt":{"upstream_model":"","usage":{"input_tokens":1},"prices":[["input",1,2],["image",1,2,3]],"flags":["x"],"began":"2026-03-31T12:00:00+02:00"}}`,
		`{"kind":"settle","receipt":{"prices":[["input",1]]}}`, `{"kind":"settle","receipt":{"prices":[[1,2,3]]}}`, `{"kind":"settle","receipt":{"prices":[null,["a",1,2,3,4]]}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		e, err := decodeEntry(journal.Record{Key: sequenceKey(9), Value: value})
		if err != nil {
			if !errors.Is(err, journal.ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		if e.Previous > math.MaxInt64 || e.Hold > math.MaxInt64 {
			return // there are no such sequences
		}
		again, err := decodeEntry(journal.Record{Key: sequenceKey(9), Value: e.encode(nil, appendTime(nil, e.At), e.receipt)})
		if err != nil {
			t.Fatal(err)
		}
		says := func(e Entry) string {
			text, err := json.Marshal([]any{e, e.receipt})
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
		if got, want := says(again), says(e); got != want {
			t.Errorf("%s: read %s, then %s", value, want, got)
		}
	})
}

// asBefore gives entries the form of schema 7: a receipt is a record of its own.
func asBefore(t *testing.T, store journal.Store, which func(*Entry) bool) {
	t.Helper()
	var ops []journal.Op
	err := store.Range(context.Background(), journal.Ledger, nil, nil, 0, func(rec journal.Record) error {
		e, err := decodeEntry(rec)
		if err != nil || e.receipt == nil || !which(&e) {
			return err
		}
		entry, err := json.Marshal(e)
		if err != nil {
			return err
		}
		receipt, err := json.Marshal(e.receipt)
		ops = append(ops, journal.Op{Table: journal.Ledger, Key: bytes.Clone(rec.Key), Value: entry},
			journal.Op{Table: journal.Receipt, Key: receiptKey(e.Request, e.Account, e.Hold), Value: receipt})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	commitAll(t, store, ops)
}

func commitAll(t *testing.T, store journal.Store, ops []journal.Op) {
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
			for left := 18; left > 0; left -= 3 { // entries
				if err := sound(store); err != nil {
					t.Fatalf("%d left: %v", left, err)
				}
				if n, err := s.Fold(ctx, now, 3); n != 3 || err != nil {
					t.Fatalf("%d left: folded %d, %v", left, n, err)
				}
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
	if n, err := s.Fold(ctx, now, 6); n != 6 || err != nil {
		t.Fatal(n, err)
	}
	if r, err := s.follow(ctx, folded); r != nil || err != nil {
		t.Errorf("folded: got %+v, %v", r, err)
	}
	commitAll(t, store, []journal.Op{{Kind: journal.Delete, Table: journal.Ledger, Key: sequenceKey(8)}})
	if r, err := s.follow(ctx, lost); r != nil || !errors.Is(err, journal.ErrCorrupt) {
		t.Errorf("lost: got %+v, %v, want ErrCorrupt", r, err)
	}
	if r, err := s.Receipts(ctx, "anna", "mine"); !errors.Is(err, journal.ErrCorrupt) {
		t.Errorf("lost: got %+v, %v, want ErrCorrupt", r, err)
	}
	s.Close()
	if r, err := s.follow(ctx, folded); r != nil || err == nil || errors.Is(err, journal.ErrCorrupt) {
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
