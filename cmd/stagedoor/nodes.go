package main

import (
	"context"
	"errors"
	"time"

	"stagedoor/state/journal"
)

// nodesEvery is the time between two looks at the other gateways that serve. A job of one that was killed goes on
// elsewhere after its lease, which is five seconds, and this.
const nodesEvery = time.Second

// serving returns the gateways that can change the state, of which this one is self, or nil if it is alone.
func (g *gateway) serving(ctx context.Context) (live []journal.Member, self string, err error) {
	if !g.state.Several() {
		return nil, "", nil
	}
	members := g.store.(journal.Shared).Members()
	self, _, _ = members.Self()
	all, err := members.List(ctx)
	for _, m := range all {
		if m.Live && !m.Standby {
			live = append(live, m)
		}
	}
	return live, self, err
}

// isFirstNode reports whether this gateway does what one of several has to do: removing what has expired, folding
// the ledger and deleting at providers. It is the first by name. For a moment two may think so of themselves, or none,
// which is harmless: each such change is decided by a command, and made again later where it failed.
func (g *gateway) isFirstNode(ctx context.Context) bool {
	live, self, err := g.serving(ctx)
	return err == nil && (len(live) == 0 || live[0].Node == self)
}

// shareLimits divides the limits of providers by the gateways that serve.
func (g *gateway) shareLimits(ctx context.Context) error {
	live, _, err := g.serving(ctx)
	if err == nil {
		g.runtime.ShareLimits(max(len(live), 1))
	}
	return err
}

// keepTakingOver goes on with the work of other gateways that have ended, for as long as ctx lasts.
func keepTakingOver(ctx context.Context, g *gateway) {
	if !g.state.Several() {
		return
	}
	tick := time.NewTicker(nodesEvery)
	defer tick.Stop()
	failed := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := errors.Join(g.shareLimits(ctx), g.runtime.TakeOver(ctx, g.again))
		// The log says once that it fails, mostly because the database is away, and not every second.
		if err != nil && !failed && ctx.Err() == nil {
			g.logger.Warn("the work of gateways that have ended is not taken over yet", "cause", err)
		}
		failed = err != nil
	}
}
