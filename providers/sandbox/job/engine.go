// Package job runs the simulator's video jobs: they take some time, make progress, end as requested, and then have
// content. The embedded provider and the HTTP upstreams use the same Engine.
//
// The id of a job contains its start, its duration, its ending and what it shows. Every Engine of every process can
// therefore compute the state of a job from its id alone, and no goroutine runs. An Engine additionally remembers which
// idempotency key began which job, which jobs were deleted, and how often each was submitted, polled and downloaded.
// This memory is bounded, and it is lost with the process.
//
// # Usage
//
// Submit begins a job, Poll returns its Status and counts the call, and Content opens what a finished job has made. The
// faults that a Spec asks for happen to the calls that count: Peek shows a job without them, for tests that look at the
// simulator from outside.
//
// # Concurrency
//
// Any goroutine may use an Engine. The state of a job follows from the clock, so two calls at the same moment agree on
// it without a lock.
package job

import (
	"bytes"
	"context"
	"errors"
	"hash/fnv"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/sandbox/clip"
	"stagedoor/providers/sandbox/draw"
	"stagedoor/providers/video"
)

// ErrCut is returned for a requested loss of the connection.
var ErrCut = errors.New("sandbox: the connection was lost as requested")

// Errors of an Engine that a client gets, besides video.ErrJobNotFound and video.ErrNoVariant.
var (
	ErrBusy     = clientError(503, dialogue.TypeOverloaded, "sandbox_busy", "too busy to answer, as requested")
	ErrNotReady = clientError(400, dialogue.TypeInvalidRequest, "video_not_ready", "the job has no content yet")
	ErrFailed   = clientError(400, dialogue.TypeInvalidRequest, "video_failed", "the job failed and has no content")
	ErrExpired  = clientError(404, dialogue.TypeNotFound, "video_expired", "the content has expired")
)

// clientError returns an error as the simulated vendor words it.
func clientError(status int, kind, code, message string) error {
	return dialogue.Reported(status, kind, code, "sandbox: "+message)
}

// Spec describes a job.
type Spec struct {
	Model, Prompt          string
	Seed                   int64
	Width, Height, Seconds int
	Source                 string // id of the job this one is made from
	Faults                 Faults
}

// Faults are the requested deviations from a job that succeeds.
type Faults struct {
	Time   time.Duration // 0: the engine's
	Keep   time.Duration // until the content expires; 0: the engine's
	Ending Ending
	At     int // percent of progress at which Ending comes
	// The first polls get ErrBusy and the next ones ErrCut. The first downloads break in the middle.
	BusyPolls, CutPolls, CutDownloads int
}

// Default times of jobs, and the bound of requested ones.
const (
	DefaultTime = 10 * time.Second
	DefaultKeep = time.Hour
	Longest     = 24 * time.Hour
)

// Engine runs jobs. It is safe for concurrent use once its fields are set.
type Engine struct {
	Now  func() time.Time
	Time time.Duration // that a job takes; 0: DefaultTime
	Keep time.Duration // that content is kept; 0: DefaultKeep

	mu      sync.Mutex
	records map[string]*record
	keys    map[string]string // idempotency key to id
	order   []string          // ids, oldest first
}

// Counts says how often a job was submitted, polled and downloaded.
type Counts struct {
	ID, Key                       string // Key is the idempotency key
	Submissions, Polls, Downloads int
}

// record has the facts of a job that its ticket lacks.
type record struct {
	Counts
	spec    Spec
	deleted bool
}

// mostRecords bounds the memory of an engine. The oldest record is dropped first.
const mostRecords = 10_000

// record returns the record of an id, a new one if necessary. It is called with the lock held.
func (e *Engine) record(id string) *record {
	if r := e.records[id]; r != nil {
		return r
	}
	if e.records == nil {
		e.records, e.keys = map[string]*record{}, map[string]string{}
	}
	if len(e.order) == mostRecords {
		delete(e.keys, e.records[e.order[0]].Key)
		delete(e.records, e.order[0])
		e.order = slices.Delete(e.order, 0, 1)
	}
	r := &record{Counts: Counts{ID: id}}
	e.records[id], e.order = r, append(e.order, id)
	return r
}

