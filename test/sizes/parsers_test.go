package sizes_test

import (
	"flag"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/dialogue/dialoguetest"
	"stagedoor/providers/fields"
	"stagedoor/providers/memory"
	"stagedoor/providers/picture"
	"stagedoor/providers/sandbox"
	"stagedoor/providers/schema"
	"stagedoor/providers/shapes"
	"stagedoor/providers/shapes/images"
	"stagedoor/providers/shapes/registry"
	"stagedoor/providers/tokens"
	"stagedoor/providers/upstream"
	"stagedoor/providers/vector"
	"stagedoor/test/sizes"
)

// size is the smaller of the two sizes of an input.
var size = flag.Int("sizes.bytes", sizes.Short, "bytes of the smaller input; the other one has eight times as many")

func newEnv() *dialogue.Env { return dialoguetest.NewEnv(1_700_000_000, "made") }

// requests are requests with a place for a value in each member that is read.
var requests = map[dialogue.Shape][]string{
	dialoguetest.Chat: {
		`{"model":"m","messages":[{"role":"user","content":"hi"}],"x":%}`,
		`{"model":"m","messages":[{"role":"user","content":%}]}`,
		`{"model":"m","messages":%}`,
		`{"model":"m","messages":[{"role":"user","content":"hi"}],"tools":%}`,
		`{"model":"m","messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function",` +
			`"function":{"name":"f","parameters":%}}]}`,
		`{"model":"m","messages":[{"role":"user","content":"hi"}],"response_format":{"type":"json_schema",` +
			`"json_schema":{"name":"s","schema":{"type":"object","properties":%}}}}`,
		`{"model":"m","messages":[{"role":"user","content":"hi"}],"response_format":{"type":"json_schema",` +
			`"json_schema":{"name":"s","schema":{"type":"object","properties":{"a":{"enum":%}}}}}}`,
		`{"model":"m","messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function",` +
			`"function":{"name":"f","parameters":{"type":"object","properties":{"a":{"enum":%}}}}}]}`,
		`{"model":"m","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":null,` +
			`"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":%}}]},{"role":"tool",` +
			`"tool_call_id":"c","content":%}]}`,
		`{"model":"m","messages":[{"role":"user","content":"hi"}],"stop":%}`,
		`{"model":"m","messages":[{"role":"user","content":"hi"}],"metadata":%}`,
	},
	dialoguetest.Completions: {
		`{"model":"m","prompt":"hi","x":%}`,
		`{"model":"m","prompt":%}`,
		`{"model":"m","prompt":"hi","logit_bias":%}`,
	},
	dialoguetest.Messages: {
		`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}],"x":%}`,
		`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":%}]}`,
		`{"model":"m","max_tokens":9,"messages":%}`,
		`{"model":"m","max_tokens":9,"system":%,"messages":[{"role":"user","content":"hi"}]}`,
		`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}],"tools":[{"name":"f",` +
			`"input_schema":{"type":"object","properties":%}}]}`,
		`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"},{"role":"assistant",` +
			`"content":[{"type":"tool_use","id":"c","name":"f","input":{"a":%}}]},{"role":"user",` +
			`"content":[{"type":"tool_result","tool_use_id":"c","content":%}]}]}`,
	},
	dialoguetest.Responses: {
		`{"model":"m","input":"hi","x":%}`, `{"model":"m","input":%}`, `{"model":"m","input":"hi","instructions":%}`,
		`{"model":"m","input":"hi","tools":%}`, `{"model":"m","input":"hi","metadata":%}`,
		`{"model":"m","input":"hi","tools":[{"type":"function","name":"f","parameters":{"type":"object",` +
			`"properties":%}}]}`,
		`{"model":"m","input":[{"type":"function_call","call_id":"c","name":"f","arguments":%},` +
			`{"type":"function_call_output","call_id":"c","output":%}]}`,
	},
	dialoguetest.Gemini: {
		`{"contents":[{"role":"user","parts":[{"text":"hi"}]}],"x":%}`,
		`{"contents":[{"role":"user","parts":[{"text":%}]}]}`, `{"contents":%}`,
		`{"contents":[{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"a":%}}}]}]}`,
		`{"contents":[{"role":"user","parts":[{"text":"hi"}]}],"tools":[{"functionDeclarations":[{"name":"f",` +
			`"parameters":{"type":"OBJECT","properties":%}}]}]}`,
		`{"contents":[{"role":"user","parts":[{"text":"hi"}]}],"generationConfig":{` +
			`"responseSchema":{"type":"STRING","enum":%},"responseMimeType":"application/json"}}`,
		`{"contents":[{"role":"user","parts":[{"text":"hi"}]}],"generationConfig":{"responseSchema":%,` +
			`"responseMimeType":"application/json"}}`,
	},
}

