package sandbox

import (
	"context"
	"encoding/base64"
	"errors"
	"time"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/jsonw"
	"stagedoor/providers/tokens"
)

// What Generate returns when a fault ends the reply outside of its shape.
var (
	ErrCut     = errors.New("sandbox: the reply was cut off as ordered")
	ErrGarbage = errors.New("sandbox: the reply turned into garbage as ordered")
)

// firstAfter is how many tokens' time passes before the first one.
const firstAfter = 4

// mostChoices bounds what one request can ask for.
const mostChoices = 128

// Generate answers a request with a well-formed sequence of events. The event
// is only valid during the call of emit; if emit fails, Generate stops with its
// error. A cancelled ctx ends it with the cause.
func Generate(ctx context.Context, req *dialogue.Request, script Script, env *dialogue.Env, emit func(*dialogue.Event) error) error {
	p := &player{ctx: ctx, req: req, script: script, env: env, send: emit}
	defer p.stop()
	if err := p.wait(env.Now().Add(script.Delay)); err != nil {
		return err
	}
	if script.Status != 0 {
		return p.emit(dialogue.Event{Kind: dialogue.EventError, Err: script.refusal()})
	}
	return p.play()
}

// player delivers the answers of one request.
type player struct {
	ctx    context.Context
	req    *dialogue.Request
	script Script
	env    *dialogue.Env
	send   func(*dialogue.Event) error
	ev     dialogue.Event // the one every event is sent in

	timer *time.Timer
	due   time.Time // when the next token is
	told  int       // tokens delivered so far
}

// voice is an answer in delivery.
type voice struct {
	answer
	choice  int
	segment int
	piece   int
	done    bool
}

func (p *player) play() error {
	voices := make([]*voice, min(max(p.req.N, 1)*max(len(p.req.Prompts), 1), mostChoices))
	usage := dialogue.NoUsage
	usage.InputTotal, usage.OutputTotal, usage.Reasoning = tokens.CountRequest(p.req), 0, 0
	for i := range voices {
		voices[i] = &voice{answer: compose(p.req, &p.script, i, p.env.ID), choice: i}
		usage.OutputTotal += voices[i].count(everyKind)
		usage.Reasoning += voices[i].count(thinkingOnly)
	}
	now := p.env.Now()
	p.due = now.Add(firstAfter * p.step())
	start := dialogue.NoUsage
	start.InputTotal = usage.InputTotal
	err := p.emit(
		dialogue.Event{Kind: dialogue.EventStart, ID: "sandbox" + p.env.ID(), Model: p.req.Model, Created: now.Unix()},
		dialogue.Event{Kind: dialogue.EventUsage, Usage: &start})
	if err != nil {
		return err
	}
	if ended, err := p.talk(voices); ended || err != nil {
		return err
	}
	for _, v := range voices {
		if err := p.emit(dialogue.Event{Kind: dialogue.EventFinish, Choice: v.choice, Reason: v.reason, StopSequence: v.stop}); err != nil {
			return err
		}
	}
	return p.emit(dialogue.Event{Kind: dialogue.EventUsage, Usage: &usage}, dialogue.Event{Kind: dialogue.EventEnd})
}

// talk delivers all voices, a token of each in turn, as choices are computed
// side by side. ended reports that a fault was the end of the reply.
func (p *player) talk(voices []*voice) (ended bool, err error) {
	for speaking := len(voices); speaking > 0; {
		if err := p.tick(); err != nil {
			return true, err
		}
		for _, v := range voices {
			if v.done {
				continue
			}
			if p.script.Fault != NoFault && p.told >= p.script.After {
				return true, p.broken()
			}
			if err := p.next(v); err != nil {
				return true, err
			}
			if v.done {
				speaking--
			}
		}
	}
	if p.script.Fault != NoFault {
		return true, p.broken() // the reply was too short to break where it was ordered to
	}
	return false, nil
}

