// Package requests writes the requests that have ended to the log of requests (state/requestlog).
//
// A request hands itself over without a wait: it takes a place in a bounded queue, or is counted as dropped if there is
// none. One goroutine makes records of what is in the queue and writes them in batches. A log that is slow, full or
// broken therefore costs entries of the log, and never a request.
//
// # Usage
//
// Start returns at once, and the log is opened later, so a log that cannot be opened does not keep
// a gateway from starting. Limit says how much is kept, and a Keep of 0 writes nothing. Close writes
// what is left within a bounded time.
//
// # Concurrency
//
// Any goroutine may call the methods. All writes and removals happen on one goroutine, so that a
// store needs no order of its own among writers.
//
// # Errors
//
// A batch that cannot be written is dropped, counted and logged. The counts are metrics, because a
// hole in the log is otherwise invisible.
package requests

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sourcegraph/conc"
	"github.com/sourcegraph/conc/panics"

	"stagedoor/actors/flow"
	"stagedoor/state"
	"stagedoor/state/requestlog"
	"stagedoor/state/share"
)

const (
	// queued is the number of requests that wait to be written.
	queued = 4096
	// batch is the number of records of one transaction, and gather the time in which they are collected.
	batch  = 512
	gather = 300 * time.Millisecond
	// pruneEvery is the time after which old records are removed at the latest, pruneRecords the number of new records
	// after which that is done, and pruneFirst the time until it is done first.
	pruneEvery   = time.Hour
	pruneRecords = 1 << 14
	pruneFirst   = time.Minute
	// patience bounds one write, and the last writes at the end of the process.
	patience = 5 * time.Second
	// reopen is the time between two tries to open a log that does not open.
	reopen = 30 * time.Second
	// maxWord bounds a text of a record, most of which clients or providers choose.
	maxWord = 300
)

// Options configure a Recorder.
type Options struct {
	Logger *slog.Logger
	// Open opens the log. It is called for the first request that ends, or for the first reader, so that a start does
	// not wait for it. It is called again after an error.
	Open func(limits func() requestlog.Limits) (requestlog.Store, error)
	// Remove removes a log that is not open. It is called while no log is kept.
	Remove func() error
	// Key returns the name of a key, and Group that of the group of a user. Group may be nil.
	Key, Group func(id string) string
	Limits     requestlog.Limits
}

// Recorder writes the log. Any goroutine may use it.
type Recorder struct {
	options Options
	queue   chan *flow.Request
	places  *share.Pool
	stop    chan struct{}
	changed chan struct{} // holds a value if the limits have changed
	writer  conc.WaitGroup

	store   atomic.Pointer[opened]
	limits  atomic.Pointer[requestlog.Limits]
	opening chan struct{} // holds a value while a goroutine opens the log

	written, dropped atomic.Int64
	warned           time.Time           // of the writer
	records          []requestlog.Record // of the writer, for one batch after the other
}

// opened is the log, or why it did not open.
type opened struct {
	store requestlog.Store
	err   error
	at    time.Time
}

// Start starts the writer. Close ends it.
func Start(o Options) *Recorder {
	r := &Recorder{options: o, queue: make(chan *flow.Request, queued), places: share.New(share.RequestLog, queued, 64),
		stop: make(chan struct{}), changed: make(chan struct{}, 1), opening: make(chan struct{}, 1)}
	r.limits.Store(&o.Limits)
	r.writer.Go(r.write)
	return r
}

// Keeps reports whether a log is kept. Add does nothing while none is.
func (r *Recorder) Keeps() bool { return r.limits.Load().Keep != 0 }

// Add puts a request that has ended into the queue. It never waits.
func (r *Recorder) Add(q *flow.Request) {
	if !r.Keeps() {
		return
	}
	if r.places.Take(q.Owner, 1) != nil {
		r.dropped.Add(1)
		return
	}
	r.queue <- q // the pool has as many places as the channel
}

// Pool returns the places in the queue.
func (r *Recorder) Pool() *share.Pool { return r.places }

// Stats returns the numbers of requests that were written to the log and that were not, since the start.
func (r *Recorder) Stats() (written, dropped int64) { return r.written.Load(), r.dropped.Load() }

