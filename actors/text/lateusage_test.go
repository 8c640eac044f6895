package text_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
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
)

// account is the ledger of a stage, with one account.
type account struct {
	*ledger.Client
	state *state.State
}

// priced gives the stage's model a price, a micro-dollar for a token in and ten for one out,
// and opens an account with credits. The caller closes its state.
func (s *stage) priced(credits int64) account {
	s.t.Helper()
	s.price = &catalog.Price{Input: 1_000_000, Output: 10_000_000}
	store, err := schema.Open(journal.NewMemory(), time.Now)
	if err != nil {
		s.t.Fatal(err)
	}
	client, err := ledger.New(s.sys, store)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := client.Credit(context.Background(), "7", credits, "test"); err != nil {
		s.t.Fatal(err)
	}
	return account{client, store}
}

// charge has a request charged to the account.
func (a account) charge(o *text.Request) *text.Request {
	o.Meter = meter.NewText(a.Client, time.Now,
		meter.Request{ID: o.ID, Account: "7", Key: "key", Model: o.Head.Model, Body: o.Body,
			MaxTokens: o.Head.MaxTokens, Choices: max(o.Head.N, o.Head.Answers), Stream: o.Head.Stream})
	return o
}

// settled returns the receipt of a request that is over. It is an error if anything is still
// held, or if the request was not settled exactly once.
func (a account) settled(id string) (money.Receipt, error) {
	receipts, err := money.Receipts(context.Background(), a.state, "7", id)
	if err != nil || len(receipts) != 1 {
		return money.Receipt{}, fmt.Errorf("%d receipts: %+v, %w", len(receipts), receipts, err)
	}
	if b, err := a.Balance(context.Background(), "7"); err != nil || b.Held != 0 {
		return money.Receipt{}, fmt.Errorf("balance %+v, %w", b, err)
	}
	return receipts[0], nil
}