// broken carries out the fault. A failure has an event of its own.
func (p *player) broken() error {
	err := p.failure()
	// A cancellation may have a *dialogue.Error as its cause, too, and is not the reply's.
	if failure := new(dialogue.Error); p.ctx.Err() == nil && errors.As(err, &failure) {
		return p.emit(dialogue.Event{Kind: dialogue.EventError, Err: failure})
	}
	return err
}

// next delivers one token of a voice, with the beginning and end of its part.
func (p *player) next(v *voice) error {
	if v.segment == len(v.segments) {
		v.done = true
		return nil
	}
	s := &v.segments[v.segment]
	if v.piece == 0 {
		if err := p.emit(dialogue.Event{Kind: dialogue.EventOpen, Choice: v.choice, Part: v.segment, PartKind: s.kind, Call: s.call}); err != nil {
			return err
		}
	}
	if v.piece < len(s.pieces) {
		if err := p.delta(v, s.kind, s.pieces[v.piece]); err != nil {
			return err
		}
		v.piece++
		p.told++
	}
	if v.piece < len(s.pieces) {
		return nil
	}
	closing := dialogue.Event{Kind: dialogue.EventClose, Choice: v.choice, Part: v.segment}
	if s.kind == dialogue.ThinkingPart {
		closing.Thinking = p.seal()
	}
	v.segment, v.piece = v.segment+1, 0
	v.done = v.segment == len(v.segments)
	return p.emit(closing)
}

func (p *player) delta(v *voice, kind dialogue.PartKind, text string) error {
	ev := dialogue.Event{Kind: dialogue.EventDelta, Choice: v.choice, Part: v.segment, Text: text}
	if p.script.Drip {
		for _, r := range text {
			ev.Text = string(r)
			if err := p.emit(ev); err != nil {
				return err
			}
		}
		return nil
	}
	if p.req.LogProbs && kind == dialogue.TextPart {
		ev.LogProbs = logProbs(text)
	}
	return p.emit(ev)
}

// logProbs is chat's logprobs.content of one token the simulator is sure of.
func logProbs(token string) []byte {
	w := jsonw.Writer{}
	w.Array().Object().Key("token").String(token).Key("logprob").Float(-0.01).Key("bytes").Array()
	for _, b := range []byte(token) {
		w.Int(int64(b))
	}
	w.End().Key("top_logprobs").Array().End().End().End()
	return w.Buf
}

// seal is what an upstream adds to a thought so that it is known again.
func (p *player) seal() *dialogue.Thinking {
	proof := base64.StdEncoding.EncodeToString([]byte("sandbox thought " + p.env.ID()))
	switch p.script.signAs {
	case dialogue.Messages, dialogue.Gemini:
		return &dialogue.Thinking{Signature: proof, Origin: p.script.signAs}
	case dialogue.Responses:
		return &dialogue.Thinking{Encrypted: proof, ItemID: "rs_" + p.env.ID(), Origin: p.script.signAs}
	}
	return nil
}

func (p *player) emit(events ...dialogue.Event) error {
	for i := range events {
		p.ev = events[i]
		if err := p.send(&p.ev); err != nil {
			return err
		}
	}
	return nil
}

// step is the time a token takes.
func (p *player) step() time.Duration {
	pace := p.script.Pace
	if pace == 0 {
		pace = DefaultPace
	}
	return time.Duration(float64(time.Second) / float64(pace))
}

// tick waits for the time of the next token. The times are counted from the
// beginning, so that a slow reader does not slow the simulator down for good.
func (p *player) tick() error {
	if p.script.Pace == MaxPace {
		return context.Cause(p.ctx)
	}
	due := p.due
	p.due = due.Add(p.step())
	return p.wait(due)
}

func (p *player) wait(until time.Time) error {
	d := until.Sub(p.env.Now())
	if d <= 0 {
		return context.Cause(p.ctx)
	}
	if p.timer == nil {
		p.timer = time.NewTimer(d)
	} else {
		p.timer.Reset(d)
	}
	select {
	case <-p.timer.C:
		return nil
	case <-p.ctx.Done():
		return context.Cause(p.ctx)
	}
}

func (p *player) stop() {
	if p.timer != nil {
		p.timer.Stop()
	}
}