// Limits returns the bounds of the log. A Keep of 0 means that nothing is written.
func (r *Recorder) Limits() requestlog.Limits { return *r.limits.Load() }

// Limit changes the bounds of the log. It does not wait until they hold.
func (r *Recorder) Limit(l requestlog.Limits) {
	if *r.limits.Swap(&l) == l {
		return
	}
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// ErrOff is the error of Store if the log is switched off.
var ErrOff = fmt.Errorf("%w: the log of requests is switched off", state.ErrNotFound)

// Store returns the log for readers.
func (r *Recorder) Store() (requestlog.Reader, error) {
	store, err := r.open()
	return store.Reader, err
}

// open returns the log, which it opens if it is not open.
func (r *Recorder) open() (requestlog.Store, error) {
	r.opening <- struct{}{}
	defer func() { <-r.opening }()
	if !r.Keeps() {
		return requestlog.Store{}, ErrOff
	}
	s := r.store.Load()
	if s == nil || s.err != nil && time.Since(s.at) >= reopen {
		s = &opened{at: time.Now()}
		s.store, s.err = r.options.Open(r.Limits)
		r.store.Store(s)
	}
	return s.store, s.err
}

// Close writes what is in the queue, for a bounded time, and closes the log. No request may be added afterwards.
func (r *Recorder) Close() error {
	close(r.stop)
	err := r.writer.WaitAndRecover().AsError()
	if s := r.store.Load(); s != nil && s.err == nil {
		err = errors.Join(err, s.store.Close())
	}
	return err
}

// write writes and prunes the log until the recorder stops. It is the recorder's goroutine.
func (r *Recorder) write() {
	gathered, prune := time.NewTimer(gather), time.NewTimer(pruneFirst)
	defer gathered.Stop()
	defer prune.Stop()
	if !r.Keeps() {
		prune.Reset(0)
	}
	added := 0
	for {
		select {
		case q := <-r.queue:
			gathered.Reset(gather)
			all := r.collect(q, gathered.C)
			if added += len(all); !r.append(all) || added >= pruneRecords {
				prune.Reset(0) // a log that takes nothing may need room
			}
		case <-prune.C:
			added = 0
			prune.Reset(r.prune())
		case <-r.changed:
			prune.Reset(0)
		case <-r.stop:
			for until := time.Now().Add(patience); len(r.queue) > 0 && time.Now().Before(until); {
				r.append(r.collect(<-r.queue, nil))
			}
			r.dropped.Add(int64(len(r.queue)))
			return
		}
	}
}

// collect returns a batch that begins with q. Without a timer it takes only the requests that wait already.
func (r *Recorder) collect(q *flow.Request, full <-chan time.Time) []*flow.Request {
	all := append(make([]*flow.Request, 0, 16), r.take(q))
	for len(all) < batch {
		select {
		case q := <-r.queue:
			all = append(all, r.take(q))
			continue
		default:
		}
		if full == nil {
			return all
		}
		select {
		case q := <-r.queue:
			all = append(all, r.take(q))
		case <-full:
			return all
		case <-r.stop:
			full = nil
		}
	}
	return all
}

// take returns the place of a request that leaves the queue.
func (r *Recorder) take(q *flow.Request) *flow.Request {
	r.places.Give(q.Owner, 1)
	return q
}

// append writes a batch and reports whether the log has it. A batch that cannot be written is counted as dropped, and a
// warning is logged.
func (r *Recorder) append(batch []*flow.Request) bool {
	err := r.withStore(func(ctx context.Context, store requestlog.Store) error {
		records := slices.Grow(r.records[:0], len(batch))[:len(batch)]
		r.records = records
		defer func() { // the next batch uses their memory
			for i := range records {
				tries, steps := records[i].Tries, records[i].Steps
				clear(tries)
				records[i] = requestlog.Record{Tries: tries[:0], Steps: steps[:0]}
			}
		}()
		for i, q := range batch {
			record(&records[i], q, &r.options)
		}
		return store.Append(ctx, records)
	})
	if err == nil {
		r.written.Add(int64(len(batch)))
		return true
	}
	r.dropped.Add(int64(len(batch)))
	r.warn("requests are missing in the log of requests", err)
	return false
}

// prune removes what the log may not keep, and returns when to do so again. One call removes a part, so that requests
// are written in between.
func (r *Recorder) prune() time.Duration {
	if !r.Keeps() {
		if err := r.remove(); err != nil {
			r.warn("the log of requests was not removed", err)
			return reopen
		}
		return pruneEvery
	}
	more := false
	err := r.withStore(func(ctx context.Context, store requestlog.Store) (err error) {
		more, err = store.Prune(ctx)
		return err
	})
	switch {
	case err != nil:
		r.warn("old requests were not removed from the log of requests", err)
		return reopen
	case more:
		return 0
	}
	return pruneEvery
}

// remove closes the log and removes it.
func (r *Recorder) remove() (err error) {
	r.opening <- struct{}{}
	defer func() { <-r.opening }()
	if s := r.store.Swap(nil); s != nil && s.err == nil {
		err = s.store.Close()
	}
	if r.options.Remove != nil {
		err = errors.Join(err, r.options.Remove())
	}
	return err
}

// withStore runs an operation of the writer on the log for a bounded time. A panic is an error, because a request or a
// record that the log cannot take must not end the writer.
func (r *Recorder) withStore(do func(ctx context.Context, store requestlog.Store) error) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	crashed := panics.Try(func() {
		var store requestlog.Store
		if store, err = r.open(); err == nil {
			err = do(ctx, store)
		}
	})
	return errors.Join(err, crashed.AsError())
}

