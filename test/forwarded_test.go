package test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/dialogue/dialoguetest"
	"stagedoor/providers/shapes"
	"stagedoor/providers/shapes/registry"
	"stagedoor/test/cases"
	"stagedoor/test/harness"
)

// belief holds the fields that a reader of a request relies on. Zero values are fields that are not
// given or that the shape does not have.
type belief struct {
	Model  string
	Stream bool
	Max    float64 // tokens; 0: not given
	N      float64 // choices; 0: not given
	Tools  []string
	Role   string // of the first message
}

func (b belief) String() string {
	return fmt.Sprintf("model %q, stream %v, max %v, n %v, tools %q, role %q",
		b.Model, b.Stream, b.Max, b.N, b.Tools, b.Role)
}

// forwarding is a request that reached its provider.
type forwarding struct {
	name     string
	sent     string // by the client
	got      []byte // by the provider
	believed belief
}

// TestForwardedBytesMeanWhatTheGatewayBelieved sends generated bodies through the gateway and
// lets decoders of three languages read what the provider got. Go's disregards the case of
// names, and all three take the last of several.
func TestForwardedBytesMeanWhatTheGatewayBelieved(t *testing.T) {
	paths := map[dialogue.Shape]string{
		dialoguetest.Chat: "/v1/chat/completions", dialoguetest.Messages: "/v1/messages",
		dialoguetest.Responses:   "/v1/responses",
		dialoguetest.Completions: "/v1/completions", dialoguetest.Gemini: "/v1beta/models/m:generateContent",
	}
	rng := rand.New(rand.NewPCG(12, 2026))
	var all []forwarding
	for _, pair := range [][2]dialogue.Shape{
		{dialoguetest.Chat, dialoguetest.Chat}, {dialoguetest.Messages, dialoguetest.Messages},
		{dialoguetest.Responses, dialoguetest.Responses}, {dialoguetest.Completions, dialoguetest.Completions},
		{dialoguetest.Gemini, dialoguetest.Gemini}, {dialoguetest.Chat, dialoguetest.Messages},
		{dialoguetest.Messages, dialoguetest.Chat},
		{dialoguetest.Responses, dialoguetest.Chat}, {dialoguetest.Gemini, dialoguetest.Chat},
	} {
		from, to := pair[0], pair[1]
		shape := registry.ByName()[from]
		got := make(chan []byte, 1)
		provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body) // a part of a body is not valid JSON
			got <- body
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			io.WriteString(w, `{"error":{"message":"no","type":"invalid_request_error"}}`)
		}))
		t.Cleanup(provider.Close)
		g := harness.Start(t, harness.CatchAll(harness.Provider{
			Shape: string(to), BaseURL: provider.URL, APIKeys: []string{"sk-upstream"},
		}))
		const bodies = 200
		forwarded := 0
		for range bodies {
			body := generate(rng, from)
			if head, err := shape.Check([]byte(body), inbound(from)); err == nil && from != to && head.N > 1 {
				continue // it becomes several calls, of which some would be taken for the next body's
			}
			status := send(t, g.URL+paths[from], from, body)
			select {
			case sent := <-got:
				forwarded++
				name := fmt.Sprintf("%s to %s", from, to)
				all = append(all, forwarding{name, body, sent, believed(t, shape, body, from == to)})
			default:
				if status != 400 && status != 404 {
					t.Errorf("%s: got %d", body, status)
				}
			}
		}
		if forwarded < bodies/20 || forwarded > bodies*19/20 {
			t.Errorf("%s to %s: %d of %d bodies were forwarded, so little is tested", from, to, forwarded, bodies)
		}
	}
	readings := map[string][]belief{
		"Go":     readByGo(t, all),
		"Python": readBy(t, all, "python3", "-c", pythonReader),
		"Node":   readBy(t, all, "node", "-e", nodeReader),
	}
	for i, f := range all {
		for language, read := range readings {
			if got := read[i].beside(f.believed); got != f.believed.String() {
				t.Errorf("%s: %s reads     %s\nthe gateway believed %s\nsent      %s\nforwarded %s",
					f.name, language, got, f.believed, f.sent, f.got)
			}
		}
	}
}

