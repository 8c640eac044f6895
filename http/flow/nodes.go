package flow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"stagedoor/actors/flow"
	"stagedoor/http/nodes"
)

// askTime bounds the wait for the other gateways, so that none that hangs makes a page slow.
const askTime = 300 * time.Millisecond

// maxAnswer bounds the bytes of an answer. One with MaxLimit requests of both lists takes a tenth of it.
const maxAnswer = 8 << 20

// NodeLoad is a gateway's part of the load.
type NodeLoad struct {
	Node     string `json:"node" doc:"name of the gateway"`
	Answers  bool   `json:"answers" doc:"false: it did not answer in time, so its requests are missing"`
	InFlight int    `json:"in_flight"`
}

// view is an answer of one gateway.
type view struct {
	Active Active    `json:"active"`
	Recent []Request `json:"recent"`
	// Lanes is nil unless they were asked for.
	Lanes *lanesMessage `json:"lanes"`
}

// Connect makes the methods All, Find and Cancel ask the other gateways, and answers theirs. name is that of
// this one. The three routes are for the listener between gateways only (http/nodes), which checks the
// sender.
func (o *Overview) Connect(name string, c *nodes.Cluster) {
	o.name, o.others = name, c
	o.connectFigures(c)
	c.Handle("GET /flow", func(w http.ResponseWriter, r *http.Request) {
		var f Filter
		if json.Unmarshal([]byte(r.URL.Query().Get("filter")), &f) != nil {
			http.Error(w, "filter: cannot be read", http.StatusBadRequest)
			return
		}
		answer := view{Active: o.Active(r.Context(), f), Recent: o.Recent(f)}
		if id := r.URL.Query().Get("lanes"); id != "" {
			answer.Lanes = o.lanesFor(r.Context(), id)
		}
		write(w, answer)
	})
	c.Handle("GET /flow/requests/{id}", func(w http.ResponseWriter, r *http.Request) {
		d, ok := o.Request(r.PathValue("id"))
		if !ok {
			http.Error(w, flow.ErrUnknown.Error(), http.StatusNotFound)
			return
		}
		write(w, d)
	})
	c.Handle("GET /flow/requests/{id}/end", func(w http.ResponseWriter, r *http.Request) {
		switch err := o.Flow.Cancel(r.PathValue("id")); {
		case errors.Is(err, flow.ErrUnknown):
			http.Error(w, err.Error(), http.StatusNotFound)
		case err != nil:
			http.Error(w, err.Error(), http.StatusConflict)
		}
	})
}

// write sends an answer to another gateway as JSON.
func write(w io.Writer, answer any) {
	_ = json.MarshalWrite(w, answer, anyBytes) // the other gateway says that this one does not answer
}

// read decodes the answer of another gateway.
func read[T any](body io.Reader) (answer T, err error) {
	err = json.UnmarshalRead(io.LimitReader(body, maxAnswer), &answer, anyBytes)
	return answer, err
}

// All returns what Active and Recent return, for the requests of all gateways. Load.Nodes names the gateways that did
// not answer within askTime, which is the longest time that All takes. With one gateway it asks none.
func (o *Overview) All(ctx context.Context, f Filter) (Active, []Request) {
	active, recent, _ := o.all(ctx, f, "")
	return active, recent
}

// all does the work of All and also returns the answers of the other gateways. If the name of a watcher is given, these
// have the lanes for it.
func (o *Overview) all(ctx context.Context, f Filter, watcher string) (Active, []Request, []nodes.Answer[view]) {
	active, recent := o.Active(ctx, f), o.Recent(f)
	text, _ := json.Marshal(f)
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	query := url.Values{"filter": {string(text)}, "lanes": {watcher}}
	views, err := nodes.Ask(ctx, o.others, "", "/flow", query, read[view])
	if o.others == nil || err != nil {
		return active, recent, nil
	}
	active.Load.Nodes = []NodeLoad{{o.name, true, active.Load.InFlight}}
	for _, answer := range views {
		v := answer.Value
		n := NodeLoad{Node: answer.From.Name, Answers: v != nil}
		if v != nil {
			n.InFlight = v.Active.Load.InFlight
			active.add(&v.Active)
			recent = append(recent, v.Recent...)
		}
		active.Load.Nodes = append(active.Load.Nodes, n)
	}
	slices.SortFunc(active.Load.Nodes, func(a, b NodeLoad) int { return strings.Compare(a.Node, b.Node) })
	slices.SortStableFunc(active.Data, f.compare)
	ended := func(r Request) time.Time { return r.Started.Add(time.Duration(r.DurationMs) * time.Millisecond) }
	slices.SortStableFunc(recent, func(a, b Request) int { return ended(b).Compare(ended(a)) })
	active.Data, recent = active.Data[:min(len(active.Data), f.limit())], recent[:min(len(recent), f.limit())]
	return active, recent, views
}

