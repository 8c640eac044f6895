package money

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"stagedoor/state"
	"stagedoor/state/budget"
	"stagedoor/state/journal"
	"stagedoor/state/statetest"
)

// ledgerModel is a list of entries with their receipts, and the sums that decide whether a posting
// is accepted.
type ledgerModel struct {
	s     *state.State
	store journal.Store
	now   time.Time
	rng   *rand.Rand

	entries []Entry
	pages   [][2]int // from which to which of these, one after the other
	packed  int      // how many of the pages are packs
	last    map[string]uint64
	open    map[string][]Hold
	ended   uint64 // a hold that is no longer open
}

var modelAccounts = []string{"a", "b", "c"}

// errAfterwards refuses a command after it has posted.
var errAfterwards = errors.New("refused afterwards")

// Every reader returns exactly the entries that were posted, in any grouping and after any packs
// and folds.
func TestLedgerIsItsEntries(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := ledgerModel{store: journal.NewMemory(), now: noon, last: map[string]uint64{}, open: map[string][]Hold{}}
		s, err := state.Open(statetest.DecideTwice(m.store), func() time.Time { return m.now }, Module())
		if err != nil {
			rt.Fatal(err)
		}
		defer s.Close()
		m.s = s
		for range rapid.IntRange(1, 8).Draw(rt, "steps") {
			m.rng = rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0))
			m.now = m.now.Add(time.Minute)
			switch rapid.SampledFrom([]string{"post", "post", "post", "post", "refuse", "fold", "pack"}).Draw(rt,
				"step") {
			case "post":
				m.command(rt, nil)
			case "refuse":
				m.command(rt, errAfterwards)
			case "fold":
				m.fold(rt)
			case "pack":
				m.pack(rt)
			}
			if m.rng.IntN(2) == 0 {
				m.compare(rt)
			}
		}
		m.compare(rt)
		v, err := state.Verify(context.Background(), m.store, Module())
		totals, wrong := CheckLedger(context.Background(), m.s)
		if err = errors.Join(err, wrong); err != nil || !v.Sound() || totals.Entries != len(m.entries) {
			rt.Fatalf("%d entries: %+v, %v", len(m.entries), v, err)
		}
	})
}

// command posts some times, and then refuses with an error or not. The model is
// changed as if it did not: what is refused is taken back by the caller.
func (m *ledgerModel) command(rt *rapid.T, end error) {
	before, seed := m.clone(), m.rng.Uint64()
	sizes := []int{0, 1, 1, 2, 3, 5, 8, 40}
	if m.rng.IntN(12) == 0 {
		sizes = []int{ledgerChunk - 1, ledgerChunk + 44, 512}
	}
	_, err := state.Do(context.Background(), m.s, func(tx *state.Tx) (bool, error) {
		*m = before.clone() // the command may be decided again
		m.rng = rand.New(rand.NewPCG(seed, 0))
		for range 1 + m.rng.IntN(3) {
			if problem := m.post(tx, sizes[m.rng.IntN(len(sizes))]); problem != nil {
				return false, problem
			}
		}
		return true, end
	})
	if !errors.Is(err, end) {
		rt.Fatal(err)
	}
	if end != nil {
		*m = before
	}
}

func (m ledgerModel) clone() ledgerModel {
	c := m
	c.entries, c.pages, c.last, c.open = slices.Clone(
		m.entries,
	), slices.Clone(m.pages), map[string]uint64{}, map[string][]Hold{}
	for _, account := range modelAccounts {
		c.last[account], c.open[account] = m.last[account], slices.Clone(m.open[account])
	}
	return c
}

func (m *ledgerModel) post(tx *state.Tx, size int) error {
	account := modelAccounts[m.rng.IntN(len(modelAccounts))]
	postings := []Posting{{Kind: Credit, Amount: 1_000_000}}
	expect := []*Entry{{Kind: Credit, Amount: 1_000_000}}
	open := slices.Clone(m.open[account])
	for len(postings) < size {
		p, e := m.draw(&open)
		postings, expect = append(postings, p), append(expect, e)
	}
	postings, expect = postings[:size], expect[:size]
	_, posted, err := Post(tx, account, postings)
	if err != nil {
		return err
	}
	from := len(m.entries)
	for i, e := range expect {
		p := &postings[i]
		switch {
		case e == nil && posted[i].Err == nil && p.Kind != Progress:
			return fmt.Errorf("%+v was not refused", *p)
		case e == nil:
			continue
		case posted[i].Err != nil:
			return fmt.Errorf("%+v: %w", *p, posted[i].Err)
		}
		m.enter(account, p, *e, posted[i].Sequence)
	}
	if len(m.entries) > from {
		m.pages = append(m.pages, [2]int{from, len(m.entries)})
	}
	return nil
}

