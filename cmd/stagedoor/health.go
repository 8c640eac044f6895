package main

import (
	"context"
	"fmt"
	"time"

	"stagedoor/actors/throttle"
	"stagedoor/cmd/stagedoor/cli"
	"stagedoor/cmd/stagedoor/datadir"
	"stagedoor/http/server"
)

// patient limits the time that /readyz waits for the throttles, because a probe must
// not hang with them.
const patient = 200 * time.Millisecond

// health returns the state that /readyz reports besides the drain.
// Blocking conditions make the probe fail, and a balancer then takes the gateway out of service. A
// condition blocks only if another gateway could do better. A failing provider does not, because
// every gateway has the same one.
func (g *gateway) health(ctx context.Context) (h server.Health) {
	if g.state.Err() != nil {
		h.Blocking = append(h.Blocking, server.Condition{Code: "store_failed",
			Message: "the store failed, the log says why: the gateway stops and has to be started again"})
	}
	if g.disk.full.Load() { // what only reads is served still
		h.Degraded = append(h.Degraded, server.Condition{Code: "disk_full",
			Message: "the disk of the data directory is nearly full: changes are refused until there is room"})
	}
	shared := datadir.SharedStore(g.store)
	if shared != nil && shared.Silent() > maxSilence {
		h.Blocking = append(h.Blocking, server.Condition{Code: "database_unreachable",
			Message: "the database of cluster.store cannot be reached, and another gateway may have taken over"})
	} else if shared != nil && g.store.Stats().Full != nil {
		h.Degraded = append(h.Degraded, server.Condition{Code: "database_unreachable",
			Message: "the database of cluster.store cannot be reached: changes are refused until it can"})
	}
	if len(g.mistakes()) > 0 { // the gateway serves well, and could not start again
		h.Degraded = append(h.Degraded, server.Condition{Code: "configuration_broken",
			Message: "the configuration file on disk cannot be used: the gateway goes on with the last one that could, " +
				"and would not start with this one; the log names the mistakes"})
	}
	providers := g.runtime.Providers()
	if len(providers) == 0 {
		h.Blocking = append(h.Blocking,
			server.Condition{Code: "no_provider", Message: "the configuration has no provider"})
	}
	ctx, cancel := context.WithTimeout(ctx, patient)
	defer cancel()
	// All providers share the time of the probe, so many silent ones cost no more than one.
	failing, silent, paused := 0, 0, 0
	for _, p := range providers {
		switch stats, err := p.Limiter.Stats(ctx); {
		case err != nil:
			silent++
		case stats.Paused:
			paused++
		case stats.Breaker == throttle.Open:
			failing++
		}
	}
	// Another gateway has the same providers: taking this one out of service
	// would only take away the account pages, stored responses and honest errors.
	if failing > 0 {
		h.Degraded = append(h.Degraded, server.Condition{Code: "provider_failing",
			Message: fmt.Sprintf("%d of %s failing and rested", failing, cli.Count(len(providers), "provider"))})
	}
	if paused > 0 {
		h.Degraded = append(h.Degraded, server.Condition{Code: "provider_paused",
			Message: fmt.Sprintf("%d of %s paused by an operator", paused, cli.Count(len(providers), "provider"))})
	}
	if silent > 0 {
		h.Blocking = append(h.Blocking, server.Condition{Code: "not_answering",
			Message: fmt.Sprintf("the limiters of %d of %s do not answer", silent,
				cli.Count(len(providers), "provider"))})
	}
	return h
}
