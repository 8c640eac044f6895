package images

import (
	"context"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"stagedoor/actors/kit"
)

// sweepEvery is the interval at which expired pictures are removed.
const sweepEvery = 5 * time.Minute

// StartSweeper starts the actor that removes expired pictures by calling sweep, each time sweepEvery after the call
// before has ended. It logs an error of sweep and tries again at the next time.
func StartSweeper(system *kit.System, sweep func() error) error {
	props := system.Props("sweeper", func() actor.Actor { return &sweeper{system: system, sweep: sweep} })
	_, err := system.SpawnUnique(props, "sweeper")
	return err
}

// sweeper calls sweep on a goroutine of its own, one call at a time. Its state is private to Receive.
type sweeper struct {
	system *kit.System
	sweep  func() error
	timer  *kit.Timer
}

// swept tells the sweeper that a call of sweep has ended.
type swept struct{}

// Receive implements actor.Actor.
func (s *sweeper) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		s.timer = s.system.NewTimer(c.Self())
		s.rest()
	case *kit.Tick:
		if s.timer.Fired(m) {
			s.system.Go(c.Self(), "sweep", s.run)
		}
	case *swept:
		s.rest()
	case *kit.Crashed:
		s.system.Logger().Error("sweep panicked", "stack", string(m.Recovered.Stack))
		s.rest()
	case *actor.Stopping, *actor.Restarting:
		s.timer.Stop()
	}
}

// rest waits for the next sweep.
func (s *sweeper) rest() {
	now := time.Now()
	s.timer.Wake(now, now.Add(sweepEvery))
}

// run removes what has expired and reports to the sweeper, which waits for the next time.
func (s *sweeper) run(context.Context) any {
	if err := s.sweep(); err != nil {
		s.system.Logger().Warn("expired pictures not removed", "cause", err)
	}
	return &swept{}
}
