package flow

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/gjson"
)

// StreamsEnv sets the number of streams that the benchmark holds; each takes a descriptor here and
// in the gateway.
const StreamsEnv = "STAGEDOOR_FLOW_STREAMS"

// What is watched, how often and how long.
const (
	watchers = 4 // the cost of one is too small to be distinguished from noise
	rounds   = 4
	period   = 4 * time.Second
)

// BenchmarkWatchedStreams holds streams and tells how much of a core a watcher of the
// flow takes: processor time of the gateway with watchers, less that without, in turn.
func BenchmarkWatchedStreams(b *testing.B) {
	streams := 9_500
	if text := os.Getenv(StreamsEnv); text != "" {
		var err error
		if streams, err = strconv.Atoi(text); err != nil {
			b.Fatal(err)
		}
	}
	g := start(b)
	g.user("root", "--admin")
	c := g.signIn("root")
	stop := g.hold(streams)
	defer stop()
	g.await("/flow", "all streams",
		func(r gjson.Result) bool { return r.Get("load.phases.replying").Int() == int64(streams) })
	for b.Loop() {
		var idle, watched time.Duration
		for range rounds {
			idle += g.spent(func() { time.Sleep(period) })
			watched += g.spent(func() { g.watching(c, period) })
		}
		share := float64(watched-idle) / float64(rounds*period) / watchers
		b.ReportMetric(share*100, "%core/watcher")
		b.ReportMetric(float64(idle)/float64(rounds*period)*100, "%core/unwatched")
	}
	begin := time.Now()
	g.admin("GET", "/flow", http.StatusOK)
	b.ReportMetric(float64(time.Since(begin).Microseconds())/1000, "ms/look")
}

// hold begins slow streams and reads them until stop is called.
func (b *bench) hold(streams int) (stop func()) {
	b.Helper()
	client := &http.Client{Transport: &http.Transport{MaxIdleConns: 1}}
	q := questions(true)[0]
	var wg sync.WaitGroup
	var mu sync.Mutex
	var bodies []io.Closer
	begin := make(chan struct{}, 1000) // how many begin at a time: each waits a second for its first piece
	for range streams {
		begin <- struct{}{}
		r, err := http.NewRequest(http.MethodPost, b.URL+q.path,
			bytes.NewReader([]byte(`{"model":"m1","stream":true,"messages":[{"role":"user","content":"hello"}]}`)))
		if err != nil {
			b.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+b.Key)
		r.Header.Set("X-Sandbox", "pace=1, tokens=10000")
		wg.Go(func() {
			res, err := client.Do(r)
			<-begin
			if err != nil {
				b.Error(err)
				return
			}
			mu.Lock()
			bodies = append(bodies, res.Body)
			mu.Unlock()
			_, _ = io.Copy(io.Discard, res.Body) // until stop
		})
	}
	return func() {
		mu.Lock()
		for _, body := range bodies {
			body.Close()
		}
		mu.Unlock()
		wg.Wait()
	}
}

// spent is the gateway's processor time during do.
func (b *bench) spent(do func()) time.Duration {
	b.Helper()
	before := b.processor()
	do()
	return b.processor() - before
}

// processor is the time all threads of the gateway have run.
func (b *bench) processor() time.Duration {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", b.PID()))
	if err != nil {
		b.Fatal(err)
	}
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	user, err := strconv.Atoi(string(fields[11]))
	if err != nil {
		b.Fatal(err)
	}
	system, err := strconv.Atoi(string(fields[12]))
	if err != nil {
		b.Fatal(err)
	}
	return time.Duration(user+system) * 10 * time.Millisecond // of USER_HZ, which is 100
}

// watching has some pages watch for a while.
func (b *bench) watching(c *http.Client, during time.Duration) {
	b.Helper()
	var wg sync.WaitGroup
	var open []io.Closer
	for range watchers {
		conn, _, err := b.dial(c, b.URL)
		if err != nil || conn == nil {
			b.Fatal("no socket: ", err)
		}
		open = append(open, conn)
		watch(b, conn, `{"type":"watch","view":"requests"}`)
		wg.Go(func() {
			for {
				if _, _, err := conn.ReadMessage(); err != nil {
					return
				}
			}
		})
	}
	time.Sleep(during)
	for _, conn := range open {
		conn.Close()
	}
	wg.Wait()
}
