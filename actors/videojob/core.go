package videojob

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"stagedoor/actors/ledger"
	"stagedoor/actors/throttle"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/upstream"
	"stagedoor/providers/video"
	"stagedoor/state/work"
)

// Codes of the gateway's own failures. Clients must accept other codes too, because providers have their own.
const (
	codeLost       = "upstream_lost"
	codeSubmission = "submission_lost"
	codeDeadline   = "deadline_exceeded"
	codeFailed     = "video_generation_failed"
)

// action is the kind of the next step of a job.
type action uint8

const (
	submit action = iota
	poll
	settle
	nothing
)

// nextAction returns the action that a job in this state needs.
func nextAction(v *work.Video) action {
	switch v.Phase {
	case work.VideoAccepted, work.VideoSubmitting:
		return submit
	case work.VideoQueued, work.VideoInProgress:
		return poll
	case work.VideoFinalizing:
		return settle
	}
	return nothing
}

// markSubmitting returns the job at the start of its submission. It is stored before the provider
// is called.
func markSubmitting(v work.Video) work.Video {
	v.Phase = work.VideoSubmitting
	v.Attempts++
	return v
}

// markNotSubmitted returns a job that its provider certainly did not accept.
func markNotSubmitted(v work.Video) work.Video {
	v.Phase = work.VideoAccepted
	return v
}

// markAccepted returns a job that its provider has accepted.
func markAccepted(v work.Video, id string, s video.Status, now time.Time) work.Video {
	v.Phase, v.UpstreamID = work.VideoQueued, id
	v.Spec, v.Files = nil, nil
	return applyStatus(v, s, now)
}

// The lifetime of content if the provider does not report one, and its maximum. The record stays as long.
const (
	contentLife = 24 * time.Hour
	mostLife    = 366 * 24 * time.Hour
)

// contentExpiry returns when the content of a job expires that completes now. reported is what the
// provider says.
func contentExpiry(reported, now time.Time) time.Time {
	if reported.IsZero() {
		return now.Add(contentLife)
	}
	if most := now.Add(mostLife); reported.After(most) {
		return most
	}
	return reported
}

// mostProgress is the highest percentage of a job that has not ended.
const mostProgress = 99

// applyStatus returns the job after its provider reported s. Progress never decreases, although
// some providers report less than before. Unknown states change nothing.
func applyStatus(v work.Video, s video.Status, now time.Time) work.Video {
	switch s.State {
	case video.Completed:
		v.Phase, v.Completed, v.Expires = work.VideoFinalizing, now, contentExpiry(s.Expires, now)
		return applyLength(v, s)
	case video.Failed:
		fault := s.Error
		if fault == nil {
			fault = &video.Fault{}
		}
		return markFailed(v, fault.Code, fault.Message, now)
	case video.InProgress:
		v.Phase = work.VideoInProgress
	}
	if v.Phase == work.VideoInProgress {
		v.Progress = min(max(v.Progress, s.Progress), mostProgress)
	}
	return v
}

// mostSeconds is the most that a model makes for one new video or one extension. A remix or an
// edit is as long as its source, which has video.MostSeconds at most.
const mostSeconds = 20

// applyLength returns a finished job with the size and the length that its provider reports. For an
// extension the provider reports the length of the whole video, and only the new part is charged.
func applyLength(v work.Video, s video.Status) work.Video {
	if s.Size != (video.Size{}) {
		v.Size = s.Size.String()
	}
	if s.Seconds == 0 {
		return v
	}
	v.Reported = int64(s.Seconds) - (v.Seconds - v.Billable)
	if v.Reported <= 0 {
		v.Reported = -1
	} else if v.Reported <= lengthOf(&v).Most {
		v.Seconds = int64(s.Seconds)
	}
	return v
}

// lengthOf returns the length of the video that a job is charged for.
func lengthOf(v *work.Video) ledger.VideoLength {
	l := ledger.VideoLength{Asked: v.Billable, Reported: v.Reported, Most: mostSeconds}
	if op := video.Operation(v.Operation); op == video.Remix || op == video.Edit {
		l.Most = video.MostSeconds
	}
	return l
}

// markFailed returns a failed job. Its hold is to be released.
func markFailed(v work.Video, code, message string, now time.Time) work.Video {
	code = cmp.Or(code, codeFailed)
	message = cmp.Or(message, "the video could not be made")
	v.Phase, v.Completed, v.Error = work.VideoFinalizing, now, &work.VideoError{Code: code, Message: message}
	v.Spec, v.Files = nil, nil
	return v
}

// failLate returns a job that has missed its deadline.
func failLate(v work.Video, now time.Time) work.Video {
	return markFailed(v, codeDeadline, "the video was not finished in time", now)
}

// failLost returns a job that its provider does not know any more.
func failLost(v work.Video, now time.Time) work.Video {
	return markFailed(v, codeLost, "the upstream provider does not know the video any more", now)
}

