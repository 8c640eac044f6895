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
func (s *Service) Content(
	ctx context.Context,
	v *work.Video,
	variant video.Variant,
	byteRange string,
) (*video.Content, error) {
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

// Delete removes a finished job from its owner and then asks its provider to delete it too. It returns
// state.ErrExists if the job has not ended, and state.ErrNotFound if it was deleted before.
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
		return work.PutVideo(tx, v)
	})
	if err == nil && gone.UpstreamID != "" {
		s.System.Go(s.parent, "delete video",
			func(ctx context.Context) any { s.deleteUpstream(ctx, &gone); return nil })
	}
	return err
}

// deleteUpstream calls DeleteUpstream and logs its error. If it fails, the job stays at the provider until it expires
// there.
func (s *Service) deleteUpstream(ctx context.Context, v *work.Video) {
	if err := s.DeleteUpstream(ctx, v); err != nil {
		s.System.Logger().Warn("video not deleted at its provider", "video", v.ID, "cause", err)
	}
}

// errNoProvider says that the configuration does not have the provider of a job any more.
var errNoProvider = errors.New("the provider is not configured")

// DeleteUpstream deletes a job at its provider. A job that the provider does not know is no error.
func (s *Service) DeleteUpstream(ctx context.Context, v *work.Video) error {
	p, ok := s.Providers(v.Provider)
	if !ok || p.Video == nil {
		return errNoProvider
	}
	ctx, cancel := context.WithTimeout(ctx, pollTime)
	defer cancel()
	permit, err := p.Limiter.Acquire(ctx, throttle.Ask{Owner: string(v.Owner), Class: throttle.Background, Last: true})
	if err == nil {
		defer permit.Release(throttle.Outcome{Kind: throttle.Unused}) // as in Content
		err = ignoreError(p.Video.Delete(upstream.WithOwner(ctx, string(v.Owner)), v.UpstreamID), video.ErrJobNotFound)
		permit.Release(p.outcome(err, "", s.Now()))
	}
	return err
}

func ignoreError(err, what error) error {
	if errors.Is(err, what) {
		return nil
	}
	return err
}
