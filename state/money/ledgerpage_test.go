package money

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"stagedoor/state"
	"stagedoor/state/journal"
)

// pageOf returns a page with entries and their receipts.
func pageOf(entries ...Entry) journal.Record {
	var w pageWriter
	w.start(nil, map[string]uint64{})
	for i := range entries {
		w.add(&entries[i], entries[i].receipt)
	}
	return journal.Record{Key: state.SequenceKey(entries[len(entries)-1].Sequence), Value: w.finish()}
}

// said returns the content of entries as text.
func said(t rapid.TB, entries []Entry) string {
	t.Helper()
	var all []any
	for _, e := range entries {
		all = append(all, e.Sequence, e.joins, e, e.receipt)
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

// Pages with any entries and receipts, of one Post or of many, plain and deflated, are decoded
// unchanged.
func TestEveryPageIsDecodedUnchanged(t *testing.T) {
	text := rapid.OneOf(rapid.String(),
		rapid.SampledFrom([]string{"", "m", "quote\"", "back\\slash", "line\nbreak", "\u2028<&>", "日本", "\xff"}))
	number := rapid.OneOf(rapid.Int64(), rapid.SampledFrom([]int64{0, 1, perMillion}))
	sequence := rapid.Uint64Range(1, math.MaxInt64/2)
	moment := rapid.Custom(
		func(rt *rapid.T) time.Time { return time.Unix(0, rapid.Int64().Draw(rt, "nanoseconds")).UTC() },
	)
	row := rapid.Custom(func(rt *rapid.T) PriceRow {
		return PriceRow{
			What:     text.Draw(rt, "what"),
			Quantity: number.Draw(rt, "quantity"),
			Price:    number.Draw(rt, "price"),
			Per:      number.Draw(rt, "per"),
		}
	})
	rapid.Check(t, func(rt *rapid.T) {
		n := func(name string) int64 { return number.Draw(rt, name) }
		s := func(name string) string { return text.Draw(rt, name) }
		entries := make([]Entry, rapid.IntRange(1, 5).Draw(rt, "entries"))
		before := Entry{Sequence: sequence.Draw(rt, "sequence"), Account: s("account"), At: moment.Draw(rt, "at")}
		for i := range entries {
			e := Entry{Sequence: before.Sequence + 1, Previous: before.Sequence, Account: before.Account, At: before.At,
				Kind:   rapid.SampledFrom([]EntryKind{Credit, Adjust, Begin, Extend, Settle, Release}).Draw(rt, "kind"),
				Amount: n("amount"), Held: n("held"), Request: s("request"), Model: s("model"), Reason: s("reason"),
				joins: i > 0}
			if rapid.Bool().Draw(rt, "another post") {
				e.Sequence += rapid.Uint64Range(0, 1000).Draw(rt, "gap")
				e.Previous = rapid.Uint64Range(0, e.Sequence-1).Draw(rt, "previous")
				e.Account, e.At, e.joins = s("account"), moment.Draw(rt, "at"), false
			}
			before = e
			if !e.endsHold() {
				entries[i] = e
				continue
			}
			if e.Hold = e.Sequence; rapid.Bool().Draw(rt, "begun before") {
				e.Hold = sequence.Draw(rt, "hold")
			}
			r := Receipt{
				Key:      s("key"),
				Scopes:   rapid.SliceOfN(text, 0, 2).Draw(rt, "scopes"),
				Model:    e.Model,
				Upstream: s("upstream"),
				Provider: s("provider"),
				Attempts: rapid.Int().Draw(rt, "attempts"),
				Usage: ReceiptUsage{
					Input:      n("in"),
					CacheRead:  n("read"),
					CacheWrite: n("write"),
					Output:     n("out"),
					Reasoning:  n("reasoning"),
					Images:     n("images"),
					Seconds:    n("seconds"),
					Estimated:  rapid.Bool().Draw(rt, "estimated"),
				},
				Prices: rapid.SliceOfN(row, 0, 3).
					Draw(rt, "prices"),
				Flags: rapid.SliceOfN(text, 0, 3).Draw(rt, "flags"), Catalog: text.Draw(rt, "catalog"),
				Began: moment.Draw(rt, "began"),
			}
			if rapid.Bool().Draw(rt, "same name") {
				r.Upstream = r.Model
			}
			r = withReceipt(e, r)
			e.receipt = &r
			entries[i] = e
		}
		page := pageOf(entries...)
		for _, value := range [][]byte{page.Value, deflatePage(page.Value)} {
			back, err := decodePage(journal.Record{Key: page.Key, Value: value})
			if err != nil {
				rt.Fatal(err)
			}
			if got, want := said(rt, back), said(rt, entries); got != want {
				rt.Errorf("read\n%s, want\n%s", got, want)
			}
		}
	})
}

// sold returns some entries of two accounts with their receipts.
func sold() []Entry {
	var entries []Entry
	for i := range 5 {
		e := Entry{
			Sequence: uint64(5 + i),
			Previous: uint64(3 + i),
			Account:  []string{"anna", "bert"}[i%2],
			Kind:     Settle,
			Amount:   5,
			Held:     6,
			Hold:     uint64(5 + i),
			Request:  "req_1",
			Model:    "m",
			Reason:   "finished",
			At:       noon.Add(time.Duration(i) * time.Second),
		}
		r := withReceipt(
			e,
			Receipt{Key: "key_1", Upstream: "m-2026", Provider: "p", Attempts: 2, Began: noon.Add(-time.Second),
				Usage: ReceiptUsage{
					Input:     100,
					Output:    7,
					Estimated: true,
				}, Prices: []PriceRow{{"input", 100, 3, perMillion}, {"image", 2, 30_000, 1}}, Flags: []string{"odd"}},
		)
		e.receipt = &r
		entries = append(entries, e)
	}
	return entries
}

// Input that is not a page is refused. Input that is a page can be encoded again and has the same
// content.
func FuzzPage(f *testing.F) {
	page := pageOf(sold()...).Value
	for _, seed := range [][]byte{nil, {plainPage}, {plainPage, 0, 0}, {deflatedPage, 1}, page, deflatePage(page),
		page[:len(page)-1]} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		entries, err := decodePage(journal.Record{Key: state.SequenceKey(9), Value: value})
		if err != nil {
			if !errors.Is(err, journal.ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		if n := len(entries); n == 0 || entries[n-1].Sequence != 9 || entries[0].Previous >= entries[0].Sequence {
			t.Fatalf("%s: read %+v", value, entries)
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

// Readers and Verify name every damaged page.
func TestDamagedPagesAreNamed(t *testing.T) {
	const form = "is not a page of the ledger"
	entry := Entry{Sequence: 19, Previous: 9, Account: "anna", Kind: Credit, Amount: 1, At: noon}
	round := entry
	round.Previous = 19
	var many []Entry
	for i := range uint64(20) {
		e := entry
		e.Sequence, e.Previous = 1+i, i
		many = append(many, e)
	}
	whole := pageOf(entry).Value
	// The first byte of the entry is behind the form, the count and the span.
	first := func(b byte) []byte { v := bytes.Clone(whole); v[3] = b; return v }
	for name, c := range map[string]struct {
		value []byte
		want  string
	}{
		"no entries":            {[]byte{plainPage, 0, 0}, "has 0 entries of 1 sequence numbers"},
		"too many":              {pageOf(many...).Value, "has 20 entries of 20 sequence numbers"},
		"a credit's receipt":    {first(1 | entryReceipt), "has a receipt of what ended nothing"},
		"goes round":            {pageOf(round).Value, "follows itself"},
		"joins nothing":         {first(1 | entryJoins), form},
		"no kind":               {first(0), form},
		"an unknown kind":       {first(7), form},
		"cut":                   {whole[:len(whole)-1], form},
		"too long":              {append(bytes.Clone(whole), 0), form},
		"an unknown form":       {append([]byte{3}, whole[1:]...), form},
		"not deflated":          {append([]byte{deflatedPage}, whole[1:]...), form},
		"longer than announced": {append([]byte{deflatedPage, 1}, deflatePage(whole)[2:]...), form},
		"none at all":           {nil, form},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			store := journal.NewMemory()
			s := ledgerState(t, store, &noon)
			trade(t, s) // 1 to 18
			commitAll(t, store, []journal.Op{{Table: journal.Ledger, Key: state.SequenceKey(19), Value: c.value}})
			readers := map[string]func() error{
				"Ledger":      func() error { return ReadLedger(ctx, s, 12, func(Entry) error { return nil }) },
				"an entry":    func() error { _, err := (&entryReader{state: s}).entry(ctx, 19); return err },
				"CheckLedger": func() error { _, err := CheckLedger(ctx, s); return err },
				"Fold":        func() error { _, err := Fold(ctx, s, noon.Add(time.Hour), 0); return err },
				"Pack":        func() error { _, err := Pack(ctx, s, 0); return err },
			}
			for who, read := range readers {
				var bad *journal.CorruptError
				err := read()
				if !errors.As(err, &bad) || bad.Table != journal.Ledger ||
					string(bad.Key) != string(state.SequenceKey(19)) ||
					bad.Reason != c.want {
					t.Errorf("%s: got %v, want that it %s", who, err, c.want)
				}
			}
			v, err := state.Verify(ctx, store, Module())
			if err != nil || v.Sound() {
				t.Errorf("Verify: %+v, %v", v, err)
			}
		})
	}
	if _, err := decodePage(journal.Record{Key: []byte("short"), Value: whole}); !errors.Is(err, journal.ErrCorrupt) {
		t.Errorf("no sequence: %v", err)
	}
}
