package ops

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"math/rand/v2"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"stagedoor/test/harness"
)

// A tenant sends requests with a key of its own.
type tenant struct {
	t       *testing.T
	gateway *harness.Gateway
	key     string
}

// send returns the reply to a request. A body that is still open when the test ends is closed.
func (c tenant) send(method, path, mediaType string, body []byte) *http.Response {
	c.t.Helper()
	q, err := http.NewRequestWithContext(c.t.Context(), method, c.gateway.URL+path, bytes.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	q.Header.Set("Authorization", "Bearer "+c.key)
	q.Header.Set("Content-Type", mediaType)
	r, err := client.Do(q)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = r.Body.Close() })
	return r
}

// post returns the reply to a JSON document.
func (c tenant) post(path, text string) *http.Response {
	c.t.Helper()
	return c.send(http.MethodPost, path, "application/json", []byte(text))
}

// open returns the reply to a GET.
func (c tenant) open(path string) *http.Response {
	c.t.Helper()
	return c.send(http.MethodGet, path, "", nil)
}

// stall begins to send a body, and does not end it. It returns when most of what was sent has
// reached the gateway. The reply comes on the channel.
func (c tenant) stall(path string, sent int, length int64) <-chan *http.Response {
	c.t.Helper()
	r, w := io.Pipe()
	c.t.Cleanup(func() { _ = w.Close() })
	q, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, c.gateway.URL+path, r)
	if err != nil {
		c.t.Fatal(err)
	}
	q.ContentLength = length
	q.Header.Set("Authorization", "Bearer "+c.key)
	reply := make(chan *http.Response, 1)
	go func() {
		defer close(reply)
		if r, err := client.Do(q); err == nil {
			reply <- r
		}
	}()
	if _, err := io.WriteString(w, strings.Repeat(" ", sent)); err != nil {
		c.t.Fatal(err)
	}
	return reply
}

// codeOf returns the code of a reply's error, or "".
func codeOf(t *testing.T, r *http.Response) string {
	t.Helper()
	if r.StatusCode == http.StatusOK {
		return ""
	}
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return gjson.GetBytes(text, "error.code").Str
}

const (
	endless = "[sandbox: pace=20 tokens=6000]"
	// Hundreds of background responses go on beside the next tests, and take memory for their text.
	slow = "[sandbox: pace=1 tokens=6000]"
	mib  = 1 << 20
)

// largeMessage is a request that is translated for the simulator.
func largeMessage(prompt string, stream bool) string {
	return fmt.Sprintf(`{"model":"m","max_tokens":100000,"stream":%v,"messages":[{"role":"user","content":%q}]}`,
		stream, prompt+strings.Repeat(" all work and no play", 5*mib/21))
}

// pools are the pools that a tenant can fill by requests. most bounds the requests of one tenant
// that are served while nothing else is in use.
var pools = []struct {
	name   string
	code   string
	most   int
	greedy func(c tenant) *http.Response // takes something and keeps it
	modest func(c tenant) *http.Response
}{
	{"requests", "requests_share_exceeded", 8,
		func(c tenant) *http.Response {
			return c.post("/v1/chat/completions",
				`{"model":"m","stream":true,"messages":[{"role":"user","content":"`+endless+`"}]}`)
		},
		func(c tenant) *http.Response { return c.post("/v1/completions", `{"model":"m","prompt":"hi"}`) }},
	{"bodies", "bodies_share_exceeded", 0,
		func(c tenant) *http.Response {
			c.stall("/v1/completions", 20*mib, 22*mib)
			r := <-c.stall("/v1/completions", 1, 20*mib)
			if r == nil {
				c.t.Fatal("a body that is refused before it is read gets no reply")
			}
			return r
		},
		func(c tenant) *http.Response { return c.post("/v1/completions", `{"model":"m","prompt":"hi"}`) }},
	{"memory of translations", "memory_share_exceeded", 1,
		func(c tenant) *http.Response { return c.post("/v1/messages", largeMessage(endless, true)) },
		func(c tenant) *http.Response {
			return c.post("/v1/messages", largeMessage("[sandbox: tokens=3 pace=max]", false))
		}},
	{"background responses", "background_share_exceeded", 256,
		func(c tenant) *http.Response {
			return c.post("/v1/responses", `{"model":"m","background":true,"input":"hi `+slow+`"}`)
		},
		func(c tenant) *http.Response {
			return c.post("/v1/responses", `{"model":"m","background":true,"input":"hi"}`)
		}},
	{"stored responses", "storage_quota_exceeded", 300,
		func(c tenant) *http.Response {
			return c.post("/v1/responses", `{"model":"m","store":true,"input":"hi [sandbox: tokens=3 pace=max]"}`)
		},
		func(c tenant) *http.Response {
			return c.post("/v1/responses", `{"model":"m","store":true,"input":"hi"}`)
		}},
	{"video jobs", "videos_share_exceeded", 8,
		func(c tenant) *http.Response {
			return c.post("/v1/videos", `{"model":"video-2","prompt":"a cat [sandbox: job=60s]"}`)
		},
		func(c tenant) *http.Response {
			return c.post("/v1/videos", `{"model":"video-2","prompt":"a cat [sandbox: job=60s]"}`)
		}},
	{"watchers", "watchers_share_exceeded", 4,
		func(c tenant) *http.Response { return c.open("/v1/videos/events") },
		func(c tenant) *http.Response { return c.open("/v1/videos/events") }},
	{"bytes of pictures and uploads", "content_share_exceeded", 1, upload, upload},
	{"number of pictures and uploads", "files_share_exceeded", 32,
		func(c tenant) *http.Response { return c.post("/v1/images/generations", picture) },
		func(c tenant) *http.Response { return c.post("/v1/images/generations", picture) }},
}

