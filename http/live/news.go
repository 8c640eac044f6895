package live

import (
	"errors"
	"slices"
	"strconv"
	"time"

	"stagedoor/http/media/videos"
	"stagedoor/providers/jsonw"
	"stagedoor/state"
)

// kind says what a piece of news is.
type kind string

const (
	snapshot kind = "snapshot" // a job as it was when the watching began
	changed  kind = "job"      // a job that is new or has changed
	deleted  kind = "deleted"  // a job that is gone
	ready    kind = "ready"    // the snapshot has been told
)

// news is something that a watcher has not been told.
type news struct {
	kind     kind
	video    *state.Video // shared; nil with ready
	revision int64        // 0: not to be resumed from
	// moved: the watcher has not been told this status either.
	moved bool
}

// errEnd ends a stream that has told all there will ever be.
var errEnd = errors.New("nothing more will happen")

// follower tells one watcher the news. One goroutine calls it.
type follower interface {
	// next calls tell with a bounded number of news and returns a channel that is
	// closed when there may be more, or errEnd.
	next(tell func(news) error) (more <-chan struct{}, err error)
}

// batch is how many news are told before the watcher is looked after otherwise.
const batch = 64

// atOnce says that there is more already.
var atOnce = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

const (
	// maxSnapshot is how many jobs a snapshot of all has, those that changed last.
	maxSnapshot = 1000
	// maxAbsence is how long a watcher may have been away and still be told only
	// what changed: deleted jobs are remembered for an hour.
	maxAbsence = 50 * time.Minute
	// settled is how old a change is at most that is numbered and not visible yet.
	settled = time.Minute
)

// feed follows several jobs of one owner, or all.
type feed struct {
	state *state.State
	owner state.Owner
	only  []string // sorted; nil: all

	after int64 // the last change that was told
	until int64 // the last change that belongs to the snapshot
	begun bool  // nothing is left to be looked up by id
	told  bool  // that the snapshot is over
}

// newFeed begins where a watcher stopped, after a change; 0: with a snapshot. A
// watcher that was away for too long, or names a change that there never was, gets
// a snapshot, too.
func newFeed(s *state.State, owner state.Owner, only []string, after int64) *feed {
	f := &feed{state: s, owner: owner, only: only}
	v := s.View()
	f.until = v.LastVideoChange(owner)
	if after > max(f.until, v.Now().UnixMicro()) || after < v.Now().Add(-maxAbsence).UnixMicro() {
		after = 0
	}
	switch {
	case after > 0:
		f.after, f.until = after, after
	case only == nil:
		f.after = v.VideoChangesOf(owner, maxSnapshot)
	default:
		// The jobs are few and known, the changes may be many.
		f.after = f.until
	}
	f.begun = after > 0 || only == nil
	return f
}

// resumed tells that there is no snapshot of jobs that were asked for by id.
func (f *feed) resumed() bool { return f.begun }

func (f *feed) next(tell func(news) error) (<-chan struct{}, error) {
	v, more := f.state.WatchVideos(f.owner)
	if !f.begun {
		f.begun = true
		if err := f.begin(v, tell); err != nil {
			return nil, err
		}
	}
	full, err := f.changes(v, tell)
	if err != nil {
		return nil, err
	}
	if full {
		return atOnce, nil
	}
	// All that was numbered some time ago has been told, so that a watcher that
	// heard nothing for hours need not hear everything when it comes back.
	return more, f.finish(tell, max(f.after, v.Now().Add(-settled).UnixMicro()))
}

// begin tells how the jobs are that were asked for by id.
func (f *feed) begin(v state.View, tell func(news) error) error {
	for _, id := range f.only {
		job, ok := v.Video(id, f.owner)
		if !ok || job.Changed > f.until {
			continue // not there, or told as a change
		}
		if err := tell(news{kind: snapshot, video: &job, revision: job.Changed}); err != nil {
			return err
		}
	}
	return nil
}

