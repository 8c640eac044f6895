package work

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"stagedoor/state"
	"stagedoor/state/journal"
)

// VideoPhase is the progress of a video job in more detail than its clients see.
type VideoPhase string

// The phases, in the order in which a job passes through them.
const (
	// VideoAccepted says that the job is stored and was sent to no provider.
	VideoAccepted VideoPhase = "accepted"
	// VideoSubmitting says that the job may have been sent to its provider.
	VideoSubmitting VideoPhase = "submitting"
	// VideoQueued says that the provider has the job under Video.UpstreamID.
	VideoQueued VideoPhase = "queued"
	// VideoInProgress says that the provider is working on the job.
	VideoInProgress VideoPhase = "in_progress"
	// VideoFinalizing says that the job has ended and its charge is being settled.
	VideoFinalizing VideoPhase = "finalizing"
	VideoCompleted  VideoPhase = "completed"
	VideoFailed     VideoPhase = "failed"
)

var videoPhases = []VideoPhase{
	VideoAccepted, VideoSubmitting, VideoQueued, VideoInProgress, VideoFinalizing, VideoCompleted, VideoFailed,
}

// Final reports whether the phase never changes again.
func (p VideoPhase) Final() bool { return p == VideoCompleted || p == VideoFailed }

// Video is the record of a video job. The video itself stays with its provider.
type Video struct {
	ID    string      `json:"id"` // from NewID("video_"), so that it grows with time
	Owner state.Owner `json:"owner"`
	Key   string      `json:"key"` // id of the key that created the job
	// Request is the id of the request that created the job.
	Request string `json:"request_id,omitempty"`

	Operation     string `json:"operation"`
	Model         string `json:"model"`          // as clients know it
	UpstreamModel string `json:"upstream_model"` // as the provider knows it
	Provider      string `json:"provider"`
	UpstreamID    string `json:"upstream_id,omitempty"` // the provider's id of the job

	Prompt  string `json:"prompt"`
	Size    string `json:"size"`
	Seconds int64  `json:"seconds"` // of the whole result
	// RemixedFrom is the job that a remix is made from. Extensions is how often the video was
	// extended, including this time.
	RemixedFrom string `json:"remixed_from,omitempty"`
	Extensions  int    `json:"extensions,omitempty"`
	// Billable is the number of seconds to charge. For an extension these are only the new ones.
	Billable int64 `json:"billable,omitempty"`
	// Reported is Billable as the provider reports it for the finished video. 0 means that it
	// reports nothing, and -1 that it reports an impossible length.
	Reported int64 `json:"reported,omitempty"`

	Phase    VideoPhase  `json:"phase"`
	Progress int         `json:"progress,omitempty"` // percent; it never decreases
	Error    *VideoError `json:"error,omitempty"`    // set for a failed job from VideoFinalizing on

	// Spec holds what is submitted to the provider, in the submitter's own form. It is dropped after
	// submission.
	Spec json.RawMessage `json:"spec,omitempty"`
	// Attempts counts the submissions that were started, all with the job's id.
	Attempts int `json:"attempts,omitempty"`
	// Files lists the uploads that are kept until the submission.
	Files []string `json:"files,omitempty"`

	// Account is charged, if it is not empty. The request id of the hold is the job's id.
	Account string `json:"account,omitempty"`
	Price   int64  `json:"price,omitempty"` // micro-dollars a second at the time of acceptance
	Held    int64  `json:"held,omitempty"`
	Cost    int64  `json:"cost,omitempty"` // micro-dollars charged at the end

	// Traceparent is the span of the request that created the job, if it was traced.
	Traceparent string `json:"traceparent,omitempty"`

	// Once is the idempotency key that its client has sent, and Asked the hash of the request's
	// content.
	Once  string     `json:"once,omitempty"`
	Asked state.Hash `json:"asked,omitzero"`

	Created   time.Time `json:"created"`
	Deadline  time.Time `json:"deadline"`           // when the job is given up
	Completed time.Time `json:"completed,omitzero"` // when it ended, successfully or not
	Expires   time.Time `json:"expires,omitzero"`   // when its content is removed
	// Until is the time from which the record may be removed, once Purge is zero. It is zero until the job has ended.
	Until   time.Time `json:"until,omitzero"`
	Deleted time.Time `json:"deleted,omitzero"` // if not zero, no client finds the job
	// Purge is the time of the next attempt to delete the video at its provider, if it is to be deleted there.
	Purge time.Time `json:"purge,omitzero"`

	// Revision increases with every change that a client can see.
	Revision int64 `json:"revision"`
	// Node is the process that works on the job until it has ended.
	Node state.Node `json:"node,omitempty"`
	// Changed is the number of the job's last change among those of all jobs of its owner. Moved is
	// the number of the change that set its current status. Both only increase.
	Changed int64 `json:"changed"`
	Moved   int64 `json:"moved"`
}

// VideoError says why a job failed, in a text for clients.
type VideoError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Status returns the phase as clients see it: queued, in_progress, completed or failed.
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

// Expired reports whether the content of a completed job was removed.
func (v *Video) Expired(now time.Time) bool { return !v.Expires.IsZero() && !now.Before(v.Expires) }

