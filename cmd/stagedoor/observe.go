package main

import (
	"context"
	"os"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"stagedoor/cmd/stagedoor/config"
	"stagedoor/cmd/stagedoor/telemetry"
	"stagedoor/http/server"
	"stagedoor/state/identity"
	"stagedoor/state/share"
	"stagedoor/state/work"
)

// startTelemetry sets up traces and metrics. It is called before the parts that record them are made.
func (g *gateway) startTelemetry(ctx context.Context, c *config.Config) (err error) {
	g.telemetry, err = telemetry.Start(ctx, telemetry.Options{Logger: g.logger, Config: c.Telemetry, Env: os.LookupEnv,
		Version: versionText(), Instance: newID(),
		// The flow page shows the spans of requests, whether or not they are exported.
		Processors: []sdktrace.SpanProcessor{
			g.flow.Spans(),
		}, Watched: func() bool { return g.flow.Spans().Enabled(time.Now()) }})
	return err
}

// registerMetrics connects the actors and all other parts of the gateway with the metrics that are collected from them.
// It is called when these parts exist, because the first collection may come at once.
func (g *gateway) registerMetrics() error {
	g.runtime.Observe(g.telemetry.Actors)
	return g.telemetry.Observe(
		telemetry.Sources{InFlight: g.inFlight, Providers: g.limitedProviders, Actors: g.runtime.Stats,
			State: g.state.Stats, Work: func() work.Stats { return work.StatsOf(g.state) },
			Ledger: g.runtime.Ledger().Stats, Pools: g.pools, RequestLog: g.requestLogStats,
			Recordings:          g.recordingStats,
			ConfigurationBroken: func() bool { return len(g.mistakes()) > 0 }},
	)
}

// inFlight returns the numbers of text and image requests in flight, by the name of their kind in the metrics.
func (g *gateway) inFlight() map[string]int {
	return map[string]int{"text": g.runtime.Text().InFlight(), "picture": g.runtime.Images().InFlight()}
}

// pools returns the use and the limits of every share.Pool, such as memory, watchers and video slots, for the metrics.
func (g *gateway) pools() []share.Stats {
	requests, bodies := g.overload.Pools()
	content, files := g.storage.content.Pools()
	var out []share.Stats
	h := g.runtime
	for _, p := range []*share.Pool{
		requests, bodies, g.memory, g.watchers, g.sockets, content, files, h.Background().Slots(), h.Videos().Slots(),
		work.WaitingDeliveries(g.state), work.ConversationPool(g.state), work.StoredReplies(g.state), g.kept.Pool(),
		g.requests.Pool(), h.Tokens().PasswordPlaces(), g.identities.Places(), h.Ledger().UsageRows(),
	} {
		out = append(out, p.Stats())
	}
	if g.nodes != nil {
		out = append(out, g.nodes.Relays().Stats())
	}
	return out
}

// limitedProviders returns the configured providers, for their figures.
func (g *gateway) limitedProviders() []telemetry.LimitedProvider {
	var out []telemetry.LimitedProvider
	for _, p := range g.runtime.Providers() {
		limited := telemetry.LimitedProvider{Name: p.Spec.Name, Stats: p.Limiter.Stats}
		if p.Client != nil {
			limited.Benched, limited.Keys = p.Client.Keys().Resting(g.state.Now())
		}
		out = append(out, limited)
	}
	return out
}

// setTelemetry fills in the options of the server for traces, metrics and the page /metrics. It returns an error if a
// list of networks in the configuration is invalid.
func (g *gateway) setTelemetry(o *server.Options, c *config.Telemetry) error {
	o.Metrics = g.telemetry.Counts()
	if g.telemetry.Tracer != nil {
		trust, err := identity.ParseNetworks(c.Traces.Trust)
		if err != nil {
			return err
		}
		o.Tracing = &server.Tracing{Tracer: g.telemetry.Tracer, Wanted: g.telemetry.Wanted, Trust: trust}
	}
	if g.telemetry.Scrape == nil {
		return nil
	}
	allow, err := identity.ParseNetworks(c.Metrics.Allow)
	o.Scrape = &server.Scrape{Handler: g.telemetry.Scrape, Allow: allow}
	return err
}
