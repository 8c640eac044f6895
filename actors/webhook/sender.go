package webhook

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"math/rand/v2"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"stagedoor/actors/kit"
	"stagedoor/state"
	"stagedoor/state/work"
)

const (
	// MaxEndpoints bounds the endpoints, and together with perEndpoint the tries at a time.
	MaxEndpoints = 100
	// keepAgain is the time after which a result is stored again that could not be stored.
	keepAgain = 2 * time.Second
)

// message is a message that the actor accepts.
type message interface{ webhookMessage() }

// configured reports that the endpoints changed.
type configured struct{}

// woken reports that the deliveries changed or that one is due.
type woken struct{}

// tried reports that a try has ended and that its result was stored.
type tried struct{ id, webhook string }

// surplus reports that a delivery was given up because too many wait.
type surplus struct{ delivery *work.Delivery }

func (*configured) webhookMessage() {}
func (*woken) webhookMessage()      {}
func (*tried) webhookMessage()      {}
func (*surplus) webhookMessage()    {}

var _ = []message{(*configured)(nil), (*woken)(nil), (*tried)(nil), (*surplus)(nil)}

// sender is the actor. Only Receive uses its fields.
type sender struct {
	system *kit.System
	state  *state.State
	// given has the configured endpoints.
	given *endpoints

	self    *actor.PID
	posters map[string]*poster
	unwatch context.CancelFunc // ends the current watch, or nil
	// turns has the turns of the endpoints by webhook. A delivery keeps its slot until the result of its try is
	// stored.
	turns map[string]*turns
}

// Receive implements actor.Actor.
func (s *sender) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		s.self, s.turns = c.Self(), make(map[string]*turns)
		s.equip()
		s.look()
	case *configured:
		s.equip()
		s.look()
	case *woken:
		s.look()
	case *tried:
		if t := s.turns[m.webhook]; t != nil { // nil if the try began before a restart of the actor
			t.ended(m.id)
		}
		s.look()
	case *surplus:
		d := m.delivery
		s.log(d).Warn("webhook given up", "cause", "too many deliveries of its owner wait", "owner", d.Owner)
	case *kit.Crashed:
		s.look() // the panic may have ended the watch
	case *actor.Stopping, *actor.Restarting:
		if s.unwatch != nil {
			s.unwatch()
		}
		for _, p := range s.posters {
			p.close()
		}
	}
}

// equip makes a poster for each endpoint. Tries in flight continue with the poster that they began with.
func (s *sender) equip() {
	for _, p := range s.posters {
		p.close()
	}
	s.posters = make(map[string]*poster)
	maps.DeleteFunc(s.turns, func(_ string, t *turns) bool { return len(t.under) == 0 })
	for _, e := range s.given.get() {
		s.posters[e.ID] = newPoster(e, s.state.Now)
		if s.turns[e.ID] == nil {
			s.turns[e.ID] = newTurns()
		}
	}
}

// look starts the deliveries that are due and waits for the next change.
func (s *sender) look() {
	if s.unwatch != nil {
		s.unwatch()
	}
	watched, unwatch := context.WithCancel(context.Background())
	s.unwatch = unwatch
	view, more := work.WatchDeliveries(s.state)
	next := s.start(view)
	wait := time.Duration(1<<63 - 1)
	if !next.IsZero() {
		wait = max(next.Sub(view.Now()), 0)
	}
	s.system.Go(s.self, "webhook watch", func(ctx context.Context) any {
		t := time.NewTimer(wait)
		defer t.Stop()
		select {
		case <-more:
		case <-t.C:
		case <-watched.Done():
			return nil
		case <-ctx.Done():
			return nil
		}
		return &woken{}
	})
}

// start begins tries of deliveries that are due and returns when the next one will be. The end of a try calls it
// again.
func (s *sender) start(v state.View) (next time.Time) {
	for id, p := range s.posters {
		t := s.turns[id]
		if t.full() {
			continue
		}
		var due waiting
		work.Deliveries(v, id, func(d *work.Delivery) bool {
			if s.state.Several() && d.Node != s.state.Node() {
				return true // another process sends it
			}
			if d.Due.After(v.Now()) {
				if next.IsZero() || d.Due.Before(next) {
					next = d.Due
				}
				return false
			}
			if _, under := t.under[d.ID]; !under {
				due.add(d)
			}
			return true
		})
		for _, d := range t.begin(&due) {
			s.try(p, d)
		}
	}
	return next
}

// try sends a delivery in a goroutine and stores the outcome before the actor learns of it. A try
// that the stop of the gateway ends has no outcome, and is made again after the start.
func (s *sender) try(p *poster, d *work.Delivery) {
	id := p.endpoint.ID
	s.system.Go(s.self, "webhook", func(ctx context.Context) any {
		o := p.try(ctx, d)
		if ctx.Err() != nil {
			return nil // the stop of the gateway ended the try
		}
		s.storeResult(ctx, d, o)
		return &tried{id: d.ID, webhook: id}
	})
}

// storeResult stores the result of a try and repeats that while the store takes no changes. The delivery keeps its slot
// until then, because otherwise it would be sent again.
func (s *sender) storeResult(ctx context.Context, d *work.Delivery, o outcome) {
	keep := s.conclude(ctx, d, o)
	for n := 0; ; n++ {
		err := keep(ctx)
		if err == nil || errors.Is(err, state.ErrNotFound) { // not found if it was swept meanwhile
			return
		}
		if n == 0 {
			s.log(d).Error("the result of a webhook is not kept yet", "cause", err)
		}
		select {
		case <-time.After(keepAgain):
		case <-ctx.Done():
			return // the next process tries the delivery again
		}
	}
}

// log returns a logger whose records name a delivery.
func (s *sender) log(d *work.Delivery) *slog.Logger {
	return s.system.Logger().With("webhook", d.Webhook, "event", d.Event, "type", d.Type)
}

// conclude logs the verdict about d and returns the change that makes it durable.
func (s *sender) conclude(ctx context.Context, d *work.Delivery, o outcome) (keep func(context.Context) error) {
	what, due := decide(d, o, s.state.Now(), rand.Float64())
	remove := func(ctx context.Context) error { return work.RemoveDelivery(ctx, s.state, d.ID) }
	log := s.log(d).With("tries", d.Tries+1)
	failure := []any{"status", o.status}
	if o.err != nil {
		failure = []any{"cause", o.err}
	}
	switch what {
	case done:
		log.Log(ctx, slog.LevelInfo, "webhook delivered", "status", o.status)
		return remove
	case giveUp:
		log.Warn("webhook given up", failure...)
		return remove
	}
	log.Warn("webhook failed", append(failure, "again", due)...)
	return func(ctx context.Context) error { return work.PostponeDelivery(ctx, s.state, d.ID, due) }
}
