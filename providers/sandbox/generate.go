package sandbox

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"time"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/jsonw"
	"stagedoor/providers/sandbox/job"
	"stagedoor/providers/tokens"
)

// Errors of faults that end a reply outside of its shape.
var (
	ErrCut     = job.ErrCut
	ErrGarbage = errors.New("sandbox: the reply turned into garbage as requested")
)

const (
	firstAfter  = 4   // the first token takes as long as this number of later ones
	mostChoices = 128 // of one request
)

// Model is a configured simulator. It is immutable and safe for concurrent use.
type Model struct {
	Env   *dialogue.Env
	Base  Script   // the defaults of requests
	Names []string // the models that Handler lists
}

// Simulate answers a request without HTTP. header is the client's and may request faults. A refusal that was requested
// is emitted as an EventError. A reply that is cut off or turns into garbage ends with an error.
func (m *Model) Simulate(ctx context.Context, req *dialogue.Request, header http.Header,
	emit func(*dialogue.Event) error) error {
	script, err := ParseScript(m.Base, header.Get(Header), lastText(req))
	if failure := new(dialogue.Error); errors.As(err, &failure) {
		return emit(&dialogue.Event{Kind: dialogue.EventError, Err: failure})
	}
	return Generate(ctx, req, script, m.Env, emit)
}

// Generate answers a request with a well-formed sequence of events. An event is only valid during the call of emit. If
// emit fails, Generate stops with its error. A cancelled ctx ends it with the cause.
// The gateway's own providers of the shape sandbox call it. It makes the same events as a parser of
// an upstream, so everything behind it, translation and accounting included, is the code that
// serves real providers.
func Generate(ctx context.Context, req *dialogue.Request, script Script, env *dialogue.Env,
	emit func(*dialogue.Event) error) error {
	p := &player{ctx: ctx, req: req, script: script, env: env, send: emit}
	err := p.begin()
	if err == nil {
		err = p.play()
	}
	// A cancellation may have a *dialogue.Error as its cause, too, which is not part of the reply.
	if failure := new(dialogue.Error); ctx.Err() == nil && errors.As(err, &failure) {
		return p.emit(dialogue.Event{Kind: dialogue.EventError, Err: failure})
	}
	return err
}

// player delivers the reply to one request.
// It belongs to one reply and runs on the goroutine of its caller.
type player struct {
	ctx       context.Context
	req       *dialogue.Request
	script    Script
	env       *dialogue.Env
	send      func(*dialogue.Event) error
	event     dialogue.Event // reused for every event
	due       time.Time      // when the next token is
	delivered int            // tokens
}

// newPlayer reads the directives of a request for pictures or videos and begins. The error may be the requested
// refusal.
func (m *Model) newPlayer(ctx context.Context, header http.Header, text string) (*player, error) {
	script, err := ParseScript(m.Base, header.Get(Header), text)
	if err != nil {
		return nil, err
	}
	p := &player{ctx: ctx, script: script, env: m.Env}
	return p, p.begin()
}

// begin waits for the requested delay and returns the requested refusal.
func (p *player) begin() error {
	if err := p.wait(p.env.Now().Add(p.script.Delay)); err != nil || p.script.Status == 0 {
		return err
	}
	return p.script.refusal()
}

// choice is an answer in delivery.
type choice struct {
	answer
	index, part, piece int
}

// finished reports whether all parts of the choice have been sent.
func (c *choice) finished() bool { return c.part == len(c.parts) }

// play sends the whole reply. It composes all choices first, because the usage at the start has to
// name the input tokens, and the usage at the end the output tokens of every choice.
func (p *player) play() error {
	choices := make([]*choice, min(max(p.req.N, 1)*max(len(p.req.Prompts), 1), mostChoices))
	usage, start := dialogue.NoUsage, dialogue.NoUsage
	usage.InputTotal, usage.OutputTotal, usage.Reasoning = tokens.CountRequest(p.req), 0, 0
	start.InputTotal = usage.InputTotal
	for i := range choices {
		choices[i] = &choice{answer: compose(p.req, &p.script, i, p.env.ID), index: i}
		for _, part := range choices[i].parts {
			usage.OutputTotal += int64(len(part.pieces))
			if part.kind == dialogue.ThinkingPart {
				usage.Reasoning += int64(len(part.pieces))
			}
		}
	}
	now := p.env.Now()
	p.due = now.Add(firstAfter * p.step())
	err := p.emit(
		dialogue.Event{Kind: dialogue.EventStart, ID: "sandbox" + p.env.ID(), Model: p.req.Model, Created: now.Unix()},
		dialogue.Event{Kind: dialogue.EventUsage, Usage: &start})
	if err == nil {
		err = p.deliver(choices)
	}
	if err == nil && p.script.Fault != NoFault {
		err = p.failure() // the reply is shorter than the requested place of the fault
	}
	if err != nil {
		return err
	}
	for _, c := range choices {
		event := dialogue.Event{Kind: dialogue.EventFinish, Choice: c.index, Reason: c.reason, StopSequence: c.stop}
		if err := p.emit(event); err != nil {
			return err
		}
	}
	return p.emit(dialogue.Event{Kind: dialogue.EventUsage, Usage: &usage}, dialogue.Event{Kind: dialogue.EventEnd})
}

