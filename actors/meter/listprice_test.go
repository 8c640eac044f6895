package meter_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"stagedoor/actors/ledger"
	"stagedoor/actors/meter"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/dialogue/dialoguetest"
	"stagedoor/providers/picture"
	"stagedoor/providers/tokens"
	"stagedoor/state/money"
)

// listed returns a model of OpenAI's as the configuration serves it.
func listed(t *testing.T, model string, pricing catalog.Pricing, price *catalog.Price) *catalog.Candidate {
	t.Helper()
	return listedAt(t, "", model, pricing, price)
}

// listedAt is listed for a provider with a vendor in the configuration.
func listedAt(t *testing.T, vendor, model string, pricing catalog.Pricing, price *catalog.Price) *catalog.Candidate {
	t.Helper()
	c, errs := catalog.Build(
		[]catalog.Provider{{Name: "p", Vendor: vendor, Shape: dialoguetest.Chat, BaseURL: "https://api.openai.com/v1"}},
		[]catalog.Model{{Pattern: "m", Price: price, Targets: []catalog.Route{{Provider: "p", Model: model}}}},
		pricing,
	)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	r, ok := c.Resolve("m")
	if !ok {
		return nil
	}
	return &r.Plan(nil)[0]
}

var charging = catalog.Pricing{Charge: true}

// Accounts are charged the catalogue's price only where the configuration says so, and the operator's own price wins.
func TestThePriceOfTheListIsChargedWhereItIsSwitchedOn(t *testing.T) {
	own := &catalog.Price{Input: 7_000_000}
	for _, c := range []struct {
		name, model, reply string
		pricing            catalog.Pricing
		price              *catalog.Price
		charged            int64
		fromList           bool
	}{
		{"switched off", "gpt-5", "gpt-5", catalog.Pricing{}, nil, 0, false},
		{"switched on", "gpt-5", "gpt-5-2025-08-07", charging, nil, 125 + 100, true},
		{"the operator's price", "gpt-5", "gpt-5-mini", charging, own, 700, false},
		{"the operator's price of nothing", "gpt-5", "gpt-5", charging, &catalog.Price{}, 0, false},
		{"another model answered", "gpt-5", "gpt-5-mini", charging, nil, 25 + 20, true},
		{"a free model answered", "gpt-5", "gpt-transcribe", charging, nil, 125 + 100, true},
		{"a model of another kind answered", "gpt-5", "text-embedding-3-small", charging, nil, 125 + 100, true},
		{"an unknown model answered", "gpt-5", "gpt-9", charging, nil, 125 + 100, true},
		{"a known model for an unknown name", "router", "gpt-5-mini", charging, nil, 25 + 20, true},
		{"unknown to the end", "router", "router", charging, nil, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t, 1_000_000)
			m := f.meter(nil)
			begin(t, m, listed(t, c.model, c.pricing, c.price))
			o := outcome(10)
			o.ReplyModel, o.Accepted = c.reply, true
			if err := m.Settle(ctx, o); err != nil {
				t.Fatal(err)
			}
			if got := f.spent(); got != c.charged || f.held() != 0 {
				t.Errorf("charged %d, want %d; held %d", got, c.charged, f.held())
			}
			if c.charged == 0 {
				return
			}
			all, err := money.Receipts(ctx, f.state, "7", "req_1")
			if err != nil || len(all) != 1 {
				t.Fatal(all, err)
			}
			if got := all[0].Catalog; (got == catalog.Builtin().Version) != c.fromList {
				t.Errorf("the prices are of list %q", got)
			}
		})
	}
}

// A price that only the reply decides is held for, so an account without money is refused before the call.
func TestAnEmptyAccountIsRefusedWhereTheReplyDecidesThePrice(t *testing.T) {
	f := newFixture(t, 1_500)
	router := listed(t, "router", charging, nil)
	m := f.meter(func(r *meter.Request) { r.Stream, r.MaxTokens = true, 0 })
	begin(t, m, router)
	held := f.held()
	o := outcome(100_000)
	o.ReplyModel, o.Accepted = "gpt-5", true
	if enough := m.Progress(o); held == 0 || enough {
		t.Errorf("%d micro-dollars were held, the stream ended: %v", held, enough)
	}
	if err := m.Settle(ctx, o); err != nil {
		t.Fatal(err)
	}
	if got := f.spent(); got <= 1_500 {
		t.Errorf("charged %d, want a debt", got)
	}
	if _, err := f.meter(nil).Begin(ctx, router, 1); err == nil {
		t.Error("an account in debt is served")
	}
}