// send asks the gateway as a client of a shape.
func send(t *testing.T, url string, shape dialogue.Shape, body string) int {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Content-Type", "application/json")
	cases.Authorize(q, cases.Shape(shape), harness.TestKey)
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		t.Fatal(err)
	}
	return r.StatusCode
}

// beside writes b without what a translation adds where the client said nothing.
func (b belief) beside(believed belief) string {
	if believed.Max == 0 {
		b.Max = 0
	}
	if believed.N == 0 {
		b.N = 0
	}
	if believed.Role == "" {
		b.Role = ""
	}
	return b.String()
}

func inbound(shape dialogue.Shape) shapes.Params {
	in := shapes.Params{Header: http.Header{}}
	if shape == dialoguetest.Gemini {
		in.Path, in.Model = "/v1beta/models/m:generateContent", "m"
	}
	return in
}

// believed reads a body as the gateway does for routing, limits and translation.
func believed(t *testing.T, shape *shapes.Shape, body string, equal bool) belief {
	in := inbound(shape.Name)
	head, err := shape.Check([]byte(body), in)
	if err != nil {
		t.Fatalf("%s was forwarded, and is refused: %v", body, err)
	}
	req, err := shape.Decode([]byte(body), in, &dialogue.Env{Sealer: dialogue.NewSealer([]byte("test"))})
	if err != nil {
		t.Fatalf("%s was forwarded, and cannot be decoded: %v", body, err)
	}
	b := belief{Model: head.Model, Stream: head.Stream, Max: float64(max(head.MaxTokens, 0))}
	if head.N > 1 {
		b.N = float64(head.N)
	}
	if equal && shape.Name == dialoguetest.Gemini {
		b.Model = "" // it is in the path
	}
	for _, tool := range req.Tools {
		// Hosted tools may have no counterpart, and those of gemini have no names.
		if tool.Kind == dialogue.FunctionTool || equal && shape.Name != dialoguetest.Gemini {
			b.Tools = append(b.Tools, tool.Name)
		}
	}
	if shape.Name != dialoguetest.Completions && len(req.Turns) > 0 {
		b.Role = map[dialogue.Role]string{dialogue.User: "user", dialogue.Assistant: "assistant"}[req.Turns[0].Role]
	}
	return b
}

// wireRequest is a request as a server in Go would read it, of any shape.
type wireRequest struct {
	Model      string   `json:"model"`
	Stream     *bool    `json:"stream"`
	MaxTokens  *float64 `json:"max_tokens"`
	Completion *float64 `json:"max_completion_tokens"`
	Output     *float64 `json:"max_output_tokens"`
	N          *float64 `json:"n"`
	Config     struct {
		Max *float64 `json:"maxOutputTokens"`
		N   *float64 `json:"candidateCount"`
	} `json:"generationConfig"`
	Messages []wireTurn      `json:"messages"`
	Contents []wireTurn      `json:"contents"`
	Input    json.RawMessage `json:"input"`
	Tools    []struct {
		Name     string `json:"name"`
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
		Declarations []struct {
			Name string `json:"name"`
		} `json:"functionDeclarations"`
	} `json:"tools"`
}

type wireTurn struct {
	Role string `json:"role"`
}

func readByGo(t *testing.T, all []forwarding) []belief {
	out := make([]belief, len(all))
	for i, f := range all {
		var r wireRequest
		if err := json.Unmarshal(f.got, &r); err != nil {
			t.Errorf("%s: Go cannot read %s: %v", f.name, f.got, err)
			continue
		}
		b := belief{Model: r.Model, Stream: r.Stream != nil && *r.Stream}
		for _, n := range []*float64{r.MaxTokens, r.Completion, r.Output, r.Config.Max} {
			if n != nil {
				b.Max = *n
			}
		}
		for _, n := range []*float64{r.N, r.Config.N} {
			if n != nil {
				b.N = *n
			}
		}
		for _, tool := range r.Tools {
			names := []string{tool.Name, tool.Function.Name}
			for _, d := range tool.Declarations {
				names = append(names, d.Name)
			}
			b.Tools = append(b.Tools, slices.DeleteFunc(names, func(s string) bool { return s == "" })...)
		}
		turns := slices.Concat(r.Messages, r.Contents)
		if len(turns) == 0 && len(r.Input) > 0 && r.Input[0] == '[' {
			if err := json.Unmarshal(r.Input, &turns); err != nil {
				t.Errorf("%s: Go cannot read %s: %v", f.name, r.Input, err)
			}
		}
		b.Role = roleOf(turns, r.Input)
		out[i] = b
	}
	return out
}

