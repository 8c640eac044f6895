package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"stagedoor/state/statetest/pgserver"
)

// The faults of gateways that serve together. A kill takes about three seconds with the start that follows, and a
// freeze nine, because the lease has to end.
var (
	gateways = flag.Int("gateways", 2, "how many gateways serve together")
	kills    = flag.Int("kills", 1, "how many times one of them is killed under load")
	freezes  = flag.Int("freezes", 0, "how many times one of them is frozen under load until its lease has ended")
	cuts     = flag.Int("cuts", 2, "how often one of them is cut off from the database or from the others")
	crashes  = flag.Int("crashes", 0, "how often their database crashes under load and is started again")
)

// servers are the gateways of a test with the networks between them and to the database.
type servers struct {
	*pair
	names    []string
	running  []*program
	urls     []atomic.Pointer[string]
	database []*pgserver.Proxy // in front of the database, for each
	between  []*pgserver.Proxy // in front of the listener for the others, of each
}

// url returns the address of one of the gateways, which they have in turns.
func (s *servers) url(turn int) string { return *s.urls[turn%len(s.urls)].Load() }

// begin starts a gateway, or starts it again.
func (s *servers) begin(i int) {
	s.t.Helper()
	g := s.start(s.names[i], false)
	const says = `msg="answering other gateways" listen=`
	g.logged(says)
	_, rest, _ := strings.Cut(g.errOut.String(), says)
	address, _, _ := strings.Cut(rest, "\n")
	s.between[i].ToAddress("tcp", address)
	s.running[i] = g
	s.urls[i].Store(&g.URL)
}

func startServers(t *testing.T) *servers {
	t.Helper()
	n := *gateways
	s := &servers{pair: startPair(t), running: make([]*program, n), urls: make([]atomic.Pointer[string], n),
		database: make([]*pgserver.Proxy, n), between: make([]*pgserver.Proxy, n)}
	if *crashes > 0 { // which the other tests that share the server would notice
		s.server = pgserver.New(t, "fsync=off")
		s.pair.database = s.server.NewDatabase(t)
	}
	s.several, s.address, s.store = true, map[string]string{}, map[string]string{}
	for i := range n {
		name := "gw-" + strconv.Itoa(i+1)
		s.names = append(s.names, name)
		s.database[i] = pgserver.NewProxy(t, s.server)
		s.between[i], s.address[name] = pgserver.NewNetwork(t)
		s.store[name] = s.database[i].URLOf(s.pair.database)
		s.begin(i)
	}
	return s
}

// kill ends a gateway and starts it again. freeze hangs it until another one has ended it.
func (s *servers) kill(i int) {
	s.running[i].signal(syscall.SIGKILL)
	<-s.running[i].exit
	s.begin(i)
}

func (s *servers) freeze(i int) {
	g := s.running[i]
	g.signal(syscall.SIGSTOP)
	time.Sleep(5 * time.Second) // the lease, which another one may count from later on, after a fault of its own
	other := (i + 1) % len(s.running)
	s.running[other].await("the end of the frozen gateway", func() bool {
		list := command(s.t, nil, "nodes", "--json", "--config", s.file(s.names[other]))
		return !strings.Contains(list.out, `"name": "`+s.names[i]+`"`)
	})
	g.signal(syscall.SIGCONT)
	g.ended(exitStorage)
	s.begin(i)
}

// cut fails a network of a gateway for a moment, in one of several ways.
func (s *servers) cut(i int) {
	network := []*pgserver.Proxy{s.database[i], s.between[i]}[rand.IntN(2)]
	network.Set([]pgserver.Fault{pgserver.Cut, pgserver.HalfOpen, pgserver.DropReplies, pgserver.Slow}[rand.IntN(4)])
	time.Sleep(400 * time.Millisecond)
	network.Set(pgserver.None)
}

// crash ends the database of all gateways and starts it again.
func (s *servers) crash(int) {
	s.server.Crash()
	if err := s.server.Run(); err != nil {
		s.t.Fatal(err)
	}
	for i, g := range s.running {
		g.await("the database after its crash", func() bool {
			return command(s.t, nil, "nodes", "--config", s.file(s.names[i])).code == exitOK
		})
	}
}

// followed are the background responses that a client has followed to their ends, on whichever gateway it reached.
type followed struct{ completed, failed, elsewhere int }