// changes tells what changed after what was told, a batch at most.
func (f *feed) changes(v state.View, tell func(news) error) (full bool, err error) {
	since, count := f.after, 0
	v.VideosChanged(f.owner, since, func(job *state.Video) bool {
		if count == batch {
			full = true
			return false
		}
		if job.Changed > f.until {
			if err = f.finish(tell, f.until); err != nil {
				return false
			}
		}
		f.after = job.Changed
		n, ok := f.newsOf(job, since)
		if !ok {
			return true
		}
		count++
		err = tell(n)
		return err == nil
	})
	return full, err
}

// newsOf is what a watcher that was told everything up to since is to hear of a
// job, if anything.
func (f *feed) newsOf(job *state.Video, since int64) (news, bool) {
	if f.only != nil {
		if _, wanted := slices.BinarySearch(f.only, job.ID); !wanted {
			return news{}, false
		}
	}
	n := news{kind: changed, video: job, revision: job.Changed, moved: job.Moved > since}
	switch {
	case !job.Deleted.IsZero():
		n.kind = deleted
		return n, job.Changed > f.until // in a snapshot it is not there
	case job.Changed <= f.until:
		n.kind = snapshot
	}
	return n, true
}

// finish tells once that the snapshot is over, and from where to resume.
func (f *feed) finish(tell func(news) error, revision int64) error {
	if f.told {
		return nil
	}
	f.told = true
	return tell(news{kind: ready, revision: revision})
}

// single follows one job to its end.
type single struct {
	state *state.State
	owner state.Owner
	id    string
	after int64 // the last change that was told; 0: none
}

func (s *single) next(tell func(news) error) (<-chan struct{}, error) {
	job, more, ok := s.state.WatchVideo(s.id, s.owner)
	if !ok {
		return nil, s.gone(tell)
	}
	if s.after == 0 {
		// The end of a job follows by itself: whoever is cut off between the two
		// must not have seen its number yet.
		n := news{kind: snapshot, video: &job, revision: job.Changed}
		if job.Final() {
			n.revision = 0
		}
		if err := tell(n); err != nil {
			return nil, err
		}
		if !job.Final() {
			s.after = job.Changed
		}
	}
	if job.Changed > s.after {
		if err := tell(news{kind: changed, video: &job, revision: job.Changed, moved: job.Moved > s.after}); err != nil {
			return nil, err
		}
		s.after = job.Changed
	}
	if job.Final() {
		return nil, errEnd
	}
	return more, nil
}

// gone tells of a job that was deleted while it was watched.
func (s *single) gone(tell func(news) error) error {
	if err := tell(news{kind: deleted, video: &state.Video{ID: s.id}}); err != nil {
		return err
	}
	return errEnd
}

// event is the name under which news go over a stream of events: terminal for the
// end of a job, status for any other new status, else progress.
func (n *news) event() string {
	switch {
	case n.kind != changed:
		return string(n.kind)
	case n.video.Final() && n.moved:
		return "terminal"
	case n.moved, n.video.Final():
		return "status"
	}
	return "progress"
}

// appendEvent appends n as a server-sent event.
func (n *news) appendEvent(b []byte) []byte {
	b = append(b, "event: "...)
	b = append(b, n.event()...)
	if n.revision > 0 {
		b = append(b, "\nid: "...)
		b = strconv.AppendInt(b, n.revision, 10)
	}
	b = append(b, "\ndata: "...)
	return append(n.appendJob(b), "\n\n"...)
}

// appendMessage appends n as a message of a socket.
func (n *news) appendMessage(b []byte) []byte {
	b = append(b, `{"type":"`...)
	b = append(b, n.kind...)
	b = append(b, `","revision":`...)
	b = strconv.AppendInt(b, n.revision, 10)
	if n.video != nil {
		b = append(b, `,"job":`...)
		b = n.appendJob(b)
	}
	return append(b, '}')
}

// appendJob appends the job's object, or what is left of it.
func (n *news) appendJob(b []byte) []byte {
	switch {
	case n.video == nil:
		return append(b, "{}"...)
	case n.kind == deleted:
		b = append(b, `{"id":`...)
		b = jsonw.AppendString(b, n.video.ID)
		return append(b, `,"object":"video.deleted","deleted":true}`...)
	}
	return videos.AppendObject(b, n.video)
}