func roleOf(turns []wireTurn, input json.RawMessage) string {
	switch {
	case len(turns) == 0 && len(input) > 0:
		return "user" // the input is a text
	case len(turns) == 0:
		return ""
	case turns[0].Role == "model":
		return "assistant"
	}
	return turns[0].Role
}

const pythonReader = `
import sys, json, base64
def first(*values):
    found = [v for v in values if v is not None]
    return found[-1] if found else 0
for line in sys.stdin:
    r = json.loads(base64.b64decode(line))
    config = r.get("generationConfig") or {}
    tools = []
    for tool in r.get("tools") or []:
        named = [tool, tool.get("function") or {}] + (tool.get("functionDeclarations") or [])
        tools += [d.get("name") for d in named if d.get("name")]
    turns = r.get("messages") or r.get("contents") or r.get("input")
    role = "" if turns is None else "user" if isinstance(turns, str) else turns[0].get("role")
    print(json.dumps({"Model": r.get("model") or "", "Stream": r.get("stream") or False,
        "Max": first(r.get("max_tokens"), r.get("max_completion_tokens"), r.get("max_output_tokens"),
            config.get("maxOutputTokens")),
        "N": first(r.get("n"), config.get("candidateCount")),
        "Tools": tools, "Role": "assistant" if role == "model" else role}))
`

const nodeReader = `
const first = (...values) => values.filter(v => v != null).at(-1) ?? 0
const lines = require('fs').readFileSync(0, 'utf8').trim().split('\n')
for (const line of lines) {
  const r = JSON.parse(Buffer.from(line, 'base64').toString('utf8'))
  const config = r.generationConfig ?? {}
  const named = (r.tools ?? []).flatMap(t => [t, t.function ?? {}, ...(t.functionDeclarations ?? [])])
  const tools = named.map(d => d.name).filter(Boolean)
  const turns = r.messages ?? r.contents ?? r.input
  const role = turns == null ? '' : typeof turns === 'string' ? 'user' : turns[0].role
  console.log(JSON.stringify({ Model: r.model ?? '', Stream: r.stream ?? false,
    Max: first(r.max_tokens, r.max_completion_tokens, r.max_output_tokens, config.maxOutputTokens),
    N: first(r.n, config.candidateCount), Tools: tools, Role: role === 'model' ? 'assistant' : role }))
}
`

// readBy lets one process of another language read all bodies.
func readBy(t *testing.T, all []forwarding, program string, args ...string) []belief {
	t.Helper()
	var in bytes.Buffer
	for _, f := range all {
		in.WriteString(base64.StdEncoding.EncodeToString(f.got) + "\n")
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Stdin = &in
	var wrong bytes.Buffer
	cmd.Stderr = &wrong
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v: %s", program, err, &wrong)
	}
	var out []belief
	for line := range bytes.Lines(text) {
		var b belief
		if err := json.Unmarshal(line, &b); err != nil {
			t.Fatalf("%s printed %s: %v", program, line, err)
		}
		out = append(out, b)
	}
	if len(out) != len(all) {
		t.Fatalf("%s read %d bodies of %d", program, len(out), len(all))
	}
	return out
}

// A member is a name and value of an object, as they are written.
type member struct{ name, value string }

