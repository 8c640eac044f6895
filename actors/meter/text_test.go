package meter_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"stagedoor/actors/kit/kittest"
	"stagedoor/actors/ledger"
	"stagedoor/actors/meter"
	"stagedoor/actors/text"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/dialogue/dialoguetest"
	"stagedoor/state"
	"stagedoor/state/journal"
	"stagedoor/state/money"
	"stagedoor/state/schema"
	"stagedoor/state/statetest"
)

var ctx = context.Background()

type fixture struct {
	t      *testing.T
	store  *statetest.Faulty
	state  *state.State
	ledger *ledger.Client
	now    time.Time
}

func newFixture(t *testing.T, credits int64) *fixture {
	f := &fixture{t: t, store: statetest.NewFaulty(), now: time.Now()}
	var err error
	if f.state, err = schema.Open(f.store, time.Now); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.state.Close() })
	if f.ledger, err = ledger.New(kittest.Start(t), f.state); err != nil {
		t.Fatal(err)
	}
	if err := f.ledger.Credit(ctx, "7", credits, "test"); err != nil {
		t.Fatal(err)
	}
	return f
}

// meter makes one for a body of about a hundred tokens.
func (f *fixture) meter(change func(*meter.Request)) *meter.Text {
	r := meter.Request{ID: "req_1", Account: "7", Key: "key_1", Model: "m", Body: make([]byte, 400), MaxTokens: 50}
	if change != nil {
		change(&r)
	}
	return meter.NewText(f.ledger, func() time.Time { return f.now }, r)
}

func (f *fixture) held() int64 {
	f.t.Helper()
	b, err := f.ledger.Balance(ctx, "7")
	if err != nil {
		f.t.Fatal(err)
	}
	return b.Held
}

// spent waits until the settlements are written, and returns what the account has spent then.
func (f *fixture) spent() int64 {
	f.t.Helper()
	for moving := true; moving; {
		var err error
		if moving, err = f.ledger.Moving(ctx, "7", "req_1"); err != nil {
			f.t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
	return money.FindAccount(f.state.View(), "7").Spent
}

// candidate is a model of 8192 tokens at most that costs a micro-dollar for a
// token in and out for one out.
func candidate(t *testing.T, out int64) *catalog.Candidate {
	t.Helper()
	provider := catalog.Provider{
		Name:    "p",
		Shape:   dialoguetest.Chat,
		BaseURL: "http://127.0.0.1:1",
		APIKeys: []string{"k"},
	}
	var price *catalog.Price
	if out > 0 {
		price = &catalog.Price{Input: 1_000_000, Output: out * 1_000_000}
	}
	c, errs := catalog.New([]catalog.Provider{provider},
		[]catalog.Model{{Pattern: "m", Price: price, Targets: []catalog.Route{{Provider: "p", Model: "m"}}}})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	r, _ := c.Resolve("m")
	return &r.Plan(nil)[0]
}

func begin(t *testing.T, m *meter.Text, c *catalog.Candidate) (tight bool) {
	t.Helper()
	tight, err := m.Begin(ctx, c, 1)
	if err != nil {
		t.Fatal(err)
	}
	return tight
}

func outcome(output int64) *text.Outcome {
	o := &text.Outcome{Usage: dialogue.NoUsage, Counted: output}
	o.Usage.InputTotal, o.Usage.OutputTotal = 100, output
	return o
}

func TestWhatIsHeld(t *testing.T) {
	tests := []struct {
		name   string
		change func(*meter.Request)
		want   int64
		tight  bool
	}{
		{"said how much", nil, 100 + 500, false},
		{"of several choices", func(r *meter.Request) { r.Choices = 3 }, 100 + 1500, false},
		{"did not say, in one piece", func(r *meter.Request) { r.MaxTokens = 0 }, 100 + 81_920, false},
		{"did not say, streamed", func(r *meter.Request) { r.MaxTokens, r.Stream = 0, true }, 100 + 10_240, false},
		{
			"several, streamed, more than there is",
			func(r *meter.Request) { r.MaxTokens, r.Stream, r.Choices = -1, true, 2 },
			100 + 20_480,
			true,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t, 100_000)
			m := f.meter(tt.change)
			if tight := begin(t, m, candidate(t, 10)); tight != tt.tight || f.held() != tt.want {
				t.Errorf("got %d, tight %v, want %d, %v", f.held(), tight, tt.want, tt.tight)
			}
			o := outcome(0)
			o.Err = &dialogue.Error{Status: 400}
			if err := m.Settle(ctx, o); err != nil || f.held() != 0 {
				t.Errorf("after a refusal: held %d, %v", f.held(), err)
			}
		})
	}
}

