package flow

import (
	"context"
	"time"

	"stagedoor/actors/flow"
)

// Bounds of what a watcher is sent for the lanes. The picture has the last half minute.
const (
	maxBars    = 16_384 // requests that a watcher knows; what is beyond them is counted
	maxChanges = 2_000  // bars in a message; the others follow in the next one
	laneSpan   = 32 * time.Second
	// forgetAfter bounds the memory of an ended request, which keeps it from being sent again as a recent one.
	forgetAfter = 3 * time.Second
)

// lanesMessage has what changed in the lanes since the last message.
type lanesMessage struct {
	Type  string `json:"type"`
	Whole bool   `json:"whole"` // the client forgets all earlier bars
	Look  int64  `json:"look"`  // the number of the message
	AtMs  int64  `json:"at_ms"` // the gateway's time, in milliseconds since 1970
	Lanes []Lane `json:"lanes"`
	Bars  []Bar  `json:"bars"`
	// Gone are the numbers of requests that another actor continues. They come back with new numbers.
	Gone []uint64 `json:"gone"`
	// More counts the requests in flight that are not among the bars, because the watcher knows its maximum.
	More    int      `json:"more"`
	Samples []Sample `json:"samples"` // of the last five minutes; none if there is no new one
}

// Lane describes a provider: its state, its places and the requests in front of it.
type Lane struct {
	State  string `json:"state"` // serving, paused, restarting, resting, failing or probing
	On     string `json:"on"`    // the gateways with this state, if others have a better one
	Places int    `json:"places"`
	ProviderLoad
}

// Bar describes a request with the phases that it went through. A changed one is sent whole.
type Bar struct {
	N       uint64   `json:"n"`
	ID      string   `json:"id"`
	Node    string   `json:"node"`
	Lane    string   `json:"lane"`
	Model   string   `json:"model"`
	User    string   `json:"user"`
	Key     string   `json:"key"`
	KeyName string   `json:"key_name"`
	BeganMs int64    `json:"began_ms"` // in milliseconds since 1970
	Phases  []string `json:"phases"`
	At      []int64  `json:"at"` // milliseconds after the beginning, one for each phase
	Tokens  int64    `json:"tokens"`
	Failed  bool     `json:"failed"`
}

// lanes knows which requests a watcher was sent, for one goroutine.
// A watcher gets differences, because most bars do not change between two messages.
type lanes struct {
	overview *Overview
	sent     map[uint64]*sentBar
	looks    int64
	taken    int64 // samples
}

// sentBar is a bar that the page has, with the state in which it was sent.
// The mark is compared with the newest one of the request, so a request that did nothing since the
// last message costs one comparison.
type sentBar struct {
	request *flow.Request
	mark    flow.Mark // the last one that was sent
	look    int64     // the last one that had the request in flight
}

// next returns what changed since the last call.
// More changes than fit into a message wait for the next one. Their marks stay as they are, so
// nothing is forgotten.
func (l *lanes) next(ctx context.Context) *lanesMessage {
	now := l.overview.Now()
	m := &lanesMessage{Type: "lanes", Whole: l.looks == 0, AtMs: now.UnixMilli(), Bars: []Bar{}, Gone: []uint64{}}
	m.Samples, l.taken = l.overview.history.after(l.taken)
	if l.sent == nil {
		l.sent = make(map[uint64]*sentBar)
	}
	l.looks++
	m.Look = l.looks
	since := now.Add(-forgetAfter + time.Second)
	if m.Whole {
		since = now.Add(-laneSpan)
	}
	sum := newSum()
	buffer := buffers.Get().(*[]*flow.Request)
	all := l.overview.Flow.Active((*buffer)[:0])
	for _, r := range all {
		phase := r.Phase()
		if phase == flow.Ended {
			continue
		}
		sum.add(r, phase, now)
		if r.Provider() != "" && !l.know(m, r) {
			m.More++
		}
	}
	clear(all)
	*buffer = all[:0]
	buffers.Put(buffer)
	for _, r := range l.overview.Flow.Recent() { // the latest first
		if at, _ := r.Ended(); at.Before(since) {
			break
		}
		if r.Provider() != "" {
			l.know(m, r)
		}
	}
	for n, known := range l.sent {
		mark := known.request.Latest()
		switch ended := mark.Phase == flow.Ended; {
		case mark != known.mark && len(m.Bars) < maxChanges:
			known.mark = mark
			m.Bars = append(m.Bars, l.bar(known.request))
		case mark != known.mark:
		case ended:
			if at, _ := known.request.Ended(); now.Sub(at) > forgetAfter {
				delete(l.sent, n)
			}
		case known.look != l.looks:
			m.Gone = append(m.Gone, n)
			delete(l.sent, n)
		}
	}
	m.Lanes = l.lanes(ctx, sum.load(flow.Totals{}))
	return m
}

// know adds a request to the known ones, if the message has room. It returns false if the watcher knows its
// maximum. A request that does not fit into the message is added by a later one, since it is not marked as
// known.
func (l *lanes) know(m *lanesMessage, r *flow.Request) bool {
	known := l.sent[r.Number()]
	if known == nil {
		if len(l.sent) >= maxBars || len(m.Bars) >= maxChanges {
			return len(l.sent) < maxBars
		}
		known = &sentBar{request: r, mark: r.Latest()}
		l.sent[r.Number()] = known
		m.Bars = append(m.Bars, l.bar(r))
	}
	known.look = l.looks
	return true
}

// bar returns a request as a bar with all of its phases so far.
func (l *lanes) bar(r *flow.Request) Bar {
	b := Bar{N: r.Number(), ID: r.ID, Node: l.overview.name, Lane: r.Provider(), Model: r.Model, User: userOf(r),
		Key: r.Key, KeyName: l.overview.keyName(r.Key), BeganMs: r.Began().UnixMilli(), Tokens: r.Output()}
	for _, mark := range r.Marks() {
		if mark.Phase == flow.Ended {
			_, b.Failed = r.Ended()
		}
		b.Phases, b.At = append(b.Phases, mark.Phase.String()), append(b.At, mark.After.Milliseconds())
	}
	return b
}

// lanes describes the providers, by name.
func (l *lanes) lanes(ctx context.Context, load Load) []Lane {
	by := make(map[string]ProviderLoad)
	for _, p := range load.Providers {
		by[p.Provider] = p
	}
	out := []Lane{}
	for _, serving := range l.overview.Serving() {
		p := l.overview.provider(ctx, serving)
		lane := Lane{State: p.State(), Places: p.Places, ProviderLoad: by[p.Name]}
		lane.Provider = p.Name
		out = append(out, lane)
	}
	return out
}

// State returns the state of the provider in one word.
func (p *Provider) State() string {
	switch {
	case !p.Answers:
		return "restarting"
	case p.Paused:
		return "paused"
	case p.Breaker == "open":
		return "failing"
	case p.Breaker == "half_open":
		return "probing"
	case p.CoolMs > 0:
		return "resting"
	}
	return "serving"
}