// compare sorts requests as rank does. Each gateway has sorted and cut its own list. Sorting all of them
// again gives the first ones of all.
func (f *Filter) compare(a, b Request) int {
	switch f.Sort {
	case SortNew:
		a, b = b, a
	case SortTokens:
		return cmp.Or(cmp.Compare(b.OutputTokens, a.OutputTokens), strings.Compare(a.ID, b.ID))
	case SortSlow:
		return cmp.Or(cmp.Compare(speed(a.OutputTokens, a.DurationMs), speed(b.OutputTokens, b.DurationMs)),
			strings.Compare(a.ID, b.ID))
	case SortUser:
		if byName := strings.Compare(sortName(a.User, a.Key), sortName(b.User, b.Key)); byName != 0 {
			return byName
		}
	}
	return cmp.Or(a.Started.Compare(b.Started), strings.Compare(a.ID, b.ID))
}

// add adds the requests of another gateway. Counts and rates are sums. A Load has no percentiles, which could
// not be added.
func (a *Active) add(b *Active) {
	a.Matching += b.Matching
	a.Data = append(a.Data, b.Data...)
	l, m := &a.Load, &b.Load
	l.InFlight += m.InFlight
	l.TokensPerSecond += m.TokensPerSecond
	l.OutputTokens += m.OutputTokens
	l.Ended += m.Ended
	l.Failed += m.Failed
	p, q := &l.Phases, &m.Phases
	*p = Phases{Starting: p.Starting + q.Starting, Queued: p.Queued + q.Queued, Waiting: p.Waiting + q.Waiting,
		Replying: p.Replying + q.Replying, Making: p.Making + q.Making, Resting: p.Resting + q.Resting}
	for _, their := range m.Providers {
		i, found := slices.BinarySearchFunc(l.Providers, their.Provider, func(p ProviderLoad, name string) int {
			return strings.Compare(p.Provider, name)
		})
		if !found {
			l.Providers = slices.Insert(l.Providers, i, their)
			continue
		}
		l.Providers[i].InFlight += their.InFlight
		l.Providers[i].Queued += their.Queued
		l.Providers[i].TokensPerSecond += their.TokensPerSecond
	}
}

// SilentError says that a request in flight was found on no gateway, and which ones did not answer.
type SilentError struct{ Nodes []string }

// Error implements error.
func (e *SilentError) Error() string {
	return fmt.Sprintf("the gateways %s do not answer at the moment, and no other one has the request in flight",
		strings.Join(e.Nodes, ", "))
}

// find returns the request of an id on the gateway of a name, or on any if that is empty, and the gateways that did not
// answer. Clients choose ids, so several gateways can have one, such as that of a failed try and of its repetition. One
// in flight goes before one that has ended. The result is nil if none has it.
func (o *Overview) find(ctx context.Context, id, node string) (found *Detail, silent []string, err error) {
	if node == "" || node == o.name {
		if d, ok := o.Request(id); ok {
			found = &d
		}
		if node != "" || found != nil && found.Result == nil {
			return found, nil, nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	answers, err := nodes.Ask(ctx, o.others, node, "/flow/requests/"+url.PathEscape(id), nil, read[Detail])
	for _, a := range answers {
		switch {
		case a.Value != nil && (found == nil || found.Result != nil && a.Value.Result == nil):
			found = a.Value
		case a.Value == nil && !errors.Is(a.Err, nodes.StatusError(http.StatusNotFound)):
			silent = append(silent, a.From.Name)
		}
	}
	return found, silent, err
}

// missing returns the error for a request that was not found.
func missing(silent []string, err error) error {
	if err == nil && len(silent) > 0 {
		return &SilentError{silent}
	}
	return cmp.Or(err, flow.ErrUnknown)
}

// Find returns the request of an id, in flight or ended, on the gateway of a name, or on any if that is empty. Of
// several that have the id it prefers one in flight. The error is flow.ErrUnknown or a *SilentError if it is not found.
func (o *Overview) Find(ctx context.Context, id, node string) (Detail, error) {
	d, silent, err := o.find(ctx, id, node)
	if d == nil {
		return Detail{}, missing(silent, err)
	}
	return *d, nil
}

// Cancel ends the request that Find returns, and no other one with its id. It returns the errors of
// flow.Registry.Cancel, or a *SilentError. The request may end between the look and the call; then the result
// is flow.ErrOver or flow.ErrUnknown and nothing was cancelled.
func (o *Overview) Cancel(ctx context.Context, id, node string) error {
	d, silent, err := o.find(ctx, id, node)
	switch {
	case d == nil, d.Result != nil && len(silent) > 0:
		return missing(silent, err)
	case d.Result != nil:
		return flow.ErrOver
	case d.Node == o.name:
		return o.Flow.Cancel(id)
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	answers, err := nodes.Ask(ctx, o.others, d.Node, "/flow/requests/"+url.PathEscape(id)+"/end", nil,
		func(io.Reader) (struct{}, error) { return struct{}{}, nil })
	if err != nil || len(answers) == 0 {
		return missing([]string{d.Node}, err)
	}
	switch err := answers[0].Err; {
	case errors.Is(err, nodes.StatusError(http.StatusConflict)):
		return flow.ErrOver
	case errors.Is(err, nodes.StatusError(http.StatusNotFound)):
		return flow.ErrUnknown
	case err != nil:
		return &SilentError{[]string{d.Node}}
	}
	return nil
}
