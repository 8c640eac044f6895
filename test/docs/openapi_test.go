package docs

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"io"
	"maps"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"stagedoor/test/harness"
)

// description is /openapi.json of a running gateway, with what the tests read of it.
type description struct {
	address, directory string
	raw                []byte
	document           any
	operations         map[string]described // by operationId
	codes              map[string]describedCode
	compiler           *jsonschema.Compiler
	driven             map[string]bool // operations whose reply was checked
}

type described struct {
	method, path string
	RequestBody  struct{ Content map[string]describedMedia }
	Responses    map[string]struct {
		Ref     string `json:"$ref"`
		Content map[string]describedMedia
	}
	Socket struct{ Client, Server map[string]any } `json:"x-websocket"`
}

type describedMedia struct {
	Schema map[string]any
	Event  map[string]any `json:"x-event-data"`
}

type describedCode struct {
	Code, Status string
	Retry        bool
}

// describe starts the gateway of docs/sandbox.yaml and reads its description. Types of objects that do not allow others
// are closed, so that a reply with a member that is not described is found.
func describe(t *testing.T) *description {
	t.Helper()
	d := &description{operations: map[string]described{}, codes: map[string]describedCode{}, driven: map[string]bool{}}
	d.address, d.directory = start(t)
	r, err := http.Get(d.address + "/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if d.raw, err = io.ReadAll(r.Body); err != nil || r.StatusCode != http.StatusOK {
		t.Fatal(r.Status, err)
	}
	if err := json.Unmarshal(d.raw, &d.document); err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Paths map[string]map[string]described
		Codes []describedCode `json:"x-error-codes"`
	}
	if err := json.Unmarshal(d.raw, &doc); err != nil {
		t.Fatal(err)
	}
	for path, methods := range doc.Paths {
		for method, o := range methods {
			o.method, o.path = strings.ToUpper(method), path
			var id struct{ OperationID string }
			if err := json.Unmarshal(d.part(t, "/paths/"+pointer(path)+"/"+method), &id); err != nil {
				t.Fatal(err)
			}
			if _, twice := d.operations[id.OperationID]; twice || id.OperationID == "" {
				t.Errorf("%s %s: the operationId %q is not unique", method, path, id.OperationID)
			}
			d.operations[id.OperationID] = o
		}
	}
	for _, c := range doc.Codes {
		d.codes[c.Code] = c
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(d.raw))
	if err != nil {
		t.Fatal(err)
	}
	schemas := document.(map[string]any)["components"].(map[string]any)["schemas"].(map[string]any)
	for _, s := range schemas {
		if s := s.(map[string]any); s["properties"] != nil && s["additionalProperties"] == nil {
			s["additionalProperties"] = false
		}
	}
	d.compiler = jsonschema.NewCompiler()
	if err := d.compiler.AddResource("description.json", document); err != nil {
		t.Fatal(err)
	}
	return d
}

func pointer(path string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(path)
}

// part returns the part of the description at a JSON pointer.
func (d *description) part(t *testing.T, at string) []byte {
	t.Helper()
	v := d.document
	for word := range strings.SplitSeq(strings.Trim(at, "/"), "/") {
		v = v.(map[string]any)[strings.NewReplacer("~1", "/", "~0", "~").Replace(word)]
	}
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// check returns the error of a body that is not of the schema that media describes.
func (d *description) check(schema map[string]any, body []byte) error {
	ref, ok := schema["$ref"].(string)
	if !ok {
		return nil // a part of a file, or the text of an event stream
	}
	s, err := d.compiler.Compile("description.json" + ref)
	if err != nil {
		return err
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return err
	}
	return s.Validate(v)
}

// TestTheDescriptionIsOpenAPI31 checks the description against the schema of the OpenAPI Initiative, each of its types
// against that of JSON Schema, and each reference.
func TestTheDescriptionIsOpenAPI31(t *testing.T) {
	d := describe(t)
	root, err := harness.Root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "test/docs/testdata/openapi-3.1.json"))
	if err != nil {
		t.Fatal(err)
	}
	meta, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("meta.json", meta); err != nil {
		t.Fatal(err)
	}
	openapi, err := c.Compile("meta.json")
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(d.raw))
	if err != nil {
		t.Fatal(err)
	}
	if err := openapi.Validate(document); err != nil {
		t.Errorf("%#v", err)
	}
	for _, ref := range regexp.MustCompile(`"\$ref":"#(/[^"]*)"`).FindAllSubmatch(d.raw, -1) {
		if at := string(ref[1]); string(d.part(t, at)) == "null" {
			t.Errorf("%s is referred to and does not exist", at)
		} else if strings.HasPrefix(at, "/components/schemas/") {
			if _, err := d.compiler.Compile("description.json#" + at); err != nil {
				t.Error(err)
			}
		}
	}
	var info struct{ Version string }
	if err := json.Unmarshal(d.part(t, "/info"), &info); err != nil || info.Version != "2.1.1" {
		t.Errorf("version %q, %v", info.Version, err)
	}
}

