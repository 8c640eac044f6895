package flow

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"stagedoor/actors/flow"
	"stagedoor/http/nodes"
)

// Measured has the providers and what they and the models did in the last hour, on all gateways.
type Measured struct {
	Providers []Provider              `json:"providers"`
	Figures   map[string]flow.Figures `json:"figures"` // of providers
	Models    map[string]flow.Figures `json:"models"`
	Silent    []string                `json:"-"` // gateways that did not answer, so that their figures are missing
}

// Models returns the state of all providers, and what a model did in the last hour, or each model if the name is "".
// They are those of all gateways.
func (o *Overview) Models(ctx context.Context, model string) Measured {
	return o.measured(ctx, model, true)
}

// connectFigures lets the other gateways ask this one for its figures and for the number of its requests in flight.
func (o *Overview) connectFigures(c *nodes.Cluster) {
	c.Handle("GET /flow/figures", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		write(w, o.ownFigures(r.Context(), q.Get("model"), q.Has("model")))
	})
	c.Handle("GET /flow/count", func(w http.ResponseWriter, _ *http.Request) { write(w, o.Flow.InFlight()) })
}

// ownFigures returns the providers of this gateway with the figures of its models if those are wanted, and else with
// the figures of its providers.
func (o *Overview) ownFigures(ctx context.Context, model string, models bool) Measured {
	m := Measured{Providers: []Provider{}, Figures: make(map[string]flow.Figures)}
	for _, p := range o.Serving() {
		m.Providers = append(m.Providers, o.provider(ctx, p))
		if !models {
			m.Figures[p.Spec.Name] = o.Flow.ProviderFigures(p.Spec.Name)
		}
	}
	if models {
		m.Models = o.Flow.ModelFigures(model)
	}
	return m
}

// measured returns ownFigures with those of the other gateways added. It lists the providers of this gateway only,
// which has the same configuration as the others unless one of them was changed.
func (o *Overview) measured(ctx context.Context, model string, models bool) Measured {
	all := o.ownFigures(ctx, model, models)
	query := url.Values{}
	if models {
		query.Set("model", model)
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	answers, err := nodes.Ask(ctx, o.others, "", "/flow/figures", query, read[Measured])
	if o.others == nil || err != nil {
		return all
	}
	for i := range all.Providers {
		p := &all.Providers[i]
		p.Nodes = []Place{{o.name, true, p.State(), p.InFlight}}
	}
	for _, a := range answers {
		if a.Value == nil {
			all.Silent = append(all.Silent, a.From.Name)
		}
		all.add(a.From.Name, a.Value)
	}
	for i := range all.Providers {
		slices.SortFunc(all.Providers[i].Nodes, func(a, b Place) int { return strings.Compare(a.Node, b.Node) })
	}
	return all
}

// add adds what another gateway answered, or notes for each provider that it did not if b is nil.
func (m *Measured) add(node string, b *Measured) {
	for i := range m.Providers {
		p := &m.Providers[i]
		if b == nil {
			p.Nodes = append(p.Nodes, Place{Node: node})
			continue
		}
		at := slices.IndexFunc(b.Providers, func(q Provider) bool { return q.Name == p.Name })
		if at < 0 {
			continue // it does not have the provider
		}
		q := &b.Providers[at]
		p.Nodes = append(p.Nodes, Place{node, true, q.State(), q.InFlight})
		p.add(q)
	}
	if b != nil {
		addFigures(m.Figures, b.Figures)
		addFigures(m.Models, b.Models)
	}
}

// addFigures adds the figures of another gateway to those of the same names. to may be nil, where none are wanted.
func addFigures(to, from map[string]flow.Figures) {
	for name, theirs := range from {
		if to != nil {
			sum := to[name]
			sum.Add(&theirs)
			to[name] = sum
		}
	}
}

// breakers are the states of a breaker, the worst last.
var breakers = []string{"closed", "half_open", "open"}

// add adds the figures of the provider on another gateway. Of states the worst one counts.
func (p *Provider) add(q *Provider) {
	p.Answers, p.Paused = p.Answers && q.Answers, p.Paused || q.Paused
	p.Breaker = breakers[max(slices.Index(breakers, p.Breaker), slices.Index(breakers, q.Breaker), 0)]
	p.ReopensMs, p.CoolMs = max(p.ReopensMs, q.ReopensMs), max(p.CoolMs, q.CoolMs)
	if granted := p.Granted + q.Granted; granted > 0 {
		p.ServiceMs = (p.ServiceMs*p.Granted + q.ServiceMs*q.Granted) / granted
	}
	p.InFlight, p.Places, p.Queued = p.InFlight+q.InFlight, p.Places+q.Places, p.Queued+q.Queued
	p.Granted, p.WaitedMs = p.Granted+q.Granted, p.WaitedMs+q.WaitedMs
	p.Requests, p.Tokens = p.Requests.plus(q.Requests), p.Tokens.plus(q.Tokens)
	p.Refused, p.Outcomes = addCounts(p.Refused, q.Refused), addCounts(p.Outcomes, q.Outcomes)
	for _, theirs := range q.Queues {
		at := slices.IndexFunc(p.Queues, func(own Queue) bool {
			return own.Owner == theirs.Owner && own.Class == theirs.Class
		})
		if at < 0 {
			p.Queues = append(p.Queues, theirs)
			continue
		}
		own := &p.Queues[at]
		own.Count, own.OldestMs = own.Count+theirs.Count, max(own.OldestMs, theirs.OldestMs)
	}
	slices.SortStableFunc(p.Queues, func(a, b Queue) int { return cmp.Compare(b.Count, a.Count) })
	p.Keys.add(q.Keys)
}

// add adds what another gateway knows of the same keys: a key that one gateway does not use is shown as such. Keys of
// another configuration are left out.
func (k *KeysState) add(theirs KeysState) {
	if k.Of != theirs.Of {
		return
	}
	k.Benched = 0
	for i, their := range theirs.States {
		own := &k.States[i]
		if own.State != "refused" && their.State != "ok" {
			own.State = their.State
		}
		if own.RestsMs = max(own.RestsMs, their.RestsMs); own.RestsMs > 0 {
			k.Benched++
		}
	}
}

// plus adds the part of a limit that another gateway has.
func (b Bucket) plus(c Bucket) Bucket {
	return Bucket{b.Limit + c.Limit, b.Remaining + c.Remaining, max(b.ResetMs, c.ResetMs)}
}

// addCounts adds the counts of the same names.
func addCounts(a, b []Count) []Count {
	sums := make(map[string]int64)
	for _, c := range slices.Concat(a, b) {
		sums[c.Name] += c.Count
	}
	return counts(sums)
}

// SilentNodes returns the names of the gateways that did not answer when providers were asked for.
func SilentNodes(providers []Provider) (silent []string) {
	for i := range providers {
		for _, n := range providers[i].Nodes {
			if !n.Answers && !slices.Contains(silent, n.Node) {
				silent = append(silent, n.Node)
			}
		}
	}
	return silent
}

// InFlight returns the number of requests in flight on all gateways that answer. That of the others is a few seconds
// old, because Record asks for it, so that no page waits.
func (o *Overview) InFlight() int { return o.Flow.InFlight() + int(o.counted.Load()) }

// countOthers asks the other gateways for the number of their requests in flight, for InFlight.
func (o *Overview) countOthers(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	answers, err := nodes.Ask(ctx, o.others, "", "/flow/count", nil, read[int64])
	if err != nil {
		return
	}
	sum := int64(0)
	for _, a := range answers {
		if a.Value != nil {
			sum += *a.Value
		}
	}
	o.counted.Store(sum)
}
