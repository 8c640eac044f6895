package text

import (
	"slices"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/upstream"
)

// place is a part of a choice.
type place struct{ choice, part int }

// openParts lists the parts that must be closed before a reply can end early.
type openParts struct {
	open    []place
	choices []int // begun and not finished
}

// see follows an event that is emitted.
func (l *openParts) see(ev *dialogue.Event) {
	switch ev.Kind {
	case dialogue.EventOpen:
		l.open = append(l.open, place{ev.Choice, ev.Part})
		if !slices.Contains(l.choices, ev.Choice) {
			l.choices = append(l.choices, ev.Choice)
		}
	case dialogue.EventClose:
		l.open = slices.DeleteFunc(l.open, func(p place) bool { return p == place{ev.Choice, ev.Part} })
	case dialogue.EventFinish:
		l.choices = slices.DeleteFunc(l.choices, func(c int) bool { return c == ev.Choice })
	}
}

// endEarly ends a reply for which there is no more money as one that has reached
// its length: everything is closed, and the usage is what was counted.
func (t *translated) endEarly() *upstream.Failure {
	for _, p := range slices.Clone(t.openParts.open) {
		t.event(&dialogue.Event{Kind: dialogue.EventClose, Choice: p.choice, Part: p.part})
	}
	for _, c := range slices.Clone(t.openParts.choices) {
		t.event(&dialogue.Event{Kind: dialogue.EventFinish, Choice: c, Reason: dialogue.ReasonLength})
	}
	usage := t.counted.fill(t.usage, len(t.request.Body))
	t.event(&dialogue.Event{Kind: dialogue.EventUsage, Usage: &usage})
	t.event(&dialogue.Event{Kind: dialogue.EventEnd})
	if f := t.send(); f != nil {
		return f
	}
	return stopped
}

// stopped makes a producer stop whose reply has ended without it.
var stopped = &upstream.Failure{Class: upstream.Cancelled, Err: dialogue.Stopped()}