// draw is a posting and what it enters, or nil: it is refused, or enters nothing.
func (m *ledgerModel) draw(open *[]Hold) (Posting, *Entry) {
	amount := m.rng.Int64N(20)
	about := &Receipt{
		Request:  m.request(),
		Key:      "key",
		Model:    "m",
		Upstream: "m",
		Usage:    ReceiptUsage{Input: amount},
		Prices:   []PriceRow{{"input", amount, 3, perMillion}},
	}
	var h *Hold
	if n := len(*open); n > 0 {
		h = &(*open)[m.rng.IntN(n)]
	}
	switch kind := m.rng.IntN(10); {
	case kind == 0:
		return Posting{Kind: Credit, Amount: -1}, nil
	case kind == 1:
		return Posting{Kind: Settle, Hold: m.ended, Held: 3, Amount: budget.MaxCredits + 1, Receipt: about}, nil
	case kind == 2:
		return Posting{
				Kind:    Begin,
				Amount:  amount,
				Receipt: about,
			}, &Entry{
				Kind:    Begin,
				Amount:  amount,
				Request: about.Request,
				Model:   "m",
			}
	case kind == 3 && h != nil:
		return Posting{Kind: Progress, Hold: h.ID, Amount: amount}, nil
	case kind == 4 && h != nil:
		h.Amount += amount
		return Posting{
				Kind:   Extend,
				Hold:   h.ID,
				Amount: amount,
			}, &Entry{
				Kind:    Extend,
				Amount:  amount,
				Hold:    h.ID,
				Request: h.Receipt.Request,
			}
	case kind <= 6 && h != nil:
		p := Posting{Kind: Settle, Hold: h.ID, Amount: amount, Reason: "stop", Receipt: &h.Receipt}
		e := Entry{
			Kind:    Settle,
			Amount:  amount,
			Held:    h.Amount,
			Hold:    h.ID,
			Request: h.Receipt.Request,
			Model:   "m",
			Reason:  "stop",
		}
		if kind == 5 {
			p.Kind, e.Kind, e.Amount = Release, Release, 0
		}
		began := h.Receipt
		p.Receipt, p.Began = &began, h.Began
		*open = slices.DeleteFunc(slices.Clone(*open), func(o Hold) bool { return o.ID == h.ID })
		return p, &e
	}
	return Posting{Kind: Settle, Amount: amount, Held: 9, Reason: "stop", Receipt: about},
		&Entry{Kind: Settle, Amount: amount, Held: 9, Request: about.Request, Model: "m", Reason: "stop"}
}

// enter applies an accepted posting to the model.
func (m *ledgerModel) enter(account string, p *Posting, e Entry, sequence uint64) {
	e.Sequence, e.Previous, e.Account, e.At = sequence, m.last[account], account, m.now
	m.last[account] = sequence
	began := m.now
	holds := m.open[account]
	switch at := slices.IndexFunc(holds, func(h Hold) bool { return h.ID == e.Hold }); {
	case e.Kind == Begin:
		m.open[account] = append(holds, Hold{ID: sequence, Amount: e.Amount, Began: m.now, Receipt: *p.Receipt})
	case e.Kind == Extend:
		holds[at].Amount += e.Amount
	case e.endsHold() && e.Hold == 0:
		e.Hold = sequence
	case e.endsHold():
		began, m.ended = holds[at].Began, e.Hold
		m.open[account] = slices.Delete(slices.Clone(holds), at, at+1)
	}
	if e.endsHold() {
		r := withReceipt(e, *p.Receipt)
		r.Began = began
		e.receipt = &r
	}
	m.entries = append(m.entries, e)
}

func (m *ledgerModel) fold(rt *rapid.T) {
	before, limit := m.now.Add(time.Minute), 1+m.rng.IntN([]int{5, 300}[m.rng.IntN(2)])
	if n := len(m.entries); n > 0 && m.rng.IntN(2) == 0 {
		before = m.entries[m.rng.IntN(n)].At
	}
	n := 0
	for len(m.pages) > 0 && n < limit && m.entries[m.pages[0][1]-1].At.Before(before) {
		n += m.pages[0][1] - m.pages[0][0]
		m.pages = m.pages[1:]
		m.packed = max(m.packed-1, 0)
	}
	if got, err := Fold(context.Background(), m.s, before, limit); got != n || err != nil {
		rt.Fatalf("folded %d, %v, want %d", got, err, n)
	}
	m.entries, m.pages = m.entries[n:], slices.Clone(m.pages)
	for i := range m.pages {
		m.pages[i][0] -= n
		m.pages[i][1] -= n
	}
}

