package live

import (
	"errors"
	"slices"
	"strconv"
	"time"

	"stagedoor/http/media/videos"
	"stagedoor/providers/jsonw"
	"stagedoor/state"
	"stagedoor/state/work"
)

// kind is the type of an update.
type kind string

const (
	snapshot kind = "snapshot" // a job at the start of watching
	changed  kind = "job"      // a job that is new or has changed
	deleted  kind = "deleted"  // a job that was deleted
	ready    kind = "ready"    // the snapshot is complete
)

// update is a change that a watcher has not received yet.
type update struct {
	kind     kind
	video    *work.Video // shared; nil for ready
	revision int64       // 0 if a client must not resume from here
	// moved reports whether the status is new to the watcher, too.
	moved bool
}

// errEnd ends a stream after its last update.
var errEnd = errors.New("there are no more updates")

// follower finds the updates of one watcher. Only one goroutine may use it.
type follower interface {
	// next calls send with a bounded number of updates. It returns a channel that is
	// closed when there may be more, or errEnd after the last one.
	next(send func(update) error) (more <-chan struct{}, err error)
}

// batch is the most updates that are sent before the watcher handles pings and messages.
const batch = 64

// atOnce is the channel of a follower that has more updates already.
var atOnce = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

const (
	// maxSnapshot is the most jobs in a snapshot of all: those that changed last.
	maxSnapshot = 1000
	// maxAbsence bounds the time after which a watcher that reconnects still gets only the changes,
	// because the store keeps deleted jobs for an hour.
	maxAbsence = 50 * time.Minute
	// settled is the greatest age of a change that has a number and is not visible yet.
	settled = time.Minute
)

// feed finds the updates of several or all jobs of one owner.
type feed struct {
	state *state.State
	owner state.Owner
	only  []string // sorted; nil means all

	after int64 // the last change that was sent
	until int64 // the last change that belongs to the snapshot
	begun bool  // the jobs in only were looked up
	ready bool  // the update ready was sent
}

// newFeed returns a feed of the changes that follow after. It starts with a snapshot if after is 0, too
// long ago or not yet reached.
func newFeed(s *state.State, owner state.Owner, only []string, after int64) *feed {
	f := &feed{state: s, owner: owner, only: only}
	v := s.View()
	f.until = work.LastVideoChange(v, owner)
	if after > max(f.until, v.Now().UnixMicro()) || after < v.Now().Add(-maxAbsence).UnixMicro() {
		after = 0
	}
	switch {
	case after > 0:
		f.after, f.until = after, after
	case only == nil:
		f.after = work.VideoChangesOf(v, owner, maxSnapshot)
	default:
		// Looking up the few jobs is cheaper than reading all changes.
		f.after = f.until
	}
	f.begun = after > 0 || only == nil
	return f
}

// resumed reports whether the feed has no snapshot of jobs by id left to send.
func (f *feed) resumed() bool { return f.begun }

// next sends what has changed and returns a channel that is closed with the next change. After a full round it
// returns one that is closed already, because more may wait.
func (f *feed) next(send func(update) error) (<-chan struct{}, error) {
	v, more := work.WatchVideos(f.state, f.owner)
	if !f.begun {
		f.begun = true
		if err := f.sendSnapshot(v, send); err != nil {
			return nil, err
		}
	}
	full, err := f.sendChanges(v, send)
	if err != nil {
		return nil, err
	}
	if full {
		return atOnce, nil
	}
	// All changes up to some time ago have been sent. The revision says so, so that a
	// watcher without updates for hours can resume without a snapshot.
	return more, f.sendReady(send, max(f.after, v.Now().Add(-settled).UnixMicro()))
}

// sendSnapshot sends the jobs that were selected by id.
func (f *feed) sendSnapshot(v state.View, send func(update) error) error {
	for _, id := range f.only {
		job, ok := work.FindVideo(v, id, f.owner)
		if !ok || job.Changed > f.until {
			continue // missing, or sent as a change
		}
		if err := send(update{kind: snapshot, video: &job, revision: job.Changed}); err != nil {
			return err
		}
	}
	return nil
}

// sendChanges sends the changes after the last one that was sent. full reports that there are more than
// a batch.
func (f *feed) sendChanges(v state.View, send func(update) error) (full bool, err error) {
	since, count := f.after, 0
	work.VideosChanged(v, f.owner, since, func(job *work.Video) bool {
		if count == batch {
			full = true
			return false
		}
		if job.Changed > f.until {
			if err = f.sendReady(send, f.until); err != nil {
				return false
			}
		}
		f.after = job.Changed
		n, ok := f.updateOf(job, since)
		if !ok {
			return true
		}
		count++
		err = send(n)
		return err == nil
	})
	return full, err
}

// updateOf returns the update about job for a watcher that has received all changes up to since. It
// reports false if there is none.
func (f *feed) updateOf(job *work.Video, since int64) (update, bool) {
	if f.only != nil {
		if _, wanted := slices.BinarySearch(f.only, job.ID); !wanted {
			return update{}, false
		}
	}
	n := update{kind: changed, video: job, revision: job.Changed, moved: job.Moved > since}
	switch {
	case !job.Deleted.IsZero():
		n.kind = deleted
		return n, job.Changed > f.until // a snapshot has no deleted jobs
	case job.Changed <= f.until:
		n.kind = snapshot
	}
	return n, true
}

// sendReady sends once that the snapshot is complete, with the revision to resume from.
func (f *feed) sendReady(send func(update) error, revision int64) error {
	if f.ready {
		return nil
	}
	f.ready = true
	return send(update{kind: ready, revision: revision})
}

// single finds the updates of one job until it ends.
type single struct {
	state *state.State
	owner state.Owner
	id    string
	after int64 // the last change that was sent; 0: none
}

// next sends what has changed of the one job, and errEnd after its end.
func (s *single) next(send func(update) error) (<-chan struct{}, error) {
	job, more, ok := work.WatchVideo(s.state, s.id, s.owner)
	if !ok {
		return nil, s.sendDeleted(send)
	}
	if s.after == 0 {
		// The end of a job is sent as an event of its own. A client that is cut off
		// between the two must not resume after it, so the snapshot has no revision.
		n := update{kind: snapshot, video: &job, revision: job.Changed}
		if job.Final() {
			n.revision = 0
		}
		if err := send(n); err != nil {
			return nil, err
		}
		if !job.Final() {
			s.after = job.Changed
		}
	}
	if job.Changed > s.after {
		if err := send(update{kind: changed, video: &job, revision: job.Changed,
			moved: job.Moved > s.after}); err != nil {
			return nil, err
		}
		s.after = job.Changed
	}
	if job.Final() {
		return nil, errEnd
	}
	return more, nil
}

// sendDeleted sends that the job was deleted while it was watched.
func (s *single) sendDeleted(send func(update) error) error {
	if err := send(update{kind: deleted, video: &work.Video{ID: s.id}}); err != nil {
		return err
	}
	return errEnd
}

// event returns the name of an update in a stream of events: terminal for the end of a job, status for
// any other new status, and otherwise progress.
func (n *update) event() string {
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
func (n *update) appendEvent(b []byte) []byte {
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
func (n *update) appendMessage(b []byte) []byte {
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

// appendJob appends the job as JSON. A deleted job has only its id.
func (n *update) appendJob(b []byte) []byte {
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
