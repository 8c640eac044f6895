package kit

import (
	"strconv"

	"github.com/asynkron/protoactor-go/actor"
)

// PropsOption changes how actors of a kind are made.
type PropsOption func(*propsConfig)

type propsConfig struct {
	lanes      Lanes
	supervisor actor.SupervisorStrategy
	crowd      bool
	eager      bool
	inline     bool
}

// WithLanes gives the actors a configured mailbox; without it nothing is bounded.
func WithLanes(lanes Lanes) PropsOption {
	return func(c *propsConfig) { c.lanes = lanes }
}

// WithSupervisor says how the actors treat their failed children; without it
// children are restarted with the system's back-off.
func WithSupervisor(strategy actor.SupervisorStrategy) PropsOption {
	return func(c *propsConfig) { c.supervisor = strategy }
}

// Crowd says that there are thousands of these actors, which come and go: they are
// counted by their kind and not listed one by one.
func Crowd() PropsOption { return func(c *propsConfig) { c.crowd = true } }

// Eager lets the actors begin on the goroutine that spawns them, which saves waking
// another one. Their parent waits meanwhile: Started must be short.
func Eager() PropsOption { return func(c *propsConfig) { c.eager = true } }

// Inline lets the actors handle what they are sent on the goroutine of who sends it,
// while nobody else does: asking them wakes no other goroutine, and mostly not the
// asker either. It is for actors that decide in a moment and never take a lock that
// is held while they are sent something. A sender that finds much to do leaves the
// rest to a goroutine of the system.
func Inline() PropsOption { return func(c *propsConfig) { c.inline = true } }

// Props describes actors of a kind: guarded, counted, on warm goroutines, with a
// mailbox that forgets nobody. Build Props once per kind and give each actor its
// own data through the closure produce. produce runs for every incarnation and
// for spawns that fail because the name is taken: it must have no effects.
func (s *System) Props(kindName string, produce func() actor.Actor, options ...PropsOption) *actor.Props {
	config := propsConfig{supervisor: s.backoff}
	for _, option := range options {
		option(&config)
	}
	k := s.kindOf(kindName)
	lists := s
	if config.crowd {
		lists = nil
	}
	return actor.PropsFromProducer(
		func() actor.Actor { return &guard{actor: produce(), kind: k, system: s} },
		actor.WithDispatcher(s.dispatcher),
		actor.WithSupervisor(config.supervisor),
		actor.WithMailbox(func() actor.Mailbox {
			return &LaneMailbox{config: config.lanes, kind: k, system: lists, eager: config.eager, inline: config.inline}
		}),
	)
}

// Unique appends an epoch to name. A name is free only after its actor's very
// last step, so a successor spawned at once under the same name would clash.
func (s *System) Unique(name string) string {
	return name + "@" + strconv.FormatUint(s.epoch.Add(1), 36)
}

// Spawn starts a top-level actor, restarted with the system's back-off. Any
// goroutine may call it. The actor is stopped by System.Stop, last started first.
func (s *System) Spawn(props *actor.Props, name string) (*actor.PID, error) {
	pid, err := s.root.SpawnNamed(props, name)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tops = append(s.tops, pid)
	return pid, nil
}

// SpawnUnique is Spawn under a name that cannot clash.
func (s *System) SpawnUnique(props *actor.Props, name string) (*actor.PID, error) {
	return s.Spawn(props, s.Unique(name))
}

// SpawnChild starts a child of the actor whose Receive calls it, under a name
// that cannot clash.
func (s *System) SpawnChild(c actor.Context, props *actor.Props, name string) (*actor.PID, error) {
	return c.SpawnNamed(props, s.Unique(name))
}

// SpawnOnce starts an actor that is stopped, and not restarted, if it fails. Any goroutine may call it. The actor has
// no parent, so System.Stop does not stop it: its owner ends it with EndActor.
func (s *System) SpawnOnce(props *actor.Props, name string) (*actor.PID, error) {
	return s.once.SpawnNamed(props, s.Unique(name))
}
