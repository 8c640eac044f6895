package flow

import (
	"context"
	"crypto/rand"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"stagedoor/actors/flow"
	"stagedoor/http/nodes"
)

const (
	// maxSessions bounds the watchers at other gateways that a gateway sends its lanes, and sessionTime is the time
	// after which one that does not ask any more is forgotten.
	maxSessions = 64
	sessionTime = 10 * time.Second
	// slotBits are the low bits of the number of a bar, which tell the gateways apart.
	slotBits = 6
	// clockError is the difference of two clocks from which on bars are moved. A smaller one is not seen, and may be
	// the time that the answer took.
	clockError = time.Second
)

// sessions are the watchers at other gateways. Each asks for what has changed since its last question.
type sessions struct {
	mu sync.Mutex
	of map[string]*session
}

// session is one watcher at another gateway, with the lanes that it was sent last.
type session struct {
	mu    sync.Mutex
	lanes lanes
	asked time.Time // guarded by sessions.mu
}

// lanesFor returns what has changed in the lanes of this gateway for a watcher at another one, or nil if there are too
// many watchers.
func (o *Overview) lanesFor(ctx context.Context, watcher string) *lanesMessage {
	o.sessions.sweep()
	s := o.sessions.get(watcher, o)
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lanes.next(ctx)
}

// get returns the session of a watcher. It makes one for a new watcher, or returns nil if there are maxSessions.
func (s *sessions) get(watcher string, o *Overview) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = make(map[string]*session)
	}
	one := s.of[watcher]
	if one == nil {
		if len(s.of) >= maxSessions {
			return nil
		}
		one = &session{lanes: lanes{overview: o}}
		s.of[watcher] = one
	}
	one.asked = time.Now()
	return one
}

// sweep forgets the watchers that have gone. It runs at each question, so no goroutine is needed for it.
func (s *sessions) sweep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.of, func(_ string, one *session) bool { return time.Since(one.asked) > sessionTime })
}

// joinedLanes has the lanes of all gateways for one watcher. If the answer of a gateway that it has bars of is missing,
// it begins again with the whole picture, because it does not know what has changed there.
//
// Each gateway sends what has changed since its last message, so the sum is right only if no message of any
// gateway is missing. Look, which counts the messages, shows that. others has the answers that the caller has
// just collected; round is part of the watcher's name, so that after a gap all gateways begin a new session
// with the whole picture.
type joinedLanes struct {
	own    lanes
	others []nodes.Answer[view] // the latest answers
	name   string
	round  int // how often it has begun
	peers  map[string]*peer
	slots  map[string]uint64
}

// peer is another gateway in the present round.
type peer struct {
	looks   int64 // messages
	ahead   int64 // how much the own clock is ahead, in milliseconds, or 0 if it is little
	samples []Sample
}

// watcher returns the name under which the other gateways know this watcher.
func (j *joinedLanes) watcher() string {
	if j.name == "" {
		j.name = rand.Text()
	}
	return j.name + "-" + strconv.Itoa(j.round)
}

// next returns what has changed on all gateways since the last call. The numbers of bars are made unique by
// the slot of their gateway in the low bits.
func (j *joinedLanes) next(ctx context.Context) *lanesMessage {
	others, known := make(map[string]*lanesMessage), 0
	for _, a := range j.others {
		if a.Value == nil || a.Value.Lanes == nil || j.slot(a.From.Name) == 0 {
			continue
		}
		others[a.From.Name] = a.Value.Lanes
		looks := int64(0)
		if p := j.peers[a.From.Name]; p != nil {
			looks, known = p.looks, known+1
		}
		if a.Value.Lanes.Look != looks+1 {
			known = -1
			break
		}
	}
	if known != len(j.peers) {
		j.own, j.peers, others = lanes{overview: j.own.overview}, nil, nil
		j.round++
	}
	m := j.own.next(ctx)
	places := make(map[string][]Place)
	note := func(node string, all []Lane) {
		for _, l := range all {
			places[l.Provider] = append(places[l.Provider], Place{Node: node, State: l.State})
		}
	}
	note(j.own.overview.name, m.Lanes)
	for i := range m.Bars {
		m.Bars[i].N <<= slotBits
	}
	for i := range m.Gone {
		m.Gone[i] <<= slotBits
	}
	for _, name := range slices.Sorted(maps.Keys(others)) {
		note(name, others[name].Lanes)
		j.add(m, name, others[name])
	}
	for i := range m.Lanes {
		m.Lanes[i].join(places[m.Lanes[i].Provider])
	}
	m.Samples = j.joinSamples(m.Samples)
	return m
}