// replies are whole replies and events of upstreams, by the name of the event.
var replies = map[dialogue.Shape]struct {
	whole  []string
	events map[string][]string
}{
	dialoguetest.Chat: {
		[]string{
			`{"id":"i","choices":[{"index":0,"message":{"role":"assistant","content":%},"finish_reason":"stop"}]}`,
			`{"id":"i","choices":[{"index":0,"message":{"role":"assistant","content":"hi","x":%},` +
				`"finish_reason":"stop"}]}`,
			`{"id":"i","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"c",` +
				`"type":"function","function":{"name":"f","arguments":%}}]},"finish_reason":"tool_calls"}]}`,
			`{"id":"i","choices":%}`,
		},
		map[string][]string{"": {
			`{"id":"i","choices":[{"index":0,"delta":{"content":%}}]}`,
			`{"id":"i","choices":[{"index":0,"delta":{"content":"x"}}],"x":%}`,
			`{"id":"i","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"f",` +
				`"arguments":%}}]}}]}`,
			`{"error":%}`, `{"usage":%,"choices":[]}`,
		}},
	},
	dialoguetest.Completions: {
		[]string{`{"id":"i","choices":[{"index":0,"text":%,"finish_reason":"stop"}]}`, `{"id":"i","choices":%}`},
		map[string][]string{"": {`{"id":"i","choices":[{"index":0,"text":%}]}`, `{"id":"i","choices":[],"x":%}`}},
	},
	dialoguetest.Messages: {
		[]string{
			`{"id":"i","type":"message","role":"assistant","content":[{"type":"text","text":%}],` +
				`"stop_reason":"end_turn"}`,
			`{"id":"i","type":"message","role":"assistant","content":%,"stop_reason":"end_turn"}`,
			`{"id":"i","type":"message","role":"assistant","content":[{"type":"tool_use","id":"c","name":"f",` +
				`"input":%}],"stop_reason":"tool_use"}`,
		},
		map[string][]string{
			"content_block_start": {
				`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":%}}`,
			},
			"content_block_delta": {`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%}}`},
			"message_start":       {`{"type":"message_start","message":{"id":"i","x":%}}`},
			"error":               {`{"type":"error","error":%}`},
		},
	},
	dialoguetest.Responses: {
		[]string{
			`{"id":"i","object":"response","status":"completed","output":[{"type":"message",` +
				`"content":[{"type":"output_text","text":%}]}]}`,
			`{"id":"i","object":"response","status":"completed","output":%}`,
			`{"id":"i","object":"response","status":"completed","output":[{"type":"function_call","call_id":"c",` +
				`"name":"f","arguments":%}]}`,
		},
		map[string][]string{
			"response.output_text.delta": {
				`{"type":"response.output_text.delta","item_id":"i","output_index":0,"content_index":0,"delta":%}`,
			},
			"response.created": {`{"type":"response.created","response":{"id":"i","tools":%}}`},
			"response.completed": {
				`{"type":"response.completed","response":{"id":"i","status":"completed","output":%}}`,
			},
		},
	},
	dialoguetest.Gemini: {
		[]string{
			`{"candidates":[{"content":{"parts":[{"text":%}]},"finishReason":"STOP"}]}`, `{"candidates":%}`,
			`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{"a":%}}}]},` +
				`"finishReason":"STOP"}]}`,
		},
		map[string][]string{"": {`{"candidates":[{"content":{"parts":[{"text":%}]}}]}`, `{"candidates":[],"x":%}`}},
	},
}

func in(template string) func(string) string {
	return func(value string) string { return strings.ReplaceAll(template, "%", value) }
}

// inbound are the shapes in a fixed order.
func inbound() []dialogue.Shape { return slices.Sorted(maps.Keys(requests)) }

