package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// goesOn waits until a gateway goes on with a video and a background response that another one has begun, and checks
// that it took them over in time.
func (p *program) goesOn(since time.Time, key, video, response string) {
	p.t.Helper()
	p.logged(`msg="video jobs of an earlier process go on"`)
	p.t.Logf("the job went on after %v", time.Since(since))
	p.inTime(since, takeover)
	for _, path := range []string{"/v1/videos/" + video, "/v1/responses/" + response} {
		p.await("the end of "+path, func() bool { return p.status(path, key) == "completed" })
	}
}

// revocations is the number of keys that are revoked on one gateway and tried on the other.
var revocations = flag.Int("revocations", 3, "how many keys are revoked on one gateway and tried on another")

// hearsRevocations revokes keys on another gateway, whose configuration is file, and reports how long they still work
// on this one.
func (p *program) hearsRevocations(t *testing.T, other *program, file string) {
	t.Helper()
	var waits []time.Duration
	for range *revocations {
		key := createKey(t, "", "--config", file)
		p.await("the key on both gateways", func() bool {
			return p.ask(key.Key, "m") == http.StatusOK && other.ask(key.Key, "m") == http.StatusOK
		})
		command(t, nil, "keys", "revoke", key.ID, "--config", file).check(t, exitOK, "revoked", "")
		since := time.Now()
		for ; p.listed(key.Key) != http.StatusUnauthorized; time.Sleep(time.Millisecond) {
			if time.Since(since) > patience {
				t.Fatal("a key that was revoked on the other gateway still works")
			}
		}
		p.inTime(since, time.Second)
		waits = append(waits, time.Since(since))
	}
	slices.Sort(waits)
	t.Logf("%d revoked keys were refused on the other gateway after p50 %v, p99 %v, at most %v", len(waits),
		waits[len(waits)/2], waits[(len(waits)*99-1)/100], waits[len(waits)-1])
}

// listed returns the status of a cheap request with a key.
func (p *program) listed(key string) int {
	code, _ := p.get("/v1/models", key)
	return code
}

// permits checks how many of the requests a minute that a key has are those of this gateway.
func (p *program) permits(t *testing.T, key, want string) {
	t.Helper()
	res := p.post("/v1/chat/completions", key, `{"model":"m","messages":[{"role":"user","content":"hello"}]}`)
	if got := res.Header.Get("X-Ratelimit-Limit-Requests"); got != want {
		t.Errorf("%d, the gateway permits %q requests a minute, want %s", res.StatusCode, got, want)
	}
}

// begun has a gateway begin a video and a background response that last longer than a takeover.
func (p *program) begun(key string) (video, response string) {
	p.t.Helper()
	return p.made("/v1/videos", key, `{"model":"video","prompt":"a fox [sandbox: job=8s]","seconds":"4"}`),
		p.made("/v1/responses", key, `{"model":"m","input":"[sandbox: delay=7s]","background":true}`)
}

// streams has a gateway begin a background response with a stream that lasts for seconds, and returns its id.
func (p *program) streams(key string) string {
	p.t.Helper()
	res := p.post("/v1/responses", key,
		`{"model":"m","input":"[sandbox: tokens=60 pace=20]","background":true,"stream":true}`)
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		if _, rest, ok := strings.Cut(lines.Text(), `"response":{"id":"`); ok {
			id, _, _ := strings.Cut(rest, `"`)
			return id
		}
	}
	p.t.Fatalf("a stream has no id: %v", lines.Err())
	return ""
}

// follows returns the stream of a response that another gateway makes, up to its end. It returns once events arrive.
func (p *program) follows(id, key string) <-chan string {
	p.t.Helper()
	p.await("the response of the other gateway", func() bool {
		code, _ := p.get("/v1/responses/"+id, key)
		return code == http.StatusOK
	})
	req, err := http.NewRequest(http.MethodGet, p.URL+"/v1/responses/"+id+"?stream=true", nil)
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	out, live := make(chan string, 1), make(chan bool, 1)
	go func() {
		defer res.Body.Close()
		var got strings.Builder
		for lines := bufio.NewScanner(res.Body); lines.Scan(); {
			if strings.HasPrefix(lines.Text(), "event: response.output_text.delta") {
				select {
				case live <- true:
				default:
				}
			}
			got.WriteString(lines.Text() + "\n")
		}
		out <- got.String()
	}()
	select {
	case <-live:
	case <-time.After(time.Minute):
		p.t.Fatal("no event of the other gateway arrives")
	}
	return out
}

