package kit

import (
	"strconv"

	"github.com/asynkron/protoactor-go/actor"
)

// PropsOption configures the actors of a kind.
type PropsOption func(*propsConfig)

// propsConfig has what the options of Props set.
type propsConfig struct {
	lanes         Lanes
	supervisor    actor.SupervisorStrategy
	countedByKind bool
	inline        bool
}

// WithLanes configures the mailbox. Without it no lane is bounded.
func WithLanes(lanes Lanes) PropsOption {
	return func(c *propsConfig) { c.lanes = lanes }
}

// WithSupervisor sets the strategy for failed children. Without it they are restarted with the system's back-off.
func WithSupervisor(strategy actor.SupervisorStrategy) PropsOption {
	return func(c *propsConfig) { c.supervisor = strategy }
}

// CountedByKind marks actors of which there are thousands. They are counted by their kind and not listed one by one.
func CountedByKind() PropsOption { return func(c *propsConfig) { c.countedByKind = true } }

// Inline lets an actor handle a message on the sender's goroutine, unless another goroutine is handling one. Asking it
// then wakes no other goroutine and mostly not the caller either. Use it for actors that decide in a moment and never
// take a lock that their senders hold. A sender that finds many messages leaves the rest to a goroutine of the system.
func Inline() PropsOption { return func(c *propsConfig) { c.inline = true } }

// Props describes actors of a kind. They are guarded and counted, run on reused goroutines, and have a mailbox that
// loses no message. Build Props once for each kind, and give each actor its own data through the closure produce.
// produce runs for every incarnation, and also for spawns that fail because the name is taken, so it must have no
// effects.
func (s *System) Props(kindName string, produce func() actor.Actor, options ...PropsOption) *actor.Props {
	config := propsConfig{supervisor: s.backoff}
	for _, option := range options {
		option(&config)
	}
	k := s.kindOf(kindName)
	lists := s
	if config.countedByKind {
		lists = nil
	}
	return actor.PropsFromProducer(
		func() actor.Actor { return &guard{actor: produce(), kind: k, system: s} },
		actor.WithDispatcher(s.dispatcher),
		actor.WithSupervisor(config.supervisor),
		actor.WithMailbox(func() actor.Mailbox {
			return &LaneMailbox{config: config.lanes, kind: k, system: lists, inline: config.inline}
		}),
	)
}

// Unique appends a number to name. A name is free only after the very last step of its actor, so that a successor
// with the same name could not be spawned at once.
func (s *System) Unique(name string) string {
	return name + "@" + strconv.FormatUint(s.epoch.Add(1), 36)
}

// Spawn starts a top-level actor, which is restarted with the system's back-off. Any goroutine may call it.
// System.Stop stops the actor, the one that was started last first.
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

// SpawnUnique starts a top-level actor, as Spawn does, with a name that is made unique.
func (s *System) SpawnUnique(props *actor.Props, name string) (*actor.PID, error) {
	return s.Spawn(props, s.Unique(name))
}

// SpawnChild starts a child of the actor whose Receive calls it, with a name that is made unique.
func (s *System) SpawnChild(c actor.Context, props *actor.Props, name string) (*actor.PID, error) {
	return c.SpawnNamed(props, s.Unique(name))
}

// SpawnOnce starts an actor that is stopped and not restarted if it fails, with a name that is made unique. Any
// goroutine may call it. The actor has no parent, so System.Stop does not stop it. Its owner ends it with EndActor.
func (s *System) SpawnOnce(props *actor.Props, name string) (*actor.PID, error) {
	return s.once.SpawnNamed(props, s.Unique(name))
}