// A request whose price stayed unknown is not charged, and its receipt says why.
func TestTheReceiptOfAnUnknownPriceSaysSo(t *testing.T) {
	f := newFixture(t, 1_000_000)
	m := f.meter(nil)
	begin(t, m, listed(t, "router", charging, nil))
	if err := m.Settle(ctx, outcome(10)); err != nil {
		t.Fatal(err)
	}
	charged := f.spent()
	all, err := money.Receipts(ctx, f.state, "7", "req_1")
	if err != nil || len(all) != 1 || charged != 0 || !slices.Contains(all[0].Flags, ledger.FlagUnpriced) {
		t.Errorf("charged %d, receipts %+v, %v", charged, all, err)
	}
}

// The text of a reply cannot choose the price of another vendor's model behind a cloud that serves several.
func TestAReplyCannotNameAModelOfAnotherVendor(t *testing.T) {
	c := listedAt(t, "*", "gpt-5", charging, nil)
	want := *c.Rates(time.Now())
	for _, model := range []string{"deepseek-flash", "claude-haiku-4-5", "gpt-5"} {
		if got := *c.RatesOf(model, time.Now()); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", model, got, want)
		}
	}
	if got := c.RatesOf("gpt-5-mini", time.Now()); got.Input >= want.Input {
		t.Errorf("a model of the same vendor has the price %+v", *got)
	}
}

// A price that changes while a request runs does not change what the request costs: the time of its attempt counts.
func TestARequestIsChargedThePriceOfItsBeginning(t *testing.T) {
	text := `{"version": 1, "date": "2026-11-22", "currency": "USD", "hosts": {"api.openai.com": "openai"}, "models": [
		{"provider": "openai", "id": "m", "price": {"input": 1, "output": 1}, "as_of": "2026-11-01",
		"from": [{"date": "2027-01-01", "price": {"input": 5, "output": 5}}]}]}`
	list, err := catalog.ParseList([]byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	newYear := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		begins  time.Time
		charged int64
	}{{newYear.Add(-time.Second), 110}, {newYear, 550}} {
		f := newFixture(t, 1_000_000)
		f.now = c.begins
		m := f.meter(nil)
		begin(t, m, listed(t, "m", catalog.Pricing{List: list, Charge: true}, nil))
		f.now = newYear.Add(time.Hour)
		o := outcome(10)
		o.ReplyModel = "m"
		if err := m.Settle(ctx, o); err != nil {
			t.Fatal(err)
		}
		if got := f.spent(); got != c.charged {
			t.Errorf("begun at %s: charged %d, want %d", c.begins, got, c.charged)
		}
	}
}

// A client may raise the hold by what it asks for. The bill depends on the provider's report alone.
func TestWhatAClientAsksForRaisesTheHoldAndNotTheBill(t *testing.T) {
	price := &catalog.Price{Input: 1_000_000, Output: 1_000_000, CacheWrite1h: 2_000_000, AudioInput: 4_000_000}
	bill := func(body string) (held, charged int64) {
		f := newFixture(t, 1_000_000)
		m := f.meter(func(r *meter.Request) { copy(r.Body, body) })
		begin(t, m, listed(t, "gpt-5", catalog.Pricing{}, price))
		held = f.held()
		if err := m.Settle(ctx, outcome(10)); err != nil {
			t.Fatal(err)
		}
		return held, f.spent()
	}
	plainHeld, plain := bill("")
	loudHeld, loud := bill(`"input_audio" "ttl": "1h"`)
	if plainHeld >= loudHeld || plain != loud {
		t.Errorf("held %d and %d, charged %d and %d", plainHeld, loudHeld, plain, loud)
	}
}

// The list knows how much output a model gives. A reply that reasons longer than the usual maximum is charged whole.
func TestReasoningBeyondTheUsualMaximumIsCharged(t *testing.T) {
	f := newFixture(t, 10_000_000)
	m := f.meter(func(r *meter.Request) { r.MaxTokens, r.Stream = 0, true })
	begin(t, m, listed(t, "gpt-5", charging, nil))
	o := outcome(30_000)
	o.Counted = 100
	if err := m.Settle(ctx, o); err != nil {
		t.Fatal(err)
	}
	if got := f.spent(); got != 125+300_000 {
		t.Errorf("charged %d", got)
	}
}

// Searches are charged as they are reported, within a bound.
func TestSearchesAreChargedWithinABound(t *testing.T) {
	price := &catalog.Price{WebSearch: 10_000_000}
	for reported, want := range map[int64]int64{-1: 0, dialogue.NegativeCount: 0, 3: 30_000, 1 << 40: 10_000_000} {
		u := dialogue.NoUsage
		u.InputTotal, u.OutputTotal, u.WebSearches = 10, 10, reported
		bill := ledger.Charge(ledger.Work{Price: price, Reported: u, Counted: u, MostOutput: 100})
		if bill.Amount != want {
			t.Errorf("%d searches: charged %d, want %d", reported, bill.Amount, want)
		}
	}
}