func (a account) receipt(t testing.TB, id string) money.Receipt {
	t.Helper()
	r, err := a.settled(id)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// leaveAfter begins a request and leaves once the client has read text and some time has
// passed. It returns how long the request took to end after that.
func (s *stage) leaveAfter(o *text.Request, text string, wait time.Duration) (out text.Outcome, took time.Duration) {
	s.t.Helper()
	r := s.service.Begin(context.Background(), o)
	var read strings.Builder
	for f := range r.Chunks() {
		if f.Data != nil {
			read.WriteString(string(f.Data.B))
			f.Data.Free()
		}
		if strings.Contains(read.String(), text) {
			break
		}
	}
	time.Sleep(wait)
	left := time.Now()
	r.Abandon()
	for f := range r.Chunks() {
		f.Data.Free()
	}
	return r.Outcome(), time.Since(left)
}

// A client that leaves between the last text and the usage event pays for the usage that the
// provider reports, if that comes within a second.
func TestClientThatLeavesAtTheEndPaysTheReportedUsage(t *testing.T) {
	const wait = 100 * time.Millisecond // until the client leaves
	for _, tt := range []struct {
		name     string
		pieces   func(e ending) []any
		reported bool
		took     time.Duration
	}{
		{"usage in time", func(e ending) []any {
			return []any{e.text, time.Millisecond, e.stop, 500 * time.Millisecond, e.usage, chatDone}
		}, true, 399 * time.Millisecond},
		{"usage reported twice", func(e ending) []any {
			return []any{e.text, time.Millisecond, e.stop, 500 * time.Millisecond, e.usage, time.Millisecond, e.usage,
				chatDone}
		}, true, 400 * time.Millisecond},
		{"usage without an end", func(e ending) []any {
			return []any{e.text, time.Millisecond, e.stop, 500 * time.Millisecond, e.usage, stall}
		}, true, time.Second},
		{"usage after more than a second", func(e ending) []any {
			return []any{e.text, time.Millisecond, e.stop, 1500 * time.Millisecond, e.usage, chatDone}
		}, false, time.Second},
		{"a reset instead", func(e ending) []any { return []any{e.text, time.Millisecond, e.stop, 500 * time.Millisecond, reset} }, false, 399 * time.Millisecond},
		{"text was still to come", func(e ending) []any { return []any{e.text, 500 * time.Millisecond, e.stop, e.usage, chatDone} }, false, 0},
	} {
		for _, e := range endings {
			for client, ask := range clients(e.shape) {
				name := tt.name + ", " + string(client) + " from " + string(e.shape)
				play(t, func(t *testing.T, s *stage) {
					a := s.priced(1_000_000)
					defer a.state.Close()
					s.upstream("a", e.shape, stream(tt.pieces(e)...))
					out, took := s.leaveAfter(a.charge(s.request(client, ask)), "Hello", wait)
					kittest.Pass(time.Second)
					got := a.receipt(t, "r1")
					if got.Reason != "client_left" || out.Err == nil || out.Err.Status != 499 {
						t.Errorf("%s: ended %q with %v", name, got.Reason, out.Err)
					}
					if reported := !got.Usage.Estimated; reported != tt.reported || reported && got.Charged != 43 {
						t.Errorf("%s: charged %d for %+v", name, got.Charged, got.Usage)
					}
					if took < tt.took || took > tt.took+5*time.Millisecond {
						t.Errorf("%s: ended after %v, want %v", name, took, tt.took)
					}
				})
			}
		}
	}
}

// A model without a price costs nothing, so its calls end with their clients.
func TestCallWithoutAPriceEndsWithItsClient(t *testing.T) {
	for _, e := range endings {
		for client, ask := range clients(e.shape) {
			play(t, func(t *testing.T, s *stage) {
				s.upstream("a", e.shape, stream(e.text, time.Millisecond, e.stop, 500*time.Millisecond, e.usage,
					chatDone))
				if _, took := s.leaveAfter(s.request(client, ask), "Hello", 100*time.Millisecond); took > time.Millisecond {
					t.Errorf("%s from %s: ended after %v", client, e.shape, took)
				}
			})
		}
	}
}

// A call that is read for its usage holds its permit until it ends, and a drain that cuts
// requests off ends it at once.
func TestDrainEndsTheWaitForUsage(t *testing.T) {
	for _, client := range []dialogue.Shape{dialoguetest.Chat, dialoguetest.Messages} {
		play(t, func(t *testing.T, s *stage) {
			a := s.priced(1_000_000)
			defer a.state.Close()
			p := s.upstream("a", dialoguetest.Chat,
				stream(chatRole+chatText("Hello"), time.Millisecond, chatStop, stall))
			r := s.service.Begin(context.Background(), a.charge(s.request(client, clients(dialoguetest.Chat)[client])))
			f := <-r.Chunks()
			f.Data.Free()
			kittest.Pass(100 * time.Millisecond)
			r.Abandon()
			kittest.Pass(100 * time.Millisecond)
			if n := p.Limiter.InFlight(); n != 1 {
				t.Errorf("%s: %d permits are out while the usage is waited for", client, n)
			}
			began := time.Now()
			now, cancel := context.WithCancel(context.Background())
			cancel()
			s.engine.Drain(now, time.Minute)
			if took := time.Since(began); took > time.Millisecond {
				t.Errorf("%s: the drain took %v", client, took)
			}
			for f := range r.Chunks() {
				f.Data.Free()
			}
		})
	}
}

const messagesUsed = `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"x"}],"stop_reason":"end_turn","usage":{"input_tokens":100,"output_tokens":5}}`

// A prompt is held as often as it is sent: once for each choice, to a shape that makes one
// choice in a call. Where only some of the calls were accepted, only their prompts are charged.
func TestHoldCoversAPromptAsOftenAsItIsSent(t *testing.T) {
	prompt := strings.Repeat("word ", 80)
	ask := `{"model":"m","n":4,"max_tokens":5,"messages":[{"role":"user","content":"` + prompt + `"}]}`
	once := int64(len(ask)+3) / 4
	for _, tt := range []struct {
		name          string
		shape         dialogue.Shape
		answer        script
		held, charged int64
	}{
		{"a shape with n", dialoguetest.Chat, document(200,
			strings.Replace(chatWhole, `"prompt_tokens":3,"completion_tokens":4`,
				`"prompt_tokens":100,"completion_tokens":20`, 1)), once + 200, 100 + 200},
		{"a shape without n", dialoguetest.Messages, document(200, messagesUsed), 4*once + 200, 4 * (100 + 50)},
		{"a shape without n that tells no usage", dialoguetest.Messages, document(200,
			strings.Replace(messagesUsed, `"input_tokens":100,"output_tokens":5`, ``, 1)), 4*once + 200, 4*once + 40},
	} {
		t.Run(tt.name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				a := s.priced(1_000_000)
				defer a.state.Close()
				s.upstream("a", tt.shape, tt.answer)
				if got := s.ask(a.charge(s.request(dialoguetest.Chat, ask))); got.status != 200 {
					t.Fatalf("got %d %v", got.status, got.err)
				}
				kittest.Pass(time.Second)
				if got := a.receipt(t, "r1"); got.Held != tt.held || got.Charged != tt.charged {
					t.Errorf("held %d and charged %d, want %d and %d: %+v", got.Held, got.Charged, tt.held, tt.charged,
						got)
				}
			})
		})
	}
	t.Run("the client leaves when two of four calls were accepted", func(t *testing.T) {
		play(t, func(t *testing.T, s *stage) {
			a := s.priced(1_000_000)
			defer a.state.Close()
			s.upstream("a", dialoguetest.Messages, func(c *call) (*http.Response, error) {
				if c.number > 2 {
					<-c.Context().Done()
					return nil, c.Context().Err()
				}
				return stream(stall)(c)
			})
			r := s.service.Begin(context.Background(),
				a.charge(s.request(dialoguetest.Chat, strings.Replace(ask, `"n":4`, `"stream":true,"n":4`, 1))))
			kittest.Pass(time.Second)
			r.Abandon()
			s.read(r)
			kittest.Pass(time.Second)
			once := once + 3 // for the member "stream"
			if got := a.receipt(t, "r1"); got.Charged < 2*once || got.Charged > 2*once+4 {
				t.Errorf("charged %d, want the prompt twice, %d: %+v", got.Charged, 2*once, got)
			}
		})
	})
}

