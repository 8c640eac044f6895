package sandbox_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/sandbox"
	"stagedoor/providers/shapes"
)

// plain is a minimal shape: the request is {"say","stream"}, the reply is
// the text, ended by a full stop.
type plain struct {
	shapes.Inbound // what the handler does not use
}

// shapeAt is a shape that is served at path. Its model is in the path if the path has a wildcard.
func shapeAt(path string) *shapes.Shape {
	s := &shapes.Shape{Descriptor: shapes.Descriptor{SandboxPath: path}, Inbound: plain{}}
	if strings.Contains(path, "{") {
		s.Models = &shapes.ModelList{Path: "/v1beta/models", Page: func(models []shapes.Model, _ bool) []byte {
			return fmt.Appendf(nil, `{"models":[{"name":"models/%s"}]}`, models[len(models)-1].ID)
		}}
		s.Read = func(r *http.Request) (shapes.Params, shapes.Task) {
			model, method, _ := strings.Cut(r.PathValue("rest"), ":")
			in := shapes.Params{Model: model, Stream: strings.HasPrefix(method, "stream")}
			in.Array = in.Stream && r.URL.Query().Get("alt") != "sse"
			if !strings.HasSuffix(strings.ToLower(method), "generatecontent") {
				return in, shapes.NoTask
			}
			return in, shapes.Generate
		}
	}
	return s
}

func (p plain) read(body []byte) (say string, stream bool, err error) {
	var v struct {
		Say    *string
		Stream bool
	}
	if json.Unmarshal(body, &v) != nil || v.Say == nil {
		return "", false, dialogue.Missing("say")
	}
	return *v.Say, v.Stream, nil
}

func (p plain) Check(body []byte, _ shapes.Params) (shapes.Head, error) {
	_, stream, err := p.read(body)
	return shapes.Head{Stream: stream}, err
}

func (p plain) Decode(body []byte, in shapes.Params, _ *dialogue.Env) (*dialogue.Request, error) {
	say, _, err := p.read(body)
	req := ask(say)
	req.Model = in.Model
	return req, err
}

func (p plain) Envelope(e *dialogue.Error) []byte {
	return append(e.AppendJSON([]byte(`{"error":`)), '}')
}

func (p plain) NewEmitter(_ *dialogue.Request, mode shapes.Mode, _ *dialogue.Env) shapes.Emitter {
	return &plainEmitter{mode: mode}
}

type plainEmitter struct {
	mode  shapes.Mode
	whole []byte
}

func (e *plainEmitter) Emit(dst []byte, ev *dialogue.Event) []byte {
	if e.mode == shapes.Whole {
		e.whole = append(e.whole, ev.Text...)
		if ev.Kind == dialogue.EventEnd {
			dst = append(append(dst, e.whole...), '.')
		}
		return dst
	}
	switch ev.Kind {
	case dialogue.EventDelta:
		return shapes.AppendEvent(dst, "", []byte(ev.Text))
	case dialogue.EventEnd:
		return shapes.AppendEvent(dst, "", []byte("."))
	case dialogue.EventError:
		return shapes.AppendEvent(dst, "error", nil)
	}
	return dst
}

func serve(t *testing.T) *httptest.Server {
	t.Helper()
	m := &sandbox.Model{Env: env(), Base: sandbox.Script{Pace: sandbox.MaxPace}, Names: []string{"one", "two"}}
	server := httptest.NewServer(m.Handler([]*shapes.Shape{shapeAt("/chat/completions"), shapeAt("/models/{rest...}")}))
	t.Cleanup(server.Close)
	return server
}

func post(t *testing.T, server *httptest.Server, path, body, directives string) (*http.Response, string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set(sandbox.Header, directives)
	resp, err := server.Client().Do(req)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return resp, string(data), err
}

func TestHandlerAnswersWholeAndStreamed(t *testing.T) {
	server := serve(t)
	rows := []struct{ path, body, kind string }{
		{"/v1/chat/completions", `{"say":"hi"}`, "application/json"},
		{"/chat/completions", `{"say":"hi","stream":true}`, "text/event-stream"},
		{"/v1beta/models/m:generateContent", `{"say":"hi"}`, "application/json"},
		{"/v1/models/m:streamGenerateContent?alt=sse", `{"say":"hi"}`, "text/event-stream"},
		{"/v1beta/models/m:streamGenerateContent", `{"say":"hi"}`, "application/json"},
	}
	for _, row := range rows {
		resp, body, err := post(t, server, row.path, row.body, "tokens=6")
		if err != nil || resp.StatusCode != 200 || resp.Header.Get("Content-Type") != row.kind ||
			!strings.HasSuffix(strings.TrimSpace(body), ".") {
			t.Errorf("%s: %v %v %q", row.path, resp, err, body)
		}
	}
}

func TestHandlerRefusesInTheShapesEnvelope(t *testing.T) {
	server := serve(t)
	rows := []struct {
		name, path, body, directives string
		status                       int
		says                         string
	}{
		{"not JSON", "/v1/chat/completions", `{`, "", 400, "invalid_json"},
		{"a broken rule", "/v1/chat/completions", `{}`, "", 400, `"param":"say"`},
		{
			"a refusal as requested",
			"/v1/chat/completions",
			`{"say":"hi","stream":true}`,
			"status=429 retry-after=7s",
			429,
			"rate_limit_error",
		},
		{"an unknown directive", "/v1/chat/completions", `{"say":"[sandbox: jump]"}`, "", 400, "x-sandbox"},
		{"a failure before anything was sent", "/v1/chat/completions", `{"say":"hi"}`, "error", 500, "sandbox_error"},
		{"no such path", "/v1/nothing", `{}`, "", 404, ""},
		{"a shape that is not there", "/v1/messages", `{}`, "", 404, ""},
		{"no such method of a model", "/v1beta/models/m:dance", `{}`, "", 404, ""},
	}
	for _, row := range rows {
		resp, body, err := post(t, server, row.path, row.body, row.directives)
		if err != nil || resp.StatusCode != row.status || !strings.Contains(body, row.says) {
			t.Errorf("%s: %v %v %q", row.name, resp, err, body)
		}
		if row.status == 429 && resp.Header.Get("Retry-After") != "7" {
			t.Errorf("%s: Retry-After %q", row.name, resp.Header.Get("Retry-After"))
		}
	}
}

func TestHandlerBreaksStreamsAsRequested(t *testing.T) {
	server := serve(t)
	rows := []struct {
		directives string
		cut        bool
		says       string
	}{
		{"cut=2", true, "data: "},
		{"error=2", false, "event: error"},
		{"garbage=2", false, "Bad Gateway"},
		{"drip tokens=3", false, "data: ."},
	}
	for _, row := range rows {
		_, body, err := post(t, server, "/v1/chat/completions", `{"say":"hi","stream":true}`, row.directives)
		if (err != nil) != row.cut || !strings.Contains(body, row.says) {
			t.Errorf("%s: %v %q", row.directives, err, body)
		}
	}
	if _, _, err := post(t, server, "/v1/chat/completions", `{"say":"hi"}`, "cut"); err == nil {
		t.Error("a whole reply that was cut looks finished")
	}
}

func TestHandlerListsModels(t *testing.T) {
	server := serve(t)
	for path, want := range map[string]string{"/v1/models": `"id":"two"`, "/v1beta/models": `"name":"models/two"`} {
		resp, err := server.Client().Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if !json.Valid(body) || !bytes.Contains(body, []byte(want)) {
			t.Errorf("%s: %s", path, body)
		}
	}
}