// markSettled returns a job that has ended and whose hold was settled. Its record may be removed
// after keep.
func markSettled(v work.Video, cost int64, now time.Time, keep time.Duration) work.Video {
	v.Phase, v.Cost = work.VideoCompleted, cost
	if v.Error != nil {
		v.Phase = work.VideoFailed
	} else {
		v.Progress = 100
	}
	last := v.Completed
	if v.Expires.After(last) {
		last = v.Expires
	}
	v.Until = last.Add(keep)
	if !v.Deleted.IsZero() {
		v.Until = now.Add(remembered)
	}
	return v
}

// remembered is the time for which the record of a deleted job is kept.
const remembered = time.Hour

// recoverJob returns a job whose step was interrupted, so that it is unknown whether the action was
// done. A submission is repeated only if the provider accepts an idempotency key, because otherwise
// a second video could be made and charged.
func recoverJob(v work.Video, idempotent bool, now time.Time) work.Video {
	if v.Phase == work.VideoSubmitting && !idempotent {
		return markFailed(v, codeSubmission, "the gateway was interrupted while the video was submitted: "+
			"it is unknown whether the video is being made", now)
	}
	return v
}

// refusal is the decision after a submission that failed.
type refusal struct {
	// again is set if the submission is repeated after wait. reached is set if the provider may have the job
	// nevertheless.
	again, reached bool
	wait           time.Duration
	// err is the error of the job if it fails.
	err *dialogue.Error
}

// decideRefusal decides after a submission that failed. A submission that certainly did not reach
// the provider is repeated until the deadline. Any other one is repeated only under the same
// idempotency key. o is the outcome for the limiter. If one key was refused and another one is
// free, the limiter learns only that this call failed.
func decideRefusal(err error, idempotent bool, attempts int, o throttle.Outcome) refusal {
	f, known := classified(err)
	if !known {
		return refusal{err: dialogue.SubmissionUnknown(codeSubmission, err)}
	}
	wait := max(backoff(firstWait, longestWait, attempts-1), min(o.RetryAfter, longestRetry))
	if f.Class == upstream.Credential && o.Kind == throttle.CallerFault {
		return refusal{again: true, wait: wait}
	}
	switch f.Class {
	case upstream.NotSent, upstream.RateLimited, upstream.Overloaded:
		return refusal{again: true, wait: wait}
	case upstream.MaybeSent, upstream.TimedOut, upstream.Cancelled:
		if idempotent {
			return refusal{again: true, reached: true, wait: wait}
		}
		return refusal{err: dialogue.SubmissionUnknown(codeSubmission, err)}
	case upstream.Transient:
		if idempotent {
			return refusal{again: true, reached: true, wait: wait}
		}
	}
	return refusal{err: f.Err}
}

// classified returns the *upstream.Failure of err, if it has one.
func classified(err error) (*upstream.Failure, bool) {
	var f *upstream.Failure
	var e *dialogue.Error
	switch {
	case errors.As(err, &f):
		return f, true
	case errors.As(err, &e):
		return &upstream.Failure{Class: upstream.CallerFault, Err: e}, true
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return upstream.CancelledBy(err), true
	}
	return nil, false
}

// failure returns the *upstream.Failure of err. An error without one may have reached the provider.
func failure(err error) *upstream.Failure {
	if f, known := classified(err); known {
		return f
	}
	return upstream.Broken(err)
}

// codeOf returns the code of an error for the record of a failed job.
func codeOf(e *dialogue.Error) string {
	if e.Code == nil {
		return ""
	}
	if s, ok := e.Code.(string); ok {
		return s
	}
	return fmt.Sprint(e.Code)
}

// Times between two steps of a job. They grow by the factor growth, so that a long job is not polled often.
const (
	firstWait    = 2 * time.Second
	longestWait  = 20 * time.Second
	longestRetry = time.Minute
	growth       = 1.3
)

// backoff returns first, multiplied by growth n times and at most longest.
func backoff(first, longest time.Duration, n int) time.Duration {
	d := float64(first)
	for range max(n, 0) {
		if d *= growth; d >= float64(longest) {
			return longest
		}
	}
	return time.Duration(d)
}

// pollWait returns the time after n polls until the next one. If the provider asked for a time, it is that time, but
// at least a second and at most longestRetry. jitter, from 0 to 1, adds up to a fifth, which separates jobs that began
// together.
func pollWait(n int, asked time.Duration, jitter float64) time.Duration {
	wait := backoff(firstWait, longestWait, n)
	if asked > 0 {
		wait = min(max(asked, time.Second), longestRetry)
	}
	return wait + time.Duration(jitter*float64(wait)/5)
}

// spread returns the time until the first step of the nth job of an earlier process. Jobs with an interrupted action
// come first, and the polls of many jobs are spread.
func spread(v *work.Video, n int) time.Duration {
	const each, most = 20 * time.Millisecond, 30 * time.Second
	if nextAction(v) != poll {
		return min(time.Duration(n)*each/10, most)
	}
	return min(time.Second+time.Duration(n)*each, most)
}
