package adminapi

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"stagedoor/actors/ledger"
	"stagedoor/actors/tokens"
	"stagedoor/http/envelope"
	httpflow "stagedoor/http/flow"
	"stagedoor/state"
)

// Prefix is where the API is.
const Prefix = "/admin/v1"

// descriptionPath is where the API describes itself.
const descriptionPath = Prefix + "/openapi.json"

// Options are what the API works on.
type Options struct {
	Logger   *slog.Logger
	State    *state.State
	Registry *tokens.Client
	Ledger   *ledger.Client
	Guard    *Guard    // of those who come over the network
	Random   io.Reader // of made-up passwords and redeem codes
	// Overview is what the gateway does at the moment; nil: none runs.
	Overview *httpflow.Overview
}

// API serves administration. Safe for concurrent use.
type API struct {
	Options
	routes      []route
	description []byte
}

// New makes the API.
func New(o Options) *API {
	a := &API{Options: o, routes: routes()}
	a.description = describe(a.routes)
	return a
}

// route is a row of the table of what is served.
type route struct {
	method, path string // the path below Prefix
	name         string // operationId
	group        string // the tag in the description
	summary      string
	query        []param
	header       []param
	in           any // the zero body; nil: none is read
	out          any // the zero reply
	status       int
	serve        func(*call) (any, error)
}

// param is a parameter of the query or a header.
type param struct {
	name, doc string
	enum      []string
	integer   bool
}

// Routes hands every route to handle, behind the guard.
func (a *API) Routes(handle func(pattern string, h http.HandlerFunc)) {
	for i := range a.routes {
		rt := &a.routes[i]
		handle(rt.method+" "+Prefix+rt.path, a.Guard.protect(func(w http.ResponseWriter, r *http.Request) { a.serve(rt, w, r) }))
	}
	handle("GET "+descriptionPath, a.Guard.open(a.describe))
}

// Handler is the API for those who may do everything already: whoever can open
// the control socket.
func (a *API) Handler() http.Handler {
	mux := http.NewServeMux()
	for i := range a.routes {
		rt := &a.routes[i]
		mux.HandleFunc(rt.method+" "+Prefix+rt.path, func(w http.ResponseWriter, r *http.Request) { a.serve(rt, w, r) })
	}
	mux.HandleFunc("GET "+descriptionPath, a.describe)
	return mux
}

func (a *API) serve(rt *route, w http.ResponseWriter, r *http.Request) {
	c := &call{API: a, r: r}
	err := c.read(rt, w)
	var out any
	if err == nil {
		out, err = rt.serve(c)
	}
	if err != nil {
		a.refuse(w, told(err))
		return
	}
	h := w.Header()
	h.Set("Cache-Control", "no-store") // replies may hold secrets
	var body bytes.Buffer
	// Broken characters of names that clients and upstreams chose are written as U+FFFD.
	if err := json.MarshalWrite(&body, out, json.Deterministic(true), jsontext.EscapeForHTML(true), jsontext.AllowInvalidUTF8(true)); err != nil {
		a.refuse(w, err)
		return
	}
	h.Set("Content-Type", "application/json")
	w.WriteHeader(rt.status)
	w.Write(body.Bytes())
}

func (a *API) refuse(w http.ResponseWriter, err error) {
	if e := envelope.From(err); e.Status >= 500 && e.Cause != nil {
		a.Logger.Error("administration failed", "request_id", w.Header().Get("X-Request-Id"), "cause", e.Cause)
	}
	envelope.Write(w, envelope.Plain, err)
}

func (a *API) describe(w http.ResponseWriter, _ *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "public, max-age=300")
	w.Write(a.description)
}
