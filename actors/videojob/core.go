package videojob

import (
	"context"
	"errors"
	"fmt"
	"time"

	"stagedoor/actors/ledger"
	"stagedoor/actors/throttle"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/upstream"
	"stagedoor/providers/video"
	"stagedoor/state"
)

// Codes of failures that are the gateway's own. The set of a failed job's codes is
// open (wire/videos.md 4).
const (
	codeLost       = "upstream_lost"
	codeSubmission = "submission_lost"
	codeDeadline   = "deadline_exceeded"
	codeFailed     = "video_generation_failed"
)

// action is what a job needs next.
type action uint8

const (
	submit action = iota
	poll
	settle
	nothing
)

// next is what a job in this state needs.
func next(v *state.Video) action {
	switch v.Phase {
	case state.VideoAccepted, state.VideoSubmitting:
		return submit
	case state.VideoQueued, state.VideoInProgress:
		return poll
	case state.VideoFinalizing:
		return settle
	}
	return nothing
}

// taken is a job whose submission begins. It is written before anybody is asked.
func taken(v state.Video) state.Video {
	v.Phase = state.VideoSubmitting
	v.Attempts++
	return v
}

// untaken is a job that was submitted and that its provider surely has not taken.
func untaken(v state.Video) state.Video {
	v.Phase = state.VideoAccepted
	return v
}

// submitted is a job that its provider has taken.
func submitted(v state.Video, id string, s video.Status, now time.Time) state.Video {
	v.Phase, v.UpstreamID = state.VideoQueued, id
	v.Spec, v.Files = nil, nil
	return observed(v, s, now)
}

// How long content is offered if its provider does not say, and at most: the record
// stays for as long.
const (
	contentLife = 24 * time.Hour
	mostLife    = 366 * 24 * time.Hour
)

// expiry is when the content of a job goes that is completed now.
func expiry(said, now time.Time) time.Time {
	if said.IsZero() {
		return now.Add(contentLife)
	}
	if most := now.Add(mostLife); said.After(most) {
		return most
	}
	return said
}

// mostProgress is what a job has made that has not ended.
const mostProgress = 99

// observed is a job of which its provider says s. Nothing goes back, and words
// that say nothing change nothing (faults.md U46).
func observed(v state.Video, s video.Status, now time.Time) state.Video {
	switch s.State {
	case video.Completed:
		v.Phase, v.Completed, v.Expires = state.VideoFinalizing, now, expiry(s.Expires, now)
		return measured(v, s)
	case video.Failed:
		fault := s.Error
		if fault == nil {
			fault = &video.Fault{}
		}
		return failed(v, fault.Code, fault.Message, now)
	case video.InProgress:
		v.Phase = state.VideoInProgress
	}
	if v.Phase == state.VideoInProgress {
		v.Progress = min(max(v.Progress, s.Progress), mostProgress)
	}
	return v
}

// mostSeconds is the most that a model makes for one new video or one extension. A remix or an
// edit is as long as its source, which has video.MostSeconds at most.
const mostSeconds = 20

