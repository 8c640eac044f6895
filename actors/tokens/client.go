package tokens

import (
	"crypto/rand"
	"io"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"stagedoor/actors/kit"
	"stagedoor/state"
	"stagedoor/state/password"
)

// Options are what the registry is built of.
type Options struct {
	System *kit.System
	State  *state.State
	Now    func() time.Time // the limiter's clock; state has its own
	Random io.Reader        // nil: crypto/rand; safe for concurrent use
	Config Config
}

// Client is the registry as the rest of the program sees it. Any goroutine may
// use it. Methods without a context read a snapshot and never wait; the others
// return when what they did is durable.
//
// Errors are those of this package or the cause of ctx, and nothing else; with
// either of ErrUnavailable and the cause of ctx nobody knows whether the change
// was made. What ErrUnavailable is joined with is for the log.
type Client struct {
	system *kit.System
	state  *state.State
	random io.Reader
	config Config
	hasher *password.Hasher
	pid    *actor.PID
}

// Start spawns the registry's actor, which ends with the system.
func Start(o Options) (*Client, error) {
	c := &Client{system: o.System, state: o.State, random: o.Random, config: o.Config.withDefaults(), hasher: password.New()}
	if c.random == nil {
		c.random = rand.Reader
	}
	props := o.System.Props("registry",
		func() actor.Actor {
			return &registry{state: o.State, now: o.Now, limiter: newLimiter(maxSubjects)}
		},
		kit.WithLanes(kit.Lanes{Bound: backlog, FailFast: true}))
	var err error
	c.pid, err = o.System.SpawnUnique(props, "tokens")
	return c, err
}

// Config returns the lifetimes in force.
func (c *Client) Config() Config { return c.config }