// slot returns the number of another gateway, or 0 if there are too many.
func (j *joinedLanes) slot(name string) uint64 {
	if j.slots == nil {
		j.slots = make(map[string]uint64)
	}
	n, ok := j.slots[name]
	if !ok && len(j.slots) < 1<<slotBits-1 {
		n = uint64(len(j.slots) + 1)
		j.slots[name] = n
	}
	return n
}

// add adds the message of another gateway. The times of bars are moved to the clock of this gateway, if the
// clocks differ visibly.
func (j *joinedLanes) add(m *lanesMessage, name string, theirs *lanesMessage) {
	if j.peers == nil {
		j.peers = make(map[string]*peer)
	}
	p := j.peers[name]
	if p == nil {
		p = new(peer)
		if ahead := m.AtMs - theirs.AtMs; time.Duration(max(ahead, -ahead))*time.Millisecond >= clockError {
			p.ahead = ahead
		}
		j.peers[name] = p
	}
	p.looks++
	if len(theirs.Samples) > 0 {
		p.samples = theirs.Samples
	}
	slot := j.slot(name)
	for _, b := range theirs.Bars {
		b.N, b.BeganMs = b.N<<slotBits|slot, b.BeganMs+p.ahead
		m.Bars = append(m.Bars, b)
	}
	for _, n := range theirs.Gone {
		m.Gone = append(m.Gone, n<<slotBits|slot)
	}
	m.More += theirs.More
	for _, l := range theirs.Lanes {
		i := slices.IndexFunc(m.Lanes, func(own Lane) bool { return own.Provider == l.Provider })
		if i < 0 {
			m.Lanes = append(m.Lanes, l)
			continue
		}
		own := &m.Lanes[i]
		own.Places, own.InFlight, own.Queued = own.Places+l.Places, own.InFlight+l.InFlight, own.Queued+l.Queued
		own.TokensPerSecond += l.TokensPerSecond
	}
}

// laneStates are the states of a lane, the worst last.
var laneStates = []string{"serving", "resting", "probing", "paused", "failing", "restarting"}

// join sets the worst state of all gateways, with the names of those that have it if others do not.
func (l *Lane) join(places []Place) {
	rank := func(p Place) int { return slices.Index(laneStates, p.State) }
	var on []string
	worst := slices.MaxFunc(places, func(a, b Place) int { return rank(a) - rank(b) }).State
	for _, p := range places {
		if p.State == worst {
			on = append(on, p.Node)
		}
	}
	if l.State = worst; len(on) < len(places) {
		l.On = strings.Join(on, ", ")
	}
}

// joinSamples adds the samples of the other gateways to own, which are nil unless there is a new one. The latest
// samples of all gateways are taken for one instant, because each takes one every few seconds.
func (j *joinedLanes) joinSamples(own []Sample) []Sample {
	for k := range own { // from the latest to the oldest
		s := &own[len(own)-1-k]
		if len(j.peers) > 0 {
			j.joinSample(s, k)
		}
		s.Firsts = nil
	}
	return own
}

// joinSample adds the samples that the other gateways took k samples before their latest ones.
func (j *joinedLanes) joinSample(s *Sample, k int) {
	var firsts flow.Histogram
	count := func(of map[int]uint32) {
		for place, n := range of {
			if 0 <= place && place < len(firsts) {
				firsts[place] += n
			}
		}
	}
	count(s.Firsts)
	s.Providers = maps.Clone(s.Providers) // the history has the map, too
	for _, p := range j.peers {
		if len(p.samples) == 0 {
			continue
		}
		if k >= len(p.samples) {
			// It was not there yet. What it had ended by its first sample must not look like a burst.
			first := &p.samples[0]
			s.Ended, s.Failed, s.Charged = s.Ended+first.Ended, s.Failed+first.Failed, s.Charged+first.Charged
			continue
		}
		theirs := &p.samples[len(p.samples)-1-k]
		s.InFlight, s.Queued, s.Rate = s.InFlight+theirs.InFlight, s.Queued+theirs.Queued, s.Rate+theirs.Rate
		s.Ended, s.Failed, s.Charged = s.Ended+theirs.Ended, s.Failed+theirs.Failed, s.Charged+theirs.Charged
		count(theirs.Firsts)
		for name, rate := range theirs.Providers {
			s.Providers[name] += rate
		}
	}
	s.FirstMs = firsts.Quantiles().P95.Milliseconds()
}
