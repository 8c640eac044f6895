package toy

import (
	"encoding/json"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/shapes"
)

// parser reads an upstream's reply.
type parser struct{ began, done bool }

func (p *parser) read(data []byte, emit func(*dialogue.Event)) {
	if p.done {
		return
	}
	var r reply
	if json.Unmarshal(data, &r) != nil || r.Fault != "" {
		p.done = true
		emit(&dialogue.Event{Kind: dialogue.EventError, Err: dialogue.BadUpstream("a fault")})
		return
	}
	if !p.began {
		p.began = true
		emit(&dialogue.Event{Kind: dialogue.EventStart, Model: r.Model})
		emit(&dialogue.Event{Kind: dialogue.EventOpen, PartKind: dialogue.TextPart})
	}
	if text := r.Said + r.Piece; text != "" {
		emit(&dialogue.Event{Kind: dialogue.EventDelta, Text: text})
	}
	if r.Piece != "" {
		return
	}
	p.done = true
	usage := dialogue.NoUsage
	usage.InputTotal, usage.OutputTotal = r.Read, r.Wrote
	emit(&dialogue.Event{Kind: dialogue.EventClose})
	emit(&dialogue.Event{Kind: dialogue.EventFinish, Reason: dialogue.ReasonStop})
	emit(&dialogue.Event{Kind: dialogue.EventUsage, Usage: &usage})
	emit(&dialogue.Event{Kind: dialogue.EventEnd})
}

func (p *parser) Event(_ string, data []byte, emit func(*dialogue.Event)) { p.read(data, emit) }

func (p *parser) Body(body []byte, emit func(*dialogue.Event)) { p.read(body, emit) }

func (p *parser) EOF(emit func(*dialogue.Event)) {
	if !p.done {
		p.done = true
		emit(&dialogue.Event{Kind: dialogue.EventError, Err: dialogue.Incomplete()})
	}
}

func (p *parser) Answered() bool { return p.done }
func (p *parser) Done() bool     { return p.done }

type passthrough struct{}

func (passthrough) Patch(body []byte, _ shapes.Params, head shapes.Head, t dialogue.Target, _ *dialogue.Report,
	_ *dialogue.Env) (shapes.Call, error) {
	r, err := readRequest(body)
	r.Model = t.Model
	return shapes.Call{Path: "/toy", Body: written(r), Stream: head.Stream}, err
}

func (passthrough) NewTap(shapes.TapOptions, *dialogue.Env) shapes.Tap {
	return shapes.TapOf(&tap{usage: dialogue.NoUsage})
}

// tap watches a reply that passes through.
type tap struct {
	usage dialogue.Usage
	done  bool
	err   *dialogue.Error
}

func (t *tap) Event(_ string, data []byte) ([]byte, shapes.Verdict, bool) {
	if t.done {
		return nil, shapes.Drop, false
	}
	if _, t.err = t.Body(data); t.err != nil {
		return nil, shapes.Failed, false
	}
	return nil, shapes.Forward, true
}

func (t *tap) Body(body []byte) ([]byte, *dialogue.Error) {
	if bad := fields.CheckReply("reply", body); bad != nil {
		return nil, bad
	}
	var r reply
	if json.Unmarshal(body, &r) != nil || r.Fault != "" {
		return nil, dialogue.BadUpstream("a fault")
	}
	if t.done = r.Piece == ""; t.done {
		t.usage.InputTotal, t.usage.OutputTotal = r.Read, r.Wrote
	}
	return body, nil
}

func (t *tap) EOF() ([]byte, *dialogue.Error) {
	if !t.done {
		return nil, dialogue.Incomplete()
	}
	return nil, nil
}

func (t *tap) Fail(dst []byte, err *dialogue.Error) []byte {
	t.done = true
	return shapes.AppendEvent(dst, "", written(reply{Fault: err.Message}))
}

func (t *tap) Err() *dialogue.Error    { return t.err }
func (t *tap) Answered() bool          { return t.done }
func (t *tap) Done() bool              { return t.done }
func (t *tap) Usage() dialogue.Usage   { return t.usage }
func (t *tap) Reason() dialogue.Reason { return dialogue.ReasonStop }

type counter struct{}

func (counter) CountedRequest(body []byte) ([]byte, error)         { return body, nil }
func (counter) CountCall(c shapes.Call) (shapes.Call, bool, error) { return c, false, nil }
func (counter) IsCount([]byte) bool                                { return false }
func (counter) CountReply(tokens int64) []byte                     { return written(map[string]int64{"tokens": tokens}) }
