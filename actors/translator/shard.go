package translator

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

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
	counted atomic.Bool // out of the requests under way
	actor   request     // see produce
}

// Lane puts orders behind everything else, so that a drain overtakes them.
func (*open) Lane() kit.Lane { return kit.LaneAcquire }

// Reject implements kit.Rejecter: the gateway is going down.
func (o *open) Reject(kit.Reason) { o.end(shuttingDown()) }

// end ends an order that has no actor, or no longer.
func (o *open) end(err *dialogue.Error) {
	o.cancel(err)
	o.conduit.finish(err)
	if !o.counted.Swap(true) {
		o.svc.inFlight.Leave()
	}
}

// gone counts an order out whose actor has stopped. If it stopped without ending
// the reply, that is done here.
func (o *open) gone() {
	if !o.conduit.settled() {
		o.end(internal(nil))
		return
	}
	if !o.counted.Swap(true) {
		o.svc.inFlight.Leave()
	}
}

// cut tells a shard to cancel every request it has, and to refuse what is still
// in its mailbox.
type cut struct{ cause error }

func shuttingDown() *dialogue.Error { return upstream.CancelledBy(upstream.ErrDraining).Err }

// shard is the parent of some of the requests under way. There are several, so
// that a failure of one touches only its own, and each is cheap: it only knows
// how to cancel its children.
type shard struct {
	svc      *Service
	children *actor.Props
	pending  *open // the order whose actor is being spawned; see spawn
	live     map[string]*open
	refusing bool
}

// Receive implements actor.Actor.
func (s *shard) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *open:
		s.spawn(c, m)
	case *cut:
		s.cancel(m.cause)
		s.refusing = true
	case *actor.Terminated:
		o := s.live[m.Who.GetId()]
		delete(s.live, m.Who.GetId())
		if o != nil {
			o.gone()
		}
	case *actor.Stopping:
		s.cancel(upstream.ErrDraining)
	}
}

func (s *shard) cancel(cause error) {
	for _, o := range s.live {
		o.cancel(cause)
	}
}

// Failed implements kit.Failer: the order that met the failure ends here. The
// others stay: the shard is resumed (see gate).
func (s *shard) Failed(any) {
	if o := s.pending; o != nil {
		s.pending = nil
		o.end(internal(nil))
	}
}

// spawn starts the request's actor. Its producer runs on this goroutine, during
// the call, and takes its order from pending: so one Props serves them all.
func (s *shard) spawn(c actor.Context, m *open) {
	if s.refusing {
		m.Reject(kit.ReasonStopped)
		return
	}
	s.pending = m
	pid, err := s.svc.system.SpawnChild(c, s.children, "r")
	if err != nil {
		s.pending = nil
		m.end(internal(err))
		return
	}
	s.live[pid.GetId()] = m
	s.pending = nil
}

// produce makes the actor of the pending order.
func (s *shard) produce() actor.Actor {
	m := s.pending
	if m == nil {
		// A restart, which the strategy rules out: there is no order to resume.
		return &gone{}
	}
	r := &m.actor
	r.svc, r.order, r.ctx, r.cancel, r.conduit = s.svc, m.order, m.ctx, m.cancel, m.conduit
	return r
}

// gone stands for a request that cannot be begun again.
type gone struct{}

func (*gone) Receive(c actor.Context) {
	if _, ok := c.Message().(*actor.Started); ok {
		c.Stop(c.Self())
	}
}

// How failures are treated. A request is stopped: its reply has ended with an
// error (request.Failed), and a new actor could not go on with it. A shard goes
// on: a restart would stop the requests below it, none of which has failed.
var (
	stopAlways   = actor.NewOneForOneStrategy(0, 0, func(any) actor.Directive { return actor.StopDirective })
	resumeAlways = actor.NewOneForOneStrategy(0, 0, func(any) actor.Directive { return actor.ResumeDirective })
)

// gate is the parent of the shards. It starts them and supervises, and does
// nothing else that could fail.
type gate struct {
	svc    *Service
	shards []*actor.PID
	err    error
}

// shardsAsk asks the gate for its shards.
type shardsAsk struct{ kit.Reply[[]*actor.PID] }

// Receive implements actor.Actor.
func (g *gate) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		g.start(c)
	case *shardsAsk:
		m.Resolve(g.shards, g.err)
	}
}

func (g *gate) start(c actor.Context) {
	s := g.svc
	props := s.system.Props("shard", func() actor.Actor {
		sh := &shard{svc: s, live: make(map[string]*open)}
		sh.children = s.system.Props("request", sh.produce, kit.Crowd())
		return sh
	}, kit.WithSupervisor(stopAlways))
	for i := range shardCount() {
		pid, err := s.system.SpawnChild(c, props, fmt.Sprintf("s%d", i))
		if err != nil {
			g.err = err
			return
		}
		g.shards = append(g.shards, pid)
	}
}

// shardCount is a power of two, so that spreading is an AND.
func shardCount() int {
	n := 1
	for n < runtime.GOMAXPROCS(0) {
		n *= 2
	}
	return n
}

// startTimeout is far more than starting some actors takes.
const startTimeout = 10 * time.Second

func (s *Service) startShards() error {
	props := s.system.Props("gate", func() actor.Actor { return &gate{svc: s} }, kit.WithSupervisor(resumeAlways))
	pid, err := s.system.SpawnUnique(props, "gate")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	s.shards, err = kit.Ask(ctx, s.system, pid, &shardsAsk{})
	return err
}