// Some providers begin a stream with a chunk that names no model. The price is that of the model that a later one
// names.
func TestALaterChunkMayNameTheModelThatIsCharged(t *testing.T) {
	const filters = `data: {"choices":[],"created":0,"id":"","model":"","object":"","prompt_filter_results":[]}` +
		"\n\n"
	named := func(text string) string { return strings.ReplaceAll(text, `"model":"m"`, `"model":"gpt-5-mini"`) }
	for name, c := range map[string]struct {
		inbound, upstream dialogue.Shape
		body, reply       string
	}{
		"passed through": {dialoguetest.Chat, dialoguetest.Chat, chatAskStream,
			chatRole + chatText("Hello") + chatStop + chatDone},
		"translated": {dialoguetest.Messages, dialoguetest.Chat, messagesAskStream,
			chatRole + chatText("Hello") + chatStop + chatDone},
		"translated completions": {dialoguetest.Chat, dialoguetest.Completions, chatAskStream,
			`data: {"id":"c1","model":"m","choices":[{"index":0,"text":"Hi","finish_reason":"stop"}]}` + "\n\n" +
				chatDone},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				s.pricing.Charge = true
				s.add(catalog.Provider{Name: "a", Vendor: "openai", Shape: c.upstream, BaseURL: "http://a.test",
					APIKeys: []string{"k1"}}, &fake{scripts: []script{stream(filters + named(c.reply))}})
				if got := s.ask(s.request(c.inbound, c.body)); got.ReplyModel != "gpt-5-mini" {
					t.Errorf("the model of the reply is %q: %d %s %v", got.ReplyModel, got.status, got.text, got.err)
				}
			})
		})
	}
}