func TestModelsOfUnknownPriceAreRefusedIfTheConfigurationSaysSo(t *testing.T) {
	refuse := catalog.Pricing{RefuseUnknown: true}
	for model, served := range map[string]bool{"gpt-5": true, "router": false} {
		if c := listed(t, model, refuse, nil); (c != nil) != served {
			t.Errorf("%s: %+v", model, c)
		}
		if listed(t, model, refuse, &catalog.Price{}) == nil {
			t.Errorf("%s is refused although the operator says that it is free", model)
		}
	}
}

// A hold covers what can be charged and is known before: searches of the provider, and all that a model gives for a
// reply in one piece without a maximum, because such a hold cannot be extended.
func TestHoldsCoverSearchesAndRepliesWithoutAMaximum(t *testing.T) {
	body := func(text string) func(*meter.Request) {
		return func(r *meter.Request) { r.Body = []byte(text + strings.Repeat(" ", 400-len(text))) }
	}
	whole := func(r *meter.Request) { r.MaxTokens = 0 }
	both := func(r *meter.Request) { r.MaxTokens, r.Stream = 0, true }
	for _, c := range []struct {
		name, model string
		change      func(*meter.Request)
		want        int64
	}{
		{"a maximum", "gpt-5", nil, 125 + 500},
		{"a search tool", "gpt-5", body(`{"tools":[{"type":"web_search"}]}`), 125 + 500 + 100_000},
		{"a search tool of Google's", "gpt-5", body(`{"tools":[{"googleSearch":{}}]}`), 125 + 500 + 100_000},
		{"a model that does not charge for searches", "text-embedding-3-small", body(`"web_search"`), 2},
		{"no maximum, in one piece", "gpt-5", whole, 125 + 1_280_000},
		{"no maximum, streamed", "gpt-5", both, 125 + 10_240},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t, 10_000_000)
			begin(t, f.meter(c.change), listed(t, c.model, charging, nil))
			if got := f.held(); got != c.want {
				t.Errorf("held %d, want %d", got, c.want)
			}
		})
	}
}

// A provider that gets the default maximum where the client gave none cannot make a longer reply, so no more is held.
func TestNoMoreIsHeldThanTheMaximumThatIsSent(t *testing.T) {
	for name, c := range map[string]struct {
		shape dialogue.Shape
		also  []dialogue.Shape
		want  int64
	}{
		"a maximum is sent":       {dialoguetest.Messages, nil, 500 + 8_192*25},
		"none is sent":            {dialoguetest.Chat, nil, 500 + 128_000*25},
		"none is in another form": {dialoguetest.Messages, []dialogue.Shape{dialoguetest.Chat}, 500 + 128_000*25},
	} {
		t.Run(name, func(t *testing.T) {
			cat, errs := catalog.Build(
				[]catalog.Provider{{Name: "p", Shape: c.shape, Also: c.also, BaseURL: "https://api.anthropic.com"}},
				[]catalog.Model{{Pattern: "m", Targets: []catalog.Route{{Provider: "p", Model: "claude-opus-5"}}}},
				charging)
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			r, _ := cat.Resolve("m")
			f := newFixture(t, 10_000_000)
			begin(t, f.meter(func(r *meter.Request) { r.MaxTokens = 0 }), &r.Plan(nil)[0])
			if got := f.held(); got < c.want || got > c.want+200 {
				t.Errorf("held %d, want about %d", got, c.want)
			}
		})
	}
}

// A reply that is divided into calls has the price of the largest one, by the provider's report and by the gateway's
// count. Its hold is by that price, too.
func TestTwoCallsBelowAPromptSizeAreNotChargedAboveIt(t *testing.T) {
	report := dialogue.NoUsage
	report.InputTotal, report.LargestInput, report.OutputTotal = 400_000, 200_000, 0
	above := report
	above.LargestInput = 300_000
	for name, c := range map[string]struct {
		usage dialogue.Usage
		want  int64
	}{"counted": {dialogue.NoUsage, 1_000_000}, "reported": {report, 1_000_000}, "one above": {above, 2_000_000}} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, 10_000_000)
			m := f.meter(func(r *meter.Request) { r.Body, r.Choices = make([]byte, 4*200_000), 2 })
			if _, err := m.Begin(ctx, listed(t, "gpt-5.4", charging, nil), 2); err != nil {
				t.Fatal(err)
			}
			if got := f.held(); got != 1_000_000+1_500 {
				t.Errorf("held %d", got)
			}
			o := outcome(0)
			o.Usage, o.Accepted, o.Calls, o.AcceptedCalls = c.usage, true, 2, 2
			if err := m.Settle(ctx, o); err != nil {
				t.Fatal(err)
			}
			if got := f.spent(); got != c.want {
				t.Errorf("charged %d, want %d", got, c.want)
			}
		})
	}
}

