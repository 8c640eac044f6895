package flow

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"
)

// begun posts JSON and returns the reply.
func (b *bench) begun(path, body string) gjson.Result {
	b.Helper()
	return b.send(http.MethodPost, path, body)
}

func (b *bench) send(method, path, body string) gjson.Result {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), method, b.URL+path, strings.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+b.Key)
	r.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	defer res.Body.Close()
	reply, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		b.Fatalf("%s %s: %d, %v\n%s", method, path, res.StatusCode, err, reply)
	}
	return gjson.ParseBytes(reply)
}

func one(r gjson.Result) bool { return r.Get("matching").Int() == 1 }

// A job is shown from its creation on, by the process that did not create it, too,
// and ends by hand.
func TestVideoJobsAreUnderWayOverAKill(t *testing.T) {
	b := start(t)
	id := b.begun("/v1/videos", `{"model":"video-2","prompt":"a fox [sandbox: job=40s]","seconds":"4"}`).
		Get("id").
		String()
	b.await("/flow?phase=in_progress", "the job with some progress",
		func(r gjson.Result) bool { return one(r) && r.Get("data.0.progress").Int() > 0 })
	b.again()
	r := b.await("/flow?phase=in_progress&model=video-2&provider=sandbox", "the job after a kill", one).Get("data.0")
	if r.Get("id").String() != id || r.Get("shape").String() != "videos" || !r.Get("background").Bool() ||
		r.Get("progress").Int() < 1 ||
		r.Get("duration_ms").Int() < 1 {
		t.Errorf("after a kill the job is shown as %s", r.Raw)
	}
	b.admin("DELETE", "/flow/requests/"+id, http.StatusAccepted)
	b.await("/flow/requests/"+id, "its end",
		func(r gjson.Result) bool { return r.Get("result.code").String() == "cancelled_by_operator" })
	if v := b.send(http.MethodGet, "/v1/videos/"+id, ""); v.Get("status").String() != "failed" ||
		v.Get("error.code").String() != "cancelled_by_operator" {
		t.Errorf("its client gets %s", v.Raw)
	}
}

func TestBackgroundResponsesAreUnderWayAndEndByHand(t *testing.T) {
	b := start(t)
	id := b.begun("/v1/responses", `{"model":"m1","input":"[sandbox: delay=60s]","background":true}`).Get("id").String()
	b.await("/flow?phase=waiting", "the response",
		func(r gjson.Result) bool { return one(r) && r.Get("data.0.background").Bool() })
	b.again()
	r := b.await("/flow?phase=waiting", "the response, begun again", one)
	b.admin("DELETE", "/flow/requests/"+r.Get("data.0.id").String(), http.StatusAccepted)
	b.await("/flow", "nothing", func(r gjson.Result) bool { return r.Get("load.in_flight").Int() == 0 })
	got := b.send(http.MethodGet, "/v1/responses/"+id, "")
	for range 200 { // its end is visible when it is durable
		if got.Get("status").String() != "queued" {
			break
		}
		time.Sleep(20 * time.Millisecond)
		got = b.send(http.MethodGet, "/v1/responses/"+id, "")
	}
	if got.Get("status").String() != "failed" ||
		!strings.Contains(got.Get("error.message").String(), "ended by an operator") {
		t.Errorf("its client gets %s", got.Raw)
	}
}
