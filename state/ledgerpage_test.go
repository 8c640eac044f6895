package state

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"stagedoor/state/journal"
)

// pageOf is a page with entries and the receipts that they carry.
func pageOf(entries ...Entry) journal.Record {
	var w pageWriter
	for i := range entries {
		w.add(&entries[i], appendTime(nil, entries[i].At), entries[i].receipt)
	}
	return journal.Record{Key: sequenceKey(entries[len(entries)-1].Sequence), Value: w.end()}
}

// TestStoredPages pins what is in files: it must be readable for ever.
func TestStoredPages(t *testing.T) {
	usual := Receipt{Key: "key_1", Upstream: "m", Provider: "p", Attempts: 2, Began: noon.Add(-time.Second),
		Usage: ReceiptUsage{Input: 100, Output: 7, Estimated: true}, Prices: []PriceRow{{"input", 100, 3, 1_000_000}, {"image", 2, 30_000, 1}}, Flags: []string{"odd"}}
	renamed, nameless := usual, usual
	renamed.Upstream, renamed.Prices, renamed.Flags = "m-2026", nil, nil
	nameless.Upstream, nameless.Prices, nameless.Flags = "", []PriceRow{{"seconds", 0, 5, 0}}, nil
	with := func(e Entry, r Receipt) Entry {
		r = withReceipt(e, r)
		e.receipt = &r
		return e
	}
	credit := Entry{Sequence: 9, Previous: 4, Account: "a", Kind: Credit, Amount: 5, Reason: "gift", At: noon}
	atOnce := Entry{Sequence: 9, Account: "a", Kind: Settle, Amount: 5, Held: 6, Hold: 9, Request: "r", Model: "m", At: noon}
	for name, c := range map[string]struct {
		entries []Entry
		want    string
		old     bool // a record that is not written any more
	}{
		"a credit": {[]Entry{credit},
			`{"account":"a","previous":4,"at":"2026-03-31T12:00:00.123456789Z","entries":[{"kind":"credit","amount":5,"reason":"gift"}]}`, false},
		"a credit of its own": {[]Entry{credit},
			`{"previous":4,"account":"a","kind":"credit","amount":5,"reason":"gift","at":"2026-03-31T12:00:00.123456789Z"}`, true},
		"three": {[]Entry{
			{Sequence: 7, Previous: 4, Account: "a", Kind: Begin, Amount: 5, Request: "q", Model: "m", At: noon},
			with(Entry{Sequence: 8, Previous: 7, Account: "a", Kind: Settle, Amount: 5, Held: 6, Hold: 8, Request: "r", Model: "m", At: noon}, usual),
			with(Entry{Sequence: 9, Previous: 8, Account: "a", Kind: Release, Held: 6, Hold: 3, Request: "r", Model: "m", Reason: "failed", At: noon}, renamed)},
			`{"account":"a","previous":4,"at":"2026-03-31T12:00:00.123456789Z","entries":[{"kind":"begin","amount":5,"request":"q","model":"m"},` +
				`{"kind":"settle","amount":5,"held":6,"request":"r","model":"m","receipt":` +
				`{"key":"key_1","provider":"p","attempts":2,"usage":{"input_tokens":100,"output_tokens":7,"estimated":true},"prices":[["input",100,3],["image",2,30000,1]],"flags":["odd"],"began":"2026-03-31T11:59:59.123456789Z"}},` +
				`{"kind":"release","held":6,"hold":3,"request":"r","model":"m","reason":"failed","receipt":` +
				`{"key":"key_1","upstream_model":"m-2026","provider":"p","attempts":2,"usage":{"input_tokens":100,"output_tokens":7,"estimated":true},"prices":[],"began":"2026-03-31T11:59:59.123456789Z"}}]}`, false},
		"no model upstream": {[]Entry{with(Entry{Sequence: 9, Account: "a", Kind: Settle, Hold: 9, Request: "r", Model: "m", At: noon}, nameless)},
			`{"account":"a","at":"2026-03-31T12:00:00.123456789Z","entries":[{"kind":"settle","request":"r","model":"m","receipt":` +
				`{"key":"key_1","upstream_model":"","provider":"p","attempts":2,"usage":{"input_tokens":100,"output_tokens":7,"estimated":true},"prices":[["seconds",0,5,0]],"began":"2026-03-31T11:59:59.123456789Z"}}]}`, false},
		"a settlement of its own": {[]Entry{atOnce},
			`{"account":"a","kind":"settle","amount":5,"held":6,"request":"r","model":"m","at":"2026-03-31T12:00:00.123456789Z"}`, true},
		"a settlement of its own, with its hold": {[]Entry{atOnce},
			`{"account":"a","kind":"settle","amount":5,"held":6,"hold":9,"request":"r","model":"m","at":"2026-03-31T12:00:00.123456789Z"}`, true},
	} {
		if got := pageOf(c.entries...).Value; !c.old && string(got) != c.want {
			t.Errorf("%s: got\n%s, want\n%s", name, got, c.want)
		}
		back, err := decodePage(journal.Record{Key: sequenceKey(9), Value: []byte(c.want)})
		if err != nil || !reflect.DeepEqual(back, c.entries) {
			t.Errorf("%s: read %+v, %v, want %+v", name, back, err, c.entries)
		}
	}
}