func target(shape dialogue.Shape) dialogue.Target {
	return dialogue.Target{
		Shape:           shape,
		Model:           "up",
		MaxOutputTokens: 8192,
		Caps: dialogue.Capabilities{StructuredOutputs: true,
			ImagesIn: true, FilesIn: true, AudioIn: true, JSONSchema: true, SystemTurns: true, Sampling: true,
			Prefill: true},
	}
}

// TestRequestsCostWhatTheirSizeIsWorth: Check, Patch, Decode and Encode are linear in time and memory.
func TestRequestsCostWhatTheirSizeIsWorth(t *testing.T) {
	var subjects []sizes.Subject
	for _, name := range inbound() {
		shape := registry.ByName()[name]
		for _, template := range requests[name] {
			subjects = append(subjects, sizes.Subject{Name: "requests of " + string(name), Input: in(template),
				Counted: counted, Read: func(input string) {
					readRequest(shape, []byte(input))
				}})
		}
	}
	sizes.Table(t, sizes.Check(t, *size, subjects))
}

// items are lists of requests with the smallest items that pass their checks. Items
// repeat one id or one name, or have names that become one where the shape refuses
// their letters.
var items = []struct {
	shape          dialogue.Shape
	list, template string
	item           func(i int) string
}{
	{dialoguetest.Chat, "messages", `{"model":"m","messages":%}`, same(`{"role":"user","content":"hi"}`)},
	{
		dialoguetest.Chat,
		"parts",
		`{"model":"m","messages":[{"role":"user","content":%}]}`,
		same(`{"type":"text","text":"x"}`),
	},
	{
		dialoguetest.Chat,
		"calls of one id",
		`{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","tool_calls":%}]}`,
		same(`{"type":"function","id":"x","function":{"name":"f","arguments":"{}"}}`),
	},
	{
		dialoguetest.Chat,
		"results of one id",
		`{"model":"m","messages":%}`,
		same(`{"role":"tool","tool_call_id":"x","content":"x"}`),
	},
	{
		dialoguetest.Chat,
		"tools",
		`{"model":"m","messages":[{"role":"user","content":"x"}],"tools":%}`,
		numbered(`{"type":"function","function":{"name":"f%d"}}`),
	},
	{dialoguetest.Responses, "items", `{"model":"m","input":%}`, same(`{"role":"user","content":"hi"}`)},
	{
		dialoguetest.Responses,
		"parts",
		`{"model":"m","input":[{"role":"user","content":%}]}`,
		same(`{"type":"input_text","text":"x"}`),
	},
	{
		dialoguetest.Responses,
		"tools",
		`{"model":"m","input":"hi","tools":%}`,
		numbered(`{"type":"function","name":"f%d"}`),
	},
	{
		dialoguetest.Responses,
		"calls of one id",
		`{"model":"m","input":%}`,
		same(`{"type":"function_call","call_id":"x","name":"f","arguments":"{}"}`),
	},
	{
		dialoguetest.Responses,
		"results of one id",
		`{"model":"m","input":%}`,
		same(`{"type":"function_call_output","call_id":"x","output":"x"}`),
	},
	{
		dialoguetest.Responses,
		"sealed carriers",
		`{"model":"m","input":%}`,
		same(`{"type":"reasoning","encrypted_content":"sd1.chat.x.y","summary":[]}`),
	},
	{dialoguetest.Gemini, "contents", `{"contents":%}`, same(`{"role":"user","parts":[{"text":"x"}]}`)},
	{dialoguetest.Gemini, "parts", `{"contents":[{"role":"user","parts":%}]}`, same(`{"text":"x"}`)},
	{
		dialoguetest.Gemini,
		"calls of one name",
		`{"contents":[{"role":"model","parts":%}]}`,
		same(`{"functionCall":{"name":"f"}}`),
	},
	{
		dialoguetest.Gemini,
		"sealed carriers",
		`{"contents":%}`,
		same(`{"role":"model","parts":[{"text":"x","thoughtSignature":"sd1.chat.x.y"}]}`),
	},
	{
		dialoguetest.Gemini,
		"sealed thoughts",
		`{"contents":%}`,
		same(`{"role":"model","parts":[{"text":"x","thought":true,"thoughtSignature":"sd1.chat.x.y"}]}`),
	},
	{dialoguetest.Messages, "messages", `{"model":"m","max_tokens":9,"messages":%}`,
		same(`{"role":"user","content":"hi"}`)},
	{dialoguetest.Messages, "messages of both roles", `{"model":"m","max_tokens":9,"messages":%}`,
		alternate(`{"role":"user","content":"hi"}`, `{"role":"assistant","content":"hi"}`)},
	{dialoguetest.Messages, "messages of one block", `{"model":"m","max_tokens":9,"messages":%}`,
		alternate(`{"role":"user","content":[{"type":"text","text":"x"}]}`,
			`{"role":"assistant","content":[{"type":"text","text":"x"}]}`)},
	{
		dialoguetest.Messages,
		"blocks",
		`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":%}]}`,
		same(`{"type":"text","text":"x"}`),
	},
	{dialoguetest.Messages, "calls of one id",
		`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":%}]}`,
		same(`{"type":"tool_use","id":"x","name":"f","input":{}}`)},
	{
		dialoguetest.Messages,
		"tools",
		`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"}],"tools":%}`,
		numbered(`{"name":"f%d","input_schema":{"type":"object"}}`),
	},
	{
		dialoguetest.Messages,
		"sealed carriers",
		`{"model":"m","max_tokens":9,"messages":[{"role":"assistant","content":%}]}`,
		same(`{"type":"thinking","thinking":"x","signature":"sd1.chat.x.y"}`),
	},
	{dialoguetest.Chat, "sealed carriers", `{"model":"m","messages":%}`,
		same(
			`{"role":"assistant","content":"x","reasoning_details":[{"type":"reasoning.encrypted",` +
				`"data":"sd1.chat.x.y"}]}`,
		)},
}