// request returns an id that a client chose, or one as the gateway makes it at one of several times.
func (m *ledgerModel) request() string {
	n := m.rng.IntN(9)
	if n < 4 {
		return fmt.Sprint("r", n)
	}
	const unit = 1 << indexTime
	return fmt.Sprintf("req_%012x%08x%028x", noon.UnixMilli()/unit*unit+int64(n/2*unit), n, n)
}

// pack joins pages that were not packed yet.
func (m *ledgerModel) pack(rt *rapid.T) {
	state.MemoryOf[*ledgerMemory](m.s).packEntries = 1 + m.rng.IntN(20)
	limit := 1 + m.rng.IntN(40)
	n, pages := 0, slices.Clone(m.pages[:m.packed])
	for open := m.pages[m.packed:]; n < limit; {
		whole := slices.IndexFunc(open,
			func(p [2]int) bool { return p[1]-open[0][0] >= state.MemoryOf[*ledgerMemory](m.s).packEntries })
		if whole < 0 {
			break
		}
		pages = append(pages, [2]int{open[0][0], open[whole][1]})
		n += open[whole][1] - open[0][0]
		open = open[whole+1:]
		m.pages = append(slices.Clone(pages), open...)
		m.packed = len(pages)
	}
	if got, err := Pack(context.Background(), m.s, limit); got != n || err != nil {
		rt.Fatalf("packed %d, %v, want %d", got, err, n)
	}
}

// where is a sequence number to begin at: of an entry, of none, or 0.
func (m *ledgerModel) where() uint64 {
	if n := len(m.entries); n > 0 && m.rng.IntN(3) > 0 {
		return m.entries[m.rng.IntN(n)].Sequence
	}
	return m.rng.Uint64N(FindAccount(m.s.View(), "a").Last + 3)
}

// these are entries that a function wants, without their receipts, which a reader
// does not show.
func (m *ledgerModel) these(want func(*Entry) bool) []Entry {
	var found []Entry
	for _, e := range m.entries {
		if want(&e) {
			e.receipt, e.joins = nil, false
			found = append(found, e)
		}
	}
	return found
}

func (m *ledgerModel) compare(rt *rapid.T) {
	ctx := context.Background()
	account, at := modelAccounts[m.rng.IntN(len(modelAccounts))], m.where()

	var got []Entry
	err := ReadLedger(ctx, m.s, at, func(e Entry) error {
		e.receipt, e.joins = nil, false
		got = append(got, e)
		return nil
	})
	if want := m.these(func(e *Entry) bool { return e.Sequence > at }); err != nil || !reflect.DeepEqual(got, want) {
		rt.Fatalf("ledger after %d: %+v, %v, want %+v", at, got, err, want)
	}

	limit := 1 + m.rng.IntN(400)
	want := m.these(func(e *Entry) bool { return e.Account == account && (at == 0 || e.Sequence < at) })
	slices.Reverse(want)
	want = want[:min(limit, len(want))]
	got, err = History(ctx, m.s, account, at, limit)
	for i := range got {
		got[i].receipt, got[i].joins = nil, false
	}
	if err != nil || len(got) != len(want) || (len(got) > 0 && !reflect.DeepEqual(got, want)) {
		rt.Fatalf("history of %s before %d: %+v, %v, want %+v", account, at, got, err, want)
	}

	request := m.request()
	m.compareReceipts(rt, account, request)
	m.compareLists(rt, "", at)
	m.compareLists(rt, account, 0)
	if e := m.these(func(e *Entry) bool { return e.Sequence == at && at > 0 }); len(e) > 0 {
		m.compareLists(rt, e[0].Account, at)
	}
}

// receipts are those of an account or of ("") all, of a request or of all.
func (m *ledgerModel) receipts(account, request string, before uint64) []Receipt {
	var found []Receipt
	for _, e := range m.entries {
		if e.endsHold() && (account == "" || e.Account == account) && (request == "" || e.Request == request) &&
			(before == 0 || e.Sequence < before) {
			found = append(found, *e.receipt)
		}
	}
	return found
}

