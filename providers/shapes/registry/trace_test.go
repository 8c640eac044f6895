package registry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/dialogue/dialoguetest"
	"stagedoor/providers/shapes"
)

func newEnv() *dialogue.Env { return dialoguetest.NewEnv(1_700_000_000, "made") }

// able is a target that can do everything its shape can.
func able(shape dialogue.Shape) dialogue.Target {
	thinking := dialogue.ThinkingImplicit
	if shape == dialoguetest.Messages || shape == dialoguetest.Gemini {
		thinking = dialogue.ThinkingBudget
	}
	return dialogue.Target{Shape: shape, Model: "up", MaxOutputTokens: 8192, Caps: dialogue.Capabilities{
		StructuredOutputs: true, Thinking: thinking, ImagesIn: true, FilesIn: true, AudioIn: true,
		JSONSchema: true, SystemTurns: true, Sampling: true, Prefill: true,
	}}
}

// trace holds the visible results of a request.
type trace struct{ body, losses, refused, enforced string }

// translated returns all results of a request: the upstream's body, the losses that
// the client is warned of, or the reason of the refusal.
func translated(in, out *shapes.Shape, body []byte) (trace, error) {
	env, inbound := newEnv(), shapes.Params{Path: "/v1"}
	if in.Name == dialoguetest.Gemini {
		inbound.Model = "m"
	}
	if _, err := in.Check(body, inbound); err != nil {
		return trace{}, err
	}
	req, err := in.Decode(body, inbound, env)
	if err != nil {
		return trace{refused: err.Error()}, nil
	}
	rep := new(dialogue.Report)
	for _, name := range req.Lost {
		rep.Lose(name)
	}
	call, err := out.Encode(req, able(out.Name), rep, env)
	if err != nil {
		return trace{refused: err.Error()}, nil
	}
	return trace{body: string(call.Body), losses: strings.Join(rep.Losses(), ",") + rep.Degraded,
		enforced: fmt.Sprint(req.Enforced, req.Truncation)}, nil
}

// written returns the JSON of v, with the members of an object in the order of their
// names, because losses are listed in the order in which a request is read.
func written(t *testing.T, v any) []byte {
	t.Helper()
	var w bytes.Buffer
	enc := json.NewEncoder(&w)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	return w.Bytes()
}

// without calls f with the JSON of v less one of its members or elements, for
// each of them at every depth, and the place of what is left out.
func without(t *testing.T, v any, f func(place string, body []byte)) {
	write := func(place string) { f(place, written(t, v)) }
	var walk func(node any, place string, put func(any))
	walk = func(node any, place string, put func(any)) {
		switch node := node.(type) {
		case map[string]any:
			for _, name := range sortedKeys(node) {
				kept := node[name]
				delete(node, name)
				write(place + "." + name)
				node[name] = kept
				walk(kept, place+"."+name, func(v any) { node[name] = v })
			}
		case []any:
			for i, kept := range node {
				put(slices.Delete(slices.Clone(node), i, i+1))
				write(place + "[" + strconv.Itoa(i) + "]")
				put(node)
				walk(kept, place+"["+strconv.Itoa(i)+"]", func(v any) { node[i] = v })
			}
		}
	}
	walk(v, "", func(any) {})
}

func sortedKeys(m map[string]any) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// untold lists the members that are rightly neither sent nor reported, because the
// model reads and does the same without them.
var untold = []struct {
	place *regexp.Regexp
	why   string
}{
	{regexp.MustCompile(`\.type$`), "the other members of the object tell which it is"},
	{regexp.MustCompile(`^\.tool_choice.*\.mode$`), "auto is understood"},
	{regexp.MustCompile(`\.strict$`), "true, where every schema binds"},
	{regexp.MustCompile(`\.text\.format\.name$`), "schemas have no names elsewhere"},
	{regexp.MustCompile(`^\.tools\[\d\]\.name$`), "of a web search, which has but one"},
	{regexp.MustCompile(`\.propertyOrdering\b`), "the properties stand in this order"},
	{regexp.MustCompile(`^\.contents\[\d\]\.role$|^\.systemInstruction\.role$`),
		"the user's is understood, the system's is its place"},
	{regexp.MustCompile(`\.thinking\.display$|\.includeThoughts$|\.(generate_)?summary$`), "how the reply is shown"},
	{regexp.MustCompile(`^\.include\[0\]$`), "reasoning.encrypted_content: what the reply holds"},
	{regexp.MustCompile(`\.signature$|\.thoughtSignature$`), "a proof, to its own maker only"},
	{regexp.MustCompile(`\.encrypted_content$`), "the thought is reported"},
	{regexp.MustCompile(`^\.contents\[1\]\.parts\[0\]\.text$`), "of a thought, which is reported as a whole"},
	{regexp.MustCompile(`\.functionResponse\.id$`), "paired by name"},
	{regexp.MustCompile(`\.source\.media_type$|\.functionResponse\.parts.*\.mimeType$|\.fileData\.mimeType$`),
		"recognised from the data"},
	{regexp.MustCompile(`^\.input\[1\]\.role$`), "of an item that declares tools, which has but one"},
	{regexp.MustCompile(`^\.input\[\d\]\.(id|status)$|\.logprobs\b|\.caller\b`), "how history came to be"},
}

