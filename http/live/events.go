package live

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"stagedoor/http/accesslog"
	"stagedoor/http/sse"
	"stagedoor/providers/dialogue"
	"stagedoor/state/work"
)

var (
	heartbeat = []byte(": keep-alive\n")
	// opening makes the headers of the reply leave at once and sets how soon a browser
	// reconnects.
	opening = []byte("retry: 2000\n")
)

// stillEvery separates two checks whether a viewer may continue to watch.
const stillEvery = 2 * sse.HeartbeatEvery

// JobEvents streams one job until it ends: GET /v1/videos/{id}/events.
func (hs *Handlers) JobEvents(w http.ResponseWriter, r *http.Request) {
	v, after, err := hs.admit(w, r)
	if err != nil {
		hs.refuse(w, err)
		return
	}
	job, ok := work.FindVideo(hs.options.State.View(), r.PathValue("id"), v.owner)
	switch {
	case !ok:
		hs.refuse(w, notFound(r.PathValue("id")))
		return
	case job.Final() && after == job.Changed:
		// 204 is the only status after which a browser does not reconnect.
		w.WriteHeader(http.StatusNoContent)
		return
	case after > job.Changed:
		after = 0 // no event had this id
	}
	hs.stream(w, r, v, &single{state: hs.options.State, owner: v.owner, id: job.ID, after: after})
}

// AllEvents streams every job of the viewer: GET /v1/videos/events.
func (hs *Handlers) AllEvents(w http.ResponseWriter, r *http.Request) {
	v, after, err := hs.admit(w, r)
	if err != nil {
		hs.refuse(w, err)
		return
	}
	hs.stream(w, r, v, newFeed(hs.options.State, v.owner, nil, after))
}

// admit identifies the viewer and returns the change after which to start, or 0 for a snapshot.
func (hs *Handlers) admit(w http.ResponseWriter, r *http.Request) (*viewer, int64, error) {
	v, err := hs.identify(w, r)
	if err != nil {
		return nil, 0, err
	}
	text := r.Header.Get("Last-Event-ID")
	if text == "" {
		return v, 0, nil
	}
	after, err := strconv.ParseInt(text, 10, 64)
	if err != nil || after < 0 {
		return nil, 0, dialogue.Invalid("Last-Event-ID", "must be the id of an event of this stream")
	}
	return v, after, nil
}

func notFound(id string) *dialogue.Error {
	return dialogue.VideoNotFound(id)
}

// stream replies to r with the updates of f until there will be no more or the client leaves.
func (hs *Handlers) stream(w http.ResponseWriter, r *http.Request, v *viewer, f follower) {
	if err := hs.enter(v.owner); err != nil {
		hs.refuse(w, err)
		return
	}
	defer hs.leave(v.owner)
	accesslog.Note(w, slog.String("key", v.key))
	ctx, cancel := hs.lifetime(r, v.still)
	defer cancel()
	s := &stream{out: sse.NewWriter(w, "text/event-stream", hs.options.Now), still: v.still}
	if r.Method == http.MethodHead {
		return
	}
	err := s.out.Send(opening)
	if err == nil {
		err = s.run(ctx, f)
	}
	var refused *dialogue.Error
	if errors.As(err, &refused) {
		event := append(refused.AppendJSON([]byte("event: error\ndata: {\"error\":")), "}\n\n"...)
		_ = s.out.Send(event) // the stream is over either way
	}
	accesslog.Note(w, slog.Int("events", s.sent))
	if !errors.Is(err, errEnd) && r.Context().Err() != nil {
		accesslog.Outcome(w, dialogue.StatusClientClosed)
	}
}

// stream is one reply in progress.
type stream struct {
	out   *sse.Writer
	still func() error
	sent  int // events
}

// run sends updates until it fails. While a slow client blocks Send, further changes of a job are merged
// into one update.
func (s *stream) run(ctx context.Context, f follower) error {
	look := time.NewTicker(sse.LookEvery)
	defer look.Stop()
	check := time.NewTicker(stillEvery)
	defer check.Stop()
	for {
		more, sent, err := s.sendUpdates(f)
		if err != nil {
			return err
		}
		if sent && !rest(ctx) {
			return context.Cause(ctx)
		}
		if err := s.wait(ctx, more, look.C, check.C); err != nil {
			return err
		}
	}
}

// sendUpdates writes the next batch of updates in one piece.
func (s *stream) sendUpdates(f follower) (more <-chan struct{}, sent bool, err error) {
	b := borrow()
	defer b.giveBack()
	more, end := f.next(func(n update) error {
		b.bytes = n.appendEvent(b.bytes)
		s.sent++
		return nil
	})
	if len(b.bytes) > 0 {
		if err := s.out.Send(b.bytes); err != nil {
			return nil, false, err
		}
	}
	return more, len(b.bytes) > 0, end
}

// wait returns when there may be more updates. It sends heartbeats meanwhile.
func (s *stream) wait(ctx context.Context, more <-chan struct{}, look, check <-chan time.Time) error {
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-more:
			return nil
		case <-check:
			if err := s.still(); err != nil {
				return err
			}
		case <-look:
			if !s.out.Quiet() {
				continue
			}
			if err := s.out.Send(heartbeat); err != nil {
				return err
			}
		}
	}
}

// rest waits between two looks. It reports false if ctx ends first.
func rest(ctx context.Context) bool {
	t := time.NewTimer(pace)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
