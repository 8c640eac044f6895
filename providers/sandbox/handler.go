package sandbox

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/shapes"
)

const maxBody = 64 << 20

// GarbageBytes is what the fault garbage puts into a reply, as a broken proxy might.
const GarbageBytes = "<html><body>502 Bad Gateway</body></html>\n\ndata: {\"broken\":\n\n\x00\xff\n"

// paths maps the routes of the shapes that have no model in their path.
var paths = map[string]dialogue.Shape{
	"/chat/completions": dialogue.Chat,
	"/responses":        dialogue.Responses,
	"/completions":      dialogue.Completions,
	"/messages":         dialogue.Messages,
}

// Handler serves the model in every given shape as upstreams of that shape do, with and without the version in front of
// the path. It needs no key.
func (m *Model) Handler(known []shapes.Shape) http.Handler {
	byName := map[dialogue.Shape]shapes.Shape{}
	for _, s := range known {
		byName[s.Name()] = s
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/v1beta"), "/v1")
		in := shapes.Inbound{Path: r.URL.Path, Header: r.Header}
		shape := byName[paths[path]]
		if rest, ok := strings.CutPrefix(path, "/models/"); ok {
			var method string
			in.Model, method, _ = strings.Cut(rest, ":")
			in.Stream = method == "streamGenerateContent"
			in.Array = in.Stream && r.URL.Query().Get("alt") != "sse"
			if in.Stream || method == "generateContent" {
				shape = byName[dialogue.Gemini]
			}
		}
		switch {
		case path == "/models" && r.Method == http.MethodGet:
			m.listModels(w, strings.HasPrefix(r.URL.Path, "/v1beta"))
		case shape == nil:
			http.Error(w, "the sandbox has no such path", http.StatusNotFound)
		case r.Method != http.MethodPost:
			w.Header().Set("Allow", http.MethodPost)
			http.Error(w, "the sandbox accepts only POST here", http.StatusMethodNotAllowed)
		default:
			(&delivery{model: m, shape: shape, w: w, r: r}).run(in)
		}
	})
}

func (m *Model) listModels(w http.ResponseWriter, gemini bool) {
	type object = map[string]any
	names, list := m.Names, []object{}
	if len(names) == 0 {
		names = []string{"sandbox"}
	}
	for _, name := range names {
		if gemini {
			list = append(list, object{"name": "models/" + name, "displayName": name,
				"supportedGenerationMethods": []string{"generateContent", "streamGenerateContent"}})
		} else {
			list = append(list, object{"id": name, "object": "model", "created": 0, "owned_by": "sandbox"})
		}
	}
	reply := object{"object": "list", "data": list}
	if gemini {
		reply = object{"models": list}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(reply) // an error means that the client has left
}

// delivery answers one request over HTTP.
type delivery struct {
	model *Model
	shape shapes.Shape
	w     http.ResponseWriter
	r     *http.Request

	script  Script
	mode    shapes.Mode
	emitter shapes.Emitter
	buf     []byte
	began   bool // the status has been sent
}

// run answers the request. An error before the first byte is sent in the shape's envelope.
func (d *delivery) run(in shapes.Inbound) {
	err := d.generate(in)
	failure := new(dialogue.Error)
	switch {
	case err == nil:
	case errors.Is(err, ErrGarbage):
		_ = d.write([]byte(GarbageBytes)) // an error means that the client has left
	case errors.As(err, &failure):
		d.w.Header().Set("Content-Type", "application/json")
		if failure.RetryAfter > 0 {
			d.w.Header().Set("Retry-After", strconv.Itoa(int(failure.RetryAfter.Seconds())))
		}
		d.w.WriteHeader(failure.Status)
		d.w.Write(d.shape.Envelope(failure))
	default:
		// The connection was cut as ordered, or the client has left. The reply must not look complete.
		panic(http.ErrAbortHandler)
	}
}

func (d *delivery) generate(in shapes.Inbound) error {
	body, err := io.ReadAll(http.MaxBytesReader(d.w, d.r.Body, maxBody))
	if err != nil {
		return &dialogue.Error{Status: http.StatusRequestEntityTooLarge, Type: dialogue.TypeTooLarge,
			Message: "the body is too large or incomplete"}
	}
	// A gateway may have nested a request more deeply than its client did.
	if !fields.ValidWithin(body, fields.MaxReplyDepth) {
		return &dialogue.Error{Status: http.StatusBadRequest, Type: dialogue.TypeInvalidRequest, Code: "invalid_json",
			Message: "the body is not valid JSON"}
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
	d.script.signAs = d.shape.Name()
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

// write sends data at once, byte by byte if that was ordered.
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
