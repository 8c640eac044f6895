package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"stagedoor/cmd/stagedoor/config"
	"stagedoor/cmd/stagedoor/datadir"
	"stagedoor/http/nodes"
	"stagedoor/http/server"
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
		// A gateway that stands by decides nothing and takes no requests, so no limit is shared with it.
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

// shareLimits divides the limits of providers and keys by the gateways that serve, and reports whether this one has its
// part.
func (g *gateway) shareLimits(ctx context.Context) (bool, error) {
	live, _, err := g.serving(ctx)
	if err != nil {
		return false, err
	}
	return g.division.change(max(len(live), 1), g.runtime.ShareLimits, func(parts int) (bool, error) {
		if !g.state.Several() {
			return true, nil
		}
		return g.store.(journal.Shared).Members().(journal.Divider).Divide(ctx, parts, maxSilence)
	})
}

// division is the division of limits by gateways that serve at the same time.
type division struct {
	parts   int  // of the limits, of which this gateway uses one; 0 before it has one
	granted bool // the others know that it does
}

// change divides the limits into so many parts, and reports whether this gateway has its part. It uses a smaller part
// before grant lets the others take what it leaves, and a larger one after grant has given it. If grant has not given
// the part, the next call asks for it again.
func (d *division) change(parts int, use func(parts int), grant func(parts int) (bool, error)) (bool, error) {
	if parts == d.parts && d.granted {
		return true, nil
	}
	if parts > d.parts {
		use(parts)
		d.parts = parts
	}
	var err error
	if d.granted, err = grant(parts); !d.granted || err != nil {
		return false, err
	}
	use(parts)
	d.parts = parts
	return true, nil
}

// awaitLimits returns when this gateway has its part of the limits: at once if it is alone, and within about a second
// beside others. If one of those was killed or hangs, it waits until that cannot serve any more (maxSilence).
func (g *gateway) awaitLimits(ctx context.Context) error {
	began, said := time.Now(), false
	for {
		settled, err := g.shareLimits(ctx)
		if settled || err != nil {
			return err
		}
		if !said && time.Since(began) > 2*nodesEvery {
			said = true
			g.logger.Info("waiting for the part of the limits that another gateway still has")
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(nodesEvery / 10):
		}
	}
}

// keepTakingOver continues the work of other gateways that have ended, and keeps the division of the limits up to date,
// until ctx ends. It returns at once if no other gateway shares the state.
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
		_, err := g.shareLimits(ctx) // what others have not left yet is asked for again a second later
		err = errors.Join(err, g.runtime.TakeOver(ctx, g.again))
		// The log says once that it fails, mostly because the database is away, and not every second.
		if err != nil && !failed && ctx.Err() == nil {
			g.logger.Warn("the work of gateways that have ended is not taken over yet", "cause", err)
		}
		failed = err != nil
	}
}

// borrowEvery is the time between two looks at the units that are borrowed. A request waits for about as long if
// another gateway has the unit that it needs, and half as long if no other has it.
const borrowEvery = 250 * time.Millisecond

// keepBorrowing borrows units of the limits that are too small to be divided, for as long as ctx lasts.
func keepBorrowing(ctx context.Context, g *gateway) {
	if !g.state.Several() {
		return
	}
	tick := time.NewTicker(borrowEvery)
	defer tick.Stop()
	failed := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		limited, cancel := context.WithTimeout(ctx, maxSilence/2)
		err := g.runtime.BorrowLimits(limited, maxSilence)
		cancel()
		if err != nil && !failed && ctx.Err() == nil {
			g.logger.Warn("units of small limits are not borrowed", "cause", err)
		}
		failed = err != nil
	}
}

// listenForNodes opens the listener for the other gateways, if there is to be one, and returns cluster with the address
// at which they reach it.
func (g *gateway) listenForNodes(ctx context.Context, cluster config.Cluster) (config.Cluster, error) {
	if cluster.Listen == "" {
		return cluster, nil
	}
	listeners, err := server.Listen(ctx, []string{cluster.Listen})
	if err != nil {
		return cluster, fmt.Errorf("cluster.listen: %w", err)
	}
	g.nodesListener = listeners[0]
	cluster.Address = cmp.Or(cluster.Address, g.nodesListener.Addr().String())
	return cluster, nil
}

// connectNodes prepares what the other gateways and this one ask each other for. Their key is a secret of the database.
func (g *gateway) connectNodes(ctx context.Context) error {
	if g.nodesListener == nil {
		return nil
	}
	secret, err := g.state.Secret(ctx, "nodes", 32)
	if err != nil {
		return datadir.Unavailable(err)
	}
	g.nodes, err = nodes.New(nodes.Options{Logger: g.logger, Secret: secret, Self: g.state.Node(), Memory: g.memory,
		List: g.store.(journal.Shared).Members().List})
	if err != nil {
		return err
	}
	name, _, _ := g.store.(journal.Shared).Members().Self()
	g.overview.Connect(name, g.nodes)
	g.nodes.Handle("GET /recordings", g.serveRecording)
	g.nodes.ServeResponses(g.runtime.Background())
	g.runtime.Background().FollowWith(g.nodes.FollowResponse)
	return nil
}

// serveNodes answers the other gateways until ctx ends.
func (g *gateway) serveNodes(ctx context.Context) {
	if g.nodes != nil {
		g.logger.Info("answering other gateways", "listen", g.nodesListener.Addr().String())
		g.nodes.Serve(ctx, g.nodesListener)
	}
}
