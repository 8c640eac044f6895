package nodes

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/tidwall/gjson"

	"stagedoor/actors/background"
	"stagedoor/providers/memory"
	"stagedoor/providers/upstream"
	"stagedoor/state"
)

// ServeResponses serves the streams of the background responses that this gateway makes to the others.
func (c *Cluster) ServeResponses(registry *background.Registry) {
	c.Handle("GET /responses/{id}", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		owner := state.Owner(q.Get("owner"))
		after, err := strconv.ParseInt(q.Get("after"), 10, 64)
		if err != nil {
			http.Error(w, "after: must be a number", http.StatusBadRequest)
			return
		}
		follow := registry.FindHere(r.PathValue("id"), owner)
		if follow == nil {
			http.Error(w, "the response is not made here", http.StatusNotFound)
			return
		}
		leave, ok := c.Relay(w, owner)
		if !ok {
			return
		}
		defer leave()
		flush := http.NewResponseController(w).Flush
		w.WriteHeader(http.StatusOK)
		if flush() != nil {
			return
		}
		_ = follow(r.Context(), after, func(ev background.Event) error { // the other gateway asks again
			_, err := w.Write(ev.Raw)
			return cmp.Or(err, flush())
		})
	})
}

// FollowResponse calls send with the events of a response that another gateway makes. It is a
// background.FollowElsewhere. It returns ErrNoPeer if the node cannot be asked, the refusal of the owner's share of
// relays or memory, and the error of send. The end of the stream is io.EOF.
func (c *Cluster) FollowResponse(ctx context.Context, node state.Node, id string, owner state.Owner, after int64,
	send func(background.Event) error) error {
	p, err := c.Find(ctx, node)
	if err != nil {
		return err
	}
	if err := c.relays.Take(string(owner), 1); err != nil {
		return err
	}
	defer c.relays.Give(string(owner), 1)
	query := url.Values{"owner": {string(owner)}, "after": {strconv.FormatInt(after, 10)}}
	res, err := c.Open(ctx, p, "/responses/"+url.PathEscape(id), query)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	claim := memory.NewClaim(c.options.Memory, string(owner))
	defer claim.End()
	events := upstream.NewEventReader(res.Body)
	events.Count(func(from, to int) error { return claim.Grow(int64(to - from)) }) // one has the whole response
	defer events.Release()
	for {
		ev, err := events.Next()
		if err != nil {
			return err
		}
		next := background.Event{Sequence: gjson.GetBytes(ev.Data, "sequence_number").Int(), Raw: ev.Raw}
		if err := send(next); err != nil {
			return err
		}
	}
}