// A faster or slower service tier costs what the list says, by what the provider did. A client that names one can raise
// the hold, and cannot lower the bill.
func TestTheServiceTierOfTheReplyIsCharged(t *testing.T) {
	asking := func(tier string) func(*meter.Request) {
		return func(r *meter.Request) {
			text := `{"service_tier":"` + tier + `"}`
			r.Body = []byte(text + strings.Repeat(" ", 400-len(text)))
		}
	}
	own := &catalog.Price{Input: 1_250_000, Output: 10_000_000}
	for _, c := range []struct {
		name, requested, reply string
		price                  *catalog.Price
		held, charged          int64
	}{
		{"none", "auto", "", nil, 625, 225},
		{"the default", "auto", "default", nil, 625, 225},
		{"slower", "flex", "flex", nil, 625, 113},
		{"slower was refused", "flex", "default", nil, 625, 225},
		{"faster", "priority", "priority", nil, 1_250, 450},
		{"faster was refused", "priority", "default", nil, 1_250, 225},
		{"faster by a setting of the account", "auto", "priority", nil, 625, 450},
		{"unknown", "x", "x", nil, 625, 225},
		{"the operator's price", "priority", "priority", own, 625, 225},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t, 1_000_000)
			m := f.meter(asking(c.requested))
			begin(t, m, listed(t, "gpt-5", charging, c.price))
			held := f.held()
			o := outcome(10)
			o.ServiceTier, o.Accepted = c.reply, true
			for range 2 { // the second one must not count the tier again
				if err := m.Settle(ctx, o); err != nil {
					t.Fatal(err)
				}
			}
			if got := f.spent(); got != c.charged || held != c.held {
				t.Errorf("held %d and charged %d, want %d and %d", held, got, c.held, c.charged)
			}
		})
	}
}

// The progress that a crash charges is what the stream has cost. What its client asked for raises the hold alone.
func TestACrashChargesWhatAStreamHasCostAndNotItsHold(t *testing.T) {
	own := &catalog.Price{Input: 1_250_000, Output: 10_000_000, CacheWrite: 2_000_000, AudioOutput: 40_000_000}
	for body, price := range map[string]*catalog.Price{
		`plain`:                                nil,
		`"web_search" in the text of a prompt`: nil,
		`"service_tier":"priority", which is not granted`:        nil,
		`"audio", which the reply does not have`:                 own,
		`"service_tier":"fast", "google_search" and "audio" :-)`: own,
	} {
		t.Run(body, func(t *testing.T) {
			f := newFixture(t, 10_000_000)
			m := f.meter(func(r *meter.Request) { r.Stream, r.MaxTokens = true, 20_000; copy(r.Body, body) })
			begin(t, m, listed(t, "gpt-5", charging, price))
			f.noted(0)
			o := outcome(4100)
			m.Progress(o)
			f.noted(125 + 41_000)
			o.Usage.WebSearches = 2
			o.Usage.OutputTotal, o.Counted = 8100, 8100
			m.Progress(o)
			searches := int64(20_000)
			if price != nil {
				searches = 0
			}
			f.noted(125 + 81_000 + searches)
			if err := m.Settle(ctx, o); err != nil {
				t.Fatal(err)
			}
			if got := f.spent(); got != 125+81_000+searches {
				t.Errorf("charged %d at the end", got)
			}
		})
	}
}

// The hold of a picture is at the price above a prompt size if its prompt is that long, as the bill is.
func TestTheHoldOfAPictureIsByTheSizeOfItsPrompt(t *testing.T) {
	price := &catalog.Price{Input: 1_000_000}
	price.Above = &catalog.Tier{Tokens: 10, Price: catalog.Price{Input: 3_000_000}}
	f := newFixture(t, 1_000_000)
	m := meter.NewPicture(f.ledger, meter.PictureRequest{ID: "req_1", Account: "7", Key: "key_1",
		Picture: &picture.Request{Model: "m", Prompt: strings.Repeat("word ", 100), N: 1}})
	c := candidate(t, 1)
	c.Price = price
	if err := m.Begin(ctx, c); err != nil {
		t.Fatal(err)
	}
	if got, want := f.held(), 3*tokens.Estimate(500); got != want {
		t.Errorf("held %d, want %d", got, want)
	}
}
