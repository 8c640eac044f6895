package adminapi

import (
	"errors"
	"net/http"
	"time"

	"stagedoor/actors/flow"
	httpflow "stagedoor/http/flow"
	"stagedoor/providers/dialogue"
	"stagedoor/state"
)

// flowRoutes show and end requests in flight, pause providers, and show the actors. They answer not_running where a
// command serves the API on the data directory of a gateway that does not run.
var flowRoutes = []route{
	{method: "GET", path: "/flow", name: "getFlow", group: "flow", summary: "List the requests in flight",
		out: httpflow.Active{}, status: http.StatusOK,
		query: append([]param{{name: "phase", doc: "only requests in this phase", enum: activePhases()},
			{name: "sort", doc: "order: oldest first (age, the default), newest first (new), most tokens first " +
				"(tokens), fewest tokens a second first (slow), by user (user)",
				enum: []string{httpflow.SortAge, httpflow.SortNew, httpflow.SortTokens, httpflow.SortSlow,
					httpflow.SortUser}}}, requestParams...),
		serve: withOverview((*requestContext).getFlow)},
	{method: "GET", path: "/flow/requests", name: "listRecentRequests", group: "flow",
		summary: "List requests that ended recently, newest first",
		out:     List[httpflow.Request]{}, status: http.StatusOK,
		query: append([]param{{name: "failed", doc: "only failed requests", enum: []string{"true", "false"}}},
			requestParams...), serve: withOverview((*requestContext).listRecent)},
	{method: "GET", path: "/flow/requests/{id}", name: "getRequest", group: "flow",
		summary: "Get a request in flight or one that ended recently, with its spans",
		query:   []param{requestNode},
		out:     httpflow.Detail{}, status: http.StatusOK, serve: withOverview((*requestContext).getRequest)},
	{method: "DELETE", path: "/flow/requests/{id}", name: "cancelRequest", group: "flow",
		summary: "Cancel a request; its client gets an error in its own dialect",
		query:   []param{requestNode},
		out:     httpflow.Detail{}, status: http.StatusAccepted, serve: withOverview((*requestContext).cancelRequest)},

	{method: "GET", path: "/providers", name: "listProviders", group: "providers",
		summary: "List providers with their limits and queues",
		out:     List[httpflow.Provider]{}, status: http.StatusOK,
		serve: withOverview((*requestContext).listProviders)},
	{method: "GET", path: "/providers/{name}", name: "getProvider", group: "providers", summary: "Get a provider",
		out: httpflow.Provider{}, status: http.StatusOK,
		serve: withOverview((*requestContext).getProvider)},
	{method: "POST", path: "/providers/{name}/pause", name: "pauseProvider", group: "providers",
		summary: "Pause a provider: new requests wait in its queue, requests in flight continue, and deadlines " +
			"still apply", in: Empty{}, out: httpflow.Provider{}, status: http.StatusOK,
		serve: withOverview((*requestContext).pauseProvider)},
	{method: "POST", path: "/providers/{name}/resume", name: "resumeProvider", group: "providers",
		summary: "Resume a paused provider", in: Empty{},
		out: httpflow.Provider{}, status: http.StatusOK, serve: withOverview((*requestContext).resumeProvider)},

	{method: "GET", path: "/actors", name: "getActors", group: "actors", summary: "Get the tree of actors",
		out: httpflow.Actors{}, status: http.StatusOK,
		serve: withOverview((*requestContext).getActors)},
}

// requestParams filter requests, whether in flight or ended.
var requestParams = []param{
	{name: "provider", doc: "only requests to this provider"},
	{name: "model", doc: "only requests for models whose name contains this text"},
	{name: "key", doc: "only requests with the key of this id"}, limitParam,
}

// activePhases returns the names of the phases of requests in flight.
func activePhases() []string {
	var all []string
	for _, p := range flow.Phases() {
		if p != flow.Ended {
			all = append(all, p.String())
		}
	}
	return all
}

// errNotRunning is returned for routes that show a running gateway when the command works on a data
// directory without one.
var errNotRunning = dialogue.Unavailable("not_running", "no gateway runs on this data directory", 0, nil)

