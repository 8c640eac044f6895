package docs

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// bounded are the requests whose described limits are tried, with members that make a good request.
var bounded = []struct {
	id, path string
	base     string
	inside   string // the member whose members are tried, if not those of the body
	beside   string // what the body has beside that member
	// with are members that a good value of another member needs beside it.
	with map[string]string
	// skip are members whose rules depend on the model or on other members, with the reason.
	skip map[string]string
}{
	{id: "createChatCompletion", base: `"model":"sandbox",` + hi,
		with: map[string]string{"top_logprobs": `"logprobs":true`, "stream_options": `"stream":true`,
			"modalities": `"audio":{"voice":"a","format":"wav"}`},
		skip: map[string]string{"functions": "a good one has more rules", "tools": "a good one has more rules"}},
	{id: "createMessage", base: `"model":"sandbox","max_tokens":20,` + hi},
	{id: "createResponse", base: `"model":"sandbox","input":"Hello!"`,
		with: map[string]string{"stream_options": `"stream":true`}},
	{id: "createCompletion", base: `"model":"sandbox","prompt":"Hello!"`,
		with: map[string]string{"stream_options": `"stream":true`, "best_of": `"n":1`}},
	{id: "createEmbeddings", base: `"model":"sandbox","input":"Hello!"`},
	{id: "createImage", base: `"model":"gen-image-1","prompt":"a boat"`,
		with: map[string]string{"partial_images": `"stream":true`, "output_compression": `"output_format":"jpeg"`},
		skip: map[string]string{"quality": "depends on the model", "response_format": "depends on the model",
			"style": "depends on the model"}},
	{id: "CreateVideo", base: `"model":"sora-2","prompt":"a boat"`,
		with: map[string]string{"size": `"model":"sora-2-pro"`}},
	{id: "registerApp", base: `"name":"Weather","redirect_uri":"https://app.example.com/callback"`,
		skip: map[string]string{"redirect_uri": "a good one is an address"}},
	{id: "generateContent", path: "/v1beta/models/sandbox:generateContent",
		beside: strings.Trim(gemini, "{}") + ",", inside: "generationConfig"},
	{id: "imagegenGenerate", base: `"prompt":"a boat"`, inside: "image_request"},
}

// TestTheDescribedLimitsAreEnforced sends values beyond each limit that the description gives for a member of a
// request, and expects a 400 about the member. It sends values at the limits, and expects none.
func TestTheDescribedLimitsAreEnforced(t *testing.T) {
	d := describe(t)
	d.stagedoor(t, "correct horse battery", "users", "create", "anna", "--password-stdin")
	developer, _, _ := strings.Cut(d.stagedoor(t, "", "users", "developer-token", "anna"), "\n")
	tried := 0
	for _, b := range bounded {
		schema := d.resolve(t, d.operations[b.id].RequestBody.Content["application/json"].Schema)
		if b.inside != "" {
			schema = d.resolve(t, schema["properties"].(map[string]any)[b.inside].(map[string]any))
		}
		properties := schema["properties"].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			if b.skip[name] != "" {
				continue
			}
			good, bad := d.samples(t, properties[name].(map[string]any))
			for i, value := range append(good, bad...) {
				members := map[string]json.RawMessage{}
				for _, text := range []string{b.base, b.with[name]} {
					if err := json.Unmarshal([]byte("{"+text+"}"), &members); err != nil {
						t.Fatal(err)
					}
				}
				members[name] = json.RawMessage(value)
				body, err := json.Marshal(members)
				if err != nil {
					t.Fatal(err)
				}
				if b.inside != "" {
					body = fmt.Appendf(nil, `{%s%q:%s}`, b.beside, b.inside, body)
				}
				tried++
				key := "sd-example-key-of-the-documents"
				if b.id == "registerApp" {
					key = developer
				}
				status, param := d.refusal(t, b.id, b.path, key, body)
				about := strings.Contains(param, name)
				if refused := status == http.StatusBadRequest && about; refused != (i >= len(good)) {
					t.Errorf("%s: %s %.60s: %d about %q", b.id, name, value, status, param)
				}
			}
		}
	}
	if tried < 300 {
		t.Errorf("only %d values were tried", tried)
	}
}