// said is all that entries say, in one spelling.
func said(t rapid.TB, entries []Entry) string {
	t.Helper()
	var all []any
	for _, e := range entries {
		all = append(all, e.Sequence, e, e.receipt)
	}
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	read := json.NewDecoder(strings.NewReader(string(text)))
	read.UseNumber()
	var plain any
	if err := read.Decode(&plain); err != nil {
		t.Fatal(err)
	}
	if text, err = json.Marshal(plain); err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestEveryPageComesBack: whatever entries say, and their receipts, each as it did
// when it was a record of its own.
func TestEveryPageComesBack(t *testing.T) {
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "m", "quote\"", "back\\slash", "line\nbreak", "\u2028<&>", "日本", "\xff"}))
	number := rapid.OneOf(rapid.Int64(), rapid.SampledFrom([]int64{0, 1, perMillion}))
	sequence := rapid.Uint64Range(1, math.MaxInt64-10)
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
		first, account, at := sequence.Draw(rt, "sequence"), s("account"), moment.Draw(rt, "at")
		previous := rapid.Uint64Range(0, first-1).Draw(rt, "previous")
		entries := make([]Entry, rapid.IntRange(1, 5).Draw(rt, "entries"))
		for i := range entries {
			e := Entry{Sequence: first + uint64(i), Previous: previous, Account: account, Kind: rapid.SampledFrom([]EntryKind{Credit, Begin, Extend, Settle, Release}).Draw(rt, "kind"),
				Amount: n("amount"), Held: n("held"), Request: s("request"), Model: s("model"), Reason: s("reason"), At: at}
			previous = e.Sequence
			if !e.ends() {
				entries[i] = e
				continue
			}
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
			r = withReceipt(e, r)
			e.receipt = &r
			entries[i] = e
		}
		back, err := decodePage(pageOf(entries...))
		if err != nil {
			rt.Fatal(err)
		}
		if got, want := said(rt, back), said(rt, entries); got != want {
			rt.Errorf("read\n%s, want\n%s", got, want)
		}
		for i := range back {
			one, err := decodePage(excerpt(pageOf(entries...), back[i].Sequence))
			if err != nil || len(one) != 1 || said(rt, one) != said(rt, back[i:i+1]) {
				rt.Errorf("alone: read %+v, %v, want %+v", one, err, back[i])
			}
			if entries[i].receipt != nil {
				checkReceipt(rt, back[i].receipt, *entries[i].receipt)
			}
		}
	})
}

