package job

import (
	"context"
	"errors"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"stagedoor/providers/sandbox/clip"
	"stagedoor/providers/sandbox/draw"
	"stagedoor/providers/video"
)

// Errors of an Engine, besides video.ErrJobNotFound and video.ErrNoVariant.
var (
	ErrBusy     = errors.New("sandbox: too busy to answer, as ordered")
	ErrCut      = errors.New("sandbox: the connection was lost as ordered")
	ErrNotReady = errors.New("sandbox: the job has no content yet")
	ErrFailed   = errors.New("sandbox: the job failed and has no content")
	ErrExpired  = errors.New("sandbox: the content has expired")
)

// Spec is a job to do.
type Spec struct {
	Model, Prompt          string
	Seed                   int64
	Width, Height, Seconds int
	Source                 string // the id of the job this one is made from
	Faults                 Faults
}

// Faults are what was ordered to be unlike a job that goes well.
type Faults struct {
	Time   time.Duration // 0: the engine's
	Keep   time.Duration // until the content expires; 0: the engine's
	Ending Ending
	At     int // percent of progress that Ending comes at
	// The first polls are answered ErrBusy, those after them ErrCut, and the first
	// downloads break in the middle.
	BusyPolls, CutPolls, CutDownloads int
}

// Times of jobs that order none, and bounds of those that do.
const (
	DefaultTime = 10 * time.Second
	DefaultKeep = time.Hour
	Longest     = 24 * time.Hour
	mostFaults  = math.MaxUint8
)

// Engine does jobs. It is safe for concurrent use; its fields are set before
// that.
type Engine struct {
	Now  func() time.Time
	Time time.Duration // that a job takes; 0: DefaultTime
	Keep time.Duration // that content is kept; 0: DefaultKeep

	mu    sync.Mutex
	books books
}

// Submit begins a job and returns its id. With the key of an earlier Submit it
// is that job's id, whatever the spec says; "" is no key. The error is
// clip.ErrSpec or the end of ctx.
func (e *Engine) Submit(ctx context.Context, key string, s Spec) (string, error) {
	if err := context.Cause(ctx); err != nil {
		return "", err
	}
	t := e.ticket(key, &s)
	if !clip.Fits(s.Width, s.Height) || s.Seconds < 1 || s.Seconds > clip.Longest {
		return "", clip.ErrSpec
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.books.enter(key, t.id(), s), nil
}

func (e *Engine) ticket(key string, s *Spec) ticket {
	f := &s.Faults
	t := ticket{
		start: e.Now(), takes: bounded(f.Time, e.Time, DefaultTime), keeps: bounded(f.Keep, e.Keep, DefaultKeep),
		clip:   clip.Spec{Width: s.Width, Height: s.Height, Seconds: s.Seconds, Mark: mark(s)},
		ending: f.Ending, at: min(max(f.At, 0), 100),
		busy: count(f.BusyPolls), cutPolls: count(f.CutPolls), cutGet: count(f.CutDownloads),
		nonce: rand.Uint64(),
	}
	if key != "" {
		h := fnv.New64a()
		h.Write([]byte(key))
		t.nonce = h.Sum64()
	}
	return t
}

// mark stands for what the job shows: a job made from another looks different.
func mark(s *Spec) uint64 { return draw.Hash(s.Prompt+"\x00"+s.Source, s.Seed) }

func bounded(ordered, own, standard time.Duration) time.Duration {
	for _, d := range []time.Duration{ordered, own} {
		if d > 0 {
			return min(d, Longest)
		}
	}
	return standard
}

func count(n int) uint8 { return uint8(min(max(n, 0), mostFaults)) }

// Status is how a job stands.
type Status struct {
	video.Status
	ID      string
	Created time.Time
	Ended   time.Time // zero: it has not
	// Spec is what was ordered, as far as it is remembered: always size and
	// length.
	Spec Spec
}

// Poll tells how a job stands. The error is video.ErrJobNotFound, or what was ordered.
func (e *Engine) Poll(ctx context.Context, id string) (Status, error) {
	if err := context.Cause(ctx); err != nil {
		return Status{}, err
	}
	t, s, err := e.look(id)
	if t.clip.Width == 0 {
		return s, err // no id of a job, which would only take the place of one
	}
	e.mu.Lock()
	n := e.books.note(id, func(c *Counts) *int { return &c.Polls })
	e.mu.Unlock()
	switch {
	case err != nil:
		return s, err // vanished or deleted: the question counts all the same
	case n <= int(t.busy):
		return Status{}, ErrBusy
	case n <= int(t.busy)+int(t.cutPolls):
		return Status{}, ErrCut
	}
	return s, nil
}

// Peek is Poll that counts as none and breaks nothing.
func (e *Engine) Peek(id string) (Status, error) {
	_, s, err := e.look(id)
	return s, err
}

func (e *Engine) look(id string) (ticket, Status, error) {
	t, ok := read(id)
	if !ok {
		return t, Status{}, video.ErrJobNotFound
	}
	e.mu.Lock()
	spec, deleted := e.books.about(id)
	e.mu.Unlock()
	s, there := t.status(e.Now())
	if deleted || !there {
		return t, Status{}, video.ErrJobNotFound
	}
	s.ID, s.Spec = id, spec
	s.Spec.Width, s.Spec.Height, s.Spec.Seconds = t.clip.Width, t.clip.Height, t.clip.Seconds
	return t, s, nil
}

// queuedUntil is the percentage of its time that a job waits before it begins.
const queuedUntil = 10

// status is how the job stands at a time; there says whether it is known at all.
func (t *ticket) status(now time.Time) (s Status, there bool) {
	s = Status{Created: t.start}
	percent := 100
	if t.takes > 0 {
		percent = int(min(max(now.Sub(t.start)*100/t.takes, 0), 100))
	}
	if t.ending != Done && percent >= t.at {
		return s, t.end(&s)
	}
	switch {
	case percent >= 100:
		s.State, s.Progress, s.Ended = video.Completed, 100, t.start.Add(t.takes)
		s.Expires = s.Ended.Add(t.keeps)
	case percent < queuedUntil:
		s.State = video.Queued
	default:
		s.State, s.Progress = video.InProgress, percent
	}
	return s, true
}

// end is how the job stands after an ending that was ordered.
func (t *ticket) end(s *Status) (there bool) {
	s.Progress = min(t.at, 99)
	switch t.ending {
	case Vanishes:
		return false
	case Freezes:
		s.State = video.InProgress
		return true
	case Blocked:
		s.Error = &video.Fault{Code: "moderation_blocked", Message: "the sandbox's moderation blocked the video as it was told to"}
	default:
		s.Error = &video.Fault{Code: "video_generation_failed", Message: "the sandbox failed to make the video as it was told to"}
	}
	s.State, s.Ended = video.Failed, t.start.Add(t.takes*time.Duration(t.at)/100)
	return true
}

// Delete makes a job unknown. The error is video.ErrJobNotFound.
func (e *Engine) Delete(id string) error {
	if _, _, err := e.look(id); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.books.remove(id)
	return nil
}
