package telemetry

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"stagedoor/actors/kit"
	"stagedoor/actors/ledger"
	"stagedoor/actors/telemetry"
	"stagedoor/actors/throttle"
	"stagedoor/state"
	"stagedoor/state/share"
	"stagedoor/state/work"
)

// Sources are read at each collection, and cost nothing in between.
type Sources struct {
	// InFlight are the requests under way, by kind.
	InFlight func() map[string]int
	// Providers returns the configured providers.
	Providers func() []LimitedProvider
	Actors    func() kit.Stats
	State     func() state.Stats
	Work      func() work.Stats // stored responses
	Ledger    func() ledger.Stats
	// Pools returns the use of memory and places that all requests share.
	Pools func() []share.Stats
	// ConfigurationBroken reports whether the configuration on disk could not be taken over.
	ConfigurationBroken func() bool
	// RequestLog returns how many requests were written to their log, and how many were not.
	RequestLog func() (written, dropped int64)
	// Recordings returns how many exchanges of recorded keys were kept, and how many were not.
	Recordings func() (kept, dropped int64)
}

// LimitedProvider is a provider whose limiter reports figures.
type LimitedProvider struct {
	Name string
	// Stats asks the limiter's actor.
	Stats func(context.Context) (throttle.Stats, error)
	// Benched and Keys are how many of its keys rest, and how many there are.
	Benched, Keys int
}

// patience is the time in which a limiter must answer.
const patience = time.Second

// figure is one instrument that is read at each collection.
type figure struct {
	instrument metric.Int64Observable
	float      metric.Float64Observable
}

// observer has the instruments of what is asked for. They are named where they
// are made, in one table.
type observer struct {
	sources Sources
	t       *Telemetry
	figures map[string]figure
}

// Kinds of instruments that are read.
const (
	gauge   = iota // a level now
	counter        // a total since the start
	seconds        // a level, in seconds
	dollars        // a total, in dollars
)