func same(item string) func(int) string { return func(int) string { return item } }

func alternate(even, odd string) func(int) string {
	return func(i int) string {
		if i%2 == 0 {
			return even
		}
		return odd
	}
}

func numbered(item string) func(int) string {
	return func(i int) string { return fmt.Sprintf(item, i) }
}

// TestManyItemsCostWhatTheirSizeIsWorth: a request of more than 10,000 small items is
// refused before anything is made of them, and long ones are not copied for each.
func TestManyItemsCostWhatTheirSizeIsWorth(t *testing.T) {
	var subjects []sizes.Subject
	for _, c := range items {
		shape := registry.ByName()[c.shape]
		long := `,"x":"` + strings.Repeat("x", 384) + `"}`
		subjects = append(subjects, sizes.Subject{Name: string(c.shape) + ", " + c.list, Counted: counted,
			Input: in(c.template),
			Forms: []sizes.Form{
				sizes.Items("small", c.item),
				sizes.Items("long", func(i int) string { return strings.TrimSuffix(c.item(i), "}") + long }),
			}, Read: func(input string) { readRequest(shape, []byte(input)) }})
	}
	sizes.Table(t, sizes.Check(t, *size, subjects))
}

// counted returns the bytes that a translation counts against the memory of the process.
func counted(input string) int64 { return memory.OfTranslation([]byte(input)) }

func readRequest(shape *shapes.Shape, body []byte) {
	inbound := shapes.Params{Model: "m"}
	if _, ok := shape.Inbound.(shapes.SyntaxChecker); !ok && !fields.ValidObject(body, shape.Members) {
		fields.ExplainNames(body, shape.Members)
		return
	}
	head, err := shape.Check(body, inbound)
	if err != nil {
		return
	}
	_, _ = shape.Patch(body, inbound, head, target(shape.Name), new(dialogue.Report), newEnv())
	env := newEnv()
	env.RememberThoughts("x", []dialogue.Thinking{{Text: strings.Repeat("t", 4<<10)}}) // for the calls of one id
	req, err := shape.Decode(body, inbound, env)
	if err != nil {
		return
	}
	for _, other := range registry.ByName() {
		runtime.GC() // a request is encoded once, so do not count what the others left
		_, _ = other.Encode(req, target(other.Name), new(dialogue.Report), newEnv())
	}
}

