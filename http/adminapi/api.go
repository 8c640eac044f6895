package adminapi

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"stagedoor/actors/ledger"
	"stagedoor/actors/tokens"
	"stagedoor/http/auth"
	"stagedoor/http/envelope"
	httpflow "stagedoor/http/flow"
	"stagedoor/http/settings"
	"stagedoor/state"
)

// Prefix is the path below which the API is served.
const Prefix = "/admin/v1"

// descriptionPath is the path of the API's OpenAPI description.
const descriptionPath = Prefix + "/openapi.json"

// Options are the parts of the gateway that the API reads and changes.
type Options struct {
	Logger   *slog.Logger
	State    *state.State
	Registry *tokens.Client
	Ledger   *ledger.Client
	Guard    *Guard    // checks requests that come over the network
	Random   io.Reader // source of generated passwords and redeem codes
	// Link returns the address of the one-time link with this secret. It is nil if no gateway runs at which it could be
	// used.
	Link func(secret string) string
	// Forget removes the generated pictures and the uploads of an owner. It is nil if no gateway is running.
	Forget func(owner string) error
	// Overview shows the requests in flight. It is nil if no gateway is running.
	Overview *httpflow.Overview
	// Settings changes providers and models. It is nil if no gateway is running.
	Settings settings.Store
}

// API serves the administration API. It is safe for concurrent use.
type API struct {
	Options
	routes      []route
	description func() []byte // computed for the first reader
}

// New returns an API that is ready for Routes or Handler.
func New(o Options) *API {
	a := &API{Options: o, routes: routes()}
	a.description = sync.OnceValue(func() []byte { return buildDescription(a.routes) })
	return a
}

// route describes one endpoint: how it is reached, what it reads and writes, and its handler.
// The handler, the OpenAPI description and the tests read the same row, so a route cannot be served
// and not described.
type route struct {
	method, path string // the path below Prefix
	name         string // operationId
	group        string // the tag in the description
	summary      string
	query        []param
	header       []param
	in           any // zero value of the body type; nil if no body is read
	out          any // zero value of the reply type
	status       int
	serve        func(*requestContext) (any, error)
}

// param describes a query parameter or a header.
type param struct {
	name, doc string
	enum      []string
	integer   bool
}

// Routes calls handle for every route. Each handler requires the admin token.
func (a *API) Routes(handle func(pattern string, h http.HandlerFunc)) {
	for i := range a.routes {
		rt := &a.routes[i]
		handle(rt.method+" "+Prefix+rt.path,
			auth.Acting(state.ActorAdminToken, auth.ViaAPI, a.Guard.requireToken(a.handler(rt))))
	}
	handle("GET "+descriptionPath, a.Guard.serveIfEnabled(a.serveDescription))
}

// Handler serves the API without requiring a token. It is for commands, which are trusted already, because they can
// open the control socket or the data directory. The caller wraps it in auth.Acting.
func (a *API) Handler() http.Handler {
	mux := http.NewServeMux()
	for i := range a.routes {
		rt := &a.routes[i]
		mux.HandleFunc(rt.method+" "+Prefix+rt.path, a.handler(rt))
	}
	mux.HandleFunc("GET "+descriptionPath, a.serveDescription)
	return mux
}

// handler returns the handler of a route, without the check of the token.
func (a *API) handler(rt *route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { a.serve(rt, w, r) }
}

// serve reads a request, runs the route's handler and writes its reply or error as JSON.
// HTML characters are escaped, so that a browser that is made to show a reply does not run what a
// client has put into a name.
func (a *API) serve(rt *route, w http.ResponseWriter, r *http.Request) {
	c := &requestContext{API: a, r: r}
	err := c.read(rt, w)
	var out any
	if err == nil {
		out, err = rt.serve(c)
	}
	if err != nil {
		a.writeError(w, asEnvelopeError(err))
		return
	}
	h := w.Header()
	h.Set("Cache-Control", "no-store") // replies may contain secrets
	// The reply is written as a whole after it was encoded, so that a failure can still be an error with its status.
	var body bytes.Buffer
	// Clients and upstreams choose some of the names. Invalid UTF-8 in them becomes U+FFFD.
	if err := json.MarshalWrite(&body, out, json.Deterministic(true), jsontext.EscapeForHTML(true),
		jsontext.AllowInvalidUTF8(true)); err != nil {
		a.writeError(w, err)
		return
	}
	h.Set("Content-Type", "application/json")
	w.WriteHeader(rt.status)
	w.Write(body.Bytes())
}

// writeError writes err in the error envelope and logs the cause of a 5xx.
func (a *API) writeError(w http.ResponseWriter, err error) {
	if e := envelope.From(err); e.Status >= 500 && e.Cause != nil {
		a.Logger.Error("administration failed", "request_id", w.Header().Get("X-Request-Id"), "cause", e.Cause)
	}
	envelope.Write(w, envelope.Plain, err)
}

// serveDescription serves the OpenAPI description.
func (a *API) serveDescription(w http.ResponseWriter, _ *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "public, max-age=300")
	w.Write(a.description())
}
