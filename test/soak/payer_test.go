package soak

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/tidwall/gjson"

	"stagedoor/actors/ledger"
)

// Prices are in dollars for a million tokens, which is micro-dollars for one.
const (
	inputPrice  = 1
	outputPrice = 10
)

// paid is one request that costs something.
type paid struct {
	id string // X-Request-Id of the client's choice, by which the receipt and the ledger name the request
	// said is the outcome in the client's reply.
	said verdict
	// charged is the price of the reply's usage in micro-dollars, by which the receipt and the ledger are judged.
	charged int64
	began   time.Time // when it was sent; a reply may be read when the process that sent it is dead
	checked bool      // its receipt was read
}

// mayBeLost reports whether a kill may have lost the charge. One whose receipt was read is durable,
// because a receipt waits for its settlement.
func (s *soak) mayBeLost(one *paid) bool {
	return one.said == accepted && !one.checked && s.killedAfter(one.began)
}

// verdict is a client's knowledge of a call, which it has from the answer.
type verdict uint8

const (
	unknown  verdict = iota // the answer was lost, so the call may have been carried out or not
	accepted                // the answer says that it was carried out, so it must stay so
	refused                 // the answer says that it was not carried out, so nothing of it may ever be seen
)

// payer makes priced requests of one account.
type payer struct {
	soak    *soak
	name    string
	account string
	key     string
	random  *rand.Rand
	sent    []*paid
	fresh   int // index of the first request that no check has seen
}

// requestKinds are the requests that payers send, whole and streamed, in three shapes. input and output are the paths
// of the token counts in the answer, by which the client works out what it must have been charged.
var requestKinds = []struct {
	path   string
	body   string
	stream bool
	input  string // of the usage
	output string
}{
	{
		"/v1/chat/completions", `{"model":"m","max_tokens":60,"messages":[{"role":"user","content":%q}]}`, false,
		"usage.prompt_tokens", "usage.completion_tokens",
	},
	{
		"/v1/chat/completions",
		`{"model":"m","max_tokens":60,"stream":true,"stream_options":{"include_usage":true},` +
			`"messages":[{"role":"user","content":%q}]}`,
		true,
		"usage.prompt_tokens",
		"usage.completion_tokens",
	},
	{
		"/v1/messages", `{"model":"m","max_tokens":60,"stream":true,"messages":[{"role":"user","content":%q}]}`, true,
		"usage.input_tokens", "usage.output_tokens",
	},
	{
		"/v1/responses", `{"model":"m","max_output_tokens":60,"store":false,"input":%q}`, false, "usage.input_tokens",
		"usage.output_tokens",
	},
}

// step makes a request, and reads every second receipt at once, which makes the charge durable. Some replies
// take a while, so that a kill finds holds that are journaled.
func (p *payer) step(ctx context.Context) error {
	kind := &requestKinds[p.random.IntN(len(requestKinds))]
	pace := "max"
	if p.random.IntN(4) == 0 {
		pace = "200"
	}
	one := &paid{id: fmt.Sprintf("%s-%d", p.name, len(p.sent)), began: time.Now()}
	p.sent = append(p.sent, one)
	body := fmt.Appendf(nil, kind.body,
		fmt.Sprintf("Say something about number %d. [sandbox: pace=%s]", len(p.sent), pace))
	a, err := p.soak.gateway.postJSON(ctx, kind.path, p.key, one.id, body)
	if err != nil {
		return err
	}
	switch a.status {
	case http.StatusOK:
		input, output := usage(a.body, kind.stream, kind.input, kind.output)
		if output <= 0 {
			p.soak.wrong("request %s: its answer is complete and tells no usage: %s", one.id, &a)
			return nil
		}
		one.said, one.charged = accepted, input*inputPrice+output*outputPrice
	case http.StatusTooManyRequests: // the account has no more
		one.said = refused
		return pause(ctx, brokePause)
	default:
		p.soak.wrong("request %s: %s", one.id, &a)
		return nil
	}
	if p.random.IntN(2) == 0 {
		return p.receipt(ctx, one)
	}
	return nil
}

// usage returns the counts in an answer: a document, or the last event that has each
// of them.
func usage(body []byte, stream bool, input, output string) (in, out int64) {
	if !stream {
		return gjson.GetBytes(body, input).Int(), gjson.GetBytes(body, output).Int()
	}
	for line := range bytes.Lines(body) {
		data, ok := bytes.CutPrefix(line, []byte("data: "))
		if !ok {
			continue
		}
		for _, root := range []string{"", "message."} {
			if v := gjson.GetBytes(data, root+input); v.Exists() {
				in = v.Int()
			}
			if v := gjson.GetBytes(data, root+output); v.Exists() {
				out = v.Int()
			}
		}
	}
	return in, out
}

// brokePause is the wait of a payer without money.
const brokePause = 20 * time.Millisecond

// older is the number of requests of earlier cycles that are looked at again.
const older = 30

// check reads the receipts of the requests that no check has seen, and of some older ones.
func (p *payer) check(ctx context.Context, all bool) error {
	from := p.fresh
	if all {
		from = 0
	}
	for _, one := range p.sent[from:] {
		if err := p.receipt(ctx, one); err != nil {
			return err
		}
	}
	p.fresh = len(p.sent)
	for range min(older, from) {
		if err := p.receipt(ctx, p.sent[p.random.IntN(from)]); err != nil {
			return err
		}
	}
	return nil
}

// receipt compares a request's receipt with the reply of its client. A request whose
// answer was lost gets its final verdict here.
func (p *payer) receipt(ctx context.Context, one *paid) error {
	a, err := p.soak.gateway.get(ctx, "/v1/receipts/"+one.id, p.key)
	if err != nil {
		return err
	}
	var r struct {
		Account string          `json:"account"`
		Charged int64           `json:"charged"`
		Reason  string          `json:"end_reason"`
		Earlier json.RawMessage `json:"earlier"`
	}
	switch a.status {
	case http.StatusNotFound:
		if p.soak.mayBeLost(one) {
			one.said, one.charged = refused, 0
			return nil
		}
		if one.said == accepted {
			p.soak.wrong("request %s cost %d: its receipt is lost", one.id, one.charged)
		}
		if one.said == unknown {
			one.said = refused
			p.soak.settled(false)
		}
		return nil
	case http.StatusOK:
		if err := json.Unmarshal(a.body, &r); err != nil {
			return fmt.Errorf("receipt: %w", err)
		}
	default:
		p.soak.wrong("receipt of request %s: %s", one.id, &a)
		return nil
	}
	if r.Reason == ledger.ReasonCrash && p.soak.mayBeLost(one) { // only the hold was durable
		one.charged = r.Charged
	}
	switch {
	case r.Account != p.account || r.Earlier != nil:
		p.soak.wrong("request %s has the receipt %s", one.id, &a)
	case one.said == unknown:
		one.said, one.charged = accepted, r.Charged
		one.checked = true // no client got the answer
		p.soak.settled(true)
	case one.said == refused && r.Charged != 0, one.said == accepted && r.Charged != one.charged:
		p.soak.wrong("request %s must cost %d, and was charged %d (%s)", one.id, one.charged, r.Charged, r.Reason)
	}
	if !one.checked && one.said == accepted {
		one.checked = true
		p.soak.found("settlements")
	}
	return nil
}
