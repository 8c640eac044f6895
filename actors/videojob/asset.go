package videojob

import (
	"context"
	"errors"
	"time"

	"stagedoor/actors/throttle"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/upstream"
	"stagedoor/providers/video"
	"stagedoor/state"
	"stagedoor/state/work"
)

// Content opens the content of a completed job. The caller must close it. byteRange is the value of
// a Range header or "". Errors are *dialogue.Error.
func (s *Service) Content(ctx context.Context, v *work.Video, variant video.Variant,
	byteRange string) (*video.Content, error) {
	p, ok := s.Providers(v.Provider)
	if !ok || p.Video == nil {
		return nil, noRoute(time.Second, nil)
	}
	permit, err := p.Limiter.Acquire(ctx,
		throttle.Ask{Owner: string(v.Owner), Class: throttle.Normal, Deadline: s.Now().Add(limiterTime), Last: true})
	var refused *throttle.Refused
	switch {
	case errors.As(err, &refused):
		return nil, noRoute(refused.RetryAfter, err)
	case err != nil:
		return nil, upstream.CancelledBy(err).Err
	}
	defer permit.Release(throttle.Outcome{Kind: throttle.Unused}) // does nothing after a release with an outcome
	content, err := p.Video.Content(upstream.WithOwner(ctx, string(v.Owner)), v.UpstreamID, variant, byteRange)
	switch {
	case err == nil, errors.Is(err, video.ErrJobNotFound), errors.Is(err, video.ErrNoVariant):
		permit.Release(throttle.Outcome{Kind: throttle.Success})
	default:
		permit.Release(p.outcome(err, "", s.Now()))
	}
	return content, contentError(err)
}

// contentError returns the client's error for a failure to open content.
func contentError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, video.ErrJobNotFound):
		return dialogue.VideoExpired()
	case errors.Is(err, video.ErrNoVariant):
		return dialogue.Invalid("variant", "is not made by the provider of this video")
	}
	return failure(err).Err
}

// Delete removes a finished job from its owner and then asks its provider to delete it too. If the provider does not,
// the job stays in work.ListVideoDeletions. Delete returns state.ErrExists if the job has not ended, and
// state.ErrNotFound if it was deleted before.
func (s *Service) Delete(ctx context.Context, id string, owner state.Owner) error {
	gone, err := state.Do(ctx, s.State, func(tx *state.Tx) (work.Video, error) {
		v, ok := work.FindVideo(tx.View(), id, owner)
		switch {
		case !ok:
			return v, state.ErrNotFound
		case !v.Final():
			return v, state.ErrExists
		}
		v.Deleted, v.Until, v.Prompt = tx.Now(), tx.Now().Add(remembered), ""
		v.PurgeFrom(tx.Now().Add(ownAttempt))
		return work.PutVideo(tx, v)
	})
	if err == nil {
		s.startDeletion(&gone)
	}
	return err
}

// ownAttempt is the time for which a deletion is left to the process that has decided it. After it, a deletion that
// the process did not end is among those that are due.
const ownAttempt = time.Minute

// startDeletion makes the first attempt to delete a job at its provider at once. Its record must have a Purge, so that
// an attempt that fails or is cut off is repeated.
func (s *Service) startDeletion(v *work.Video) {
	if v.UpstreamID == "" {
		return
	}
	s.System.Go(s.parent, "delete video", func(ctx context.Context) any {
		failure := s.DeleteUpstream(ctx, v)
		if ctx.Err() != nil {
			return nil // it is due in the next process
		}
		if failure != nil {
			s.System.Logger().Warn("video not deleted at its provider yet", "video", v.ID, "cause", failure)
		}
		if _, err := work.EndVideoDeletion(ctx, s.State, v.ID, failure != nil); err != nil {
			s.System.Logger().Warn("the deletion of a video is repeated", "video", v.ID, "cause", err)
		}
		return nil
	})
}

// errNoProvider says that the configuration does not have the provider of a job any more.
var errNoProvider = errors.New("the provider is not configured")

// deletionWait bounds the wait for a permit to delete, because other deletions wait behind this one. At a provider that
// is paused or busy the attempt fails, and it is repeated later.
const deletionWait = 5 * time.Second

// DeleteUpstream makes one attempt to delete a job at its provider, of half a minute at most. A job that the provider
// does not know is no error. Call work.EndVideoDeletion afterwards.
func (s *Service) DeleteUpstream(ctx context.Context, v *work.Video) error {
	p, ok := s.Providers(v.Provider)
	if !ok || p.Video == nil {
		return errNoProvider
	}
	ctx, cancel := context.WithTimeout(ctx, pollTime)
	defer cancel()
	permit, err := p.Limiter.Acquire(ctx, throttle.Ask{Owner: string(v.Owner), Class: throttle.Background,
		Deadline: s.Now().Add(deletionWait), Last: true})
	if err == nil {
		defer permit.Release(throttle.Outcome{Kind: throttle.Unused}) // as in Content
		err = ignoreError(p.Video.Delete(upstream.WithOwner(ctx, string(v.Owner)), v.UpstreamID), video.ErrJobNotFound)
		permit.Release(p.outcome(err, "", s.Now()))
	}
	return err
}

// ignoreError returns err, or nil if it is what.
func ignoreError(err, what error) error {
	if errors.Is(err, what) {
		return nil
	}
	return err
}
