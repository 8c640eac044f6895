package dialogue

import (
	"cmp"
	"encoding/json"
	"unsafe"
)

// Reply is a whole reply, as a ReplyBuilder collects it from a sequence of events.
type Reply struct {
	ID, Model string
	Created   int64
	// ServiceTier is the service tier in the Finish events.
	ServiceTier string
	Choices     []*Choice // by index
	Usage       Usage
}

// Choice is one of the answers in a reply.
type Choice struct {
	// Parts are in the order in which they were opened: TextPart with its Citations,
	// ThinkingPart, RefusalPart, CallPart, MediaPart, ServerPart. Call.Args is complete,
	// and "{}" where the upstream sent no arguments.
	Parts        []ReplyPart
	LogProbs     []json.RawMessage // the logprobs.content arrays, one per delta that had one
	Reason       Reason
	StopSequence string
	Detail       string
	Finished     bool
}

// ReplyPart is a part of an answer with the data that only replies have.
type ReplyPart struct {
	Part
	Number    int // Event.Part
	Citations []Citation
	Signature string

	text   []byte
	closed bool
}

// ReplyBuilder collects a sequence of events into a Reply. The zero value is ready for use.
type ReplyBuilder struct {
	Reply Reply
	Err   *Error
	Done  bool // EventEnd was added
	began bool
}

// Add adds the next event. It keeps slices of ev, which the caller must not change.
func (f *ReplyBuilder) Add(ev *Event) {
	if !f.began {
		f.began, f.Reply.Usage = true, NoUsage
	}
	switch ev.Kind {
	case EventStart:
		f.Reply.ID, f.Reply.Model, f.Reply.Created = ev.ID, ev.Model, ev.Created
	case EventOpen:
		c := f.choice(ev.Choice)
		p := ReplyPart{Number: ev.Part}
		p.Kind, p.Opaque, p.Origin, p.Media = ev.PartKind, ev.Opaque, ev.Origin, ev.Media
		if ev.Call != nil {
			p.Call = new(*ev.Call)
		}
		if ev.PartKind == ThinkingPart {
			p.Thinking = new(Thinking)
			if ev.Thinking != nil {
				*p.Thinking = *ev.Thinking
			}
		}
		c.Parts = append(c.Parts, p)
	case EventDelta:
		c := f.choice(ev.Choice)
		if len(ev.LogProbs) > 0 {
			c.LogProbs = append(c.LogProbs, ev.LogProbs)
		}
		if p := c.part(ev.Part); p != nil {
			p.text = append(p.text, ev.Text...)
			p.Citations = append(p.Citations, ev.Citations...)
		}
	case EventClose:
		if p := f.choice(ev.Choice).part(ev.Part); p != nil {
			p.finish(ev)
		}
	case EventUsage:
		f.Reply.Usage.Merge(*ev.Usage)
	case EventFinish:
		c := f.choice(ev.Choice)
		c.Reason, c.StopSequence, c.Detail, c.Finished = ev.Reason, ev.StopSequence, ev.Detail, true
		f.Reply.ServiceTier = cmp.Or(ev.ServiceTier, f.Reply.ServiceTier)
	case EventEnd:
		f.Done = true
	case EventError:
		f.Err = ev.Err
	}
}

// choice returns choice i of the reply and adds the ones before it if they are missing.
func (f *ReplyBuilder) choice(i int) *Choice {
	for len(f.Reply.Choices) <= i {
		f.Reply.Choices = append(f.Reply.Choices, new(Choice))
	}
	return f.Reply.Choices[i]
}

// part returns the open part with this number, or nil. It searches from the end, because the
// last part is nearly always the one.
func (c *Choice) part(number int) *ReplyPart {
	for i := len(c.Parts) - 1; i >= 0; i-- {
		if c.Parts[i].Number == number && !c.Parts[i].closed {
			return &c.Parts[i]
		}
	}
	return nil
}

// finish turns the collected bytes into the part's content.
func (p *ReplyPart) finish(ev *Event) {
	p.closed = true
	p.Signature = ev.Signature
	if len(ev.Opaque) > 0 {
		p.Opaque, p.Origin = ev.Opaque, ev.Origin
	}
	// Nothing writes to these bytes any more, so that the text need not be copied.
	switch text := unsafe.String(unsafe.SliceData(p.text), len(p.text)); p.Kind {
	case CallPart:
		if text == "" && !p.Call.Custom {
			text = "{}"
		}
		p.Call.Args = text
		p.Call.Signature = ev.Signature
	case ThinkingPart:
		if ev.Thinking != nil {
			*p.Thinking = *ev.Thinking
		}
		p.Thinking.Text = text
		p.Text = text
	default:
		p.Text = text
	}
	p.text = nil
}