// figures are the instruments: name, kind, unit, description.
var figures = []struct {
	name string
	kind int
	unit string
	doc  string
}{
	{"stagedoor.requests.in_flight", gauge, "{request}", "Requests under way, by kind."},
	{"stagedoor.streams.open", gauge, "{stream}", "Streams that are being written to clients."},
	{"stagedoor.provider.in_flight", gauge, "{request}", "Calls of a provider under way."},
	{"stagedoor.queue.depth", gauge, "{request}", "Requests that wait for a provider's limits."},
	{"stagedoor.provider.granted", counter, "{request}", "Requests that a provider's limits let through."},
	{"stagedoor.provider.refused", counter, "{request}", "Requests that a provider's limits refused, by reason."},
	{"stagedoor.provider.outcomes", counter, "{request}", "How calls of a provider ended."},
	{"stagedoor.provider.cooling", seconds, "s", "How long a provider is left alone yet."},
	{"stagedoor.breaker.state", gauge, "{state}", "0: closed, 1: half open, 2: open."},
	{"stagedoor.provider.keys", gauge, "{key}", "Keys of a provider."},
	{"stagedoor.provider.keys.benched", gauge, "{key}", "Keys of a provider that rest after a refusal."},
	{"stagedoor.actors.live", gauge, "{actor}", "Actors, by kind."},
	{"stagedoor.actors.spawned", counter, "{actor}", "Actors started, by kind."},
	{"stagedoor.actors.failures", counter, "{failure}", "Panics of actors, by kind."},
	{"stagedoor.actors.restarts", counter, "{restart}", "Restarts of actors, by kind."},
	{"stagedoor.actors.rejected", counter, "{message}", "Messages that a full mailbox refused, by kind of actor."},
	{"stagedoor.mailbox.depth", gauge, "{message}", "Messages in mailboxes, by kind of actor."},
	{"stagedoor.dead_letters", counter, "{message}", "Messages to actors that had stopped, by type."},
	{"stagedoor.goroutines.crashed", counter, "{goroutine}", "Goroutines beside actors that panicked."},
	{"stagedoor.ledger.holds", counter, "{hold}", "Holds of money, by result."},
	{"stagedoor.ledger.settlements", counter, "{settlement}", "Ends of holds, by result."},
	{"stagedoor.ledger.open", gauge, "{hold}", "Holds that have not ended."},
	{"stagedoor.ledger.charged.usd", dollars, "{USD}", "What was charged."},
	{"stagedoor.journal.commits", counter, "{commit}", "Commits of the durable store."},
	{"stagedoor.journal.commands", counter, "{command}", "Commands that were run."},
	{"stagedoor.journal.waiting", gauge, "{command}", "Commands that wait for the writer."},
	{"stagedoor.journal.size", gauge, "By", "Bytes of the store."},
	{"stagedoor.journal.reusable", gauge, "By", "Bytes of the store's file that it can use again without growing."},
	{"stagedoor.journal.full", gauge, "{state}", "1: changes are refused until there is room on the disk."},
	{"stagedoor.journal.disk_free", gauge, "By", "Bytes free on the store's disk."},
	{"stagedoor.journal.failed", gauge, "{state}", "1: the store failed to write and stopped."},
	{"stagedoor.cluster.decided_again", counter, "{decision}", "Groups decided again, as another node was first."},
	{"stagedoor.cluster.turns", counter, "{turn}", "Turns that were waited for after another node was first."},
	{"stagedoor.cluster.behind", gauge, "{entry}", "Entries of the log in the database that are not applied here yet."},
	{"stagedoor.cluster.lease", seconds, "s", "Time until this node is expelled if it does not beat."},
	{"stagedoor.cluster.silent", seconds, "s", "Time since the database has answered."},
	{"stagedoor.configuration.broken", gauge, "{state}", "1: the configuration on disk cannot be used."},
	{"stagedoor.responses.stored", gauge, "{response}", "Responses that are stored."},
	{"stagedoor.responses.size", gauge, "By", "Bytes of the responses that are stored."},
	{
		"stagedoor.responses.refused", counter, "{request}",
		"Requests that were refused because their owner has its quota of stored responses.",
	},
	{"stagedoor.responses.undeleted", counter, "{response}", "Removed responses that their providers keep, by reason."},
	{"stagedoor.videos.undeleted", counter, "{video}", "Deleted videos that their providers keep."},
	{"stagedoor.pool.used", gauge, "{unit}", "What is in use of a pool: requests, bytes, jobs, connections."},
	{"stagedoor.pool.capacity", gauge, "{unit}", "What a pool has; 0: it has no bound."},
	{"stagedoor.pool.owners", gauge, "{owner}", "Owners that use a pool."},
	{"stagedoor.pool.refused", counter, "{claim}", "Claims on a pool that were refused, by reason."},
	{"stagedoor.request_log.requests", counter, "{request}", "Requests that ended, by whether their log has them."},
	{"stagedoor.recordings.exchanges", counter, "{exchange}", "Exchanges of recorded keys, by whether they are kept."},
	{"stagedoor.telemetry.spans", counter, "{span}", "Spans, by what became of them."},
}

// Observe registers the instruments whose values are read from s at each collection. It does nothing if there are no
// metrics.
func (t *Telemetry) Observe(s Sources) error {
	if t.metrics == nil {
		return nil
	}
	o := &observer{sources: s, t: t, figures: make(map[string]figure)}
	meter := t.meter()
	var errs []error
	var all []metric.Observable
	for _, f := range figures {
		made, err := instrument(meter, f.kind, f.name, f.unit, f.doc)
		errs = append(errs, err)
		o.figures[f.name] = made
		if made.float != nil {
			all = append(all, made.float)
			continue
		}
		all = append(all, made.instrument)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	_, err := meter.RegisterCallback(o.collect, all...)
	return err
}

// instrument makes one instrument of a kind. Only one of the two fields of the figure is set.
func instrument(meter metric.Meter, kind int, name, unit, doc string) (f figure, err error) {
	switch kind {
	case gauge:
		f.instrument, err = meter.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(doc))
	case counter:
		f.instrument, err = meter.Int64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(doc))
	case seconds:
		f.float, err = meter.Float64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(doc))
	case dollars:
		f.float, err = meter.Float64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(doc))
	}
	return f, err
}

