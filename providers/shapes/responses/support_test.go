package responses_test

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/dialogue/dialoguetest"
	"stagedoor/providers/shapes"
	"stagedoor/providers/shapes/registry"
	"stagedoor/providers/shapes/responses"
)

func newEnv() *dialogue.Env { return dialoguetest.NewEnv(1_800_000_000, "id") }

func newTarget() dialogue.Target {
	return dialogue.Target{Shape: dialoguetest.Responses, Model: "up", MaxOutputTokens: 8192,
		Caps: dialogue.Capabilities{StructuredOutputs: true, Thinking: dialogue.ThinkingImplicit}}
}

// decode checks and decodes a body that must be good.
func decode(t *testing.T, env *dialogue.Env, body string) *dialogue.Request {
	t.Helper()
	if _, err := responses.Shape.Check([]byte(body), shapes.Params{}); err != nil {
		t.Fatalf("Check: %v", err)
	}
	req, err := responses.Shape.Decode([]byte(body), shapes.Params{}, env)
	if err != nil {
		t.Fatalf("Decode: %v", err)
	}
	return req
}

// encode writes req upstream and parses what came out.
func encode(t *testing.T, req *dialogue.Request) (gjson.Result, *dialogue.Report) {
	t.Helper()
	rep := new(dialogue.Report)
	if d := registry.Describe(req.Inbound); d != nil {
		req.Traits = d.Traits
	}
	call, err := responses.Shape.Encode(req, newTarget(), rep, newEnv())
	if err != nil {
		t.Fatalf("Encode: %v", err)
	}
	if !json.Valid(call.Body) {
		t.Fatalf("Encode wrote %s", call.Body)
	}
	return gjson.ParseBytes(call.Body), rep
}

// frames cuts a stream into the data of its events, and fails where a name and
// a type differ.
func frames(t *testing.T, stream []byte) []gjson.Result {
	t.Helper()
	var out []gjson.Result
	for _, block := range strings.Split(strings.TrimSuffix(string(stream), "\n\n"), "\n\n") {
		block = strings.TrimPrefix(block, ": keep-alive\n")
		name, data, ok := strings.Cut(block, "\ndata: ")
		if !ok || !json.Valid([]byte(data)) {
			t.Fatalf("event %q", block)
		}
		v := gjson.Parse(data)
		if want := "event: " + v.Get("type").Str; name != want {
			t.Fatalf("got %q, want %q", name, want)
		}
		out = append(out, v)
	}
	return out
}

// checkProtocol checks the rules of the event stream on which clients depend.
func checkProtocol(t *testing.T, events []gjson.Result) {
	t.Helper()
	added := map[int64]string{}
	done := map[int64]gjson.Result{}
	parts := map[string]bool{}
	said := map[string]string{}
	for i, ev := range events {
		kind := ev.Get("type").Str
		if got := ev.Get("sequence_number").Int(); got != int64(i) {
			t.Errorf("sequence_number of %s: got %d, want %d", kind, got, i)
		}
		index := ev.Get("output_index").Int()
		if id := ev.Get("item_id"); id.Exists() && added[index] != id.Str {
			t.Errorf("%s: item_id %q is not of output_index %d", kind, id.Str, index)
		}
		place := fmt.Sprint(index, "/", ev.Get("content_index").Int())
		switch kind {
		case "response.output_item.added":
			if index != int64(len(added)) {
				t.Errorf("output_index %d added, want %d", index, len(added))
			}
			added[index] = ev.Get("item.id").Str
		case "response.output_item.done":
			if _, twice := done[index]; twice {
				t.Errorf("item %d done twice", index)
			}
			done[index] = ev.Get("item")
		case "response.content_part.added":
			parts[place] = true
		case "response.output_text.delta", "response.refusal.delta":
			if !parts[place] {
				t.Errorf("delta before content_part.added")
			}
			said[place] += ev.Get("delta").Str
		case "response.function_call_arguments.delta", "response.custom_tool_call_input.delta":
			said[fmt.Sprint(index)] += ev.Get("delta").Str
		case "response.output_text.done":
			want(t, "output_text.done", ev.Get("text").Str, said[place])
		case "response.function_call_arguments.done":
			want(t, "arguments.done", ev.Get("arguments").Str, said[fmt.Sprint(index)])
		case "response.custom_tool_call_input.done":
			want(t, "input.done", ev.Get("input").Str, said[fmt.Sprint(index)])
		}
	}
	last := events[len(events)-1]
	if kind := last.Get("type").Str; kind != "response.completed" && kind != "response.incomplete" {
		return
	}
	output := last.Get("response.output").Array()
	if len(output) != len(added) || len(done) != len(added) {
		t.Fatalf("%d items added, %d done, %d in the end", len(added), len(done), len(output))
	}
	for i, item := range output {
		want(t, "final item", item.Raw, done[int64(i)].Raw)
	}
}

func want[T comparable](t *testing.T, what string, got, wanted T) {
	t.Helper()
	if got != wanted {
		t.Errorf("%s: got %v, want %v", what, got, wanted)
	}
}

// emitAll writes events in both modes, checks the stream, and returns its
// events and the whole document.
func emitAll(t *testing.T, env *dialogue.Env, req *dialogue.Request, events []dialogue.Event) ([]gjson.Result,
	gjson.Result) {
	t.Helper()
	streamer := responses.Shape.NewEmitter(req, shapes.Stream, env)
	whole := responses.Shape.NewEmitter(req, shapes.Whole, env)
	var stream, doc []byte
	for i := range events {
		stream = streamer.Emit(stream, &events[i])
		doc = whole.Emit(doc, &events[i])
	}
	out := frames(t, stream)
	checkProtocol(t, out)
	if len(doc) > 0 && !json.Valid(doc) {
		t.Fatalf("document %s", doc)
	}
	return out, gjson.ParseBytes(doc)
}

// types lists the types of events.
func types(events []gjson.Result) string {
	var names []string
	for _, ev := range events {
		names = append(names, strings.TrimPrefix(ev.Get("type").Str, "response."))
	}
	return strings.Join(names, " ")
}

// validUnique reports whether the handler accepts body: JSON without
// duplicate names.
func validUnique(body string) bool {
	d := jsontext.NewDecoder(strings.NewReader(body))
	if d.SkipValue() != nil {
		return false
	}
	_, err := d.ReadToken()
	return err == io.EOF
}

func mustBeJSON(t testing.TB, b []byte) {
	t.Helper()
	if !json.Valid(b) {
		t.Fatalf("not JSON: %s", b)
	}
}
