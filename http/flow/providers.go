package flow

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"stagedoor/actors/engine"
	"stagedoor/actors/flow"
	"stagedoor/actors/throttle"
)

// Provider describes a provider and its limiter.
type Provider struct {
	Name      string     `json:"name"`
	Shape     string     `json:"shape"`
	Answers   bool       `json:"answers" doc:"false: its limiter restarts, so its figures are missing"`
	Paused    bool       `json:"paused" doc:"requests wait until it is resumed"`
	PausedAt  *time.Time `json:"paused_since" doc:"when an operator paused it; null: it is not paused"`
	Breaker   string     `json:"breaker" enum:"closed,open,half_open"`
	ReopensMs int64      `json:"reopens_ms" doc:"until the next probe, if the breaker is open"`
	CoolMs    int64      `json:"cool_ms" doc:"how long nothing is sent because the provider said so"`
	InFlight  int        `json:"in_flight"`
	Places    int        `json:"places" doc:"how many requests may be in flight; 0: any number"`
	Requests  Bucket     `json:"requests"`
	Tokens    Bucket     `json:"tokens"`
	Queued    int        `json:"queued"`
	Queues    []Queue    `json:"queues" doc:"by owner and class, the longest first"`
	Keys      KeysState  `json:"keys"`
	ServiceMs int64      `json:"service_ms" doc:"how long a request takes on average"`
	Granted   int64      `json:"granted" doc:"requests since the start"`
	WaitedMs  int64      `json:"waited_ms" doc:"in the queue, all granted requests together"`
	Refused   []Count    `json:"refused" doc:"by reason"`
	Outcomes  []Count    `json:"outcomes" doc:"by kind"`
	Hour      *Hour      `json:"hour" doc:"what it did in the last hour"`
	CostToday *int64     `json:"cost_today_micro_usd" doc:"since 0:00 UTC, by the log of requests; null: no log"`
	Nodes     []Place    `json:"nodes" doc:"its state on each gateway; empty: there is one"`
}

// Place describes a provider on one gateway.
// It has only what differs between gateways and matters to an operator. Limits and keys are the
// same on all of them.
type Place struct {
	Node     string `json:"node" doc:"name of the gateway"`
	Answers  bool   `json:"answers" doc:"false: the gateway did not answer in time, so its figures are missing"`
	State    string `json:"state" doc:"serving, paused, restarting, resting, failing or probing; empty: unknown"`
	InFlight int    `json:"in_flight"`
}

// Hour describes the attempts at a provider in the last hour.
type Hour struct {
	Requests int64     `json:"requests" doc:"attempts that were let through to the provider"`
	Failed   int64     `json:"failed" doc:"how many of them failed by the provider's fault"`
	First    Quantiles `json:"first_ms" doc:"until the first token, of requests that succeeded"`
	Took     Quantiles `json:"duration_ms" doc:"until the end, of requests that succeeded"`
	Minutes  []Minute  `json:"minutes" doc:"60, the present one last"`
}

// Quantiles are a median and a 95th percentile.
type Quantiles struct {
	P50 int64 `json:"p50" doc:"0: unknown"`
	P95 int64 `json:"p95" doc:"0: unknown"`
}

// Minute describes the attempts that ended in one minute.
type Minute struct {
	Requests int64 `json:"requests"`
	Failed   int64 `json:"failed"`
	FirstMs  int64 `json:"first_ms" doc:"mean time until the first token; 0: unknown"`
}

// Bucket describes a limit per minute.
type Bucket struct {
	Limit     int   `json:"limit" doc:"per minute; 0: none"`
	Remaining int   `json:"remaining" doc:"what would be let through at once"`
	ResetMs   int64 `json:"reset_ms" doc:"until it is full again"`
}

// Queue describes the waiting requests of one key in one class.
type Queue struct {
	Owner    string `json:"owner" doc:"user:NAME, or key:ID for a key without a user"`
	Class    string `json:"class" enum:"interactive,normal,background"`
	Count    int    `json:"count"`
	OldestMs int64  `json:"oldest_ms" doc:"how long the first of them has waited"`
}

// KeysState counts the keys of a provider that rest because they were refused.
type KeysState struct {
	Benched int        `json:"benched"`
	Of      int        `json:"of"`
	States  []KeyState `json:"states" doc:"in the order of the configuration"`
}

// KeyState describes a key without naming it.
type KeyState struct {
	State   string `json:"state" enum:"ok,resting,refused"`
	RestsMs int64  `json:"rests_ms" doc:"until all models may use it again; 0: now"`
}

// Count is one of several counters.
type Count struct {
	Name  string `json:"name"`
	Count int64  `json:"count"`
}

// classes are the names of the classes of requests that wait for a provider.
var classes = [...]string{throttle.Interactive: "interactive", throttle.Normal: "normal",
	throttle.Background: "background"}

