package main

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"stagedoor/cmd/stagedoor/datadir"
	"stagedoor/state/journal"
	"stagedoor/state/schema"
	"stagedoor/state/statetest/pgserver"
)

// takeover bounds the time from the end of a gateway to the moment at which its stand-by serves.
const takeover = 10 * time.Second

// timed is set by make nemesis, beside which nothing else runs.
var timed = flag.Bool("timed", false, "judge how long gateways take, on a machine that does nothing else")

// inTime fails if times are judged and something took longer than it may.
func (p *program) inTime(since time.Time, within time.Duration) {
	p.t.Helper()
	if took := time.Since(since); *timed && took > within {
		p.t.Errorf("it took %v, and may take %v", took, within)
	}
}

// pair are two gateways on one database, with data directories of their own.
type pair struct {
	t        testing.TB
	dir      string
	server   *pgserver.Server
	database string // its name in the server
	upstream string
	alone    bool   // the gateways do not stand by
	several  bool   // both serve
	narrow   string // if set, the base URL of a provider with one place, whose model is narrow
	// address, if set, is where the other gateway reaches one, and store is its database, by the gateway's name.
	address, store map[string]string
}

// start starts a gateway, and returns when it stands by if it is to, or else serves.
func (p *pair) start(name string, standby bool) *program {
	p.t.Helper()
	file := p.file(name)
	serve := "one"
	if p.several {
		serve, p.alone = "all, listen: 127.0.0.1:0", true
	}
	if at := p.address[name]; at != "" {
		serve += ", address: " + at
	}
	text := fmt.Sprintf("data: %s\ncluster: {store: %q, node: %s, serve: %s, standby: %t}\nlisten: 127.0.0.1:0\n"+
		"telemetry: {metrics: {prometheus: true}}\nlimits: {stored_responses: 0}\n"+
		"providers:\n  s: {shape: sandbox}\n  v: {shape: videos, base_url: %q, api_keys: [k]}\n"+
		"models:\n  m: {targets: [{provider: s, model: m}]}\n"+
		"  paid: {targets: [{provider: s, model: m}], price: {input: 10, output: 100}}\n  video: {targets: [{provider: v, model: video-2}]}\n",
		filepath.Join(p.dir, name), cmp.Or(p.store[name], p.server.URLOf(p.database)), name, serve, !p.alone,
		p.upstream+"/v1")
	if p.narrow != "" {
		text = strings.Replace(text, "providers:\n", "providers:\n  n: {shape: chat, base_url: "+p.narrow+
			", api_keys: [k], limits: {concurrency: 1}}\n", 1) + "  narrow: {targets: [{provider: n, model: m}]}\n"
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
	g := begin(p.t, p.dir, "serve", "--config", file)
	if !standby {
		g.serving()
		return g
	}
	const says = `msg="standing by" listen=[`
	g.logged(says)
	_, rest, _ := strings.Cut(g.errOut.String(), says)
	address, _, _ := strings.Cut(rest, "]")
	g.URL = "http://" + address
	return g
}

func (p *pair) file(name string) string { return filepath.Join(p.dir, name+".yaml") }

// get returns the status and the body of a reply.
func (p *program) get(path, key string) (int, string) {
	p.t.Helper()
	req, err := http.NewRequest(http.MethodGet, p.URL+path, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

// status returns the status of a stored response or of a video.
func (p *program) status(path, key string) string {
	p.t.Helper()
	code, text := p.get(path, key)
	var item struct{ Status string }
	if err := json.Unmarshal([]byte(text), &item); code != http.StatusOK || err != nil {
		p.t.Fatalf("%s: %d %s", path, code, text)
	}
	return item.Status
}

// made sends a request and returns the id of what it has made.
func (p *program) made(path, key, body string) string {
	p.t.Helper()
	var item struct{ ID string }
	res := p.post(path, key, body)
	if err := json.NewDecoder(res.Body).Decode(&item); err != nil || res.StatusCode != http.StatusOK || item.ID == "" {
		p.t.Fatalf("%s: %d, %v", path, res.StatusCode, err)
	}
	return item.ID
}

// took waits until a stand-by serves.
func (p *program) took(since time.Time) {
	p.t.Helper()
	p.serving()
	p.t.Logf("the stand-by served after %v", time.Since(since))
	p.inTime(since, takeover)
}

// startPair prepares a database and a provider for a test. The tests of stand-bys wait for leases most of the time, so
// they do so together.
func startPair(t *testing.T) *pair {
	t.Helper()
	t.Parallel()
	return newPair(t, pgserver.Shared(t))
}

// proxied has the gateways that are started from now on reach the database through a proxy.
func (p *pair) proxied() *pgserver.Proxy {
	proxy := pgserver.NewProxy(p.t, p.server)
	url := proxy.URLOf(p.database)
	p.store = map[string]string{"gw-1": url, "gw-2": url}
	return proxy
}

// newPair prepares two gateways on a new database of a server.
func newPair(t testing.TB, server *pgserver.Server) *pair {
	t.Helper()
	dir := directory(t)
	upstream := begin(t, dir, "sandbox", "--listen", "127.0.0.1:0")
	const says = "the sandbox is listening on "
	upstream.await("listening", func() bool { return strings.Contains(upstream.out.String(), says) })
	_, rest, _ := strings.Cut(upstream.out.String(), says)
	address, _, _ := strings.Cut(rest, "\n")
	return &pair{t: t, dir: dir, server: server, database: server.NewDatabase(t), upstream: address}
}

// A gateway that is killed loses nothing that was acknowledged: its stand-by has the keys, and goes on with the jobs.
func TestAStandbyTakesOverFromAKilledGateway(t *testing.T) {
	p := startPair(t)
	first := p.start("gw-1", false)
	second := p.start("gw-2", true)

	if code, text := second.get("/healthz", ""); code != http.StatusOK {
		t.Errorf("/healthz of the stand-by: %d %s", code, text)
	}
	if code, text := second.get("/readyz", ""); code != http.StatusServiceUnavailable ||
		!strings.Contains(text, "standby") {
		t.Errorf("/readyz of the stand-by: %d %s", code, text)
	}
	if code, text := second.get("/v1/models", ""); code != http.StatusServiceUnavailable ||
		!strings.Contains(text, `"code":"standby"`) {
		t.Errorf("a request to the stand-by: %d %s", code, text)
	}
	list := command(t, nil, "nodes", "--config", p.file("gw-1"))
	list.check(t, exitOK, "gw-1  live", "")
	list.check(t, exitOK, "gw-2  standby", "")

	// After the stand-by has read the state, so that it has to follow.
	kept, revoked := createKey(t, "", "--config", p.file("gw-1")), createKey(t, "", "--config", p.file("gw-1"))
	command(t, nil, "keys", "revoke", revoked.ID, "--config", p.file("gw-1")).check(t, exitOK, "revoked", "")
	response := first.made("/v1/responses", kept.Key, `{"model":"m","input":"[sandbox: delay=2s]","background":true}`)
	video := first.made("/v1/videos", kept.Key, `{"model":"video","prompt":"a fox [sandbox: job=7s]","seconds":"4"}`)
	var picture struct{ Data []struct{ URL string } }
	res := first.post("/v1/images/generations", kept.Key, `{"model":"m","prompt":"a cat","response_format":"url"}`)
	if err := json.NewDecoder(res.Body).Decode(&picture); err != nil || len(picture.Data) != 1 {
		t.Fatalf("a picture: %d, %v, %v", res.StatusCode, picture, err)
	}
	killed := time.Now()
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	second.took(killed)
	if got := second.ask(kept.Key, "m"); got != http.StatusOK {
		t.Errorf("a key is answered %d", got)
	}
	if got := second.ask(revoked.Key, "m"); got != http.StatusUnauthorized {
		t.Errorf("a revoked key is answered %d", got)
	}
	if code, _ := second.get(strings.TrimPrefix(picture.Data[0].URL, first.URL), ""); code != http.StatusOK {
		t.Errorf("a picture that the first one has made is answered %d", code)
	}
	if _, text := second.get("/metrics", ""); !strings.Contains(text, "stagedoor_cluster_lease_seconds") {
		t.Error("the metrics do not have the lease")
	}
	for _, path := range []string{"/v1/responses/" + response, "/v1/videos/" + video} {
		second.await("the end of "+path, func() bool { return second.status(path, kept.Key) == "completed" })
	}
	second.stop()
}

// A gateway that hangs is replaced as if it were dead. When it goes on, it can change nothing and ends.
func TestAStandbyTakesOverFromAGatewayThatHangsWhichThenEnds(t *testing.T) {
	p := startPair(t)
	first := p.start("gw-1", false)
	second := p.start("gw-2", true)
	key := createKey(t, "", "--config", p.file("gw-1"))
	stopped := time.Now()
	first.signal(syscall.SIGSTOP)
	second.took(stopped)
	command(t, nil, "keys", "revoke", key.ID, "--config", p.file("gw-2")).check(t, exitOK, "revoked", "")
	first.signal(syscall.SIGCONT)
	first.ended(exitStorage)
	if got := second.ask(key.Key, "m"); got != http.StatusUnauthorized {
		t.Errorf("a key that was revoked after the takeover is answered %d", got)
	}
	// Its next start stands by, and what one of the two is asked to leave to, the other one takes over.
	first = p.start("gw-1", true)
	left := time.Now()
	command(t, nil, "nodes", "leave", "gw-2", "--config", p.file("gw-1")).check(t, exitOK, "was asked to leave", "")
	first.took(left)
	second.ended(exitOK)
	command(t, nil, "nodes", "expel", "gw-2", "--config", p.file("gw-1")).check(t, exitFailure, "", "no node \"gw-2\"")
	command(t, nil, "nodes", "expel", "gw-1", "--config", p.file("gw-1")).check(t, exitOK, "gw-1 was expelled", "")
	first.ended(exitStorage)
}

// takeovers is the number of gateways that are killed or frozen under load. Each takes about six seconds.
var takeovers = flag.Int("takeovers", 2, "how often the gateway that serves is killed or frozen under load")

// billed is a response that a client was given whole.
type billed struct {
	id, request string
	at          time.Time
}

// bill sends priced requests to the gateway of the moment until stop is closed. It returns those that were answered.
func bill(url *atomic.Pointer[string], key string, every time.Duration, stop <-chan struct{}) (
	acknowledged []billed) {
	client := &http.Client{Timeout: 2 * time.Second}
	often := time.NewTicker(every)
	defer often.Stop()
	for {
		select {
		case <-stop:
			return acknowledged
		case <-often.C:
		}
		req, err := http.NewRequest(http.MethodPost, *url.Load()+"/v1/responses",
			strings.NewReader(`{"model":"paid","max_output_tokens":40,"input":"hi [sandbox: tokens=20 pace=max]"}`))
		if err != nil {
			return acknowledged
		}
		req.Header.Set("Authorization", "Bearer "+key)
		res, err := client.Do(req)
		if err != nil {
			continue
		}
		var made struct{ ID string }
		err = json.NewDecoder(res.Body).Decode(&made)
		res.Body.Close()
		if err == nil && res.StatusCode == http.StatusOK && made.ID != "" {
			acknowledged = append(acknowledged, billed{made.ID, res.Header.Get("X-Request-Id"), time.Now()})
		}
	}
}

// billedOnce checks that acknowledged responses are stored and were charged. It returns how many there are, and how
// many are not charged that were given to a client just before a gateway ended.
func (p *program) billedOnce(all []billed, key string, ends []time.Time) (total, uncharged int) {
	p.t.Helper()
	for _, b := range all {
		total++
		if status := p.status("/v1/responses/"+b.id, key); status != "completed" {
			p.t.Errorf("the response %s is %q", b.id, status)
		}
		var receipt struct {
			Charged   int64
			EndReason string `json:"end_reason"`
		}
		code, text := p.get("/v1/receipts/"+b.request, key)
		atEnd := slices.ContainsFunc(ends, func(end time.Time) bool { return end.Sub(b.at).Abs() < time.Second/2 })
		switch err := json.Unmarshal([]byte(text), &receipt); {
		case code == http.StatusNotFound && atEnd, err == nil && receipt.EndReason == "crash" && atEnd:
			uncharged++ // the second form if the request took so long that its hold was written
		case err != nil || code != http.StatusOK || receipt.Charged <= 0:
			p.t.Errorf("the receipt of %s: %d %s", b.id, code, text)
		}
	}
	return total, uncharged
}

// Whatever ends a gateway, a response that a client was given whole is stored, and is charged once. The charges of text
// that ended a moment before may be lost, as in any crash (docs/decisions/036-text-is-charged-after-its-reply.md).
func TestNothingAcknowledgedIsLostWhenGatewaysAreKilledAndFrozenInTurn(t *testing.T) {
	p := startPair(t)
	names := []string{"gw-1", "gw-2"}
	live, other := p.start(names[0], false), p.start(names[1], true)
	for _, args := range [][]string{{"users", "create", "anna"}, {"credits", "add", "anna", "1000"}} {
		command(t, nil, append(args, "--config", p.file(names[0]))...).check(t, exitOK, "", "")
	}
	key := createKey(t, "", "--user", "anna", "--config", p.file(names[0])).Key
	var url atomic.Pointer[string]
	url.Store(&live.URL)
	stop := make(chan struct{})
	const clients = 3
	every := 20 * time.Millisecond
	if testing.Short() {
		every = 100 * time.Millisecond
	}
	acknowledged := make([][]billed, clients)
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() { acknowledged[i] = bill(&url, key, every, stop) })
	}
	longest, ends := time.Duration(0), []time.Time{}
	for n := range *takeovers {
		time.Sleep(time.Second) // under load
		ended := time.Now()
		if n%2 == 0 {
			live.signal(syscall.SIGKILL)
			<-live.exit
		} else {
			live.signal(syscall.SIGSTOP)
		}
		other.took(ended)
		longest, ends = max(longest, time.Since(ended)), append(ends, ended)
		url.Store(&other.URL)
		if n%2 != 0 {
			live.signal(syscall.SIGCONT)
			live.ended(exitStorage)
		}
		live, other = other, p.start(names[n%2], true)
	}
	time.Sleep(time.Second)
	close(stop)
	wg.Wait()
	total, uncharged := live.billedOnce(slices.Concat(acknowledged...), key, ends)
	t.Logf("%d takeovers, the longest took %v; %d responses acknowledged, %d of them uncharged",
		*takeovers, longest, total, uncharged)
	if total < 10**takeovers {
		t.Errorf("only %d responses were acknowledged", total)
	}
	other.stop()
	live.stop()
	command(t, nil, "state", "verify", "--config", p.file(names[0])).check(t, exitOK, "nothing is wrong", "")
}

// A gateway refuses requests when it has not reached the database for ten seconds, because what it knows may be out of
// date: another one may have taken its place, also if it has no stand-by. Until then requests without a price and
// checks of keys go on, and streams that have begun go on to their ends. It goes on when the database is back.
func TestAGatewayDoesNotServeForLongWithoutItsDatabase(t *testing.T) {
	p := startPair(t)
	network := p.proxied()
	p.alone = true
	g := p.start("gw-1", false)
	key := createKey(t, "", "--config", p.file("gw-1"))
	stream := g.post("/v1/chat/completions", key.Key,
		`{"model":"m","stream":true,"messages":[{"role":"user","content":"[sandbox: tokens=300 pace=20]"}]}`)
	network.Set(pgserver.Cut)
	away, answered := time.Now(), 0
	// The last look at the database may be some time ago, on a busy machine some seconds.
	for time.Since(away) < maxSilence/2 {
		known, unknown := g.ask(key.Key, "m"), g.ask("sd-unknown", "m")
		right := known == http.StatusOK && unknown == http.StatusUnauthorized
		if took := time.Since(away); took < maxSilence/2 && !right {
			t.Fatalf("%v without the database: %d, an unknown key %d", took, known, unknown)
		}
		answered++
		time.Sleep(200 * time.Millisecond)
	}
	g.await("a refusal", func() bool { return g.ask(key.Key, "m") == http.StatusServiceUnavailable })
	if text, err := io.ReadAll(stream.Body); err != nil || !strings.HasSuffix(string(text), "data: [DONE]\n\n") ||
		time.Since(away) < maxSilence {
		t.Errorf("a stream that began before ended after %v: %v", time.Since(away), err)
	}
	t.Logf("%d requests without a price were answered in %v without the database", answered, maxSilence)
	if code, text := g.get("/readyz", ""); code != http.StatusServiceUnavailable ||
		!strings.Contains(text, "database_unreachable") {
		t.Errorf("/readyz: %d %s", code, text)
	}
	network.Set(pgserver.None)
	g.await("answers again", func() bool { return g.ask(key.Key, "m") == http.StatusOK })
	g.stop()
}

// A database that is away for longer than the lease does not cost a healthy gateway its place.
func TestAGatewayKeepsItsPlaceWhenTheDatabaseWasAway(t *testing.T) {
	p := startPair(t)
	network := p.proxied()
	first := p.start("gw-1", false)
	second := p.start("gw-2", true)
	key := createKey(t, "", "--config", p.file("gw-1"))
	network.Set(pgserver.Cut)
	time.Sleep(6 * time.Second) // longer than the lease
	network.Set(pgserver.None)
	command(t, nil, "keys", "revoke", key.ID, "--config", p.file("gw-1")).check(t, exitOK, "revoked", "")
	if got := first.ask(key.Key, "m"); got != http.StatusUnauthorized {
		t.Errorf("a key that was revoked after the database came back is answered %d", got)
	}
	if code, text := second.get("/readyz", ""); code != http.StatusServiceUnavailable ||
		!strings.Contains(text, "standby") {
		t.Errorf("/readyz of the stand-by: %d %s", code, text)
	}
	second.stop()
	first.stop()
}

// cutOff is the store of a gateway that has lost its database or its place.
type cutOff struct {
	journal.Store
	datadir.Shared
	silent time.Duration
	failed error
}

func (c *cutOff) Silent() time.Duration { return c.silent }
func (c *cutOff) Stats() journal.Stats  { return journal.Stats{Poisoned: c.failed} }

func TestAGatewayWhosePlaceWasTakenIsStaleAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		store cutOff
		stale bool
	}{
		"reaches the database":        {},
		"has not reached it for long": {cutOff{silent: maxSilence + 1}, true},
		"was fenced":                  {cutOff{failed: journal.ErrFenced}, true},
	} {
		g := &gateway{store: &c.store}
		if got := g.staleness()(); got != c.stale {
			t.Errorf("%s: stale %t", name, got)
		}
	}
	if (&gateway{store: journal.NewMemory()}).staleness() != nil {
		t.Error("a gateway without a database can be stale")
	}
}

// awayAtFirst is a store that cannot be reached at first.
type awayAtFirst struct {
	journal.Shared
	refusals int
}

func (a *awayAtFirst) Head(ctx context.Context) (journal.Position, error) {
	if a.refusals > 0 {
		a.refusals--
		return journal.Position{}, journal.ErrUnreachable
	}
	return a.Shared.Head(ctx)
}

func TestATakeoverWaitsForADatabaseThatIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &awayAtFirst{Shared: journal.Alone(journal.NewMemory())}
		s, err := schema.Open(store, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		store.refusals = 3
		if err := catchUp(t.Context(), s); err != nil || store.refusals != 0 {
			t.Errorf("after %d more refusals: %v", store.refusals, err)
		}
	})
}

// A stand-by that is stopped before it has served ends at once.
func TestAStandbyCanBeStopped(t *testing.T) {
	p := startPair(t)
	first := p.start("gw-1", false)
	second := p.start("gw-2", true)
	second.stop()
	first.stop()
}