func (m *ledgerModel) compareReceipts(rt *rapid.T, account, request string) {
	want := m.receipts(account, request, 0)
	want = want[:min(len(want), maxReceipts)]
	got, err := Receipts(context.Background(), m.s, account, request)
	if len(want) == 0 && errors.Is(err, state.ErrNotFound) {
		return
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		rt.Fatalf("receipts of %s, %s: %+v, %v, want %+v", account, request, got, err, want)
	}
}

// compareLists reads a list to its end, some receipts at a time.
func (m *ledgerModel) compareLists(rt *rapid.T, account string, before uint64) {
	want := m.receipts(account, "", before)
	slices.Reverse(want)
	q := ReceiptQuery{Account: account, Before: before, Limit: 1 + m.rng.IntN(600)}
	if len(want) < 20 {
		q.Limit = 1 + m.rng.IntN(5)
	}
	for {
		got, next, err := ListReceipts(context.Background(), m.s, q)
		n := min(q.Limit, len(want))
		if err != nil || len(got) != n || (n > 0 && !reflect.DeepEqual(got, want[:n])) {
			rt.Fatalf("list of %q before %d, %d at most: %+v, %v, want %+v", account, q.Before, q.Limit, got, err,
				want[:n])
		}
		want = want[n:]
		if next == 0 {
			break
		}
		q.Before = next
	}
	if len(want) > 0 {
		rt.Fatalf("list of %q before %d: it ends %d too early", account, before, len(want))
	}
}

// Entries may be folded while they are read. That is not reported as damage.
func TestReadersBesideAFold(t *testing.T) {
	ctx := context.Background()
	now := noon
	s := ledgerState(t, journal.NewMemory(), &now)
	mustPost(t, s, "a", Posting{Kind: Credit, Amount: 1_000_000})
	for range 60 {
		mustPost(t, s, "a", settle("r1", "k", "m", 1), settle("r2", "k", "m", 1), settle("r3", "k", "m", 1),
			settle("r4", "k", "m", 1))
	}
	var readers sync.WaitGroup
	folded := make(chan struct{})
	for _, read := range []func() error{
		func() error { _, err := History(ctx, s, "a", 0, 1000); return err },
		func() error { _, err := Receipts(ctx, s, "a", "r3"); return err },
		func() error { _, _, err := ListReceipts(ctx, s, ReceiptQuery{Account: "a", Limit: 1000}); return err },
		func() error { _, _, err := ListReceipts(ctx, s, ReceiptQuery{Limit: 1000}); return err },
	} {
		readers.Go(func() {
			for {
				if err := read(); err != nil && !errors.Is(err, state.ErrNotFound) {
					t.Error(err)
				}
				select {
				case <-folded:
					return
				default:
				}
			}
		})
	}
	left := 241
	for left > 0 {
		n, err := Fold(ctx, s, noon.Add(time.Hour), 6)
		if n == 0 || err != nil {
			t.Errorf("%d left: folded %d, %v", left, n, err)
			break
		}
		left -= n
	}
	close(folded)
	readers.Wait()
	if left != 0 {
		t.Errorf("%d entries are left", left)
	}
}

// A list does not search the folded part of the ledger, however long it is.
func TestListEndsWhereTheLedgerIsFolded(t *testing.T) {
	ctx := context.Background()
	store := &countedRanges{Store: journal.NewMemory()}
	s := ledgerState(t, store, &noon)
	mustPost(t, s, "a", Posting{Kind: Credit, Amount: 1_000_000})
	for range 10 {
		some := make([]Posting, 512)
		for i := range some {
			some[i] = settle("r", "k", "m", 1)
		}
		mustPost(t, s, "a", some...)
	}
	for range 6 {
		if _, err := Fold(ctx, s, noon.Add(time.Hour), 0); err != nil {
			t.Fatal(err)
		}
	}
	mustPost(t, s, "a", settle("r", "k", "m", 7))
	store.ranges = 0
	list, next, err := ListReceipts(ctx, s, ReceiptQuery{})
	if err != nil || next != 0 || len(list) != 1 || list[0].Charged != 7 {
		t.Errorf("got %+v, %d, %v", list, next, err)
	}
	if store.ranges > 1 {
		t.Errorf("it read %d times, want once", store.ranges)
	}
}

// countedRanges is a store that counts the records that are read.
type countedRanges struct {
	journal.Store
	ranges int
}

func (c *countedRanges) Range(ctx context.Context, table journal.Table, from, to []byte, limit int,
	fn func(journal.Record) error) error {
	c.ranges++
	return c.Store.Range(ctx, table, from, to, limit, fn)
}
