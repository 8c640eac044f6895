package flow

import (
	"testing"

	"github.com/tidwall/gjson"
)

// An operator pauses a provider for as long as the operator wants to, not until the
// next deployment or crash.
func TestPauseOutlivesAKill(t *testing.T) {
	b := start(t)
	since := b.admin("POST", "/providers/sandbox/pause", 200).Get("paused_since").String()
	if since == "" {
		t.Fatal("a paused provider does not say since when")
	}
	b.again()
	p := b.admin("GET", "/providers/sandbox", 200)
	if !p.Get("paused").Bool() || p.Get("paused_since").String() != since {
		t.Fatalf("after a kill the provider is %s, want it paused since %s", p.Raw, since)
	}
	left := make(chan int)
	go func() {
		defer close(left)
		res, err := b.ask(questions(false)[0], "tokens=3")
		if err != nil {
			t.Error(err)
			return
		}
		defer res.Body.Close()
		left <- res.StatusCode
	}()
	b.await("/flow?phase=queued", "the request that waits",
		func(r gjson.Result) bool { return r.Get("matching").Int() == 1 })
	b.admin("POST", "/providers/sandbox/resume", 200)
	if got := <-left; got != 200 {
		t.Errorf("the request that waited gets %d", got)
	}
	b.again()
	if p := b.admin("GET", "/providers/sandbox", 200); p.Get("paused").Bool() || p.Get("paused_since").String() != "" {
		t.Errorf("a pause that was ended is back after a kill: %s", p.Raw)
	}
}
