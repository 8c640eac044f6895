package flow

import (
	"time"

	"stagedoor/actors/flow"
)

// Detail describes one request with its steps and spans.
type Detail struct {
	Request
	Steps []Step `json:"steps" doc:"the phases it went through"`
	Spans []Span `json:"spans" doc:"the parts of its work that are over, if spans were recorded when it came"`
}

// Step is the time at which a request entered a phase.
type Step struct {
	Phase   string `json:"phase" enum:"starting,queued,waiting,replying,in_progress,resting,ended"`
	Attempt int    `json:"attempt" doc:"from 1; 0: before the first"`
	AtUs    int64  `json:"at_us" doc:"microseconds since the request began"`
}

// Span is one recorded part of a request.
type Span struct {
	ID         string      `json:"id"`
	Parent     string      `json:"parent" doc:"empty: the first of them"`
	Name       string      `json:"name"`
	Kind       string      `json:"kind"`
	AtUs       int64       `json:"at_us" doc:"microseconds since the request began; below 0: before the model was known"`
	TookUs     int64       `json:"took_us"`
	Failed     bool        `json:"failed"`
	Failure    string      `json:"failure" doc:"what went wrong, in a word"`
	Attributes []Attribute `json:"attributes"`
	Events     []Event     `json:"events"`
}

// Attribute is a name with a value on a span.
type Attribute struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Event is something that happened during a span.
type Event struct {
	Name string `json:"name"`
	AtUs int64  `json:"at_us" doc:"microseconds since the request began"`
}

// Request returns the request of an id, in flight or ended, on this gateway, or false if there is none. It also
// switches on the recording of spans for a while, because a person looks at a request.
func (o *Overview) Request(id string) (Detail, bool) {
	now := o.Now()
	o.Flow.Spans().Enable(now)
	r := o.Flow.Find(id)
	if r == nil {
		return Detail{}, false
	}
	d := Detail{Request: o.describe(r, now), Steps: []Step{}, Spans: []Span{}}
	for _, m := range r.Marks() {
		d.Steps = append(d.Steps, Step{m.Phase.String(), m.Attempt, m.After.Microseconds()})
	}
	for _, s := range r.Spans() {
		d.Spans = append(d.Spans, span(&s, r.Began()))
	}
	return d, true
}

// span returns a span with times from the beginning of the request.
func span(s *flow.Span, began time.Time) Span {
	out := Span{ID: s.ID, Parent: s.Parent, Name: s.Name, Kind: s.Kind, AtUs: s.Start.Sub(began).Microseconds(),
		TookUs: s.Took.Microseconds(),
		Failed: s.Failed, Failure: s.Failure, Attributes: []Attribute{}, Events: []Event{}}
	for _, a := range s.Attributes {
		out.Attributes = append(out.Attributes, Attribute{a.Key, a.Value})
	}
	for _, e := range s.Events {
		out.Events = append(out.Events, Event{e.Name, e.At.Sub(began).Microseconds()})
	}
	return out
}