func rightlyUntold(place string) bool {
	for _, u := range untold {
		if u.place.MatchString(place) {
			return true
		}
	}
	return false
}

// TestNothingIsSilentlyLost leaves out each member of the requests in testdata,
// which hold all members of the vendors' schemas. It must make a difference: to
// the upstream's body, or to the client's warnings.
func TestNothingIsSilentlyLost(t *testing.T) {
	for _, in := range All {
		seeds, err := os.ReadFile("testdata/" + string(in.Name) + ".jsonl")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(seeds)) {
			if strings.TrimSpace(line) == "" {
				continue
			}
			for _, out := range All {
				if in.Name != out.Name {
					traced(t, in, out, line)
				}
			}
		}
	}
}

func traced(t *testing.T, in, out *shapes.Shape, seed string) {
	var v any
	d := json.NewDecoder(strings.NewReader(seed))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", seed, err)
	}
	whole, err := translated(in, out, written(t, v))
	if err != nil {
		t.Fatalf("%s is refused: %v", seed, err)
	}
	if whole.refused != "" {
		return
	}
	var same, reported []string
	differs := map[string]bool{} // places in which something makes a difference
	without(t, v, func(place string, body []byte) {
		less, err := translated(in, out, body)
		if err != nil || less.refused != "" {
			return
		}
		if less == whole {
			same = append(same, place)
			return
		}
		if less.body == whole.body {
			reported = append(reported, place)
		}
		for p := above(place); p != ""; p = above(p) {
			differs[p] = true
		}
	})
	for _, place := range same {
		// What stands in something that is lost as a whole is lost with it.
		whole := slices.ContainsFunc(reported,
			func(p string) bool { return !differs[p] && strings.HasPrefix(place, p) })
		if !whole && !rightlyUntold(place) {
			t.Errorf("%s -> %s: no trace of %s in\n%s", in.Name, out.Name, place, seed)
		}
	}
}

// above is the place of the object or list in which something stands.
func above(place string) string { return place[:max(strings.LastIndexAny(place, ".["), 0)] }

// TestNothingIsToldThatIsNot sends what SDKs write when a conversation goes on:
// nulls, empty lists and defaults around what was said.
func TestNothingIsToldThatIsNot(t *testing.T) {
	for in, body := range map[dialogue.Shape]string{
		dialoguetest.Chat: `{"model":"m","max_completion_tokens":99,"messages":[{"role":"system","content":"s"},{"role":"user","content":"hi","name":null},
			{"role":"assistant","content":null,"refusal":null,"annotations":[],"audio":null,"function_call":null,"tool_calls":[
				{"index":0,"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]},
			{"role":"tool","tool_call_id":"c1","name":"f","content":"r"}],
			"tools":[{"type":"function","function":{"name":"f","description":null,"parameters":{"type":"object","properties":{}},"strict":false}}],
			"n":1,"store":false,"presence_penalty":0,"frequency_penalty":0.0,"logit_bias":{},"metadata":{},"modalities":["text"],
			"verbosity":"medium","prediction":null,"stream":true,"stream_options":{"include_usage":true}}`,
		dialoguetest.Responses: `{"model":"m","max_output_tokens":99,"instructions":"s","input":[{"role":"user","content":"hi"},
			{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"a","annotations":[],"logprobs":[]}]},
			{"type":"function_call","id":"fc_1","call_id":"c1","name":"f","arguments":"{}","status":"completed"},
			{"type":"function_call_output","call_id":"c1","output":"r"}],
			"tools":[{"type":"function","name":"f","description":null,"parameters":{"type":"object","properties":{}},"strict":false}],
			"include":["reasoning.encrypted_content"],"store":true,"metadata":{},"text":{"format":{"type":"text"},"verbosity":"medium"}}`,
		dialoguetest.Completions: `{"model":"m","prompt":"hi","max_tokens":99,"n":1,"echo":false,"suffix":null,"logprobs":null}`,
		dialoguetest.Messages: `{"model":"m","max_tokens":99,"system":"s","messages":[{"role":"user","content":[{"type":"text","text":"hi"}]},
			{"role":"assistant","content":[{"type":"text","text":"a","citations":null},{"type":"tool_use","id":"t1","name":"f","input":{},"caller":{"type":"direct"}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"r","is_error":false}]}],
			"tools":[{"type":"custom","name":"f","description":"d","input_schema":{"type":"object","properties":{}}}],
			"metadata":{"user_id":null},"mcp_servers":[]}`,
		dialoguetest.Gemini: `{"contents":[{"role":"user","parts":[{"text":"hi"}]},{"role":"model","parts":[{"text":"a"},{"functionCall":{"id":"c1","name":"f","args":{}}}]},
			{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"f","response":{"output":"r"}}}]}],
			"systemInstruction":{"parts":[{"text":"s"}]},"generationConfig":{"maxOutputTokens":99,"candidateCount":1},"safetySettings":[],"labels":{},
			"tools":[{"functionDeclarations":[{"name":"f","description":"d"}]}]}`,
	} {
		for _, out := range All {
			got, err := translated(ByName()[in], out, []byte(body))
			if err != nil {
				t.Fatalf("%s: %v", in, err)
			}
			if got.losses != "" {
				t.Errorf("%s -> %s: reported as lost: %s", in, out.Name, got.losses)
			}
		}
	}
}