// TestFallbackIsHeldFor: the dearer candidate adds to the hold, and the one that
// answers is charged.
func TestFallbackIsHeldFor(t *testing.T) {
	f := newFixture(t, 1500)
	m := f.meter(nil)
	begin(t, m, candidate(t, 10))
	begin(t, m, candidate(t, 20))
	if f.held() != 1100 {
		t.Errorf("held %d, want 1100", f.held())
	}
	begin(t, m, candidate(t, 2))
	if f.held() != 1100 {
		t.Errorf("held %d for a cheaper one, want what it was", f.held())
	}
	if err := m.Settle(ctx, outcome(50)); err != nil {
		t.Fatal(err)
	}
	if spent := f.spent(); spent != 200 {
		t.Errorf("spent %d, want 200", spent)
	}
	if _, err := f.meter(nil).Begin(ctx, candidate(t, 100), 1); err == nil || err.Status != 429 ||
		!errors.Is(err, money.ErrInsufficient) {
		t.Errorf("got %v, want a 429", err)
	}
}

func TestFreeCandidateCostsNothing(t *testing.T) {
	f := newFixture(t, 1000)
	m := f.meter(nil)
	begin(t, m, candidate(t, 0))
	if err := m.Settle(ctx, outcome(50)); err != nil || f.held() != 0 {
		t.Errorf("held %d, %v", f.held(), err)
	}
	m = f.meter(nil)
	begin(t, m, candidate(t, 5)) // fails, and a free one answers
	begin(t, m, candidate(t, 0))
	if err := m.Settle(ctx, outcome(50)); err != nil || f.held() != 0 ||
		money.FindAccount(f.state.View(), "7").Spent != 0 {
		t.Errorf("held %d, spent %d, %v", f.held(), money.FindAccount(f.state.View(), "7").Spent, err)
	}
}

func TestProgressExtendsAndEnds(t *testing.T) {
	f := newFixture(t, 40_000)
	m := f.meter(func(r *meter.Request) { r.MaxTokens, r.Stream = 0, true })
	if !begin(t, m, candidate(t, 10)) {
		t.Error("not tight, though 8192 tokens can't be paid")
	}
	last := f.held()
	for output := int64(0); ; output += 64 {
		if output > 10_000 {
			t.Fatal("it never ends")
		}
		if m.Progress(outcome(output)) {
			if output < 3900 || output > 4100 {
				t.Errorf("ended after %d tokens, want about 3990", output)
			}
			break
		}
		if f.held() < last || f.held() > 40_000 {
			t.Fatalf("held %d after %d", f.held(), last)
		}
		last = f.held()
	}
	if err := m.Settle(ctx, outcome(3990)); err != nil {
		t.Fatal(err)
	}
	f.spent()
	if a := money.FindAccount(f.state.View(), "7"); a.Spent != 40_000 || a.Held != 0 {
		t.Errorf("got %+v", a)
	}
	r, err := money.Receipts(ctx, f.state, "7", "req_1")
	if err != nil || len(r) != 1 || r[0].Reason != "balance_exhausted" {
		t.Errorf("got %+v, %v", r, err)
	}
}

// TestGuessEndsNobodyWhoSaidHowMuch: what was asked for is held for.
func TestGuessEndsNobodyWhoSaidHowMuch(t *testing.T) {
	f := newFixture(t, 600)
	m := f.meter(nil)
	begin(t, m, candidate(t, 10))
	if m.Progress(outcome(500)) {
		t.Error("a guess ended a reply that is paid for")
	}
	if err := m.Settle(ctx, outcome(50)); err != nil {
		t.Fatal(err)
	}
}

