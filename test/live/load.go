package live

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/sourcegraph/conc/pool"

	"stagedoor/test/harness"
)

// Load is many jobs and many who watch them.
type Load struct {
	Jobs int
	// Streams and Sockets are how many watch one job each, by server-sent events
	// and over WebSockets, the jobs in turn.
	Streams, Sockets int
	// All is the number of sockets that watch all jobs.
	All int
	// Takes is the duration of a job.
	Takes time.Duration
}

// Result holds the measurements of a Load.
type Result struct {
	// Staleness lists the ages of changes when they were received, sorted.
	Staleness []time.Duration
	// PerWatcher is by how many bytes of resident memory the gateway grew for each
	// watcher while they watched.
	PerWatcher int
	// Changes counts those received by all watchers, Missed the ends that a watcher did not receive.
	Changes, Missed int
}

// Quantile is the staleness that a share of the changes did not exceed.
func (r *Result) Quantile(q float64) time.Duration {
	if len(r.Staleness) == 0 {
		return 0
	}
	return r.Staleness[int(q*float64(len(r.Staleness)-1))]
}

// String is the result for people.
func (r *Result) String() string {
	return fmt.Sprintf("%d changes heard, %d ends missed; staleness median %s, p99 %s, max %s; %.1f KB resident for each watcher",
		r.Changes, r.Missed, r.Quantile(.5).Round(10*time.Microsecond), r.Quantile(.99).Round(10*time.Microsecond),
		r.Quantile(1).Round(10*time.Microsecond), float64(r.PerWatcher)/1000)
}

// Run runs a load against a gateway until every job has ended and every watcher has
// received that.
func (l Load) Run(ctx context.Context, g *harness.Gateway) (*Result, error) {
	ids, err := l.create(ctx, g)
	if err != nil {
		return nil, err
	}
	before, err := resident(g)
	if err != nil {
		return nil, err
	}
	crowd := &watcherGroup{gateway: g, ids: ids}
	if err := crowd.open(ctx, l); err != nil {
		crowd.close()
		return nil, err
	}
	defer crowd.close()
	after, err := resident(g)
	if err != nil {
		return nil, err
	}
	r := crowd.listen(ctx)
	r.PerWatcher = (after - before) / max(len(crowd.members), 1)
	return r, ctx.Err()
}

func (l Load) create(ctx context.Context, g *harness.Gateway) ([]string, error) {
	p := pool.NewWithResults[string]().WithErrors().WithFirstError().WithMaxGoroutines(16)
	for i := range l.Jobs {
		p.Go(func() (string, error) {
			j, err := Create(ctx, g, fmt.Sprintf("job %d [sandbox: job=%s]", i, l.Takes))
			return j.ID, err
		})
	}
	return p.Wait()
}

// resident is the gateway's memory in bytes.
func resident(g *harness.Gateway) (int, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", g.PID()))
	if err != nil {
		return 0, err
	}
	fields := bytes.Fields(text)
	if len(fields) < 2 {
		return 0, errors.New("statm has no resident pages")
	}
	pages, err := strconv.Atoi(string(fields[1]))
	return pages * os.Getpagesize(), err
}

// watcherGroup holds all watchers.
type watcherGroup struct {
	gateway *harness.Gateway
	ids     []string
	members []member
}

// member is one watcher, and the number of ended jobs of which it must get the last event.
type member struct {
	watcher Watcher
	ends    int
}

// open opens every watcher.
func (c *watcherGroup) open(ctx context.Context, l Load) error {
	p := pool.NewWithResults[member]().WithErrors().WithFirstError().WithMaxGoroutines(16)
	for i := range l.Streams {
		p.Go(func() (member, error) {
			w, err := Stream(ctx, c.gateway, c.ids[i%len(c.ids)], 0)
			return member{w, 1}, err
		})
	}
	for i := range l.Sockets {
		p.Go(func() (member, error) {
			w, err := Socket(ctx, c.gateway, c.ids[i%len(c.ids):][:1], 0)
			return member{w, 1}, err
		})
	}
	for range l.All {
		p.Go(func() (member, error) {
			w, err := Socket(ctx, c.gateway, "all", 0)
			return member{w, len(c.ids)}, err
		})
	}
	var err error
	c.members, err = p.Wait()
	return err
}

func (c *watcherGroup) close() {
	for _, s := range c.members {
		if s.watcher != nil {
			s.watcher.Close()
		}
	}
}

// listen returns when every watcher has received every end, or when ctx ends.
func (c *watcherGroup) listen(ctx context.Context) *Result {
	var r Result
	var mu sync.Mutex
	release := context.AfterFunc(ctx, c.close)
	defer release()
	p := pool.New()
	for _, s := range c.members {
		p.Go(func() {
			ages, missed := s.listen()
			mu.Lock()
			defer mu.Unlock()
			r.Staleness = append(r.Staleness, ages...)
			r.Missed += missed
		})
	}
	p.Wait()
	slices.Sort(r.Staleness)
	r.Changes = len(r.Staleness)
	return &r
}

// listen reads until the watcher has got the end of each of its jobs. It returns the ages of the changes when they
// arrived, and the number of ends that did not come.
func (s *member) listen() (ages []time.Duration, missed int) {
	left := s.ends
	for left > 0 {
		n, err := s.watcher.Next()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				return ages, left
			}
			break
		}
		switch n.Kind {
		case "job", "status", "progress", "terminal":
			ages = append(ages, time.Since(time.UnixMicro(n.Revision)))
		case "snapshot":
			// The end of a job that a stream watches comes by itself.
			if _, streamed := s.watcher.(*stream); streamed {
				continue
			}
		default:
			continue
		}
		if n.Job.Final() {
			left--
		}
	}
	return ages, left
}