// deliver sends a token of each choice in turn, because choices are computed side by side.
func (p *player) deliver(choices []*choice) error {
	for unfinished := len(choices); unfinished > 0; {
		if err := p.waitForToken(); err != nil {
			return err
		}
		unfinished = 0
		for _, c := range choices {
			if c.finished() {
				continue
			}
			if p.script.Fault != NoFault && p.delivered >= p.script.After {
				return p.failure()
			}
			if err := p.sendToken(c); err != nil {
				return err
			}
			if !c.finished() {
				unfinished++
			}
		}
	}
	return nil
}

// failure returns the error of the requested fault.
// A stall holds the connection open and sends nothing, which is how a provider fails without an
// error. Only the timeouts of the gateway, or its client, end it.
func (p *player) failure() error {
	switch p.script.Fault {
	case Cut:
		return ErrCut
	case Garbage:
		return ErrGarbage
	case Stall:
		<-p.ctx.Done()
		return context.Cause(p.ctx)
	}
	return dialogue.Reported(500, dialogue.TypeAPI, "sandbox_error", "the sandbox failed as requested")
}

// sendToken sends the next token of a choice, with the beginning and the end of its part.
// A part without pieces is opened and closed in one step, so that an empty answer still has a part.
func (p *player) sendToken(c *choice) error {
	part := &c.parts[c.part]
	event := dialogue.Event{Kind: dialogue.EventOpen, Choice: c.index, Part: c.part, PartKind: part.kind,
		Call: part.call}
	if c.piece == 0 {
		if err := p.emit(event); err != nil {
			return err
		}
	}
	if c.piece < len(part.pieces) {
		if err := p.sendText(c, part.kind, part.pieces[c.piece]); err != nil {
			return err
		}
		c.piece++
		p.delivered++
	}
	if c.piece < len(part.pieces) {
		return nil
	}
	event = dialogue.Event{Kind: dialogue.EventClose, Choice: c.index, Part: c.part}
	if part.kind == dialogue.ThinkingPart {
		event.Thinking = p.signThinking()
	}
	c.part, c.piece = c.part+1, 0
	return p.emit(event)
}

// sendText sends one token, or its characters one by one if the script asks for that.
func (p *player) sendText(c *choice, kind dialogue.PartKind, text string) error {
	event := dialogue.Event{Kind: dialogue.EventDelta, Choice: c.index, Part: c.part, Text: text}
	if p.script.Drip {
		for _, r := range text {
			event.Text = string(r)
			if err := p.emit(event); err != nil {
				return err
			}
		}
		return nil
	}
	if p.req.LogProbs && kind == dialogue.TextPart {
		event.LogProbs = logProbs(text)
	}
	return p.emit(event)
}

// logProbs returns chat's logprobs.content of one token that the simulator is sure of.
func logProbs(token string) []byte {
	w := jsonw.Writer{}
	w.Array().Object().Key("token").String(token).Key("logprob").Float(-0.01).Key("bytes").Array()
	for _, b := range []byte(token) {
		w.Int(int64(b))
	}
	w.End().Key("top_logprobs").Array().End().End().End()
	return w.Buf
}

// signThinking returns what an upstream of the shape adds to a thought, so that it accepts the
// thought later.
func (p *player) signThinking() *dialogue.Thinking {
	signature := base64.StdEncoding.EncodeToString([]byte("sandbox thought " + p.env.ID()))
	switch p.script.proof {
	case dialogue.SignatureProof:
		return &dialogue.Thinking{Signature: signature, Origin: p.script.origin}
	case dialogue.EncryptedProof:
		return &dialogue.Thinking{Encrypted: signature, ItemID: "rs_" + p.env.ID(), Origin: p.script.origin}
	}
	return nil
}

// emit sends events, in memory that is reused.
func (p *player) emit(events ...dialogue.Event) error {
	for i := range events {
		p.event = events[i]
		if err := p.send(&p.event); err != nil {
			return err
		}
	}
	return nil
}

// step returns the time that a token takes.
func (p *player) step() time.Duration {
	pace := p.script.Pace
	pace = cmp.Or(pace, DefaultPace)
	return time.Duration(float64(time.Second) / float64(pace))
}

// waitForToken waits until the next token is due. Times are counted from the beginning, so that a slow reader does not
// slow down the rest of the reply.
func (p *player) waitForToken() error {
	due := p.due
	p.due = due.Add(p.step())
	return p.wait(due)
}

// wait waits until a time, or returns the cause of the context if that ends first.
// It looks at the context also if there is nothing to wait for, so that a reply without a pace ends
// with its client.
func (p *player) wait(until time.Time) error {
	d := until.Sub(p.env.Now())
	if d <= 0 {
		return context.Cause(p.ctx)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-p.ctx.Done():
		return context.Cause(p.ctx)
	}
}
