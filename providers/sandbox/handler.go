package sandbox

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/jsonw"
	"stagedoor/providers/shapes"
)

const maxBody = 64 << 20

// Handler serves the model in every given shape, as upstreams of that shape do,
// with and without the version in front of the path. It asks for no key.
func (m *Model) Handler(known []shapes.Shape) http.Handler {
	h := &handler{model: m, shapes: map[dialogue.Shape]shapes.Shape{}}
	for _, s := range known {
		h.shapes[s.Name()] = s
	}
	return h
}

type handler struct {
	model  *Model
	shapes map[dialogue.Shape]shapes.Shape
}

// paths are the routes of the shapes that name no model in them.
var paths = map[string]dialogue.Shape{
	"/chat/completions": dialogue.Chat,
	"/responses":        dialogue.Responses,
	"/completions":      dialogue.Completions,
	"/messages":         dialogue.Messages,
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, "/v1beta")
	if path == r.URL.Path {
		path = strings.TrimPrefix(path, "/v1")
	}
	if path == "/models" && r.Method == http.MethodGet {
		h.list(w, strings.HasPrefix(r.URL.Path, "/v1beta"))
		return
	}
	in := shapes.Inbound{Path: r.URL.Path, Header: r.Header}
	shape := h.shapes[paths[path]]
	if model, method, ok := strings.Cut(strings.TrimPrefix(path, "/models/"), ":"); ok && strings.HasPrefix(path, "/models/") {
		in.Model, in.Stream = model, method == "streamGenerateContent"
		in.Array = in.Stream && r.URL.Query().Get("alt") != "sse"
		if in.Stream || method == "generateContent" {
			shape = h.shapes[dialogue.Gemini]
		}
	}
	if shape == nil {
		http.Error(w, "the sandbox has no such path", http.StatusNotFound)
		return
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "the sandbox wants POST", http.StatusMethodNotAllowed)
		return
	}
	d := delivery{model: h.model, shape: shape, w: w, r: r}
	if err := d.run(in); err != nil {
		d.refuse(err)
	}
}

// list answers a request for the list of models.
func (h *handler) list(w http.ResponseWriter, gemini bool) {
	j := jsonw.Writer{}
	j.Object()
	if gemini {
		j.Key("models").Array()
		for _, name := range h.model.names() {
			j.Object().Key("name").String("models/" + name).Key("displayName").String(name).
				Key("supportedGenerationMethods").Array().String("generateContent").String("streamGenerateContent").End().End()
		}
	} else {
		j.Key("object").String("list").Key("data").Array()
		for _, name := range h.model.names() {
			j.Object().Key("id").String(name).Key("object").String("model").Key("created").Int(0).Key("owned_by").String("sandbox").End()
		}
	}
	j.End().End()
	w.Header().Set("Content-Type", "application/json")
	w.Write(j.Buf)
}

// delivery is one request over HTTP.
type delivery struct {
	model *Model
	shape shapes.Shape
	w     http.ResponseWriter
	r     *http.Request

	script  Script
	mode    shapes.Mode
	emitter shapes.Emitter
	buf     []byte
	began   bool // the status is out
}

// run answers the request. What it returns goes to the client as an envelope:
// nothing has been written then.
func (d *delivery) run(in shapes.Inbound) *dialogue.Error {
	body, err := io.ReadAll(http.MaxBytesReader(d.w, d.r.Body, maxBody))
	if err != nil {
		return &dialogue.Error{Status: http.StatusRequestEntityTooLarge, Type: dialogue.TypeTooLarge, Message: "the body is too large or incomplete"}
	}
	if !fields.ValidWithin(body, fields.MaxReplyDepth) { // a gateway may have moved strings of a request into it
		return &dialogue.Error{Status: http.StatusBadRequest, Type: dialogue.TypeInvalidRequest, Code: "invalid_json", Message: "the body is not valid JSON"}
	}
	head, err := d.shape.Check(body, in)
	if err != nil {
		return asError(err)
	}
	req, err := d.shape.Decode(body, in, d.model.Env)
	if err != nil {
		return asError(err)
	}
	if d.script, err = ParseScript(d.model.Base, d.r.Header.Get(Header), lastText(req)); err != nil {
		return asError(err)
	}
	d.script.signAs = d.shape.Name()
	switch {
	case in.Array:
		d.mode = shapes.Array
	case head.Stream || in.Stream:
		d.mode = shapes.Stream
	}
	d.emitter = d.shape.NewEmitter(req, d.mode, d.model.Env)
	err = Generate(d.r.Context(), req, d.script, d.model.Env, d.event)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrGarbage):
		d.garbage()
		return nil
	case errors.As(err, new(*dialogue.Error)):
		return asError(err)
	}
	// Cut as ordered, or the client is gone: the connection must not look as if
	// the reply had ended.
	panic(http.ErrAbortHandler)
}

func asError(err error) *dialogue.Error {
	if e := new(dialogue.Error); errors.As(err, &e) {
		return e
	}
	return &dialogue.Error{Status: http.StatusInternalServerError, Type: dialogue.TypeAPI, Message: "the sandbox is broken", Cause: err}
}

// event writes what one event is to the client. A failure before anything was
// written is returned, to become a status.
func (d *delivery) event(ev *dialogue.Event) error {
	if ev.Kind == dialogue.EventError && !d.began {
		return ev.Err
	}
	d.buf = d.emitter.Emit(d.buf[:0], ev)
	if len(d.buf) == 0 && d.mode == shapes.Whole {
		return nil
	}
	return d.write(d.buf)
}

func (d *delivery) begin() {
	if d.began {
		return
	}
	d.began = true
	kind := "application/json"
	if d.mode == shapes.Stream {
		kind = "text/event-stream"
		d.w.Header().Set("Cache-Control", "no-cache")
	}
	d.w.Header().Set("Content-Type", kind)
	d.w.WriteHeader(http.StatusOK)
}

// write sends data at once, byte by byte if it is to drip.
func (d *delivery) write(data []byte) error {
	d.begin()
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

// GarbageBytes is what the fault garbage puts into a reply, as a broken proxy might.
const GarbageBytes = "<html><body>502 Bad Gateway</body></html>\n\ndata: {\"broken\":\n\n\x00\xff\n"

func (d *delivery) garbage() {
	// The client may be gone; there is nobody else to tell.
	_ = d.write([]byte(GarbageBytes))
}

// refuse sends an error in the shape's envelope.
func (d *delivery) refuse(e *dialogue.Error) {
	h := d.w.Header()
	h.Set("Content-Type", "application/json")
	if e.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int(e.RetryAfter.Seconds())))
	}
	d.w.WriteHeader(e.Status)
	d.w.Write(d.shape.Envelope(e))
}
