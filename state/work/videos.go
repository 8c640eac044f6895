package work

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"stagedoor/state"
	"stagedoor/state/journal"
)

// VideoPhase is how far a video job is, in more detail than its clients see.
type VideoPhase string

// The phases, in the order in which a job passes them.
const (
	// VideoAccepted: the job is kept, and no provider was asked for it.
	VideoAccepted VideoPhase = "accepted"
	// VideoSubmitting: its provider may have been asked.
	VideoSubmitting VideoPhase = "submitting"
	// VideoQueued: its provider has it, under Video.UpstreamID.
	VideoQueued VideoPhase = "queued"
	// VideoInProgress: its provider works on it.
	VideoInProgress VideoPhase = "in_progress"
	// VideoFinalizing: it has ended, and its money is being settled.
	VideoFinalizing VideoPhase = "finalizing"
	VideoCompleted  VideoPhase = "completed"
	VideoFailed     VideoPhase = "failed"
)

var videoPhases = []VideoPhase{
	VideoAccepted,
	VideoSubmitting,
	VideoQueued,
	VideoInProgress,
	VideoFinalizing,
	VideoCompleted,
	VideoFailed,
}

// Final reports whether the phase never changes again.
func (p VideoPhase) Final() bool { return p == VideoCompleted || p == VideoFailed }

// Video is a video job: all that is known of it. Its content stays with the
// provider that made it.
type Video struct {
	ID    string      `json:"id"` // from NewID("video_"), so that it grows with time
	Owner state.Owner `json:"owner"`
	Key   string      `json:"key"` // id of the key that began it
	// Request is the id of the request that began it.
	Request string `json:"request_id,omitempty"`

	Operation     string `json:"operation"`
	Model         string `json:"model"`          // as clients know it
	UpstreamModel string `json:"upstream_model"` // as the provider knows it
	Provider      string `json:"provider"`
	UpstreamID    string `json:"upstream_id,omitempty"` // the provider's id of the job

	Prompt  string `json:"prompt"`
	Size    string `json:"size"`
	Seconds int64  `json:"seconds"` // of the whole result
	// RemixedFrom is the job that a remix began with. Extensions counts how often
	// the video was made longer before, this time included.
	RemixedFrom string `json:"remixed_from,omitempty"`
	Extensions  int    `json:"extensions,omitempty"`
	// Billable are the seconds to be paid for: of an extension only the new ones.
	Billable int64 `json:"billable,omitempty"`
	// Reported is Billable as the provider reports it for the finished video: 0 is nothing, and
	// -1 a length that cannot be.
	Reported int64 `json:"reported,omitempty"`

	Phase    VideoPhase  `json:"phase"`
	Progress int         `json:"progress,omitempty"` // percent; it never falls
	Error    *VideoError `json:"error,omitempty"`    // of one that failed, set from VideoFinalizing on

	// Spec is what is to be submitted, in the form of who submits it. It is dropped
	// when that is done.
	Spec json.RawMessage `json:"spec,omitempty"`
	// Attempts counts the submissions begun, all of them under the job's id.
	Attempts int `json:"attempts,omitempty"`
	// Files are the ids of uploads that are kept until the submission.
	Files []string `json:"files,omitempty"`

	// Account pays; "" is none. The hold's request id is the job's id.
	Account string `json:"account,omitempty"`
	Price   int64  `json:"price,omitempty"` // micro-dollars a second, as it was when the job was accepted
	Held    int64  `json:"held,omitempty"`
	Cost    int64  `json:"cost,omitempty"` // what was charged in the end

	// Traceparent is the span of the request that asked for it, if that was traced.
	Traceparent string `json:"traceparent,omitempty"`

	// Once is the key that its client sent so that the job is not made twice, and
	// Asked is the hash of what was asked for under it.
	Once  string     `json:"once,omitempty"`
	Asked state.Hash `json:"asked,omitzero"`

	Created   time.Time `json:"created"`
	Deadline  time.Time `json:"deadline"`           // when it is given up
	Completed time.Time `json:"completed,omitzero"` // when it ended, well or not
	Expires   time.Time `json:"expires,omitzero"`   // when its content goes
	// Until is when the record may go; zero: not before the job has ended.
	Until   time.Time `json:"until,omitzero"`
	Deleted time.Time `json:"deleted,omitzero"` // not zero: no client finds it

	// Revision grows with every change that a client can see.
	Revision int64 `json:"revision"`
	// Changed numbers that change among those of all jobs of its owner, Moved the
	// one with which the status became what it is. Both grow.
	Changed int64 `json:"changed"`
	Moved   int64 `json:"moved"`
}

