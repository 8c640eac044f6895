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

// Options configure Start.
type Options struct {
	System *kit.System
	State  *state.State
	Now    func() time.Time // clock of the limiter; the state has its own
	Random io.Reader        // nil means crypto/rand; must be safe for concurrent use
	Config Config
	// Passwords hashes them. nil means password.New().
	Passwords *password.Hasher
}

// Client gives the rest of the program typed access to the registry. It is safe for concurrent use. Methods
// without a context read a snapshot and never wait. The others return once their change is durable.
//
// Errors are those of this package or the cause of ctx. After ErrUnavailable and after the cause of ctx it is
// unknown whether the change was made. The error that is joined with ErrUnavailable is for the log only.
type Client struct {
	system *kit.System
	state  *state.State
	random io.Reader
	config Config
	hasher *password.Hasher
	logos  logoMaker
	pid    *actor.PID
}

// Start starts the registry's actor, which ends with the system.
func Start(o Options) (*Client, error) {
	c := &Client{
		system: o.System,
		state:  o.State,
		random: o.Random,
		config: o.Config.withDefaults(),
		hasher: o.Passwords,
	}
	if c.random == nil {
		c.random = rand.Reader
	}
	if c.hasher == nil {
		c.hasher = password.New()
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

// Config returns the lifetimes in use.
func (c *Client) Config() Config { return c.config }