// resolve follows the reference of a schema, and takes the first alternative that is not null.
func (d *description) resolve(t *testing.T, schema map[string]any) map[string]any {
	t.Helper()
	if ref, ok := schema["$ref"].(string); ok {
		var s map[string]any
		if err := json.Unmarshal(d.part(t, strings.TrimPrefix(ref, "#")), &s); err != nil {
			t.Fatal(err)
		}
		return d.resolve(t, s)
	}
	options, ok := schema["anyOf"].([]any)
	if ok && len(options) == 2 && options[1].(map[string]any)["type"] == "null" {
		return d.resolve(t, options[0].(map[string]any))
	}
	return schema
}

// samples returns values at the limits of a schema and values beyond them.
func (d *description) samples(t *testing.T, schema map[string]any) (good, bad []string) {
	t.Helper()
	schema = d.resolve(t, schema)
	number := func(keyword string) (int, bool) { n, ok := schema[keyword].(float64); return int(n), ok }
	quoted := func(n int) string { return `"` + strings.Repeat("x", n) + `"` }
	switch schema["type"] {
	case "string":
		bad = append(bad, "7", "{}")
		if words, ok := schema["enum"].([]any); ok {
			for _, w := range words {
				good = append(good, fmt.Sprintf("%q", w))
			}
			bad = append(bad, `"another"`)
		}
		if n, ok := number("maxLength"); ok && n < 30000 {
			good, bad = append(good, quoted(n)), append(bad, quoted(n+1))
		}
		if n, ok := number("minLength"); ok && n > 0 {
			bad = append(bad, quoted(n-1))
		}
	case "integer", "number":
		bad = append(bad, `"x"`, "[]")
		if n, ok := number("minimum"); ok {
			good, bad = append(good, fmt.Sprint(n)), append(bad, fmt.Sprint(n-1))
		}
		if n, ok := number("maximum"); ok {
			good, bad = append(good, fmt.Sprint(n)), append(bad, fmt.Sprint(n+1))
		}
		if schema["type"] == "integer" {
			bad = append(bad, "17.5")
		}
	case "boolean":
		good, bad = []string{"true", "false"}, []string{`"true"`, "7"}
	case "array":
		bad = append(bad, "7")
		if n, ok := number("minItems"); ok && n == 1 {
			bad = append(bad, "[]")
		}
		if n, ok := number("maxItems"); ok && n < 100 {
			bad = append(bad, "["+strings.Repeat(`"x",`, n)+`"x"]`)
		}
	case "object":
		bad = append(bad, "7", `"x"`)
		if n, ok := number("maxProperties"); ok {
			var pairs []string
			for i := range n + 1 {
				pairs = append(pairs, fmt.Sprintf(`"k%d":"v"`, i))
			}
			good = append(good, "{"+strings.Join(pairs[:n], ",")+"}")
			bad = append(bad, "{"+strings.Join(pairs, ",")+"}")
		}
		if values, ok := schema["additionalProperties"].(map[string]any); ok {
			g, b := d.samples(t, values)
			for i, v := range append(g, b...) {
				if v = `{"7":` + v + `}`; i < len(g) {
					good = append(good, v)
				} else {
					bad = append(bad, v)
				}
			}
		}
	}
	return good, bad
}

// refusal sends a dry run, or a request of an operation without one, and returns its status and the field that an error
// is about.
func (d *description) refusal(t *testing.T, id, path, key string, body []byte) (int, string) {
	t.Helper()
	o := d.operations[id]
	if path == "" {
		path = o.path
	}
	q, err := http.NewRequestWithContext(t.Context(), o.method, d.address+path, strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Authorization", "Bearer "+key)
	if id != "CreateVideo" && id != "registerApp" {
		q.Header.Set("X-Dry-Run", "1")
	}
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	reply, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	var e struct {
		Error   struct{ Param string }
		Message string // of a registration, which begins with the field
	}
	_ = json.Unmarshal(reply, &e) // a success has no error
	field, _, _ := strings.Cut(e.Message, " ")
	return r.StatusCode, cmp.Or(e.Error.Param, field)
}