// MaxVideoBytes is the size of the record of one job.
const MaxVideoBytes = 1 << 20

// check returns an error unless the job can be stored.
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

// checkChange returns an error for a change that must not happen: a job that has ended does not
// change, and a job never goes back to an earlier phase.
func (v *Video) checkChange(before *Video) error {
	changed := v.Phase != before.Phase || v.Progress != before.Progress || v.UpstreamID != before.UpstreamID ||
		v.Cost != before.Cost
	switch {
	case before.Final() && changed:
		return fmt.Errorf("video %s: %w", v.ID, state.ErrFinished)
	case slices.Index(videoPhases, v.Phase) < slices.Index(videoPhases, before.Phase) && !v.wasRefused(before),
		v.Progress < before.Progress, before.UpstreamID != "" &&
			v.UpstreamID != before.UpstreamID, v.Owner != before.Owner:
		return fmt.Errorf("%w: video %s cannot go back", state.ErrInvalid, v.ID)
	}
	return nil
}

// wasRefused reports whether the provider has certainly not accepted the submission, so that the
// job is accepted again.
func (v *Video) wasRefused(before *Video) bool {
	return before.Phase == VideoSubmitting && v.Phase == VideoAccepted
}

// looksDifferent reports whether the change is visible to a client.
func (v *Video) looksDifferent(before *Video) bool {
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
	byProgress   = "progress"
)

// videos holds video jobs until Until, and longer if the provider must still delete the content (Purge).
var videos = state.Table[Video]{
	Name: journal.Job,
	ID:   func(v *Video) string { return v.ID },
	Expires: func(v *Video) time.Time {
		if !v.Purge.IsZero() { // the last attempt ends the record, however late it is made
			return time.Time{}
		}
		return v.Until
	},
	Indexes: map[string]state.Index[Video]{
		// The order is owner, time. Deleted jobs are left out.
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
		// Clients choose the ids of requests, so several jobs may have the same. Deleted jobs are included, because
		// they were charged.
		byRequest: {Key: func(v *Video) []byte {
			if v.Request == "" {
				return nil
			}
			return ownedVideo(v.Owner, v.Request)
		}},
		byChange: videoChanges,
		byPurge: {Key: func(v *Video) []byte {
			if v.Purge.IsZero() {
				return nil
			}
			return state.MinuteKey(v.Purge)
		}},
		byUnfinished: {Unique: true, Key: func(v *Video) []byte {
			if v.Final() {
				return nil
			}
			return append([]byte{1}, state.TextKey(v.ID)...)
		}},
		// The order is owner, time. Jobs that have ended and deleted ones are left out.
		byProgress: {Unique: true, Key: func(v *Video) []byte {
			if v.Final() || !v.Deleted.IsZero() {
				return nil
			}
			return ownedVideo(v.Owner, v.ID)
		}},
	},
}

// ownedVideo returns a key of the index by owner.
func ownedVideo(owner state.Owner, id string) []byte {
	return append(state.TextKey(string(owner)), state.TextKey(id)...)
}

// onceVideo returns a key of the index by idempotency key.
func onceVideo(owner state.Owner, once string) []byte {
	return append(state.TextKey(string(owner)), state.TextKey(once)...)
}

// PutVideo stores v, a new job or a changed one, and sets its revision. The command with which a job ends also adds the
// deliveries to its webhooks. The error is state.ErrFinished if the phase, progress, provider's id or cost of a job
// that has ended would change, and state.ErrInvalid if a job would go back to an earlier phase or progress.
func PutVideo(tx *state.Tx, v Video) (Video, error) {
	if err := v.check(); err != nil {
		return v, err
	}
	v.Revision = 0
	if v.Final() {
		v.Node = ""
	}
	var before *Video
	if r := videos.Get(tx.View(), v.ID); r != nil {
		before = &r.Rec
		if err := v.checkChange(before); err != nil {
			return *before, err
		}
		v.Revision, v.Changed, v.Moved = before.Revision, before.Changed, before.Moved
	}
	if before == nil {
		v.Node = tx.Node()
	}
	if before == nil || v.looksDifferent(before) {
		v.Revision++
		numberVideo(tx, &v, before)
	}
	if err := announceVideo(tx, &v, before); err != nil {
		return v, err
	}
	return v, videos.Put(tx, v)
}

// ErrVideoChanged says that a job is not as the caller of ChangeVideo has read it.
var ErrVideoChanged = errors.New("the video job was changed by another actor")

// ChangeVideo stores v, a changed job, as PutVideo does, if its record is still as the caller has read it: it belongs
// to the same process as base, is in the same phase and was submitted as often. Otherwise another actor works on the
// job, for instance one of a process that has taken it over, and the error is ErrVideoChanged. What is sent to a
// provider after such a change is therefore sent by one process only.
func ChangeVideo(tx *state.Tx, base *Video, v Video) (Video, error) {
	now, ok := FindAnyVideo(tx.View(), base.ID)
	if !ok || now.Phase != base.Phase || now.Attempts != base.Attempts || now.Node != base.Node {
		return now, ErrVideoChanged
	}
	return PutVideo(tx, v)
}