// observation reports the figures of one collection.
type observation struct {
	*observer
	to metric.Observer
}

// put reports a whole number.
func (s observation) put(name string, n int64, attrs ...attribute.KeyValue) {
	s.to.ObserveInt64(s.figures[name].instrument, n, metric.WithAttributes(attrs...))
}

// putFloat reports a figure in seconds or dollars.
func (s observation) putFloat(name string, v float64, attrs ...attribute.KeyValue) {
	s.to.ObserveFloat64(s.figures[name].float, v, metric.WithAttributes(attrs...))
}

// collect reads every source and reports its figures. It runs once for each reader of metrics at each collection.
func (o *observer) collect(ctx context.Context, to metric.Observer) error {
	s := observation{o, to}
	for kind, n := range o.sources.InFlight() {
		s.put("stagedoor.requests.in_flight", int64(n), attribute.String("stagedoor.kind", kind))
	}
	s.put("stagedoor.streams.open", o.t.Actors.Metrics.Streams())
	for _, p := range o.sources.Providers() {
		s.provider(ctx, p)
	}
	s.actors(o.sources.Actors())
	s.ledger(o.sources.Ledger())
	stored := o.sources.State()
	s.journal(stored)
	kept := o.sources.Work()
	s.put("stagedoor.responses.stored", int64(kept.Responses))
	s.put("stagedoor.responses.size", kept.ResponseBytes)
	s.put("stagedoor.responses.refused", kept.ResponsesRefused)
	s.put("stagedoor.responses.undeleted", kept.DeletionsWithoutRoom, telemetry.Reason.String("no_room"))
	s.put("stagedoor.responses.undeleted", kept.DeletionsGivenUp, telemetry.Reason.String("given_up"))
	s.put("stagedoor.videos.undeleted", kept.VideosGivenUp)
	s.put("stagedoor.configuration.broken", flag(o.sources.ConfigurationBroken()))
	for _, p := range o.sources.Pools() {
		s.pool(p)
	}
	written, dropped := o.sources.RequestLog()
	s.put("stagedoor.request_log.requests", written, attribute.String("result", "written"))
	s.put("stagedoor.request_log.requests", dropped, attribute.String("result", "dropped"))
	written, dropped = o.sources.Recordings()
	s.put("stagedoor.recordings.exchanges", written, attribute.String("result", "written"))
	s.put("stagedoor.recordings.exchanges", dropped, attribute.String("result", "dropped"))
	s.spans()
	return nil
}

// provider collects the figures of a provider. A limiter that does not answer has none this time.
func (s observation) provider(ctx context.Context, p LimitedProvider) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	name := telemetry.Provider.String(p.Name)
	s.put("stagedoor.provider.keys", int64(p.Keys), name)
	s.put("stagedoor.provider.keys.benched", int64(p.Benched), name)
	stats, err := p.Stats(ctx)
	if err != nil {
		return
	}
	s.put("stagedoor.provider.in_flight", int64(stats.InFlight), name)
	s.put("stagedoor.queue.depth", int64(stats.Queued), name)
	s.put("stagedoor.provider.granted", stats.Granted, name)
	s.putFloat("stagedoor.provider.cooling", stats.CoolDown.Seconds(), name)
	s.put("stagedoor.breaker.state", breaker(stats.Breaker), name)
	for reason, n := range stats.Refused {
		s.put("stagedoor.provider.refused", n, name, telemetry.Reason.String(reason))
	}
	for outcome, n := range stats.Outcomes {
		s.put("stagedoor.provider.outcomes", n, name, attribute.String("stagedoor.outcome", outcome))
	}
}

// breaker orders the states by how bad they are.
func breaker(state throttle.State) int64 {
	switch state {
	case throttle.Open:
		return 2
	case throttle.HalfOpen:
		return 1
	}
	return 0
}