// TestRepliesCostWhatTheirSizeIsWorth: parsers, taps and emitters are linear in time and memory.
func TestRepliesCostWhatTheirSizeIsWorth(t *testing.T) {
	var subjects []sizes.Subject
	for _, name := range inbound() {
		shape := registry.ByName()[name]
		for _, template := range replies[name].whole {
			subjects = append(
				subjects,
				sizes.Subject{
					Name:  "replies of " + string(name) + ", translated",
					Input: in(template),
					Read:  func(input string) { parse(shape, "", input, true) },
				},
				sizes.Subject{
					Name:  "replies of " + string(name) + ", passed through",
					Input: in(template),
					Read: func(input string) {
						_, _ = shape.NewTap(shapes.TapOptions{Model: "m"}, newEnv()).Body([]byte(input))
					},
				},
			)
		}
		for _, event := range slices.Sorted(maps.Keys(replies[name].events)) {
			for _, template := range replies[name].events[event] {
				subjects = append(
					subjects,
					sizes.Subject{
						Name:  "events of " + string(name) + ", translated",
						Input: in(template),
						Read:  func(input string) { parse(shape, event, input, false) },
					},
					sizes.Subject{
						Name:  "events of " + string(name) + ", passed through",
						Input: in(template),
						Read:  func(input string) { tap(shape, event, input) },
					},
				)
			}
		}
	}
	chat := registry.ByName()[dialoguetest.Chat]
	subjects = append(subjects, sizes.Subject{Name: "calls behind one that is cut off", Input: in("%"),
		Forms: []sizes.Form{{Name: "half of each", JSON: cutCalls}},
		Read:  func(input string) { parse(chat, "", input, true) }})
	sizes.Table(t, sizes.Check(t, *size, subjects))
}

// cutCalls is a reply whose first call has long arguments that do not end, before many others.
func cutCalls(n int) string {
	const reply = `{"id":"i","choices":[{"index":0,"message":{"tool_calls":[%]},"finish_reason":"tool_calls"}]}`
	call := func(id int, arguments string) string {
		return fmt.Sprintf(`{"id":"c%d","type":"function","function":{"name":"f","arguments":"%s"}}`, id, arguments)
	}
	calls := []string{call(0, "["+strings.Repeat("1,", n/4))}
	for id := 1; id < min(n/140, 4000); id++ {
		calls = append(calls, call(id, "{}"))
	}
	return strings.Replace(reply, "%", strings.Join(calls, ","), 1)
}

// parse reads a reply and writes it for a client of each shape in turn.
func parse(shape *shapes.Shape, event, input string, whole bool) {
	for _, client := range registry.ByName() {
		mode := shapes.Stream
		if whole {
			mode = shapes.Whole
		}
		emitter, out := client.NewEmitter(&dialogue.Request{Inbound: client.Name}, mode, newEnv()), []byte(nil)
		emit := func(ev *dialogue.Event) { out = emitter.Emit(out[:0], ev) }
		parser := shape.NewParser(1, newEnv())
		if whole {
			parser.Body([]byte(input), emit)
			continue
		}
		if fields.CheckEvent([]byte(input)) == nil {
			parser.Event(event, []byte(input), emit)
		}
		parser.EOF(emit)
	}
}

func tap(shape *shapes.Shape, event, input string) {
	t := shape.NewTap(shapes.TapOptions{Model: "m", Stream: true}, newEnv())
	if fields.CheckEvent([]byte(input)) == nil {
		t.Event(event, []byte(input))
	}
}