// FindVideo returns a job of an owner. Unknown jobs, deleted jobs and jobs of other owners are not
// found.
func FindVideo(v state.View, id string, owner state.Owner) (Video, bool) {
	rec, ok := FindAnyVideo(v, id)
	if !ok || rec.Owner != owner || !rec.Deleted.IsZero() {
		return Video{}, false
	}
	return rec, true
}

// WasVideoOf reports whether an owner has, or had, a job with an id. A job that was deleted counts until its record is
// swept, so that a client that deletes the jobs of a page can ask for the page behind them.
func WasVideoOf(v state.View, id string, owner state.Owner) bool {
	rec, ok := FindAnyVideo(v, id)
	return ok && rec.Owner == owner
}

// FindAnyVideo returns a job of any owner, deleted or not. It is for the gateway itself.
func FindAnyVideo(v state.View, id string) (Video, bool) { return videos.Get(v, id).Record() }

// FindVideoByOnce returns the job that its owner created with this idempotency key.
func FindVideoByOnce(v state.View, owner state.Owner, once string) (Video, bool) {
	return videos.First(v, byOnce, onceVideo(owner, once)).Record()
}

// maxRequested is the number of jobs that ListRequestedVideos returns, because clients choose the
// ids of requests.
const maxRequested = 100

// ListRequestedVideos returns the jobs that an owner's request has created, and the job whose id it
// is, oldest first and at most 100. Deleted jobs are included.
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

// VideoPage selects a page of an owner's jobs.
type VideoPage struct {
	After     string // id after which the page begins; "" begins at the first
	Limit     int
	Ascending bool // oldest first
}

// ListVideos returns jobs of an owner, newest first, and reports whether there are more. The job
// After may have been deleted.
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

// HasVideos reports whether an owner has at least so many jobs, without those that were deleted.
func HasVideos(v state.View, owner state.Owner, most int) bool {
	n := 0
	videos.From(v, byOwner, ownedVideo(owner, ""), func(r *state.Row[Video]) bool {
		if r.Rec.Owner == owner {
			n++
		}
		return r.Rec.Owner == owner && n < most
	})
	return n >= most
}

// CountVideosInProgress returns how many jobs of an owner have not ended. Its cost does not depend on how many have.
func CountVideosInProgress(v state.View, owner state.Owner) int {
	return len(videos.Under(v, byProgress, state.TextKey(string(owner))))
}

// ListUnfinishedVideos returns the jobs of all owners that have not ended, oldest first. At start
// they are continued.
func ListUnfinishedVideos(v state.View) []Video {
	return videos.List(v, byUnfinished, []byte{1})
}

// Nodes returns the processes that work on responses, videos and deliveries, for State.Ended. Some may be there several
// times.
func Nodes(v state.View) (all []state.Node) {
	for _, r := range responses.Under(v, byUnfinished, []byte{1}) {
		all = append(all, r.Rec.Node)
	}
	for _, r := range videos.Under(v, byUnfinished, []byte{1}) {
		all = append(all, r.Rec.Node)
	}
	for d := range deliveries.All(v) {
		all = append(all, d.Node)
	}
	return all
}

// takenAtOnce bounds the jobs or deliveries that one command takes over, whose records may be large.
const takenAtOnce = 16

// TakeOverVideos makes this process the one that works on the unfinished jobs of processes that have ended, and returns
// these jobs, oldest first. A job that another process takes over at the same time is not among them. Each part is a
// commit of its own. The jobs that were taken before an error are returned with it, because they are this process's
// from then on.
func TakeOverVideos(ctx context.Context, s *state.State, ended func(state.Node) bool) (taken []Video, err error) {
	left := slices.DeleteFunc(ListUnfinishedVideos(s.View()), func(v Video) bool { return !ended(v.Node) })
	for part := range slices.Chunk(left, takenAtOnce) {
		mine, err := state.Do(ctx, s, func(tx *state.Tx) (mine []Video, err error) {
			for i := range part {
				v, ok := FindAnyVideo(tx.View(), part[i].ID)
				if !ok || v.Final() || !ended(v.Node) {
					continue
				}
				v.Node = tx.Node()
				mine, err = append(mine, v), errors.Join(err, videos.Put(tx, v))
			}
			return mine, err
		})
		if taken = append(taken, mine...); err != nil {
			return taken, err
		}
	}
	return taken, nil
}

// WatchVideo returns a job of an owner and a channel that is closed when the job may have changed.
// The channel is nil if the job is not found.
func WatchVideo(s *state.State, id string, owner state.Owner) (Video, <-chan struct{}, bool) {
	v := s.View()
	video, found := FindVideo(v, id, owner)
	if !found {
		return video, nil, false
	}
	return video, videos.Watch(v, id), true
}

// WatchVideos returns a view and a channel that is closed when a job of the owner is added, changed
// or removed.
func WatchVideos(s *state.State, owner state.Owner) (state.View, <-chan struct{}) {
	v := s.View()
	return v, videos.WatchUnder(v, byOwner, state.TextKey(string(owner)))
}