// noted waits until the only hold has recorded this progress, which a crash would charge.
func (f *fixture) noted(want int64) {
	f.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if h := money.ListHolds(f.state.View(), "7"); len(h) == 1 && h[0].Progress == want {
			return
		}
		if time.Now().After(deadline) {
			f.t.Fatalf("got %+v, want progress %d", money.ListHolds(f.state.View(), "7"), want)
		}
	}
}

func TestALongStreamRecordsItsProgress(t *testing.T) {
	f := newFixture(t, 1_000_000)
	m := f.meter(func(r *meter.Request) { r.MaxTokens = 10_000 })
	begin(t, m, candidate(t, 10))
	f.noted(0) // it has lived long enough to be journaled
	m.Progress(outcome(10))
	f.now = f.now.Add(11 * time.Second)
	m.Progress(outcome(20))
	f.noted(100 + 200)
	m.Progress(outcome(4020))
	f.noted(100 + 40_200)
	if err := m.Settle(ctx, outcome(5000)); err != nil {
		t.Fatal(err)
	}
}

// TestSettlementsOfTextDoNotWaitForTheDisk: the reply ends in good order although nothing can be written, and is
// charged when that works again.
func TestSettlementsOfTextDoNotWaitForTheDisk(t *testing.T) {
	f := newFixture(t, 1000)
	m := f.meter(nil)
	begin(t, m, candidate(t, 10))
	f.store.Refuse(journal.ErrReadOnly)
	for range 2 {
		if err := m.Settle(ctx, outcome(50)); err != nil {
			t.Fatal(err)
		}
	}
	if f.held() != 600 || money.FindAccount(f.state.View(), "7").Spent != 0 {
		t.Errorf("held %d, spent %d, want the charge held", f.held(), money.FindAccount(f.state.View(), "7").Spent)
	}
	f.store.Refuse(nil)
	if spent := f.spent(); spent != 600 || f.held() != 0 {
		t.Errorf("held %d, spent %d, want 600 spent", f.held(), spent)
	}
}

// TestLeavingDoesNotTakeTheSettlementAlong: its context is over by then.
func TestLeavingDoesNotTakeTheSettlementAlong(t *testing.T) {
	f := newFixture(t, 1000)
	m := f.meter(nil)
	begin(t, m, candidate(t, 10))
	left, leave := context.WithCancel(ctx)
	leave()
	o := outcome(7)
	o.Err, o.Committed = &dialogue.Error{Status: 499}, true
	for range 2 {
		if err := m.Settle(left, o); err != nil {
			t.Error(err)
		}
	}
	if spent := f.spent(); spent != 170 {
		t.Errorf("spent %d, want 170", spent)
	}
}

// A provider that reports more output than its model gives, while a stream is under way, neither
// takes the whole balance into the hold nor ends the stream.
func TestAbsurdUsageDoesNotTakeTheBalance(t *testing.T) {
	f := newFixture(t, 1_000_000)
	m := f.meter(func(r *meter.Request) { r.MaxTokens, r.Stream = 0, true })
	begin(t, m, candidate(t, 10))
	absurd := outcome(1 << 40)
	absurd.Counted = 10
	if m.Progress(absurd) {
		t.Error("the stream ends")
	}
	if held := f.held(); held > 100+10*(8192+2048) {
		t.Errorf("%d are held", held)
	}
	if err := m.Settle(ctx, outcome(50)); err != nil {
		t.Fatal(err)
	}
}

// A target that fails leaves its hold to the next one, which may have no price. It is streamed without extending the
// hold, and costs nothing.
func TestAHoldOutlivesAFallbackWithoutAPrice(t *testing.T) {
	f := newFixture(t, 100_000)
	m := f.meter(func(r *meter.Request) { r.MaxTokens, r.Stream = 0, true })
	begin(t, m, candidate(t, 10))
	held := f.held()
	begin(t, m, candidate(t, 0))
	if enough := m.Progress(outcome(5000)); enough || f.held() != held {
		t.Errorf("ended: %v, held %d, before %d", enough, f.held(), held)
	}
	if err := m.Settle(ctx, outcome(5000)); err != nil {
		t.Fatal(err)
	}
	if got := f.spent(); got != 0 || f.held() != 0 {
		t.Errorf("charged %d, held %d", got, f.held())
	}
}
