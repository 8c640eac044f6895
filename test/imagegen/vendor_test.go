// Package imagegen is the black-box test of the image vendor's routes: the real
// program, clients over HTTP in front of it and a small vendor behind it.
package imagegen

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"stagedoor/state/journal"
	"stagedoor/state/money"
	"stagedoor/state/schema"
	"stagedoor/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// vendor is an upstream that records requests and sends the answers of its script.
type vendor struct {
	*httptest.Server
	mu     sync.Mutex
	calls  []string // path, then JSON or the parts of the form
	keys   []string
	status int
	reply  string // "": as asked
	// refuses are fields that it does not know.
	refuses []string
}

func newVendor(t *testing.T) *vendor {
	v := new(vendor)
	v.Server = httptest.NewServer(v)
	t.Cleanup(v.Close)
	return v
}

func (v *vendor) answer(status int, reply string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.status, v.reply = status, reply
}

// asked takes what was noted.
func (v *vendor) asked() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	calls := v.calls
	v.calls = nil
	return calls
}

func (v *vendor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/picture.png" {
		w.Header().Set("Content-Type", "text/html") // it must not be believed
		w.Write(picture(32, 24, 0, nil))
		return
	}
	line, images := read(r)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.calls = append(v.calls, line)
	v.keys = append(v.keys, r.Header.Get("Api-Key"))
	w.Header().Set("Content-Type", "application/json")
	if slices.ContainsFunc(v.refuses, func(field string) bool { return strings.Contains(line, " "+field+"=") }) {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if v.status != 0 {
		w.WriteHeader(v.status)
	}
	switch {
	case v.reply != "":
		io.WriteString(w, strings.ReplaceAll(v.reply, "PICTURE", v.URL+"/picture.png"))
	case r.URL.Path == "/describe":
		io.WriteString(w, `{"descriptions":[{"text":"a grey picture"}]}`)
	default:
		one := `{"prompt":"a final prompt","resolution":"1280x704","is_image_safe":true,"seed":7,"url":"` + v.URL +
			`/picture.png","style_type":"GENERAL"}`
		fmt.Fprintf(w, `{"created":"2025-01-02T03:04:05.678901+00:00","data":[%s]}`,
			strings.TrimSuffix(strings.Repeat(one+",", images), ","))
	}
}

// read writes a request down: files by their size in bytes and their type.
func read(r *http.Request) (line string, images int) {
	images = 1
	number := func(text []byte) {
		var n struct {
			N       int `json:"num_images"`
			Request struct {
				N int `json:"num_images"`
			} `json:"image_request"`
		}
		if json.Unmarshal(text, &n) == nil {
			images = max(n.N, n.Request.N, images)
		}
	}
	if r.Header.Get("Content-Type") == "application/json" {
		body, _ := io.ReadAll(r.Body)
		number(body)
		return r.URL.Path + " " + string(body), images
	}
	parts, err := r.MultipartReader()
	if err != nil {
		return r.URL.Path + " " + err.Error(), images
	}
	out := []string{r.URL.Path}
	if r.ContentLength < 0 {
		out = append(out, "(of unknown length)")
	}
	for {
		p, err := parts.NextPart()
		if err != nil {
			return strings.Join(out, " "), images
		}
		value, _ := io.ReadAll(p)
		if p.FormName() == "num_images" {
			number([]byte(`{"num_images":` + string(value) + `}`))
		}
		number(value)
		if p.FileName() != "" {
			value = fmt.Appendf(nil, "%d bytes of %s", len(value), p.Header.Get("Content-Type"))
		}
		out = append(out, p.FormName()+"="+string(value))
	}
}