// withOverview returns a handler that calls serve if a gateway is running.
func withOverview(serve func(*requestContext, *httpflow.Overview) (any, error)) func(*requestContext) (any, error) {
	return func(c *requestContext) (any, error) {
		if c.Overview == nil {
			return nil, errNotRunning
		}
		return serve(c, c.Overview)
	}
}

// filter returns the filter that the query describes.
func (c *requestContext) filter() (httpflow.Filter, error) {
	limit, err := c.limit()
	return httpflow.Filter{Phase: c.query.Get("phase"), Sort: c.query.Get("sort"), Provider: c.query.Get("provider"),
		Model: c.query.Get("model"),
		Key:   c.query.Get("key"), Failed: c.query.Get("failed") == "true", Limit: limit}, err
}

// getFlow handles GET /flow. With several gateways, the list has the requests of all of them.
func (c *requestContext) getFlow(o *httpflow.Overview) (any, error) {
	f, err := c.filter()
	if err != nil {
		return nil, err
	}
	active, _ := o.All(c.r.Context(), f)
	return active, nil
}

// listRecent handles GET /flow/requests.
func (c *requestContext) listRecent(o *httpflow.Overview) (any, error) {
	f, err := c.filter()
	if err != nil {
		return nil, err
	}
	_, recent := o.All(c.r.Context(), f)
	return List[httpflow.Request]{Data: recent}, nil
}

// requestNode chooses among requests of several gateways that have one id.
var requestNode = param{name: "node",
	doc: "only the request on the gateway of this name; without it, one in flight is preferred"}

const noRequest = "unknown request: it never existed, or it ended too long ago"

// getRequest handles GET /flow/requests/{id}.
func (c *requestContext) getRequest(o *httpflow.Overview) (any, error) {
	d, err := o.Find(c.r.Context(), c.r.PathValue("id"), c.query.Get("node"))
	return d, describeFlow(err)
}

// describeFlow returns the error of a request that is looked for as the API has it.
func describeFlow(err error) error {
	var silent *httpflow.SilentError
	switch {
	case errors.Is(err, flow.ErrUnknown):
		return notFound("id", noRequest)
	case errors.Is(err, flow.ErrOver):
		return conflict("id", "already_ended", "the request has ended")
	case errors.As(err, &silent):
		return dialogue.Unavailable("gateway_silent", silent.Error(), time.Second, nil)
	}
	return err
}

// cancelRequest handles DELETE /flow/requests/{id}. The request ends asynchronously, so the reply
// is a 202 with its state at this moment.
func (c *requestContext) cancelRequest(o *httpflow.Overview) (any, error) {
	if err := o.Cancel(c.r.Context(), c.r.PathValue("id"), c.query.Get("node")); err != nil {
		return nil, describeFlow(err)
	}
	c.Logger.Info("request ended by an administrator", "request", truncate(c.r.PathValue("id")))
	return c.getRequest(o)
}

// listProviders handles GET /providers.
func (c *requestContext) listProviders(o *httpflow.Overview) (any, error) {
	return List[httpflow.Provider]{Data: o.Providers(c.r.Context())}, nil
}

// getProvider handles GET /providers/{name}.
func (c *requestContext) getProvider(o *httpflow.Overview) (any, error) {
	p, ok := o.Provider(c.r.Context(), c.r.PathValue("name"))
	if !ok {
		return nil, notFound("name", "there is no such provider")
	}
	return p, nil
}

// pauseProvider handles POST /providers/{name}/pause.
func (c *requestContext) pauseProvider(o *httpflow.Overview) (any, error) {
	return c.setPaused(o, true)
}

// resumeProvider handles POST /providers/{name}/resume.
func (c *requestContext) resumeProvider(o *httpflow.Overview) (any, error) {
	return c.setPaused(o, false)
}

// setPaused pauses or resumes a provider. The state store records a pause, so it also holds after a
// restart.
func (c *requestContext) setPaused(o *httpflow.Overview, paused bool) (any, error) {
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
	c.Logger.Info("provider paused or resumed by an administrator", "provider", truncate(name), "paused", paused)
	return c.getProvider(o)
}

// getActors handles GET /actors.
func (c *requestContext) getActors(o *httpflow.Overview) (any, error) {
	return o.Actors(), nil
}