// measured returns a finished job with the size and the length that its provider reports. The
// length of an extension is that of the whole video, and only the new part is to be paid for.
func measured(v state.Video, s video.Status) state.Video {
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
func lengthOf(v *state.Video) ledger.VideoLength {
	l := ledger.VideoLength{Asked: v.Billable, Reported: v.Reported, Most: mostSeconds}
	if op := video.Operation(v.Operation); op == video.Remix || op == video.Edit {
		l.Most = video.MostSeconds
	}
	return l
}

// failed is a job that comes to nothing. Its money is to be given back.
func failed(v state.Video, code, message string, now time.Time) state.Video {
	if code == "" {
		code = codeFailed
	}
	if message == "" {
		message = "the video could not be made"
	}
	v.Phase, v.Completed, v.Error = state.VideoFinalizing, now, &state.VideoError{Code: code, Message: message}
	v.Spec, v.Files = nil, nil
	return v
}

// late is a job that is not waited for any longer.
func late(v state.Video, now time.Time) state.Video {
	return failed(v, codeDeadline, "the video was not finished in time", now)
}

// lost is a job that its provider does not know any more.
func lost(v state.Video, now time.Time) state.Video {
	return failed(v, codeLost, "the upstream provider does not know the video any more", now)
}

// settled is a job that has ended and whose money is where it belongs. Its record
// may go after keep.
func settled(v state.Video, cost int64, now time.Time, keep time.Duration) state.Video {
	v.Phase, v.Cost = state.VideoCompleted, cost
	if v.Error != nil {
		v.Phase = state.VideoFailed
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

// remembered is how long the record of a deleted job is kept.
const remembered = time.Hour

// recovered is a job whose step was interrupted: nobody can say whether what it
// had begun was done. One that was being submitted is submitted once more only
// where that cannot make a second one (decisions.md "Videos").
func recovered(v state.Video, idempotent bool, now time.Time) state.Video {
	if v.Phase == state.VideoSubmitting && !idempotent {
		return failed(v, codeSubmission, "the gateway was interrupted while the video was submitted: "+
			"it is unknown whether the video is being made", now)
	}
	return v
}

// refusal is what follows a submission that failed.
type refusal struct {
	// again: it is tried once more, after wait. reached: the provider may have the
	// job all the same.
	again, reached bool
	wait           time.Duration
	// err is why the job fails, if it does.
	err *dialogue.Error
}

// refused decides after a submission that failed. What surely has not reached the
// provider is tried until the deadline; what may have reached it only under the
// same idempotency key. o is what the gate learned of it: where a key was refused and
// another one is free, the gate is told that only this call failed.
func refused(err error, idempotent bool, attempts int, o throttle.Outcome) refusal {
	f, known := classified(err)
	if !known {
		return refusal{err: unknownFate(err)}
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
		return refusal{err: unknownFate(err)}
	case upstream.Transient:
		if idempotent {
			return refusal{again: true, reached: true, wait: wait}
		}
	}
	return refusal{err: f.Err}
}

// unknownFate is the error of a submission that may have reached the provider.
func unknownFate(cause error) *dialogue.Error {
	return dialogue.SubmissionUnknown(codeSubmission, cause)
}

// classified is err as the upstream client classifies it, if it does.
func classified(err error) (*upstream.Failure, bool) {
	var f *upstream.Failure
	var told *dialogue.Error
	switch {
	case errors.As(err, &f):
		return f, true
	case errors.As(err, &told):
		return &upstream.Failure{Class: upstream.CallerFault, Err: told}, true
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return upstream.CancelledBy(err), true
	}
	return nil, false
}

// failure is err as the upstream client classifies it. What it does not classify
// may have reached the provider.
func failure(err error) *upstream.Failure {
	if f, known := classified(err); known {
		return f
	}
	return upstream.Broken(err)
}

// codeOf is the code of an error as a failed job tells it.
func codeOf(e *dialogue.Error) string {
	if e.Code == nil {
		return ""
	}
	if s, ok := e.Code.(string); ok {
		return s
	}
	return fmt.Sprint(e.Code)
}

// Times between two steps of a job (wire/videos.md 3).
const (
	firstWait    = 2 * time.Second
	longestWait  = 20 * time.Second
	longestRetry = time.Minute
	growth       = 1.3
)

func backoff(first, longest time.Duration, n int) time.Duration {
	d := float64(first)
	for range max(n, 0) {
		if d *= growth; d >= float64(longest) {
			return longest
		}
	}
	return time.Duration(d)
}

// pollWait is how long a provider is left alone after n polls. What it asks for
// counts; jitter, from 0 to 1, keeps jobs that began together apart.
func pollWait(n int, asked time.Duration, jitter float64) time.Duration {
	wait := backoff(firstWait, longestWait, n)
	if asked > 0 {
		wait = min(max(asked, time.Second), longestRetry)
	}
	return wait + time.Duration(jitter*float64(wait)/5)
}

// spread is when the first step of a job is due that an earlier process began,
// the nth of all that were found: those of which something hangs in the air
// first, and the polls of many not all at once.
func spread(v *state.Video, n int) time.Duration {
	const each, most = 20 * time.Millisecond, 30 * time.Second
	if next(v) != poll {
		return min(time.Duration(n)*each/10, most)
	}
	return min(time.Second+time.Duration(n)*each, most)
}