// picture is a request for a picture with an address.
const picture = `{"model":"legacy-image-2","prompt":"a cat","size":"256x256","response_format":"url"}`

// upload starts a video job with a picture of more than three MiB, which is kept because the provider
// does not take the job.
func upload(c tenant) *http.Response {
	c.t.Helper()
	noise := image.NewNRGBA(image.Rect(0, 0, 720, 1280))
	random := rand.NewChaCha8([32]byte{})
	_, _ = random.Read(noise.Pix) // it never fails
	for i := 3; i < len(noise.Pix); i += 4 {
		noise.Pix[i] = 0xff
	}
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	file, err := form.CreatePart(textproto.MIMEHeader{
		"Content-Disposition": {`form-data; name="input_reference"; filename="a.png"`}, "Content-Type": {"image/png"}})
	if err == nil {
		err = (&png.Encoder{CompressionLevel: png.NoCompression}).Encode(file, noise)
	}
	for name, value := range map[string]string{
		"model": "video-2", "prompt": "a cat [sandbox: status=503]", "size": "720x1280",
	} {
		err = errors.Join(err, form.WriteField(name, value))
	}
	if err = errors.Join(err, form.Close()); err != nil {
		c.t.Fatal(err)
	}
	return c.send(http.MethodPost, "/v1/videos", form.FormDataContentType(), body.Bytes())
}

// TestOneTenantCannotTakeAPool: of each pool that a tenant can fill by requests, one tenant takes
// all that it gets. It gets half at most, its refusal names the pool, and another tenant is served.
func TestOneTenantCannotTakeAPool(t *testing.T) {
	c := sandbox("memory", "100ms")
	c.Limits = &harness.Limits{Requests: 16, BodyMiB: 48, MemoryMiB: 128, Watchers: 8, ContentMiB: 8,
		ContentFiles: 64, StoredResponses: 300}
	c.Videos = &harness.Videos{Most: 16, Wait: "10ms"}
	for i := range pools {
		for _, name := range []string{"greedy", "modest"} {
			c.Keys = append(c.Keys, harness.Key{Key: fmt.Sprint(harness.TestKey, name, i), Name: fmt.Sprint(name, i)})
		}
	}
	g, err := harness.Launch(harness.Binary(t), c)
	launch(t, g, err)
	for i, pool := range pools {
		t.Run(pool.name, func(t *testing.T) {
			greedy := tenant{t, g, c.Keys[2*i].Key}
			// While the machine is busy, the gateway sheds requests, and the client comes again.
			patience := time.Now().Add(2 * time.Minute)
			shed := func(code string) bool {
				if code != "overloaded" || time.Now().After(patience) {
					return false
				}
				time.Sleep(100 * time.Millisecond)
				return true
			}
			served, code := 0, ""
			for code == "" && served <= pool.most {
				if code = codeOf(t, pool.greedy(greedy)); code == "" {
					served++
				} else if shed(code) {
					code = ""
				}
			}
			if code != pool.code || served > pool.most {
				t.Errorf("after %d served requests the refusal is %q, want %q after at most %d",
					served, code, pool.code, pool.most)
			}
			for {
				r := pool.modest(tenant{t, g, c.Keys[2*i+1].Key})
				if r.StatusCode == http.StatusOK {
					break
				} else if code := codeOf(t, r); !shed(code) {
					t.Fatalf("another tenant is answered %d %s", r.StatusCode, code)
				}
			}
		})
	}
	stop(t, g)
}