// follow begins background responses one after the other and follows each on another gateway than the one that began
// it, and after a lost connection on the next one, until stop is closed. Numbers of events must rise, up to one end.
func (s *servers) follow(key string, stop <-chan struct{}) (f followed) {
	client := &http.Client{Timeout: 20 * time.Second}
	for n := 0; ; n++ {
		select {
		case <-stop:
			return f
		case <-time.After(200 * time.Millisecond):
		}
		id := ""
		url := s.url(n) + "/v1/responses"
		s.events(client, http.MethodPost, url, key, func(_ string, _ int64, data string) bool {
			_, rest, _ := strings.Cut(data, `"response":{"id":"`)
			id, _, _ = strings.Cut(rest, `"`)
			return false
		})
		if id == "" {
			continue // the gateway is down
		}
		last, ended := int64(-1), ""
		for tries := 1; ended == "" && tries < 400; tries++ {
			url := s.url(n+tries) + "/v1/responses/" + id + "?stream=true"
			if last >= 0 {
				url += "&starting_after=" + strconv.FormatInt(last, 10)
			}
			s.events(client, http.MethodGet, url, key, func(kind string, at int64, _ string) bool {
				if kind == "error" {
					return false // it asks to resume
				}
				if at <= last {
					s.t.Errorf("event %d of %s comes after event %d", at, id, last)
				}
				last = at
				if kind == "response.completed" || kind == "response.failed" {
					ended = kind
				}
				return true
			})
			if ended == "" {
				time.Sleep(100 * time.Millisecond)
			} else if tries%len(s.urls) != 0 {
				f.elsewhere++
			}
		}
		switch ended {
		case "response.completed":
			f.completed++
		case "response.failed":
			f.failed++
		default:
			s.t.Errorf("the stream of %s has no end", id)
		}
	}
}

// film has videos made one after the other, each of which begins on one gateway and is awaited on the others, until
// stop is closed. It adds the prompt of each with its end, which is "" if no gateway has acknowledged it.
func (s *servers) film(key string, videos map[string]string, stop <-chan struct{}) {
	client := &http.Client{Timeout: 20 * time.Second}
	for n := 0; ; n++ {
		select {
		case <-stop:
			return
		case <-time.After(200 * time.Millisecond):
		}
		prompt := "film " + strconv.Itoa(n) + " [sandbox: job=1s]"
		var video struct{ ID, Status string }
		ask := func(method, url, body string) int {
			req, err := http.NewRequest(method, url, strings.NewReader(body))
			if err != nil {
				s.t.Error(err)
				return 0
			}
			req.Header.Set("Authorization", "Bearer "+key)
			req.Header.Set("Content-Type", "application/json")
			res, err := client.Do(req)
			if err != nil {
				return 0
			}
			defer res.Body.Close()
			if json.NewDecoder(res.Body).Decode(&video) != nil {
				return 0
			}
			return res.StatusCode
		}
		videos[prompt] = ""
		if ask(http.MethodPost, s.url(n)+"/v1/videos", `{"model":"video","seconds":"4","prompt":"`+prompt+`"}`) != 200 {
			continue // the gateway is down
		}
		id := video.ID
		for since := time.Now(); videos[prompt] == ""; time.Sleep(100 * time.Millisecond) {
			n++ // a gateway that has not heard of the video yet answers 404
			code := ask(http.MethodGet, s.url(n)+"/v1/videos/"+id, "")
			if code == 200 && (video.Status == "completed" || video.Status == "failed") {
				videos[prompt] = video.Status
			}
			if time.Since(since) > time.Minute {
				s.t.Errorf("the video %s was acknowledged and has no end: %d", id, code)
				return
			}
		}
	}
}