// VideoError is why a job failed, in words that a client may read.
type VideoError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Status is the phase as clients see it (gateway.md 3).
func (v *Video) Status() string {
	switch v.Phase {
	case VideoAccepted, VideoSubmitting:
		return string(VideoQueued)
	case VideoFinalizing:
		return string(VideoInProgress)
	}
	return string(v.Phase)
}

// Final reports whether the job has ended.
func (v *Video) Final() bool { return v.Phase.Final() }

// Expired reports whether the content of a completed job is gone.
func (v *Video) Expired(now time.Time) bool { return !v.Expires.IsZero() && !now.Before(v.Expires) }

// MaxVideoBytes bounds the record of one job.
const MaxVideoBytes = 1 << 20

func (v *Video) check() error {
	if err := state.CheckID(v.ID); err != nil {
		return err
	}
	switch {
	case v.Owner == "" || v.Created.IsZero() || !slices.Contains(videoPhases, v.Phase):
		return fmt.Errorf("%w: video %s", state.ErrInvalid, v.ID)
	case v.Progress < 0 || v.Progress > 100:
		return fmt.Errorf("%w: video %s has made %d %%", state.ErrInvalid, v.ID, v.Progress)
	case len(v.Spec)+len(v.Prompt)+len(v.Once) > MaxVideoBytes:
		return fmt.Errorf("video %s: %w", v.ID, state.ErrTooLarge)
	}
	return nil
}

// succeeds refuses what a job must not become: what has ended does not change,
// and nothing goes back.
func (v *Video) succeeds(before *Video) error {
	changed := v.Phase != before.Phase || v.Progress != before.Progress || v.UpstreamID != before.UpstreamID ||
		v.Cost != before.Cost
	switch {
	case before.Final() && changed:
		return fmt.Errorf("video %s: %w", v.ID, state.ErrFinished)
	case slices.Index(videoPhases, v.Phase) < slices.Index(videoPhases, before.Phase) && !v.refused(before),
		v.Progress < before.Progress, before.UpstreamID != "" && v.UpstreamID != before.UpstreamID, v.Owner != before.Owner:
		return fmt.Errorf("%w: video %s cannot go back", state.ErrInvalid, v.ID)
	}
	return nil
}

// refused reports whether the job was submitted and surely not taken, so that it
// is what it was before.
func (v *Video) refused(before *Video) bool {
	return before.Phase == VideoSubmitting && v.Phase == VideoAccepted
}

// differs reports whether a client would see another job.
func (v *Video) differs(before *Video) bool {
	if v.Status() != before.Status() || v.Progress != before.Progress || v.Size != before.Size ||
		v.Seconds != before.Seconds ||
		!v.Deleted.Equal(before.Deleted) {
		return true
	}
	// The times of the end are shown from the end on.
	return v.Final() && (!v.Completed.Equal(before.Completed) || !v.Expires.Equal(before.Expires))
}

const (
	byOwner      = "owner"
	byOnce       = "once"
	byRequest    = "request"
	byUnfinished = "unfinished"
)

var videos = state.Table[Video]{
	Name:    journal.Job,
	ID:      func(v *Video) string { return v.ID },
	Expires: func(v *Video) time.Time { return v.Until },
	Indexes: map[string]state.Index[Video]{
		// Owner, then time; without what was deleted.
		byOwner: {Unique: true, Key: func(v *Video) []byte {
			if !v.Deleted.IsZero() {
				return nil
			}
			return ownedVideo(v.Owner, v.ID)
		}},
		byOnce: {Unique: true, Key: func(v *Video) []byte {
			if v.Once == "" || !v.Deleted.IsZero() {
				return nil
			}
			return onceVideo(v.Owner, v.Once)
		}},
		// Clients choose ids of requests, so several jobs may have one. What was
		// deleted has been paid for all the same.
		byRequest: {Key: func(v *Video) []byte {
			if v.Request == "" {
				return nil
			}
			return ownedVideo(v.Owner, v.Request)
		}},
		byChange: videoChanges,
		byUnfinished: {Unique: true, Key: func(v *Video) []byte {
			if v.Final() {
				return nil
			}
			return append([]byte{1}, state.TextKey(v.ID)...)
		}},
	},
}

