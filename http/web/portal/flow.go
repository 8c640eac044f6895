package portal

import (
	"errors"
	"net/http"
	"strings"

	"stagedoor/actors/flow"
	"stagedoor/http/envelope"
	httpflow "stagedoor/http/flow"
	"stagedoor/http/live"
	"stagedoor/http/web/pages"
	"stagedoor/providers/dialogue"
	"stagedoor/state"
)

// Below pathFlow is what the gateway does at the moment, for administrators.
const (
	pathFlow          = "/flow"
	pathFlowProviders = pathFlow + "/providers"
	pathFlowRequests  = pathFlow + "/requests"
)

// flowRoutes adds the pages of the requests in flight, providers and actors. Without an overview it adds none.
func (p *Portal) flowRoutes(handle routeFunc) {
	if p.options.Overview == nil {
		return
	}
	handle("GET "+pathFlow, p.admin(func(rc *requestContext) {
		rc.show(http.StatusOK, &pages.Flow{Viewer: rc.viewer()})
	}))
	handle("GET "+pathFlowProviders, p.admin(func(rc *requestContext) { rc.providers("", nil) }))
	handle("GET "+pathFlow+"/actors",
		p.admin(func(rc *requestContext) { rc.show(http.StatusOK, &pages.Actors{Viewer: rc.viewer()}) }))
	handle("GET "+pathFlowRequests, p.admin((*requestContext).findRequest))
	handle("GET "+pathFlowRequests+"/{id}", p.admin((*requestContext).flowRequest))
	handle("POST "+pathFlowRequests+"/{id}/cancel", p.adminForm((*requestContext).cancelRequest))
	handle("POST "+pathFlowProviders+"/{name}/pause", p.adminForm(func(rc *requestContext) { rc.setPaused(true) }))
	handle("POST "+pathFlowProviders+"/{name}/resume", p.adminForm(func(rc *requestContext) { rc.setPaused(false) }))
	handle("GET "+pathFlow+"/socket", p.flowSocket)
}

// findRequest redirects to the page of the request whose id was typed.
func (rc *requestContext) findRequest() {
	id := rc.query("id")
	d, err := rc.options.Overview.Find(rc.r.Context(), id, "")
	if err != nil {
		rc.notFound(id, err)
		return
	}
	seeOther(rc.w, pathRequest(id, d.Node))
}

// flowRequest shows the page of one request, which loads its spans itself.
func (rc *requestContext) flowRequest() {
	id := rc.r.PathValue("id")
	d, err := rc.options.Overview.Find(rc.r.Context(), id, rc.query("node"))
	if err != nil {
		rc.notFound(id, err)
		return
	}
	rc.show(http.StatusOK, &pages.FlowRequest{Viewer: rc.viewer(), ID: id, Node: d.Node})
}

// notFound shows why there is nothing to see of a request: its id is likely to come from a log that is older than what
// the flow remembers, or the gateway that has it does not answer.
func (rc *requestContext) notFound(id string, err error) {
	var silent *httpflow.SilentError
	switch {
	case errors.As(err, &silent):
		rc.show(http.StatusServiceUnavailable, &pages.Failure{Title: "This request is not found", Detail: id,
			Message: "Gateways that do not answer at the moment: " + strings.Join(silent.Nodes, ", ") + ". Try again."})
		return
	case !errors.Is(err, flow.ErrUnknown):
		rc.busy(rc.w, rc.r, err)
		return
	}
	rc.show(http.StatusNotFound, &pages.Failure{Title: "This request is not known", Detail: id,
		Message: "Flow keeps requests in flight and recent ones, failures longer than others. " +
			"The log and the traces have the id for longer."})
}

// pathRequest returns the page of a request on a gateway, whose name is empty without others. Ids that are known need
// no escaping: where clients choose them they are letters, digits, _ and -.
func pathRequest(id, node string) string {
	return pages.Address(pathFlowRequests+"/"+id, map[string]string{"node": node})
}

// cancelRequest ends a request and shows it again.
func (rc *requestContext) cancelRequest() {
	id, node := rc.r.PathValue("id"), rc.query("node")
	switch err := rc.options.Overview.Cancel(rc.r.Context(), id, node); {
	case errors.Is(err, flow.ErrOver):
		rc.show(http.StatusConflict,
			&pages.Failure{Title: "That did not work", Message: "The request had ended by then."})
	case err != nil:
		rc.notFound(id, err)
	default:
		rc.options.Logger.Info("request ended by an administrator", "request", id, "by", rc.user.ID)
		rc.done(pathRequest(id, node), "request_ended")
	}
}

// setPaused pauses or resumes a provider.
func (rc *requestContext) setPaused(paused bool) {
	name, word := rc.r.PathValue("name"), "provider_resumed"
	if paused {
		word = "provider_paused"
	}
	switch err := rc.options.Overview.SetPaused(rc.r.Context(), name, paused); {
	case errors.Is(err, state.ErrNotFound):
		rc.missing()
		return
	case err != nil:
		rc.busy(rc.w, rc.r, err)
		return
	}
	rc.options.Logger.Info("provider paused or resumed by an administrator", "provider", name, "paused", paused, "by",
		rc.user.ID)
	rc.done(pathFlowProviders, word)
}

// flowSocket serves the WebSocket over which the figures of these pages are updated. It ends when the administrator's
// session or role ends.
func (p *Portal) flowSocket(w http.ResponseWriter, r *http.Request) {
	owner, err := p.watcher(r)
	if err == nil {
		err = p.options.Live().SameOrigin(r)
	}
	if err != nil {
		envelope.Write(w, envelope.Plain, err)
		return
	}
	// The socket may stay open for days. It ends when the session or the role that it was opened with has ended.
	who := live.Watcher{Owner: owner, Still: func() error {
		again, err := p.watcher(r)
		if err == nil && again != owner {
			err = errSignedOut
		}
		return err
	}}
	p.options.Live().Serve(w, r, who, p.options.Overview.Watch(r.Context()))
}

var errSignedOut = dialogue.Refusal(http.StatusUnauthorized, "signed_out",
	"you are signed out: sign in again and reload the page")

// watcher returns the signed-in administrator who opens a websocket. It fails for all others, and for users who are
// not administrators as if the address did not exist.
func (p *Portal) watcher(r *http.Request) (state.Owner, error) {
	visitor, err := p.options.Browser.Visitor(r)
	switch {
	case err != nil:
		return "", dialogue.Unavailable("unavailable", failureBusy.Message, retryUnavailable, err)
	case !visitor.SignedIn():
		return "", errSignedOut
	case !visitor.Session.User.Admin:
		return "", envelope.NotFound(r.URL.Path, "")
	}
	return state.OwnerOf("", visitor.Session.User.Username), nil
}