// FuzzPage: what is not a page is refused as such, and what is one can be written
// and says the same.
func FuzzPage(f *testing.F) {
	for _, seed := range []string{`{}`, `[]`, `{"kind":"credit","amount":5}`, `{"kind":"credit","receipt":{}}`, `{"kind":"settle","hold":3,"receipt":null}`,
		`{"account":"a","kind":"settle","amount":5,"request":"r","model":"m","at":"2026-03-31T12:00:00.5Z","receipt":{"upstream_model":"","usage":{"input_tokens":1},"prices":[["input",1,2],["image",1,2,3]],"flags":["x"],"began":"2026-03-31T12:00:00+02:00"}}`,
		`{"kind":"settle","receipt":{"prices":[["input",1]]}}`, `{"kind":"settle","receipt":{"prices":[[1,2,3]]}}`, `{"kind":"settle","receipt":{"prices":[null,["a",1,2,3,4]]}}`,
		`{"entries":[]}`, `{"entries":null}`, `{"entries":[null,{}]}`, `{"entries":[{},{},{},{},{},{},{},{},{},{}]}`,
		`{"account":"a","previous":3,"at":"2026-03-31T12:00:00Z","entries":[{"kind":"credit","account":"b","previous":8},{"kind":"settle","hold":2,"receipt":{"key":"k"}}]}`,
		`{"previous":9,"entries":[{"kind":"credit"}]}`, `{"receipt":{},"entries":[{"kind":"credit","receipt":{}}]}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		entries, err := decodePage(journal.Record{Key: sequenceKey(9), Value: value})
		if err != nil {
			if !errors.Is(err, journal.ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		if n := len(entries); n == 0 || entries[n-1].Sequence != 9 || entries[0].Previous >= entries[0].Sequence {
			t.Fatalf("%s: read %+v", value, entries)
		}
		for _, e := range entries {
			if e.Hold > math.MaxInt64 || (e.Hold == e.Sequence && !e.ends()) {
				return // there are no such holds
			}
		}
		again, err := decodePage(pageOf(entries...))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := said(t, again), said(t, entries); got != want {
			t.Errorf("%s: read %s, then %s", value, want, got)
		}
	})
}

// TestDamagedPages: each is named, by those who read it and by Verify.
func TestDamagedPages(t *testing.T) {
	many := `{"account":"anna","previous":8,"entries":[` + strings.Repeat(`{"kind":"credit"},`, 19) + `{"kind":"credit"}]}`
	for name, c := range map[string]struct{ value, want string }{
		"no entries":          {`{"account":"anna","previous":9,"entries":[]}`, "has 0 entries"},
		"too many":            {many, "has 20 entries"},
		"a credit's receipt":  {`{"account":"anna","previous":9,"entries":[{"kind":"credit","receipt":{"key":"k"}}]}`, "has a receipt of what ended nothing"},
		"an old one's":        {`{"account":"anna","previous":9,"kind":"begin","receipt":{}}`, "has a receipt of what ended nothing"},
		"goes round":          {`{"account":"anna","previous":19,"entries":[{"kind":"credit"}]}`, "follows itself"},
		"goes round in pages": {`{"account":"anna","previous":18,"entries":[{"kind":"credit"},{"kind":"credit"}]}`, "follows itself"},
		"no entry":            {`{"account":"anna","entries":[7]}`, "is not a page of the ledger"},
		"no JSON":             {`{"account"`, "is not a page of the ledger"},
		"none at all":         {``, "is not a page of the ledger"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			store := journal.NewMemory()
			s := ledgerState(t, store, &noon)
			trade(t, s) // 1 to 18
			commitAll(t, store, []journal.Op{{Table: journal.Ledger, Key: sequenceKey(19), Value: []byte(c.value)}})
			readers := map[string]func() error{
				"Ledger":     func() error { return s.Ledger(ctx, 12, func(Entry) error { return nil }) },
				"an entry":   func() error { _, err := (&entryReader{state: s}).entry(ctx, 19); return err },
				"CheckBooks": func() error { _, err := s.CheckBooks(ctx); return err },
				"Fold":       func() error { _, err := s.Fold(ctx, noon.Add(time.Hour), 0); return err },
			}
			for who, read := range readers {
				var bad *journal.CorruptError
				err := read()
				if !errors.As(err, &bad) || bad.Table != journal.Ledger || string(bad.Key) != string(sequenceKey(19)) || bad.Reason != c.want {
					t.Errorf("%s: got %v, want that it %s", who, err, c.want)
				}
			}
			v, err := Verify(ctx, store)
			if err != nil || v.Sound() {
				t.Errorf("Verify: %+v, %v", v, err)
			}
		})
	}
	if _, err := decodePage(journal.Record{Key: []byte("short"), Value: []byte(`{"kind":"credit"}`)}); !errors.Is(err, journal.ErrCorrupt) {
		t.Errorf("no sequence: %v", err)
	}
}

// TestReaderKeepsItsPage: what was folded since it was read is told all the same,
// and what was not is found.
func TestReaderKeepsItsPage(t *testing.T) {
	ctx := context.Background()
	now := noon
	s := ledgerState(t, journal.NewMemory(), &now)
	trade(t, s) // anna's: 1, 2 to 4, 5 to 7, 8 and 9
	r, late := entryReader{state: s}, entryReader{state: s}
	if e, err := r.entry(ctx, 6); err != nil || e.Sequence != 6 {
		t.Fatalf("%+v, %v", e, err)
	}
	if n, err := s.Fold(ctx, now.Add(time.Hour), 5); n != 7 || err != nil {
		t.Fatal(n, err)
	}
	for sequence, kept := range map[uint64]bool{5: true, 7: true} {
		if e, err := r.kept(ctx, sequence); err != nil || (e != nil) != kept {
			t.Errorf("%d: %+v, %v", sequence, e, err)
		}
	}
	if e, err := late.kept(ctx, 5); e != nil || err != nil {
		t.Errorf("5, read late: %+v, %v", e, err)
	}
	if e, err := r.kept(ctx, 8); err != nil || e == nil || e.Sequence != 8 {
		t.Errorf("8: %+v, %v", e, err)
	}
	if e, err := r.kept(ctx, 4); e != nil || err != nil {
		t.Errorf("4: %+v, %v", e, err)
	}
	if e, err := r.kept(ctx, 99); e != nil || !errors.Is(err, journal.ErrCorrupt) {
		t.Errorf("99: %+v, %v, want ErrCorrupt", e, err)
	}
}