// ownedVideo is a job as a key of the index by owner.
func ownedVideo(owner state.Owner, id string) []byte {
	return append(state.TextKey(string(owner)), state.TextKey(id)...)
}

// onceVideo is the key of the index by what its client called it.
func onceVideo(owner state.Owner, once string) []byte {
	return append(state.TextKey(string(owner)), state.TextKey(once)...)
}

// PutVideo keeps v, a new job or what an earlier one has become. It counts the
// revision. One that ended does not change any more, ErrFinished, except that it
// may be deleted.
func PutVideo(tx *state.Tx, v Video) (Video, error) {
	if err := v.check(); err != nil {
		return v, err
	}
	v.Revision = 0
	var before *Video
	if r := videos.Get(tx.View(), v.ID); r != nil {
		before = &r.Rec
		if err := v.succeeds(before); err != nil {
			return *before, err
		}
		v.Revision, v.Changed, v.Moved = before.Revision, before.Changed, before.Moved
	}
	if before == nil || v.differs(before) {
		v.Revision++
		numberVideo(tx, &v, before)
	}
	if err := announceVideo(tx, &v, before); err != nil {
		return v, err
	}
	return v, videos.Put(tx, v)
}

// FindVideo finds a job for its owner. A job of another owner, a deleted and an unknown one
// are the same.
func FindVideo(v state.View, id string, owner state.Owner) (Video, bool) {
	rec, ok := FindAnyVideo(v, id)
	if !ok || rec.Owner != owner || !rec.Deleted.IsZero() {
		return Video{}, false
	}
	return rec, true
}

// FindAnyVideo finds a job for the gateway itself, of any owner, deleted or not.
func FindAnyVideo(v state.View, id string) (Video, bool) { return videos.Get(v, id).Record() }

// FindVideoByOnce finds the job that its owner began under a key of its own.
func FindVideoByOnce(v state.View, owner state.Owner, once string) (Video, bool) {
	return videos.First(v, byOnce, onceVideo(owner, once)).Record()
}

// maxRequested bounds what RequestedVideos returns, because clients choose the ids of requests.
const maxRequested = 100

// ListRequestedVideos lists the jobs that a request of their owner began, and the one whose id it is: the oldest first,
// at most 100, deleted ones included.
func ListRequestedVideos(v state.View, request string, owner state.Owner) []Video {
	var list []Video
	if rec, ok := FindAnyVideo(v, request); ok && rec.Owner == owner {
		list = append(list, rec)
	}
	for _, rec := range videos.List(v, byRequest, ownedVideo(owner, request)) {
		if len(list) == maxRequested {
			break
		}
		list = append(list, rec)
	}
	return list
}

// VideoPage says which jobs of an owner to list.
type VideoPage struct {
	After     string // the id behind which to begin, "": at the beginning
	Limit     int
	Ascending bool // the oldest first
}

// ListVideos lists jobs of an owner, the newest first, and reports whether there are
// more. After need not be there any more.
func ListVideos(v state.View, owner state.Owner, page VideoPage) (list []Video, more bool) {
	read, begin := videos.Back, ownedVideo(owner, "\xff")
	if page.Ascending {
		read, begin = videos.From, ownedVideo(owner, "")
	}
	if page.After != "" {
		begin = ownedVideo(owner, page.After)
	}
	read(v, byOwner, begin, func(r *state.Row[Video]) bool {
		switch {
		case r.Rec.Owner != owner:
			return false
		case r.Rec.ID == page.After:
		case len(list) == page.Limit:
			more = true
			return false
		default:
			list = append(list, r.Rec)
		}
		return true
	})
	return list, more
}

// ListUnfinishedVideos lists the jobs of all owners that have not ended, the oldest
// first. At start they are those to go on with.
func ListUnfinishedVideos(v state.View) []Video {
	return videos.List(v, byUnfinished, []byte{1})
}

// WatchVideo finds a job for its owner and returns a channel that is closed when it may have changed. Without a job
// there is no channel.
func WatchVideo(s *state.State, id string, owner state.Owner) (Video, <-chan struct{}, bool) {
	v := s.View()
	video, found := FindVideo(v, id, owner)
	if !found {
		return video, nil, false
	}
	return video, videos.Watch(v, id), true
}

// WatchVideos returns a view and a channel that is closed when a job of the owner may have changed since, come or left.
func WatchVideos(s *state.State, owner state.Owner) (state.View, <-chan struct{}) {
	v := s.View()
	return v, videos.WatchUnder(v, byOwner, state.TextKey(string(owner)))
}