// TestTheDescriptionIsCachedAndNeedsNoKey asks again with the ETag of the first reply.
func TestTheDescriptionIsCachedAndNeedsNoKey(t *testing.T) {
	d := describe(t)
	first, err := http.Head(d.address + "/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	first.Body.Close()
	if first.Header.Get("Cache-Control") != "public, max-age=300" || first.Header.Get("ETag") == "" {
		t.Errorf("%v", first.Header)
	}
	again, err := http.NewRequest(http.MethodGet, d.address+"/openapi.json", nil)
	if err != nil {
		t.Fatal(err)
	}
	again.Header.Set("If-None-Match", first.Header.Get("ETag"))
	second, err := http.DefaultClient.Do(again)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Body.Close()
	if b, err := io.ReadAll(second.Body); second.StatusCode != http.StatusNotModified || len(b) > 0 || err != nil {
		t.Errorf("%s with %d bytes, %v", second.Status, len(b), err)
	}
}

// TestEveryRouteIsDescribed compares the description with docs/routes.md, which TestEveryRouteIsDocumented compares
// with the code. Pages and administration are not described here, and docs/sandbox.yaml has no metrics.
func TestEveryRouteIsDescribed(t *testing.T) {
	d := describe(t)
	served := map[string]bool{}
	for _, o := range d.operations {
		served[o.method+" "+o.path] = true
	}
	found := 0
	section := ""
	for line := range strings.Lines(pages(t)["routes.md"]) {
		if title, ok := strings.CutPrefix(line, "## "); ok {
			section = strings.TrimSpace(title)
		}
		if section == "Pages and administration" || !strings.HasPrefix(line, "| `") {
			continue
		}
		routes, _, _ := strings.Cut(line, " | ")
		for _, m := range regexp.MustCompile("`([A-Z]+ /[^`]+)`").FindAllStringSubmatch(routes, -1) {
			found++
			if !served[m[1]] && m[1] != "GET /metrics" {
				t.Errorf("%s is in docs/routes.md and not in the description", m[1])
			}
		}
	}
	if found != len(served)+1 {
		t.Errorf("docs/routes.md has %d routes, the description %d", found, len(served))
	}
}

// A call is a request whose reply is checked. Words of the path and body in angle brackets are replaced by members of
// earlier replies: <getVideo.id>.
type call struct {
	id, path, body string
	method         string // "": that of the operation
	header         map[string]string
	form           bool // the members of body become fields
	urlencoded     bool // body is a form in the encoding of queries
	status         int  // 0: 200
}

// drive sends a request for an operation and checks the reply, or the events, against the description.
func (d *description) drive(t *testing.T, c call, earlier map[string]string) {
	t.Helper()
	o, ok := d.operations[c.id]
	if !ok {
		t.Fatalf("there is no operation %s", c.id)
	}
	fill := func(text string) string {
		return regexp.MustCompile(`<([\w.]+)>`).ReplaceAllStringFunc(text, func(m string) string {
			return earlier[strings.Trim(m, "<>")]
		})
	}
	path := c.path
	if path == "" || path[0] == '?' {
		path = o.path + path
	}
	var body io.Reader = strings.NewReader(fill(c.body))
	kind := "application/json"
	if c.form {
		body, kind = formOf(t, fill(c.body))
	}
	if c.urlencoded {
		kind = "application/x-www-form-urlencoded"
	}
	q, err := http.NewRequestWithContext(t.Context(), cmp.Or(c.method, o.method), d.address+fill(path), body)
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Content-Type", kind)
	q.Header.Set("Authorization", "Bearer sd-example-key-of-the-documents")
	for name, value := range c.header {
		q.Header.Set(name, fill(value))
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	r, err := client.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	reply, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	want := c.status
	if want == 0 {
		want = http.StatusOK
	}
	if r.StatusCode != want {
		t.Errorf("%s: %d %s", c.id, r.StatusCode, shortened(string(reply)))
		return
	}
	if want < http.StatusBadRequest {
		d.driven[c.id] = true
	}
	d.remember(c.id, reply, r.Header, earlier)
	d.checkReply(t, c.id, r, reply)
}

// remember keeps the members of a reply for later calls.
func (d *description) remember(id string, reply []byte, header http.Header, earlier map[string]string) {
	var members map[string]any
	if json.Unmarshal(reply, &members) == nil {
		for name, v := range members {
			text, ok := v.(string)
			if b, err := json.Marshal(v); !ok && err == nil {
				text = string(b)
			}
			earlier[id+"."+name] = text
		}
	}
	earlier[id+".request"] = header.Get("X-Request-Id")
	if m := regexp.MustCompile(`"url":"https?://[^/"]*([^"]*)"`).FindSubmatch(reply); m != nil {
		earlier[id+".url"] = string(m[1])
	}
}

func (d *description) checkReply(t *testing.T, id string, r *http.Response, reply []byte) {
	t.Helper()
	response, ok := d.operations[id].Responses[fmt.Sprint(r.StatusCode)]
	if !ok {
		response = d.operations[id].Responses["default"]
	}
	if response.Ref != "" {
		if err := json.Unmarshal(d.part(t, strings.TrimPrefix(response.Ref, "#")), &response); err != nil {
			t.Fatal(err)
		}
		d.checkCode(t, id, r, reply)
	}
	if len(response.Content) == 0 && len(reply) == 0 {
		return
	}
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	media, ok := response.Content[kind]
	if _, any := response.Content["image/*"]; !ok && any && strings.HasPrefix(kind, "image/") {
		return
	}
	if !ok {
		t.Errorf("%s: a reply of %s is not described for %d", id, kind, r.StatusCode)
		return
	}
	if media.Event == nil {
		if err := d.check(media.Schema, reply); err != nil {
			t.Errorf("%s: %v\n%s", id, err, shortened(string(reply)))
		}
		return
	}
	events := 0
	for line := range strings.Lines(string(reply)) {
		if data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: "); ok && data != "[DONE]" {
			events++
			if err := d.check(media.Event, []byte(data)); err != nil {
				t.Errorf("%s: %v\n%s", id, err, shortened(data))
			}
		}
	}
	if events == 0 {
		t.Errorf("%s: no event in %s", id, shortened(string(reply)))
	}
}

// checkCode compares the code of an error with the table of codes.
func (d *description) checkCode(t *testing.T, id string, r *http.Response, reply []byte) {
	t.Helper()
	var body struct {
		Error json.RawMessage
	}
	var members struct{ Code any }
	if json.Unmarshal(reply, &body) != nil || json.Unmarshal(body.Error, &members) != nil {
		return // OAuth's errors are flat
	}
	name, ok := members.Code.(string)
	if !ok {
		return // that of generateContent is the status
	}
	again, code := r.Header.Get("X-Should-Retry"), d.codes[name]
	if !strings.Contains(code.Status, fmt.Sprint(r.StatusCode)) ||
		again == "false" && code.Retry || again == "true" && !code.Retry {
		t.Errorf("%s: %s is sent with %s, retry %q, and described as %+v", id, name, r.Status, again, code)
	}
}

// aPicture stands in a form for a black picture, which is a mask as well.
const aPicture = "(a picture)"

// formOf encodes a JSON object as a form.
func formOf(t *testing.T, members string) (io.Reader, string) {
	t.Helper()
	var all map[string]string
	if err := json.Unmarshal([]byte(members), &all); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		var err error
		if all[name] == aPicture {
			var part io.Writer
			if part, err = w.CreateFormFile(name, "file.png"); err == nil {
				err = png.Encode(part, image.NewGray(image.Rect(0, 0, 256, 256)))
			}
		} else {
			err = w.WriteField(name, all[name])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	w.Close()
	return &b, w.FormDataContentType()
}