// Providers returns all providers by name, with the figures of all gateways.
func (o *Overview) Providers(ctx context.Context) []Provider {
	all, spent := o.measured(ctx, "", false), o.spentToday(ctx)
	for i := range all.Providers {
		p := &all.Providers[i]
		p.Hour = hourOf(all.Figures[p.Name])
		if spent != nil {
			p.CostToday = new(spent[p.Name])
		}
	}
	return all.Providers
}

// Provider returns the provider of a name, or false if there is none.
func (o *Overview) Provider(ctx context.Context, name string) (Provider, bool) {
	if !o.Serves(name) {
		return Provider{}, false
	}
	all := o.Providers(ctx)
	i := slices.IndexFunc(all, func(p Provider) bool { return p.Name == name })
	if i < 0 {
		return Provider{}, false // removed at this moment
	}
	return all[i], true
}

// hourOf returns the figures of the last hour in the form of the API, with times in milliseconds.
func hourOf(f flow.Figures) *Hour {
	hour := f.Hour()
	h := &Hour{Requests: hour.Requests, Failed: hour.Failed, First: quantiles(hour.First),
		Took: quantiles(hour.Took), Minutes: make([]Minute, len(hour.Minutes))}
	for i, m := range hour.Minutes {
		h.Minutes[i] = Minute{m.Requests, m.Failed, m.First.Milliseconds()}
	}
	return h
}

// quantiles returns times in milliseconds.
func quantiles(q flow.Quantiles) Quantiles {
	return Quantiles{q.P50.Milliseconds(), q.P95.Milliseconds()}
}

// serving returns the provider of a name, or nil if none serves under it now.
func (o *Overview) serving(name string) *engine.Provider {
	for _, p := range o.Serving() {
		if p.Spec.Name == name {
			return p
		}
	}
	return nil
}

// Serves reports whether a provider of a name serves now.
func (o *Overview) Serves(name string) bool { return o.serving(name) != nil }

// provider returns what is known of a provider. Its limiter is an actor and may not answer in time. The rest is then
// shown without its figures.
// Lists are empty and never null, so that a client can iterate over them without a check.
func (o *Overview) provider(ctx context.Context, p *engine.Provider) Provider {
	out := Provider{Name: p.Spec.Name, Shape: string(p.Spec.Shape), InFlight: p.Limiter.InFlight(), Queues: []Queue{},
		Refused: []Count{}, Outcomes: []Count{}, Keys: KeysState{States: []KeyState{}},
		Breaker: throttle.Shut.String()}
	if p.Client != nil {
		for _, s := range p.Client.Keys().States(o.Now()) {
			key := KeyState{State: "ok", RestsMs: s.Rest.Milliseconds()}
			switch {
			case s.Refused:
				key.State = "refused"
			case s.Rest > 0:
				key.State = "resting"
			}
			if out.Keys.Of++; s.Rest > 0 {
				out.Keys.Benched++
			}
			out.Keys.States = append(out.Keys.States, key)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, limiterTime)
	defer cancel()
	s, err := p.Limiter.Stats(ctx)
	if err != nil {
		return out
	}
	out.Answers, out.Paused, out.Breaker = true, s.Paused, s.Breaker.String()
	if pause, ok := o.Pause(p.Spec.Name); ok && s.Paused {
		out.PausedAt = new(pause.Since.UTC())
	}
	out.ReopensMs, out.CoolMs = s.ReopensIn.Milliseconds(), s.CoolDown.Milliseconds()
	out.InFlight, out.Places, out.Queued = s.InFlight, s.MaxInFlight, s.Queued
	out.Requests, out.Tokens = bucket(s.Requests), bucket(s.Tokens)
	for _, q := range s.Queues {
		out.Queues = append(out.Queues, Queue{q.Owner, classes[q.Class], q.Count, q.Oldest.Milliseconds()})
	}
	out.ServiceMs, out.Granted, out.WaitedMs = s.Service.Milliseconds(), s.Granted, s.Waited.Milliseconds()
	out.Refused, out.Outcomes = counts(s.Refused), counts(s.Outcomes)
	return out
}

// bucket returns the level of a limit. The limiter may be below zero for a moment, which would confuse a reader.
func bucket(l throttle.Level) Bucket {
	return Bucket{l.Limit, max(l.Remaining, 0), max(l.Reset, 0).Round(time.Millisecond).Milliseconds()}
}

// counts returns the counters that are not zero, the highest first.
func counts(by map[string]int64) []Count {
	out := []Count{}
	for _, name := range slices.Sorted(maps.Keys(by)) {
		if by[name] > 0 {
			out = append(out, Count{name, by[name]})
		}
	}
	slices.SortStableFunc(out, func(a, b Count) int { return cmp.Compare(b.Count, a.Count) })
	return out
}