// TestManyEventsCostWhatTheirSizeIsWorth: what a parser keeps of the events before is not read again for each.
func TestManyEventsCostWhatTheirSizeIsWorth(t *testing.T) {
	streams := map[string][2]string{
		"chat, arguments in pieces": {
			string(dialoguetest.Chat),
			`{"id":"i","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"f",` +
				`"arguments":"{\"a\":"}}]}}]}`,
		},
		"chat, text in pieces": {
			string(dialoguetest.Chat),
			`{"id":"i","choices":[{"index":0,"delta":{"content":"x"}}]}`,
		},
		"messages, arguments in pieces": {
			string(dialoguetest.Messages),
			`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"[1,"}}`,
		},
		"responses, arguments in pieces": {
			string(dialoguetest.Responses),
			`{"type":"response.function_call_arguments.delta","item_id":"i","output_index":0,"delta":"[1,"}`,
		},
		"gemini, text in pieces": {
			string(dialoguetest.Gemini),
			`{"candidates":[{"content":{"parts":[{"text":"x"}]}}]}`,
		},
	}
	for _, name := range slices.Sorted(maps.Keys(streams)) {
		shape, event := registry.ByName()[dialogue.Shape(streams[name][0])], []byte(streams[name][1])
		read := func(n int) sizes.Cost {
			return sizes.Measure(0, func() {
				for _, client := range registry.ByName() {
					emitter, out := client.NewEmitter(&dialogue.Request{Inbound: client.Name}, shapes.Stream,
						newEnv()), []byte(
						nil,
					)
					parser := shape.NewParser(1, newEnv())
					emit := func(ev *dialogue.Event) { out = emitter.Emit(out[:0], ev) }
					for range n {
						parser.Event("", event, emit)
					}
					parser.EOF(emit)
				}
			})
		}
		n := *size / 64
		grown := 0.0
		for range 3 {
			if grown = float64(read(8*n).CPU) / float64(max(read(n).CPU, sizes.Unit)); grown <= sizes.Growth {
				break
			}
		}
		if grown > sizes.Growth {
			t.Errorf("%s: %.1f times the time for 8 times as many events", name, grown)
		}
	}
}

// TestOtherReadersCostWhatTheirInputIsWorth: the event reader, schemas and samples.
func TestOtherReadersCostWhatTheirInputIsWorth(t *testing.T) {
	subjects := []sizes.Subject{
		{Name: "reader of events, data", Input: in("data: %\n\n"), Read: readEvents},
		{
			Name:  "reader of events, lines",
			Input: func(v string) string { return strings.ReplaceAll("data: "+v, ",", "\ndata: ") + "\n\n" },
			Read:  readEvents,
		},
		{Name: "reader of events, names", Input: in("event: %\n: %\nid: %\ndata: {}\n\n"), Read: readEvents},
		{
			Name:  "edits of images",
			Input: in(`{"prompt":"a","model":"gen-image-2","images":%}`),
			Read: func(input string) {
				if r, err := images.CheckEdit([]byte(input), func(string) string { return "gen-image-2" }); err == nil {
					_ = r.Close()
				}
			},
		},
		{Name: "replies with vectors", Input: in(`{"data":[{"embedding":%}],"usage":%}`), Read: readVectors},
		{Name: "replies with vectors", Input: in(`{"embeddings":[{"values":%}],"usageMetadata":%}`), Read: readVectors},
		{Name: "headers of pictures", Input: in("\x89PNG\r\n\x1a\n%"), Read: readPicture},
		{Name: "headers of pictures", Input: in("\xff\xd8%"), Read: readPicture},
		{Name: "headers of pictures", Input: in("RIFF\xff\xff\xff\x00WEBP%"), Read: readPicture},
		{Name: "count of tokens", Input: in("%"), Read: func(input string) { tokens.Count(input) }},
		{Name: "pieces of a text", Input: in("%"), Read: func(input string) { tokens.Split(input) }},
		{Name: "schemas", Input: in(`{"type":"object","properties":{"a":%},"required":%,"$defs":%}`), Read: readSchema},
		{Name: "schemas, alternatives", Input: in(`{"anyOf":%,"allOf":%,"enum":%}`), Read: readSchema},
	}
	sizes.Table(t, sizes.Check(t, *size, subjects))
}

// readVectors reads a reply as that of each dialect, in pieces and whole.
func readVectors(input string) {
	for _, d := range registry.Embeddings {
		tap := vector.NewTap(d, "m")
		for piece := range slices.Chunk([]byte(input), 32<<10) {
			if _, bad := tap.Next(nil, piece); bad != nil {
				break
			}
		}
		if reply, err := d.Decode([]byte(input), 1); err == nil {
			_, _ = vector.Parse(reply.Vectors[0])
		}
	}
}

func readPicture(input string) { _, _, _ = picture.Measure(strings.NewReader(input)) }

func readEvents(input string) {
	r := upstream.NewEventReader(strings.NewReader(input))
	for {
		if _, err := r.Next(); err != nil {
			return
		}
	}
}

func readSchema(input string) {
	raw := []byte(input)
	if !fields.Valid(raw) {
		return
	}
	sandbox.Sample(raw)
	sandbox.Sample(schema.FromGemini(raw))
	sandbox.Sample(schema.ToolForMessages(raw, false))
}