// generate makes a body of a shape that is good but for zero to two oddities.
func generate(rng *rand.Rand, shape dialogue.Shape) string {
	odd := rng.IntN(3)
	object := func(pairs ...string) string {
		members := []member{}
		for pair := range slices.Chunk(pairs, 2) {
			members = append(members, member{pair[0], pair[1]})
		}
		return write(rng, members, &odd)
	}
	list := func(pairs ...string) string { return "[" + object(pairs...) + "]" }
	name, limit, n := fmt.Sprintf(`"f%d"`, rng.IntN(9)), fmt.Sprint(1+rng.IntN(99)), fmt.Sprint(1+rng.IntN(3))
	stream := []string{"true", "false"}[rng.IntN(2)]
	schema := `{"type":"object","properties":{"Model":{"type":"string"},"ROLE":{"type":"string"}}}`
	var body string
	switch shape {
	case dialoguetest.Chat:
		tools := list("type", `"function"`, "function", object("name", name, "parameters", schema))
		body = object("model", `"m"`, "stream", stream, "max_completion_tokens", limit, "n", n,
			"messages", list("role", `"user"`, "content", `"hi"`), "tools", tools)
	case dialoguetest.Messages:
		body = object("model", `"m"`, "stream", stream, "max_tokens", limit,
			"messages", list("role", `"user"`, "content", `"hi"`), "tools", list("name", name, "input_schema", schema))
	case dialoguetest.Responses:
		tools := list("type", `"function"`, "name", name, "parameters", schema, "strict", "false")
		body = object("model", `"m"`, "stream", stream, "max_output_tokens", limit, "store", "false",
			"input", list("role", `"user"`, "content", `"hi"`), "tools", tools)
	case dialoguetest.Completions:
		body = object("model", `"m"`, "stream", stream, "max_tokens", limit, "n", n, "prompt", `"hi"`)
	default:
		tools := list("functionDeclarations", list("name", name, "parametersJsonSchema", schema))
		body = object("contents", list("role", `"user"`, "parts", list("text", `"hi"`)),
			"generationConfig", object("maxOutputTokens", limit, "candidateCount", n), "tools", tools)
	}
	if rng.IntN(20) == 0 {
		whole := []string{"\ufeff" + body, body + ",", body + body, strings.TrimSuffix(body, "}") + ",}",
			" " + body + "\n", body + "\x00"}
		return whole[rng.IntN(len(whole))]
	}
	return body
}

// write makes an object of members. Some of the oddities that are left go into it.
func write(rng *rand.Rand, members []member, odd *int) string {
	if *odd > 0 && rng.IntN(2) == 0 {
		*odd--
		i := rng.IntN(len(members))
		m := &members[i]
		values := []string{`"dear"`, "7", `"7"`, "1e1", "7.0", "9007199254740993", "1e400", "-0", "true", "null", "[]",
			`{"model":"dear"}`, m.value}
		other := values[rng.IntN(len(values))]
		switch rng.IntN(8) {
		case 0, 1: // another spelling beside it, with another value
			members = slices.Insert(members, rng.IntN(len(members)+1), member{respell(rng, m.name), other})
		case 2: // the same name again
			members = append(members, member{m.name, other})
		case 3, 4: // written with an escape
			m.name = escape(rng, m.name)
		case 5: // the same name again, written with an escape
			members = slices.Insert(members, rng.IntN(len(members)+1), member{escape(rng, m.name), other})
		case 6:
			m.value = other
		case 7: // members that no shape has
			halves := []string{`"a"`, `"\ud800"`, `"\udc00\ud800"`, `"\ud83d\ude80"`}
			members = append(members, member{"x_" + m.name, `{"Model":"dear","stream":"x","model":1}`},
				member{"metadata", `{"Model":"dear","role":"x"}`}, // free at some places only
				member{"x_halves", halves[rng.IntN(len(halves))]})
		}
	}
	var b strings.Builder
	for i, m := range members {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`"` + m.name + `":` + m.value)
	}
	return "{" + b.String() + "}"
}

// respell writes one letter of a name otherwise: in the other case, as the Kelvin sign or as
// the long s, or all in capitals.
func respell(rng *rand.Rand, name string) string {
	for from, to := range map[string]string{"s": "ſ", "k": "\u212a"} {
		if strings.Contains(name, from) && rng.IntN(2) == 0 {
			return strings.Replace(name, from, to, 1)
		}
	}
	if rng.IntN(2) == 0 {
		return strings.ToUpper(name)
	}
	i := rng.IntN(len(name))
	return name[:i] + strings.ToUpper(name[i:i+1]) + name[i+1:]
}

// escape writes one character of a name as an escape.
func escape(rng *rand.Rand, name string) string {
	i := rng.IntN(len(name))
	for !utf8.RuneStart(name[i]) {
		i--
	}
	c, size := utf8.DecodeRuneInString(name[i:])
	return fmt.Sprintf(`%s\u%04x%s`, name[:i], c, name[i+size:])
}