// Submit begins a job and returns its id. A key that is not empty and was used before returns the id of that job,
// whatever s says. The error is clip.ErrSpec or the end of ctx.
func (e *Engine) Submit(ctx context.Context, key string, s Spec) (string, error) {
	if err := context.Cause(ctx); err != nil {
		return "", err
	}
	if err := (clip.Spec{Width: s.Width, Height: s.Height, Seconds: s.Seconds}).Check(); err != nil {
		return "", err
	}
	f := &s.Faults
	limit := func(n int) uint8 { return uint8(min(max(n, 0), math.MaxUint8)) }
	t := ticket{
		Start: e.Now().UnixMilli(),
		Takes: uint32(firstSet(f.Time, e.Time, DefaultTime).Milliseconds()),
		Keeps: uint32(firstSet(f.Keep, e.Keep, DefaultKeep).Seconds()),
		Mark:  draw.Hash(s.Prompt+"\x00"+s.Source, s.Seed),
		Width: uint16(s.Width), Height: uint16(s.Height), Seconds: uint8(s.Seconds),
		Ending: f.Ending, At: min(limit(f.At), 100),
		Busy: limit(f.BusyPolls), CutPolls: limit(f.CutPolls), CutDownloads: limit(f.CutDownloads),
		Nonce: rand.Uint64(),
	}
	if key != "" {
		h := fnv.New64a()
		h.Write([]byte(key))
		t.Nonce = h.Sum64()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if earlier := e.keys[key]; earlier != "" && key != "" {
		e.records[earlier].Submissions++
		return earlier, nil
	}
	id := t.id()
	r := e.record(id)
	r.spec, r.Key, r.Submissions = s, key, 1
	if key != "" {
		e.keys[key] = id
	}
	return id, nil
}

// firstSet returns the first duration above zero, at most Longest.
func firstSet(durations ...time.Duration) time.Duration {
	for _, d := range durations {
		if d > 0 {
			return min(d, Longest)
		}
	}
	return 0
}

// Repeated reports whether a job was submitted more than once under its key.
func (e *Engine) Repeated(id string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	r := e.records[id]
	return r != nil && r.Submissions > 1
}

// Status is the state of a job.
type Status struct {
	video.Status
	ID      string
	Created time.Time
	Ended   time.Time // zero before the end
	Spec    Spec      // as far as the engine remembers it; size and length are always there
}

// Poll returns the state of a job and counts the call. The error is video.ErrJobNotFound, or ErrBusy or ErrCut as
// requested.
func (e *Engine) Poll(ctx context.Context, id string) (Status, error) {
	if err := context.Cause(ctx); err != nil {
		return Status{}, err
	}
	t, s, err := e.look(id)
	if t.Width == 0 {
		return s, err // no job has this id, and a record of it would displace that of a job
	}
	e.mu.Lock()
	r := e.record(id)
	r.Polls++
	n := r.Polls
	e.mu.Unlock()
	switch {
	case err != nil:
		return s, err
	case n <= int(t.Busy):
		return Status{}, ErrBusy
	case n <= int(t.Busy)+int(t.CutPolls):
		return Status{}, ErrCut
	}
	return s, nil
}

// Peek is Poll without counting and without faults.
func (e *Engine) Peek(id string) (Status, error) {
	_, s, err := e.look(id)
	return s, err
}

// look returns the ticket and the status of a job. A ticket carries most of a job, so that jobs outlive the process.
func (e *Engine) look(id string) (ticket, Status, error) {
	t, ok := readTicket(id)
	if !ok {
		return t, Status{}, video.ErrJobNotFound
	}
	s, known := t.status(e.Now())
	s.ID = id
	e.mu.Lock()
	if r := e.records[id]; r != nil {
		s.Spec, known = r.spec, known && !r.deleted
	}
	e.mu.Unlock()
	if !known {
		return t, Status{}, video.ErrJobNotFound
	}
	s.Spec.Width, s.Spec.Height, s.Spec.Seconds = int(t.Width), int(t.Height), int(t.Seconds)
	return t, s, nil
}

// Counts returns the counts of every job that is remembered, oldest first.
func (e *Engine) Counts() []Counts {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := make([]Counts, 0, len(e.order))
	for _, id := range e.order {
		out = append(out, e.records[id].Counts)
	}
	return out
}

// List returns the state of every submitted job that is remembered and not deleted, oldest first.
func (e *Engine) List() []Status {
	var out []Status
	for _, c := range e.Counts() {
		if s, err := e.Peek(c.ID); err == nil && c.Submissions > 0 {
			out = append(out, s)
		}
	}
	return out
}

// Delete makes a job unknown. The error is video.ErrJobNotFound.
func (e *Engine) Delete(id string) error {
	if _, err := e.Peek(id); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.record(id).deleted = true
	return nil
}

var variants = map[video.Variant]struct {
	mediaType string
	make      func(clip.Spec) ([]byte, error)
}{
	video.Video:       {"video/mp4", clip.Video},
	video.Thumbnail:   {"image/webp", clip.Thumbnail},
	video.Spritesheet: {"image/jpeg", clip.Spritesheet},
}

// Content is an asset of a finished job, the same bytes every time. Reading it fails with ErrCut if that was requested.
type Content struct {
	io.ReadSeeker
	MediaType string
}

// Content opens an asset and counts the call. The error is ErrNotReady, ErrFailed, ErrExpired, video.ErrJobNotFound or
// video.ErrNoVariant.
func (e *Engine) Content(ctx context.Context, id string, v video.Variant) (*Content, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	t, s, err := e.look(id)
	variant, known := variants[v]
	switch {
	case err != nil:
		return nil, err
	case !known:
		return nil, video.ErrNoVariant
	case s.State == video.Failed:
		return nil, ErrFailed
	case s.State != video.Completed:
		return nil, ErrNotReady
	case !e.Now().Before(s.Expires):
		return nil, ErrExpired
	}
	data, err := variant.make(t.clip())
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	r := e.record(id)
	r.Downloads++
	broken := r.Downloads <= int(t.CutDownloads)
	e.mu.Unlock()
	c := &Content{ReadSeeker: bytes.NewReader(data), MediaType: variant.mediaType}
	if broken {
		c.ReadSeeker = &brokenReader{bytes.NewReader(data)}
	}
	return c, nil
}

// brokenReader fails in the middle of its data. It embeds an interface, so that io.Copy cannot bypass Read.
type brokenReader struct{ io.ReadSeeker }

// Read fails after half of the content.
func (b *brokenReader) Read(p []byte) (int, error) {
	r := b.ReadSeeker.(*bytes.Reader)
	left := int(r.Size()/2) - int(r.Size()-int64(r.Len()))
	if left <= 0 {
		return 0, ErrCut
	}
	return r.Read(p[:min(len(p), left)])
}
