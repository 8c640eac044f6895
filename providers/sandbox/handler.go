package sandbox

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/shapes"
)

// maxBody is the largest request in bytes, as large as the gateway sends any.
const maxBody = 64 << 20

// GarbageBytes are the bytes that the fault garbage puts into a reply, as a broken proxy might.
const GarbageBytes = "<html><body>502 Bad Gateway</body></html>\n\ndata: {\"broken\":\n\n\x00\xff\n"

// Handler serves the model in every given shape as upstreams of that shape do, with and without a
// version in front of the path. It needs no key.
// Each path is served with and without a version, because the base URL of a provider may contain
// the version or not, and tests use both.
func (m *Model) Handler(known []*shapes.Shape) http.Handler {
	mux := http.NewServeMux()
	var lists []*shapes.ModelList
	for _, shape := range known {
		serve := m.serve(shape)
		for _, version := range []string{"", "/v1", "/v1beta"} {
			mux.HandleFunc(version+shape.SandboxPath, serve)
		}
		if list := shape.Models; list != nil && list.Path != "" {
			lists = append(lists, list)
		}
	}
	for _, path := range []string{"/models", "/v1/models", "/v1beta/models"} {
		var list *shapes.ModelList
		if i := slices.IndexFunc(lists, func(l *shapes.ModelList) bool { return l.Path == path }); i >= 0 {
			list = lists[i]
		}
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) { m.listModels(w, list) })
	}
	mux.HandleFunc("/", noPath)
	return mux
}

// noPath answers requests for paths that no vendor has.
func noPath(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "the sandbox has no such path", http.StatusNotFound)
}

// serve handles the requests in one shape.
// Requests are read with Check and Decode of the shape, so the simulator refuses what the gateway
// would refuse, and a request that the gateway wrote wrongly fails here and not only at a real
// provider.
func (m *Model) serve(shape *shapes.Shape) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		in, task := shapes.Params{Path: r.URL.Path, Header: r.Header}, shapes.Generate
		if shape.Read != nil {
			in, task = shape.Read(r)
		}
		switch {
		case task != shapes.Generate:
			noPath(w, r)
		case r.Method != http.MethodPost:
			w.Header().Set("Allow", http.MethodPost)
			http.Error(w, "the sandbox accepts only POST here", http.StatusMethodNotAllowed)
		default:
			(&delivery{model: m, shape: shape, w: w, r: r}).run(in)
		}
	}
}

// listModels writes the list of models in the form of a shape, or in the form of the other
// shapes if list is nil.
func (m *Model) listModels(w http.ResponseWriter, list *shapes.ModelList) {
	names := m.Names
	if len(names) == 0 {
		names = []string{"sandbox"}
	}
	w.Header().Set("Content-Type", "application/json")
	if list != nil {
		var models []shapes.Model
		for _, name := range names {
			models = append(models, shapes.Model{ID: name, Owner: "sandbox"})
		}
		_, _ = w.Write(list.Page(models, false)) // an error means that the client has left
		return
	}
	type object = map[string]any
	models := []object{}
	for _, name := range names {
		models = append(models, object{"id": name, "object": "model", "created": 0, "owned_by": "sandbox"})
	}
	_ = json.NewEncoder(w).Encode(object{"object": "list", "data": models}) // likewise
}

// delivery answers one request over HTTP.
type delivery struct {
	model *Model
	shape *shapes.Shape
	w     http.ResponseWriter
	r     *http.Request

	script  Script
	mode    shapes.Mode
	emitter shapes.Emitter
	buf     []byte
	began   bool // the status has been sent
}

// run answers the request. An error before the first byte is sent in the shape's envelope.
func (d *delivery) run(in shapes.Params) {
	switch err := d.generate(in); {
	case err == nil:
	case errors.Is(err, ErrGarbage):
		_ = d.write([]byte(GarbageBytes)) // an error means that the client has left
	default:
		refuse(d.w, d.shape.Envelope, err)
	}
}

// refuse sends err in an envelope. If err is no *dialogue.Error, the connection was cut as requested, or the client has
// left, and refuse panics so that the reply does not look complete.
func refuse(w http.ResponseWriter, envelope func(*dialogue.Error) []byte, err error) {
	failure := new(dialogue.Error)
	if !errors.As(err, &failure) {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/json")
	if failure.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(failure.RetryAfter.Seconds())))
	}
	w.WriteHeader(failure.Status)
	_, _ = w.Write(envelope(failure)) // an error means that the client has left
}

// generate reads the request in its shape and generates the reply. An error before the first event
// becomes the status of the reply.
func (d *delivery) generate(in shapes.Params) error {
	body, err := io.ReadAll(http.MaxBytesReader(d.w, d.r.Body, maxBody))
	if err != nil {
		return dialogue.Refusal(413, "", "the body is too large or incomplete")
	}
	// A gateway may have nested a request more deeply than its client did.
	if !fields.ValidWithin(body, fields.MaxReplyDepth) {
		return dialogue.BadRequest("invalid_json", "the body is not valid JSON")
	}
	head, err := d.shape.Check(body, in)
	if err != nil {
		return err
	}
	req, err := d.shape.Decode(body, in, d.model.Env)
	if err != nil {
		return err
	}
	if d.script, err = ParseScript(d.model.Base, d.r.Header.Get(Header), lastText(req)); err != nil {
		return err
	}
	d.script.origin, d.script.proof = d.shape.Name, d.shape.Traits.Proof
	switch {
	case in.Array:
		d.mode = shapes.Array
	case head.Stream || in.Stream:
		d.mode = shapes.Stream
	}
	d.emitter = d.shape.NewEmitter(req, d.mode, d.model.Env)
	return Generate(d.r.Context(), req, d.script, d.model.Env, d.sendEvent)
}

// sendEvent writes an event in the shape. A failure before the first byte is returned, so that it becomes a status.
// In a whole reply most events add nothing until the end, so nothing is written for them and the
// status stays open.
func (d *delivery) sendEvent(ev *dialogue.Event) error {
	if ev.Kind == dialogue.EventError && !d.began {
		return ev.Err
	}
	d.buf = d.emitter.Emit(d.buf[:0], ev)
	if len(d.buf) == 0 && d.mode == shapes.Whole {
		return nil
	}
	return d.write(d.buf)
}

// write sends data at once, byte by byte if that was requested.
func (d *delivery) write(data []byte) error {
	if !d.began {
		d.began = true
		d.w.Header().Set("Content-Type", "application/json")
		if d.mode == shapes.Stream {
			d.w.Header().Set("Content-Type", "text/event-stream")
			d.w.Header().Set("Cache-Control", "no-cache")
		}
		d.w.WriteHeader(http.StatusOK)
	}
	for len(data) > 0 {
		n := len(data)
		if d.script.Drip {
			n = 1
		}
		if _, err := d.w.Write(data[:n]); err != nil {
			return err
		}
		data = data[n:]
		if d.mode != shapes.Whole || d.script.Drip {
			if err := http.NewResponseController(d.w).Flush(); err != nil {
				return err
			}
		}
	}
	return nil
}