// renderedOnce checks that the provider has rendered no video twice, and each that was completed once.
func (s *servers) renderedOnce(videos map[string]string) {
	s.t.Helper()
	rendered := map[string]int{}
	for after := ""; ; {
		url := s.upstream + "/v1/videos?limit=100&after=" + after
		req, err := http.NewRequest(http.MethodGet, url, nil)
		if err != nil {
			s.t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer k")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			s.t.Fatal(err)
		}
		var page struct {
			Data    []struct{ ID, Prompt string }
			LastID  string `json:"last_id"`
			HasMore bool   `json:"has_more"`
		}
		err = json.NewDecoder(res.Body).Decode(&page)
		res.Body.Close()
		if err != nil {
			s.t.Fatal(err)
		}
		for _, v := range page.Data {
			rendered[v.Prompt]++
		}
		if after = page.LastID; !page.HasMore {
			break
		}
	}
	ends := map[string]int{}
	for prompt, end := range videos {
		ends[end]++
		if rendered[prompt] > 1 || end == "completed" && rendered[prompt] != 1 {
			s.t.Errorf("the video %q, whose end is %q, was rendered %d times", prompt, end, rendered[prompt])
		}
	}
	s.t.Logf("of the videos, %d were completed, %d failed and %d were not acknowledged", ends["completed"],
		ends["failed"], ends[""])
	if ends["completed"] == 0 {
		s.t.Error("no video was completed")
	}
}

// events calls each with the events of a stream until it returns false, or the stream or its connection ends.
func (s *servers) events(client *http.Client, method, url, key string,
	each func(kind string, n int64, data string) bool) {
	const body = `{"model":"m","input":"[sandbox: tokens=20 pace=20]","background":true,"stream":true}`
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		s.t.Error(err)
		return
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Content-Type", "application/json")
	res, err := client.Do(req)
	if err != nil {
		return
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	for res.StatusCode == http.StatusOK && lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var ev struct {
			Type string `json:"type"`
			N    int64  `json:"sequence_number"`
		}
		if err := json.Unmarshal([]byte(data), &ev); err != nil {
			s.t.Errorf("an event is %q: %v", data, err)
		}
		if !each(ev.Type, ev.N, data) {
			return
		}
	}
}

// balance has the fields of `credits show`.
type balance struct{ Credits, Spent, Held, Available int64 }

// balanceOf returns what the gateway with a configuration knows of an account, which nothing may have overdrawn.
func (s *servers) balanceOf(config, account string) (b balance) {
	s.t.Helper()
	shown := command(s.t, nil, "credits", "show", account, "--json", "--config", config)
	if err := json.Unmarshal([]byte(shown.out), &b); err != nil {
		s.t.Fatalf("the balance of %s: %v: %s%s", account, err, shown.out, shown.errOut)
	}
	if b.Spent+b.Held > b.Credits || b.Available != b.Credits-b.Spent-b.Held {
		s.t.Errorf("the account of %s: %+v", account, b)
	}
	return b
}

// charges returns the sum of what the receipts of an account say that was charged.
func (s *servers) charges(config, account string) (sum int64) {
	s.t.Helper()
	for after := ""; ; {
		args := []string{"receipts", "list", "--user", account, "--limit", "500", "--json", "--config", config}
		if after != "" {
			args = append(args, "--after", after)
		}
		var page struct {
			Data []struct{ Charged int64 }
			Next string
		}
		listed := command(s.t, nil, args...)
		if err := json.Unmarshal([]byte(listed.out), &page); err != nil {
			s.t.Fatalf("the receipts of %s: %v: %s%s", account, err, listed.out, listed.errOut)
		}
		for _, r := range page.Data {
			sum += r.Charged
		}
		if after = page.Next; after == "" {
			return sum
		}
	}
}

// pay puts five cents into an account, once, however often the answer gets lost.
func (s *servers) pay(config, account string, n int) {
	s.t.Helper()
	s.running[0].await("a payment", func() bool {
		return command(s.t, nil, "credits", "add", account, "0.05", "--id", "pay-"+strconv.Itoa(n), "--config", config).
			code == exitOK
	})
}