// TestTwoGatewaysUseTheOnlyPlaceOfAProviderInTurn has two gateways send requests to a provider that takes one at a
// time. After one gateway was killed, the other one has the place.
func TestTwoGatewaysUseTheOnlyPlaceOfAProviderInTurn(t *testing.T) {
	var busy atomic.Int64
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n := busy.Add(1); n > 1 {
			t.Errorf("%d requests at a time", n)
		}
		defer busy.Add(-1)
		_, _ = io.Copy(io.Discard, r.Body)
		time.Sleep(100 * time.Millisecond)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,`+
			`"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}`)
	}))
	t.Cleanup(upstream.Close)
	p := startPair(t)
	p.several, p.narrow = true, upstream.URL+"/v1"
	a, b := p.start("gw-1", false), p.start("gw-2", false)
	key := createKey(t, "", "--config", p.file("gw-1")).Key
	for _, g := range []*program{a, b} {
		g.await("the key", func() bool { return g.listed(key) == http.StatusOK })
	}
	var wg sync.WaitGroup
	for _, g := range []*program{a, b, a, b, a, b} {
		wg.Go(func() {
			for range 5 {
				if code := g.ask(key, "narrow"); code != http.StatusOK {
					t.Errorf("a request is answered %d", code)
				}
			}
		})
	}
	wg.Wait()
	if code := a.ask(key, "narrow"); code != http.StatusOK {
		t.Errorf("before the gateway is killed: %d", code)
	}
	if err := a.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if code := b.ask(key, "narrow"); code != http.StatusOK {
		t.Errorf("after the other gateway was killed: %d", code)
	}
}

// TestTwoGatewaysServeTogether has two gateways on one database serve keys, money and jobs. One is killed and one is
// frozen; the other one serves meanwhile and goes on with their jobs.
func TestTwoGatewaysServeTogether(t *testing.T) {
	p := startPair(t)
	p.several = true
	a := p.start("gw-1", false)
	limited := createKey(t, "", "--rpm", "100", "--config", p.file("gw-1")).Key
	a.permits(t, limited, "100")
	b := p.start("gw-2", false)
	a.permits(t, limited, "50") // it has left the other one its part before that serves
	b.permits(t, limited, "50")
	on := func(name string, args ...string) {
		t.Helper()
		command(t, nil, append(args, "--config", p.file(name))...).check(t, exitOK, "", "")
	}
	list := command(t, nil, "nodes", "--config", p.file("gw-1"))
	list.check(t, exitOK, "gw-1  live", "")
	list.check(t, exitOK, "gw-2  live", "")
	text, err := os.ReadFile(p.file("gw-1"))
	if err == nil {
		change := strings.NewReplacer("gw-1", "gw-3", "serve: all, listen: 127.0.0.1:0", "serve: one")
		alone := change.Replace(string(text))
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
	a.hearsRevocations(t, b, p.file("gw-2"))

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
	followed := b.follows(a.streams(free), free)
	top := command(t, nil, "top", "--json", "--config", p.file("gw-2"))
	top.check(t, exitOK, `"node": "gw-1"`, "")
	list = command(t, nil, "nodes", "--json", "--config", p.file("gw-2"))
	list.check(t, exitOK, `"answers": true`, "")
	killed := time.Now()
	a.signal(syscall.SIGKILL)
	<-a.exit
	if got := b.ask(free, "m"); got != http.StatusOK {
		t.Errorf("beside a gateway that was killed: %d", got)
	}
	b.goesOn(killed, free, video, response)
	if got := <-followed; strings.Count(got, "event: response.completed") != 1 ||
		strings.Count(got, "event: response.created") != 2 {
		t.Errorf("a client of the other gateway followed: %s", got)
	}

	// It comes back, and the other one hangs.
	a = p.start("gw-1", false)
	video, response = b.begun(free)
	frozen := time.Now()
	b.signal(syscall.SIGSTOP)
	top = command(t, nil, "top", "--once", "--config", p.file("gw-1"))
	top.check(t, exitOK, "the gateway gw-2 does not answer", "")
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

// TestAPartOfTheLimitsIsThatOfTheGatewaysWhateverFailed: a third gateway comes and leaves again, and the database does
// not answer when it comes.
func TestAPartOfTheLimitsIsThatOfTheGatewaysWhateverFailed(t *testing.T) {
	for _, failed := range []error{nil, errors.New("away")} { // the grant is refused, or fails
		var d division
		used, answer := 0, error(nil)
		change := func(parts int, grants bool) bool {
			t.Helper()
			grant := func(int) (bool, error) { return grants, answer }
			had, err := d.change(parts, func(parts int) { used = parts }, grant)
			if !errors.Is(err, answer) {
				t.Errorf("got %v, want %v", err, answer)
			}
			return had
		}
		if !change(2, true) || used != 2 {
			t.Fatalf("the first part is one of %d", used)
		}
		if answer = failed; change(3, false) || used != 3 {
			t.Errorf("beside a third one it uses one of %d", used)
		}
		if answer = nil; !change(2, true) || used != 2 {
			t.Errorf("after the third one has left it uses one of %d", used)
		}
		if change(1, false) || used != 2 || !change(1, true) || used != 1 {
			t.Errorf("alone it uses one of %d", used)
		}
	}
}
