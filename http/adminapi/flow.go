package adminapi

import (
	"errors"
	"net/http"

	"stagedoor/actors/flow"
	httpflow "stagedoor/http/flow"
	"stagedoor/providers/dialogue"
	"stagedoor/state"
)

var flowRoutes = []route{
	{method: "GET", path: "/flow", name: "getFlow", group: "flow", summary: "See the requests under way", out: httpflow.Active{}, status: http.StatusOK,
		query: append([]param{{name: "phase", doc: "only those in it", enum: activePhases()},
			{name: "sort", doc: "what comes first: the oldest (age, the default), the newest (new), those with most tokens (tokens)",
				enum: []string{httpflow.SortAge, httpflow.SortNew, httpflow.SortTokens}}}, requestParams...), serve: looking((*call).getFlow)},
	{method: "GET", path: "/flow/requests", name: "listRecentRequests", group: "flow", summary: "List requests that ended lately, the last one first",
		out: List[httpflow.Request]{}, status: http.StatusOK, query: append([]param{{name: "failed", doc: "only those that failed", enum: []string{"true", "false"}}},
			requestParams...), serve: looking((*call).listRecent)},
	{method: "GET", path: "/flow/requests/{id}", name: "getRequest", group: "flow", summary: "Get a request, under way or lately ended, with the spans of its work",
		out: httpflow.Detail{}, status: http.StatusOK, serve: looking((*call).getRequest)},
	{method: "DELETE", path: "/flow/requests/{id}", name: "cancelRequest", group: "flow", summary: "End a request: its client is told so in its shape's words",
		out: httpflow.Detail{}, status: http.StatusAccepted, serve: looking((*call).cancelRequest)},

	{method: "GET", path: "/providers", name: "listProviders", group: "providers", summary: "List providers with their limits and queues",
		out: List[httpflow.Provider]{}, status: http.StatusOK, serve: looking((*call).listProviders)},
	{method: "GET", path: "/providers/{name}", name: "getProvider", group: "providers", summary: "Get a provider", out: httpflow.Provider{}, status: http.StatusOK,
		serve: looking((*call).getProvider)},
	{method: "POST", path: "/providers/{name}/pause", name: "pauseProvider", group: "providers",
		summary: "Hold a provider's requests in its queue; those in flight go on, deadlines count on", in: Empty{}, out: httpflow.Provider{}, status: http.StatusOK,
		serve: looking((*call).pauseProvider)},
	{method: "POST", path: "/providers/{name}/resume", name: "resumeProvider", group: "providers", summary: "Let a provider's requests go on", in: Empty{},
		out: httpflow.Provider{}, status: http.StatusOK, serve: looking((*call).resumeProvider)},

	{method: "GET", path: "/actors", name: "getActors", group: "actors", summary: "See the tree of actors", out: httpflow.Actors{}, status: http.StatusOK,
		serve: looking((*call).getActors)},
}

// requestParams choose requests, under way or ended.
var requestParams = []param{
	{name: "provider", doc: "only those of it"}, {name: "model", doc: "only those of whose model's name this is a part"},
	{name: "key", doc: "only those that were sent with the key of this id"}, limitParam,
}

func activePhases() []string {
	var all []string
	for _, p := range flow.Phases() {
		if p != flow.Ended {
			all = append(all, p.String())
		}
	}
	return all
}

// errNotRunning answers who asks a data directory without a gateway.
var errNotRunning = dialogue.Unavailable("not_running", "no gateway runs on this data directory", 0, nil)

// looking serves a route that needs a gateway to look at.
func looking(serve func(*call, *httpflow.Overview) (any, error)) func(*call) (any, error) {
	return func(c *call) (any, error) {
		if c.Overview == nil {
			return nil, errNotRunning
		}
		return serve(c, c.Overview)
	}
}

func (c *call) filter() (httpflow.Filter, error) {
	limit, err := c.limit()
	return httpflow.Filter{Phase: c.query.Get("phase"), Sort: c.query.Get("sort"), Provider: c.query.Get("provider"), Model: c.query.Get("model"),
		Key: c.query.Get("key"), Failed: c.query.Get("failed") == "true", Limit: limit}, err
}

func (c *call) getFlow(o *httpflow.Overview) (any, error) {
	f, err := c.filter()
	if err != nil {
		return nil, err
	}
	return o.Active(c.r.Context(), f), nil
}

func (c *call) listRecent(o *httpflow.Overview) (any, error) {
	f, err := c.filter()
	if err != nil {
		return nil, err
	}
	return List[httpflow.Request]{Data: o.Recent(f)}, nil
}

const noRequest = "there is no such request: it never was, or is forgotten"

func (c *call) getRequest(o *httpflow.Overview) (any, error) {
	d, ok := o.Request(c.r.PathValue("id"))
	if !ok {
		return nil, notFound("id", noRequest)
	}
	return d, nil
}

func (c *call) cancelRequest(o *httpflow.Overview) (any, error) {
	switch err := o.Cancel(c.r.PathValue("id")); {
	case errors.Is(err, flow.ErrUnknown):
		return nil, notFound("id", noRequest)
	case errors.Is(err, flow.ErrOver):
		return nil, conflict("id", "already_ended", "the request has ended")
	case err != nil:
		return nil, err
	}
	c.Logger.Info("request ended by an administrator", "request", short(c.r.PathValue("id")))
	return c.getRequest(o)
}

func (c *call) listProviders(o *httpflow.Overview) (any, error) {
	return List[httpflow.Provider]{Data: o.Providers(c.r.Context())}, nil
}

func (c *call) getProvider(o *httpflow.Overview) (any, error) {
	p, ok := o.Provider(c.r.Context(), c.r.PathValue("name"))
	if !ok {
		return nil, notFound("name", "there is no such provider")
	}
	return p, nil
}

func (c *call) pauseProvider(o *httpflow.Overview) (any, error)  { return c.setPaused(o, true) }
func (c *call) resumeProvider(o *httpflow.Overview) (any, error) { return c.setPaused(o, false) }

func (c *call) setPaused(o *httpflow.Overview, paused bool) (any, error) {
	if _, err := decode[Empty](c); err != nil {
		return nil, err
	}
	name := c.r.PathValue("name")
	switch err := o.SetPaused(c.r.Context(), name, paused); {
	case errors.Is(err, state.ErrNotFound):
		return nil, notFound("name", "there is no such provider")
	case err != nil:
		return nil, err
	}
	c.Logger.Info("provider paused or resumed by an administrator", "provider", short(name), "paused", paused)
	return c.getProvider(o)
}

func (c *call) getActors(o *httpflow.Overview) (any, error) {
	return o.Actors(), nil
}