// The service tier that the reply names last counts, whatever was requested, because a vendor may repeat the request's
// until its end. Prices of the configuration have no tiers.
func TestTheServiceTierIsThatOfTheReply(t *testing.T) {
	const chat = `data: {"id":"c1","model":"m","service_tier":"flex","choices":[{"index":0,"delta":` +
		`{"role":"assistant","content":"\"service_tier\":\"priority\""},"finish_reason":"stop"}]}` + "\n\n" + chatDone
	const responses = `data: {"type":"response.created","response":{"id":"r1","model":"m","service_tier":"auto"}}` +
		"\n\n" + `data: {"type":"response.completed","response":{"id":"r1","model":"m","status":"completed",` +
		`"service_tier":"priority","output":[]}}` + "\n\n"
	const messages = `data: {"type":"message_start","message":{"id":"m1","model":"m","role":"assistant","content":[],` +
		`"usage":{"input_tokens":3,"output_tokens":1,"service_tier":"batch"}}}` + "\n\n" +
		`data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}` + "\n\n" +
		`data: {"type":"message_stop"}` + "\n\n"
	part := strings.Replace(chatText("Hello"), `{`, `{"service_tier":"flex",`, 1)
	changed := part + part + strings.Replace(part, "flex", "priority", 1) +
		strings.Replace(chatStop, `{`, `{"x":{"service_tier":"priority"},"service_tier":"batch",`, 1) + chatDone
	long := strings.ReplaceAll(chat, `"flex"`, `"`+strings.Repeat("x", 100)+`"`)
	flex := `{"model":"m","service_tier":"flex",` + chatAskStream[len(`{"model":"m",`):]
	for name, c := range map[string]struct {
		inbound, upstream dialogue.Shape
		body, reply       string
		price             *catalog.Price
		want              string
	}{
		"passed through": {dialoguetest.Chat, dialoguetest.Chat, flex, chat, nil, "flex"},
		"translated":     {dialoguetest.Messages, dialoguetest.Chat, messagesAskStream, chat, nil, "flex"},
		"passed responses": {dialoguetest.Responses, dialoguetest.Responses, responsesAskStream, responses, nil,
			"priority"},
		"translated responses": {dialoguetest.Chat, dialoguetest.Responses, flex, responses, nil, "priority"},
		"passed messages": {dialoguetest.Messages, dialoguetest.Messages, messagesAskStream, messages, nil,
			"batch"},
		"translated messages":    {dialoguetest.Chat, dialoguetest.Messages, flex, messages, nil, "batch"},
		"a stream for a whole":   {dialoguetest.Chat, dialoguetest.Chat, chatAsk, chat, nil, "flex"},
		"a reply without a tier": {dialoguetest.Chat, dialoguetest.Chat, flex, chatRole + chatStop + chatDone, nil, ""},
		"several tiers":          {dialoguetest.Chat, dialoguetest.Chat, chatAskStream, changed, nil, "batch"},
		"translated tiers":       {dialoguetest.Messages, dialoguetest.Chat, messagesAskStream, changed, nil, "batch"},
		"a name that is no word": {dialoguetest.Chat, dialoguetest.Chat, chatAskStream, long, nil, ""},
		"a configured price": {dialoguetest.Chat, dialoguetest.Chat, chatAskStream, chat,
			&catalog.Price{Input: 1}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				s.price = c.price
				s.upstream("a", c.upstream, stream(c.reply))
				if got := s.ask(s.request(c.inbound, c.body)); got.ServiceTier != c.want || got.status != 200 {
					t.Errorf("the tier is %q: %d %s %v", got.ServiceTier, got.status, got.text, got.err)
				}
			})
		})
	}
}
