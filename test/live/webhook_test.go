package live

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"stagedoor/test/harness"
)

const signingKey = "a key of thirty-two bytes length"

// A post is one delivery as it came in.
type post struct {
	id, body string
	signed   bool
}

// inbox is a receiver of webhooks.
type inbox struct {
	mu     sync.Mutex
	status int
	posts  []post
	came   chan struct{}
}

func newInbox(t *testing.T, status int) (*inbox, string) {
	b := &inbox{status: status, came: make(chan struct{}, 1024)}
	s := httptest.NewServer(b)
	t.Cleanup(s.Close)
	return b, s.URL + "/hooks"
}

func (b *inbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	id, at := r.Header.Get("webhook-id"), r.Header.Get("webhook-timestamp")
	mac := hmac.New(sha256.New, []byte(signingKey))
	io.WriteString(mac, id+"."+at+"."+string(body))
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	b.mu.Lock()
	defer b.mu.Unlock()
	b.posts = append(b.posts, post{id, string(body), r.Header.Get("webhook-signature") == want})
	w.WriteHeader(b.status)
	b.came <- struct{}{}
}

func (b *inbox) answer(status int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.status = status
}

// wait waits for the next delivery.
func (b *inbox) wait(t *testing.T, within time.Duration) post {
	t.Helper()
	select {
	case <-b.came:
	case <-time.After(within):
		t.Fatalf("nothing came within %s", within)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.posts[len(b.posts)-1]
}

func hooked(data, url string, allow ...string) harness.Config {
	c := Config(data)
	c.Keys = []harness.Key{{Key: harness.TestKey, Name: "test"}}
	c.Webhooks = []harness.Webhook{{URL: url, Secret: "whsec_" + base64.StdEncoding.EncodeToString([]byte(signingKey)),
		Allow: allow}}
	return c
}

// checkEvent holds a delivery against the job that it must be about.
func checkEvent(t *testing.T, p post, kind, job string) {
	t.Helper()
	var e struct {
		ID, Object, Type string
		Data             struct{ ID string }
	}
	if err := json.Unmarshal([]byte(p.body), &e); err != nil || !p.signed || e.ID != p.id || e.Object != "event" || e.Type != kind || e.Data.ID != job {
		t.Errorf("%+v, %v, want %s of %s, signed", p, err, kind, job)
	}
}

func TestEndsAreToldByWebhook(t *testing.T) {
	box, url := newInbox(t, 200)
	g := harness.Start(t, hooked("", url, "127.0.0.0/8"))
	done := create(t, g, "goes well [sandbox: job=1s]")
	checkEvent(t, box.wait(t, 20*time.Second), "video.completed", done.ID)
	failed := create(t, g, "does not [sandbox: job=1s fail]")
	checkEvent(t, box.wait(t, 20*time.Second), "video.failed", failed.ID)
}

// A gateway that is killed before its webhook was accepted delivers it after the
// restart, under the same id.
func TestAKillLosesNoWebhook(t *testing.T) {
	box, url := newInbox(t, 500)
	address, err := harness.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	c := hooked(filepath.Join(t.TempDir(), "data"), url, "127.0.0.0/8")
	c.Listen = []string{address}
	g, err := harness.Launch(harness.Binary(t), c)
	if err != nil {
		t.Fatal(err)
	}
	j := create(t, g, "ends before the kill [sandbox: job=1s]")
	first := box.wait(t, 20*time.Second)
	if err := g.Kill(); err != nil {
		t.Fatal(err)
	}
	box.answer(204)
	harness.Start(t, c)
	again := box.wait(t, 20*time.Second)
	checkEvent(t, again, "video.completed", j.ID)
	if again.id != first.id || again.body != first.body {
		t.Errorf("delivered as %+v, then as %+v", first, again)
	}
}

func TestWebhooksDoNotReachPrivateNetworks(t *testing.T) {
	box, url := newInbox(t, 200)
	g := harness.Start(t, hooked("", url))
	create(t, g, "ends [sandbox: job=1s]")
	for end := time.Now().Add(time.Minute); !strings.Contains(g.Logs(), "webhook failed"); {
		time.Sleep(20 * time.Millisecond)
		if time.Now().After(end) {
			t.Fatal("no try was logged")
		}
	}
	if logs := g.Logs(); !strings.Contains(logs, "not a public one") || strings.Contains(logs, url) {
		t.Error("the log does not say why, or says where")
	}
	if len(box.posts) != 0 {
		t.Errorf("%+v", box.posts)
	}
}
