package translator

import (
	"context"
	"fmt"
	"runtime"

	"github.com/asynkron/protoactor-go/actor"

	"stagedoor/actors/kit"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/upstream"
)

// open asks a shard for a request actor. It is a local message: it carries a
// context and a channel, and a request never leaves its node.
type open struct {
	svc     *Service
	order   *Order
	ctx     context.Context
	cancel  context.CancelCauseFunc
	conduit *conduit
}

// Lane puts orders behind everything else, so that a drain overtakes them.
func (*open) Lane() kit.Lane { return kit.LaneAcquire }

// Reject implements kit.Rejecter: the gateway is going down.
func (o *open) Reject(kit.Reason) {
	o.cancel(upstream.ErrDraining)
	o.conduit.finish(shuttingDown())
	o.svc.ended()
}

// cut tells a shard to cancel every request it has. With refuse, it takes no
// further ones.
type cut struct {
	cause  error
	refuse bool
}

func shuttingDown() *dialogue.Error { return upstream.CancelledBy(upstream.ErrDraining).Err }

// shard is the parent of some of the requests under way. There are several, so
// that a failure of one touches only its own, and each is cheap: it only knows
// how to cancel its children.
type shard struct {
	svc      *Service
	children *actor.Props
	pending  *open // the order whose actor is being spawned; see spawn
	live     map[string]context.CancelCauseFunc
	refusing bool
}

// Receive implements actor.Actor.
func (s *shard) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *open:
		s.spawn(c, m)
	case *cut:
		s.refusing = s.refusing || m.refuse
		for _, cancel := range s.live {
			cancel(m.cause)
		}
	case *actor.Terminated:
		delete(s.live, m.Who.GetId())
		s.svc.ended()
	case *actor.Stopping:
		for _, cancel := range s.live {
			cancel(upstream.ErrDraining)
		}
	}
}

// spawn starts the request's actor. Its producer runs on this goroutine, during
// the call, and takes its order from pending: so one Props serves them all.
func (s *shard) spawn(c actor.Context, m *open) {
	if s.refusing {
		m.Reject(0)
		return
	}
	s.pending = m
	pid, err := s.svc.system.SpawnChild(c, s.children, "r")
	s.pending = nil
	if err != nil {
		m.cancel(err)
		m.conduit.finish(internal(err))
		s.svc.ended()
		return
	}
	s.live[pid.GetId()] = m.cancel
}

// produce makes the actor of the pending order.
func (s *shard) produce() actor.Actor {
	m := s.pending
	if m == nil {
		// A restart, which the strategy rules out: there is no order to resume.
		return &gone{}
	}
	return &request{svc: s.svc, order: m.order, ctx: m.ctx, cancel: m.cancel, conduit: m.conduit}
}

// gone stands for a request that cannot be begun again.
type gone struct{}

func (*gone) Receive(c actor.Context) {
	if _, ok := c.Message().(*actor.Started); ok {
		c.Stop(c.Self())
	}
}

// stopAlways is how shards treat a failed request: its reply has ended with an
// error (request.Failed), and a new actor could not go on with it.
var stopAlways = actor.NewOneForOneStrategy(0, 0, func(any) actor.Directive { return actor.StopDirective })

// shards spreads requests over their parents.
type shards struct {
	pids []*actor.PID
	mask uint64
}

func (s *Service) startShards() error {
	n := 1
	for n < runtime.GOMAXPROCS(0) {
		n *= 2
	}
	s.shards = &shards{mask: uint64(n - 1)}
	for i := range n {
		props := s.system.Props("gate", func() actor.Actor {
			sh := &shard{svc: s, live: make(map[string]context.CancelCauseFunc)}
			sh.children = s.system.Props("request", sh.produce)
			return sh
		}, kit.WithSupervisor(stopAlways))
		pid, err := s.system.SpawnUnique(props, fmt.Sprintf("gate/s%d", i))
		if err != nil {
			return err
		}
		s.shards.pids = append(s.shards.pids, pid)
	}
	return nil
}
