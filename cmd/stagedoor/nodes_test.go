package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// goesOn waits until a gateway goes on with a video and a background response that another one has begun, and checks
// that it took them over in time.
func (p *program) goesOn(since time.Time, key, video, response string) {
	p.t.Helper()
	p.logged(`msg="video jobs of an earlier process go on"`)
	if wait := time.Since(since); wait > takeover {
		p.t.Errorf("the job went on after %v", wait)
	} else {
		p.t.Logf("the job went on after %v", wait)
	}
	for _, path := range []string{"/v1/videos/" + video, "/v1/responses/" + response} {
		p.await("the end of "+path, func() bool { return p.status(path, key) == "completed" })
	}
}

// begun has a gateway begin a video and a background response that last longer than a takeover.
func (p *program) begun(key string) (video, response string) {
	p.t.Helper()
	return p.made("/v1/videos", key, `{"model":"video","prompt":"a fox [sandbox: job=8s]","seconds":"4"}`),
		p.made("/v1/responses", key, `{"model":"m","input":"[sandbox: delay=7s]","background":true}`)
}

// TestTwoGatewaysServeTogether has two gateways on one database serve keys, money and jobs. One is killed and one is
// frozen; the other one serves meanwhile and goes on with their jobs.
func TestTwoGatewaysServeTogether(t *testing.T) {
	p := startPair(t)
	p.several = true
	a, b := p.start("gw-1", false), p.start("gw-2", false)
	on := func(name string, args ...string) {
		t.Helper()
		command(t, nil, append(args, "--config", p.file(name))...).check(t, exitOK, "", "")
	}
	list := command(t, nil, "nodes", "--config", p.file("gw-1"))
	list.check(t, exitOK, "gw-1  live", "")
	list.check(t, exitOK, "gw-2  live", "")
	text, err := os.ReadFile(p.file("gw-1"))
	if err == nil {
		alone := strings.NewReplacer("gw-1", "gw-3", "serve: all", "serve: one").Replace(string(text))
		err = os.WriteFile(p.file("gw-3"), []byte(alone), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	refused := command(t, nil, "state", "verify", "--config", p.file("gw-3"))
	refused.check(t, exitStorage, "", "permits no other beside it")

	// What one gateway knows, the other one knows: at once after a key was revoked.
	on("gw-1", "users", "create", "anna")
	on("gw-1", "credits", "add", "anna", "0.1")
	key := createKey(t, "", "--user", "anna", "--config", p.file("gw-1")).Key
	free := createKey(t, "", "--config", p.file("gw-1")).Key
	revoked := createKey(t, "", "--config", p.file("gw-1"))
	b.await("the key on the other gateway", func() bool { return b.ask(revoked.Key, "m") == http.StatusOK })
	on("gw-2", "keys", "revoke", revoked.ID)
	since := time.Now()
	for a.ask(revoked.Key, "m") != http.StatusUnauthorized {
		if time.Since(since) > time.Second {
			t.Fatal("a key that was revoked on the other gateway works after a second")
		}
	}
	t.Logf("a revoked key was refused on the other gateway after %v", time.Since(since))

	var picture struct{ Data []struct{ URL string } }
	res := a.post("/v1/images/generations", free, `{"model":"m","prompt":"a cat","response_format":"url"}`)
	if err := json.NewDecoder(res.Body).Decode(&picture); err != nil || len(picture.Data) != 1 {
		t.Fatalf("a picture: %d, %v, %v", res.StatusCode, picture, err)
	}
	if code, _ := b.get(strings.TrimPrefix(picture.Data[0].URL, a.URL), ""); code != http.StatusOK {
		t.Errorf("the picture of another gateway is answered %d", code)
	}

	// Both spend the same balance, until nothing that is left covers a request.
	var mu sync.Mutex
	codes := map[int]int{}
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			for range 12 {
				const body = `{"model":"paid","max_tokens":50,"messages":[{"role":"user","content":"hi"}]}`
				res := []*program{a, b}[i%2].post("/v1/chat/completions", key, body, "x-sandbox", "pace=max")
				_, _ = io.Copy(io.Discard, res.Body)
				mu.Lock()
				codes[res.StatusCode]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if codes[http.StatusOK] == 0 || codes[http.StatusTooManyRequests] == 0 || len(codes) != 2 {
		t.Errorf("the answers to requests on one balance: %v", codes)
	}
	t.Logf("the answers to requests on one balance: %v", codes)

	// A gateway is killed. The other one answers at once and goes on with the work.
	video, response := a.begun(free)
	killed := time.Now()
	a.signal(syscall.SIGKILL)
	<-a.exit
	if got := b.ask(free, "m"); got != http.StatusOK {
		t.Errorf("beside a gateway that was killed: %d", got)
	}
	b.goesOn(killed, free, video, response)

	// It comes back, and the other one hangs.
	a = p.start("gw-1", false)
	video, response = b.begun(free)
	frozen := time.Now()
	b.signal(syscall.SIGSTOP)
	a.goesOn(frozen, free, video, response)
	b.signal(syscall.SIGCONT)
	b.ended(exitStorage)
	a.stop()
	verify := command(t, nil, "state", "verify", "--config", p.file("gw-1"))
	verify.check(t, exitOK, "nothing is wrong", "")
	var account struct{ Spent, Held, Available float64 }
	shown := command(t, nil, "credits", "show", "anna", "--json", "--config", p.file("gw-1"))
	if err := json.Unmarshal([]byte(shown.out), &account); err != nil || account.Spent == 0 || account.Available < 0 {
		t.Errorf("the account is in debt: %s %v", shown.out, err)
	}
}