// TestTheOwnerOfAllKeysMayHaveNearlyAllRequests: no room is kept for other tenants while there are none. As soon as
// there is the key of another one, it finds room.
func TestTheOwnerOfAllKeysMayHaveNearlyAllRequests(t *testing.T) {
	c := sandbox(t.TempDir(), "100ms")
	c.Limits = &harness.Limits{Requests: 16}
	g, err := harness.Launch(harness.Binary(t), c)
	launch(t, g, err)
	stream := func(c tenant) string {
		return codeOf(t, c.post("/v1/chat/completions",
			`{"model":"m","stream":true,"messages":[{"role":"user","content":"`+endless+`"}]}`))
	}
	only := tenant{t, g, harness.TestKey}
	for i := range 15 {
		if code := stream(only); code != "" {
			t.Fatalf("request %d of 16: %s", i+1, code)
		}
	}
	if code := stream(only); code != "requests_share_exceeded" {
		t.Errorf("the last one of 16: %q", code)
	}
	made, err := exec.CommandContext(t.Context(), harness.Binary(t), "keys", "create", "--name", "second", "--json",
		"--data", c.Data).Output()
	if err != nil {
		t.Fatal(err)
	}
	if code := stream(tenant{t, g, gjson.GetBytes(made, "key").String()}); code != "" {
		t.Errorf("the first request of another key: %s", code)
	}
	stop(t, g)
}

// TestWebhooksOfOneTenantDoNotDelayThoseOfAnother: an endpoint that answers none of the events of
// one tenant gets the event of another one.
func TestWebhooksOfOneTenantDoNotDelayThoseOfAnother(t *testing.T) {
	var mu sync.Mutex
	jobs := make(map[string]bool) // of the modest tenant
	var held, good atomic.Int32
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		mu.Lock()
		modest := jobs[gjson.GetBytes(text, "data.id").Str]
		mu.Unlock()
		if modest {
			good.Add(1)
			return
		}
		held.Add(1)
		<-r.Context().Done()
	}))
	defer endpoint.Close()
	c := sandbox("memory", "100ms")
	for _, name := range []string{"greedy", "modest"} {
		c.Keys = append(c.Keys, harness.Key{Key: harness.TestKey + name, Name: name})
	}
	c.Webhooks = []harness.Webhook{{URL: endpoint.URL, Secret: "whsec_c3RhZ2Vkb29yIHNpZ25zIHdoYXQgaXQgc2VuZHM=",
		Allow: []string{"127.0.0.0/8"}}}
	g, err := harness.Launch(harness.Binary(t), c)
	launch(t, g, err)
	greedy, modest := tenant{t, g, c.Keys[0].Key}, tenant{t, g, c.Keys[1].Key}
	const video = `{"model":"video-2","prompt":"a cat [sandbox: job=50ms]"}`
	for range 12 {
		if r := greedy.post("/v1/videos", video); r.StatusCode != http.StatusOK {
			t.Fatalf("a job is answered %d %s", r.StatusCode, codeOf(t, r))
		}
	}
	await(t, "the tenant's events take its slots", func() bool { return held.Load() == 4 })
	mu.Lock()
	r := modest.post("/v1/videos", video)
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	jobs[gjson.GetBytes(text, "id").Str] = true
	mu.Unlock()
	await(t, "the event of the other tenant arrives", func() bool { return good.Load() == 1 })
	if n := held.Load(); n > 8 {
		t.Errorf("%d events of the first tenant were sent, want 4 at a time", n)
	}
	stop(t, g)
}