// picture is a PNG whose first n pixels are black and whose rest is in a colour.
func picture(width, height, n int, rest color.Color) []byte {
	if rest == nil {
		rest = color.Gray{Y: 99}
	}
	m := image.NewGray(image.Rect(0, 0, width, height))
	for i := range width * height {
		c := rest
		if i < n {
			c = color.Black
		}
		m.Set(i%width, i/width, c)
	}
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// part is a field of a form, or a file if it has bytes.
type part struct {
	name, text string
	file       []byte
	kind       string // the file's type, if it is not that of any file
}

func form(parts ...part) (body []byte, contentType string) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for _, p := range parts {
		if p.file == nil {
			w.WriteField(p.name, p.text)
			continue
		}
		f, err := w.CreatePart(
			textproto.MIMEHeader{
				"Content-Disposition": {`form-data; name="` + p.name + `"; filename="my secret holiday.gif"`},
				"Content-Type":        {cmp.Or(p.kind, "application/octet-stream")},
			},
		)
		if err != nil {
			panic(err)
		}
		f.Write(p.file)
	}
	w.Close()
	return b.Bytes(), w.FormDataContentType()
}

// answer is a reply of the gateway.
type answer struct {
	status int
	header http.Header
	body   []byte
	Data   []struct {
		Prompt, Resolution string
		Safe               bool   `json:"is_image_safe"`
		Seed               *int64 `json:"seed"`
		URL                *string
		Style              string `json:"style_type"`
	}
	Created      any
	Descriptions []struct{ Text string }
	Error        *struct{ Message, Type, Param, Code string }
}

func post(t testing.TB, g *harness.Gateway, path string, body []byte, contentType string) *answer {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, g.URL+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Api-Key", g.Key)
	r.Header.Set("Content-Type", contentType)
	reply, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	a := &answer{status: reply.StatusCode, header: reply.Header}
	if a.body, err = io.ReadAll(reply.Body); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(a.body, a); err != nil {
		t.Fatalf("%s answered %d with what is no JSON of its shape: %v: %.300s", path, a.status, err, a.body)
	}
	return a
}

func postForm(t testing.TB, g *harness.Gateway, path string, parts ...part) *answer {
	t.Helper()
	body, contentType := form(parts...)
	return post(t, g, path, body, contentType)
}

func postJSON(t testing.TB, g *harness.Gateway, path, body string) *answer {
	t.Helper()
	return post(t, g, path, []byte(body), "application/json")
}

// start runs a gateway whose first provider of the vendor's kind is v.
func start(t *testing.T, v *vendor, change func(c *harness.Config)) *harness.Gateway {
	t.Helper()
	c := harness.Config{Providers: map[string]harness.Provider{
		"vendor": {Shape: "imagegen", BaseURL: v.URL, APIKeys: []string{"vendor-key-123"}},
	}}
	if change != nil {
		change(&c)
	}
	return harness.Start(t, c)
}

// paid gives the key a user with money, and the gateway a place to keep accounts.
func paid(t *testing.T, c *harness.Config, credit int64) {
	t.Helper()
	c.Data = t.TempDir()
	c.Keys = []harness.Key{{Key: harness.TestKey, Name: "test", User: "1"}}
	store, err := journal.OpenBolt(c.Data, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := schema.Open(store, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	_, posted, err := money.CommitPostings(context.Background(), s, "1",
		[]money.Posting{{Kind: money.Credit, Amount: credit}})
	if err != nil || posted[0].Err != nil {
		t.Fatal(err, posted)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}

// receipt returns the cost of a request. The receipt of a failed one is written after
// its reply.
func receipt(t testing.TB, g *harness.Gateway, a *answer) (charged, held, images int64) {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, g.URL+"/v1/receipts/"+a.header.Get("X-Request-Id"), nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Api-Key", g.Key)
	for deadline := time.Now().Add(5 * time.Second); ; {
		reply, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		var got struct {
			Charged, Held int64
			Usage         struct{ Images int64 }
		}
		err = json.NewDecoder(reply.Body).Decode(&got)
		reply.Body.Close()
		switch {
		case err == nil && reply.StatusCode == http.StatusOK:
			return got.Charged, got.Held, got.Usage.Images
		case time.Now().After(deadline):
			t.Fatalf("receipt: %d, %v", reply.StatusCode, err)
		}
	}
}

func sorted(m map[string][]part) []string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}