// actors collects the figures of actors by kind, never by actor, because every request has one and a series is for
// ever.
func (s observation) actors(stats kit.Stats) {
	for _, k := range stats.Kinds {
		kind := attribute.String("stagedoor.actor.kind", k.Kind)
		s.put("stagedoor.actors.live", k.Live(), kind)
		s.put("stagedoor.actors.spawned", k.Spawned, kind)
		s.put("stagedoor.actors.failures", k.Failed, kind)
		s.put("stagedoor.actors.restarts", k.Restarted, kind)
		s.put("stagedoor.actors.rejected", k.Rejected, kind)
		s.put("stagedoor.mailbox.depth", k.Depth, kind)
	}
	for kind, n := range stats.DeadLetters {
		s.put("stagedoor.dead_letters", n, attribute.String("stagedoor.message.type", kind))
	}
	s.put("stagedoor.goroutines.crashed", stats.Crashed)
}

// ledger collects the figures of money. The open holds are the difference of two counters.
func (s observation) ledger(stats ledger.Stats) {
	result := attribute.Key("stagedoor.result")
	s.put("stagedoor.ledger.holds", stats.Held, result.String("held"))
	s.put("stagedoor.ledger.holds", stats.Refused, result.String("refused"))
	s.put("stagedoor.ledger.settlements", stats.Settled, result.String("settled"))
	s.put("stagedoor.ledger.settlements", stats.Released, result.String("released"))
	s.put("stagedoor.ledger.settlements", stats.Failed, result.String("failed"))
	s.put("stagedoor.ledger.open", stats.Held-stats.Settled-stats.Released)
	s.putFloat("stagedoor.ledger.charged.usd", telemetry.Dollars(stats.Charged))
}

// journal collects the figures of the durable store, and those of a shared one if the state is in a database.
func (s observation) journal(stats state.Stats) {
	s.put("stagedoor.journal.commits", int64(stats.Journal.Commits))
	s.put("stagedoor.journal.commands", int64(stats.Commands))
	s.put("stagedoor.journal.waiting", int64(stats.Waiting))
	s.put("stagedoor.journal.size", stats.Journal.Size)
	s.put("stagedoor.journal.reusable", stats.Journal.Free)
	s.put("stagedoor.journal.full", flag(stats.Journal.Full != nil))
	// A store in memory or in a database does not know a disk.
	if stats.Journal.DiskFree >= 0 {
		s.put("stagedoor.journal.disk_free", stats.Journal.DiskFree)
	}
	s.put("stagedoor.journal.failed", flag(stats.Journal.Poisoned != nil))
	if shared := stats.Journal.Shared; shared != nil {
		s.put("stagedoor.cluster.decided_again", int64(stats.Again))
		s.put("stagedoor.cluster.turns", int64(shared.Turns))
		s.put("stagedoor.cluster.behind", int64(shared.Behind))
		s.putFloat("stagedoor.cluster.lease", shared.Lease.Seconds())
		s.putFloat("stagedoor.cluster.silent", shared.Silent.Seconds())
	}
}

// flag returns 1 for true and 0 for false, as the value of a metric.
func flag(set bool) int64 {
	if set {
		return 1
	}
	return 0
}

// pool collects the figures of one pool.
func (s observation) pool(p share.Stats) {
	name := attribute.String("stagedoor.pool", p.Name)
	s.put("stagedoor.pool.used", p.Used, name)
	s.put("stagedoor.pool.capacity", p.Capacity, name)
	s.put("stagedoor.pool.owners", int64(p.Owners), name)
	s.put("stagedoor.pool.refused", p.Full, name, telemetry.Reason.String("full"))
	s.put("stagedoor.pool.refused", p.Shares, name, telemetry.Reason.String("share"))
}

// spans collects how many spans were exported and lost, so that a gap in traces does not look like a quiet time.
func (s observation) spans() {
	if s.t.queue == nil {
		return
	}
	fate := attribute.Key("stagedoor.fate")
	s.put("stagedoor.telemetry.spans", s.t.queue.exported.Load(), fate.String("exported"))
	s.put("stagedoor.telemetry.spans", s.t.queue.dropped.Load(), fate.String("queue_full"))
	s.put("stagedoor.telemetry.spans", s.t.queue.failed.Load(), fate.String("export_failed"))
	s.put("stagedoor.telemetry.spans", s.t.tail.dropped.Load(), fate.String("tail_full"))
}