// warn logs a fault of the log. It may last for long, so a warning comes once in a while.
func (r *Recorder) warn(text string, err error) {
	if time.Since(r.warned) >= reopen {
		r.warned = time.Now()
		r.options.Logger.Warn(text, "dropped", r.dropped.Load(), "cause", err)
	}
}

// record describes in rec a request that has ended. It uses the slices of rec.
func record(rec *requestlog.Record, q *flow.Request, o *Options) {
	v := q.View(q.Began())
	res := v.Result
	*rec = requestlog.Record{Tries: rec.Tries[:0], Steps: rec.Steps[:0],
		Began: v.Began.UTC(), ID: bounded(v.ID), Owner: v.Owner, Key: v.Key,
		KeyName: bounded(o.Key(v.Key)), App: v.App,
		Model: bounded(v.Model), Provider: v.Provider, Upstream: bounded(v.Upstream), Shape: v.Shape, Trace: v.Trace,
		Stream: v.Stream, Background: v.Work || v.Job, Untouched: res.Untouched, Status: requestlog.OK,
		Reason: bounded(res.Reason),
		Losses: bounded(res.Losses), Degraded: bounded(res.Degraded), Took: res.Took, Queued: res.Queued,
		First: v.First,
		Input: v.Input, Cached: max(res.Usage.CacheRead, 0), Output: v.Output, Reasoning: max(res.Usage.Reasoning, 0),
		Images: int64(res.Images), Cost: q.Charged(), Attempts: max(v.Attempts, len(q.Tries()))}
	if res.Status != 0 {
		rec.Status, rec.Code, rec.Error = res.Status, identifier(res.Code), bounded(res.Text)
	}
	if account := state.Owner(v.Owner).Account(); !state.IsKeyAccount(account) {
		if rec.User = account; o.Group != nil {
			rec.Group = o.Group(account)
		}
	}
	rec.Tries = slices.Grow(rec.Tries, len(q.Tries()))
	for _, t := range q.Tries() {
		rec.Tries = append(rec.Tries, requestlog.Try{Provider: t.Provider, Model: bounded(t.Model), Status: t.Status,
			Failure: t.Failure})
	}
	marks := q.Marks()
	rec.Steps = slices.Grow(rec.Steps, len(marks))
	for _, m := range marks {
		rec.Steps = append(rec.Steps, requestlog.Step{Phase: m.Phase.String(), Attempt: m.Attempt,
			AtUs: m.After.Microseconds()})
	}
}

// bounded cuts a text and makes it valid.
func bounded(s string) string { return strings.ToValidUTF8(s[:min(len(s), maxWord)], "\ufffd") }

// identifier returns a code that is one word. Providers write codes, too, and one with spaces could quote something.
func identifier(code string) string {
	code = strings.Trim(code, `"`)
	if len(code) > 64 || strings.ContainsFunc(code, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("_-.", c)
	}) {
		return "error"
	}
	return code
}