// Whatever ends one of two gateways that serve, or cuts it off for a moment, a response that a client was given whole
// is stored and charged once, and a client that follows a background response gets its events up to one end. The
// gateways hold out of allowances. No account is overdrawn, also none at its end, and afterwards all that was paid in
// is charged by a receipt or can be spent.
func TestNothingAcknowledgedIsLostWhenOneOfSeveralGatewaysFails(t *testing.T) {
	s := startServers(t)
	config := s.file(s.names[0])
	for _, args := range [][]string{{"users", "create", "anna"}, {"credits", "add", "anna", "1000"},
		{"users", "create", "bert"}} {
		command(t, nil, append(args, "--config", config)...).check(t, exitOK, "", "")
	}
	key := createKey(t, "", "--user", "anna", "--config", config).Key
	poor := createKey(t, "", "--user", "bert", "--config", config).Key
	free := createKey(t, "", "--config", config).Key
	for i := range s.running {
		g := s.running[i]
		g.await("the keys", func() bool { return g.ask(key, "m")+g.ask(poor, "m")+g.ask(free, "m") == 3*http.StatusOK })
	}
	stop := make(chan struct{})
	acknowledged, atEnd, streams := make([][]billed, 4), make([][]billed, 2), make([]followed, 2)
	videos := map[string]string{}
	var load sync.WaitGroup
	for i := range acknowledged {
		load.Go(func() { acknowledged[i] = bill(&s.urls[i%len(s.urls)], key, 100*time.Millisecond, stop) })
	}
	for i := range atEnd {
		load.Go(func() { atEnd[i] = bill(&s.urls[i%len(s.urls)], poor, 50*time.Millisecond, stop) })
	}
	for i := range streams {
		load.Go(func() { streams[i] = s.follow(free, stop) })
	}
	load.Go(func() { s.film(free, videos, stop) })
	faults := slices.Concat(slices.Repeat([]func(int){s.kill}, *kills), slices.Repeat([]func(int){s.freeze}, *freezes),
		slices.Repeat([]func(int){s.cut}, *cuts), slices.Repeat([]func(int){s.crash}, *crashes))
	rand.Shuffle(len(faults), func(i, j int) { faults[i], faults[j] = faults[j], faults[i] })
	var ends []time.Time
	for n, fault := range faults {
		s.pay(config, "bert", n)
		time.Sleep(500 * time.Millisecond) // under load
		ends = append(ends, time.Now())
		fault(n % len(s.running))
		ends = append(ends, time.Now())
		for i := range s.running {
			s.balanceOf(s.file(s.names[i]), "anna")
			s.balanceOf(s.file(s.names[i]), "bert")
		}
	}
	time.Sleep(time.Second)
	close(stop)
	load.Wait()
	total, uncharged := s.running[0].billedOnce(slices.Concat(acknowledged...), key, ends)
	few, fewUncharged := s.running[0].billedOnce(slices.Concat(atEnd...), poor, ends)
	s.running[0].await("the end of the money", func() bool {
		const body = `{"model":"paid","max_tokens":40,"messages":[{"role":"user","content":"[sandbox: tokens=20]"}]}`
		res := s.running[0].post("/v1/chat/completions", poor, body, "x-sandbox", "pace=max")
		_, _ = io.Copy(io.Discard, res.Body)
		return res.StatusCode == http.StatusTooManyRequests && s.balanceOf(config, "bert").Available < 10_000
	})
	completed, failed, elsewhere := 0, 0, 0
	for _, f := range streams {
		completed, failed, elsewhere = completed+f.completed, failed+f.failed, elsewhere+f.elsewhere
	}
	t.Logf("%d kills, %d freezes, %d cuts, %d crashes of the database; %d responses acknowledged, %d of them "+
		"uncharged; %d of an account at its end, %d of them uncharged; %d streams followed to their ends, %d of them "+
		"through another gateway, %d ended as failed",
		*kills, *freezes, *cuts, *crashes, total, uncharged, few, fewUncharged, completed+failed, elsewhere, failed)
	s.renderedOnce(videos)
	if total < 5*len(faults) || few < len(faults) || completed < 1 {
		t.Error("there was too little load")
	}
	for _, g := range s.running[1:] {
		g.stop()
	}
	for name, paid := range map[string]int64{"anna": 1000_000_000, "bert": 50_000 * int64(len(faults))} {
		s.running[0].await("the ends of all holds", func() bool { return s.balanceOf(config, name).Held == 0 })
		sum := s.charges(config, name)
		b := s.balanceOf(config, name)
		if want := (balance{Credits: paid, Spent: sum, Available: paid - sum}); sum == 0 || b != want {
			t.Errorf("of %s, %d was paid in, receipts charge %d, and the account has %+v", name, paid, sum, b)
		}
	}
	s.running[0].stop()
	command(t, nil, "state", "verify", "--config", config).check(t, exitOK, "nothing is wrong", "")
}
