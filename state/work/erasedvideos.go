package work

import (
	"context"
	"time"

	"stagedoor/state"
)

// byPurge is the index of videos whose providers must delete them, by the time of the next attempt.
const byPurge = "purge"

// The time for which the gateway tries to delete the video of an erased owner at its provider, and the wait after an
// attempt that failed.
const (
	purgeFor   = 7 * 24 * time.Hour
	purgeRetry = time.Hour
)

// erased returns a finished job as its erasure leaves it. The record stays until the provider has deleted the video,
// because without the record nothing would know what to delete.
func (v *Video) erased(now time.Time) Video {
	gone := *v
	gone.Deleted, gone.Until, gone.Prompt = now, now, ""
	if v.UpstreamID != "" {
		gone.Purge, gone.Until = now, now.Add(purgeFor)
	}
	return gone
}

// ListErasedVideos returns at most limit videos of erased owners that their providers must delete now, those that wait
// longest first. Call EndVideoDeletion for each.
func ListErasedVideos(v state.View, limit int) (list []Video) {
	now := v.Now()
	videos.From(v, byPurge, nil, func(r *state.Row[Video]) bool {
		if r.Rec.Purge.After(now) {
			return r.Rec.Purge.Unix()/60 <= now.Unix()/60 // the index has whole minutes
		}
		list = append(list, r.Rec)
		return len(list) < limit
	})
	return list
}

// EndVideoDeletion records the result of an attempt to delete the video of an erased owner at its provider. After a
// success the record may be swept. A failed attempt is repeated every hour for a week. Then givenUp is true.
func EndVideoDeletion(ctx context.Context, s *state.State, id string, failed bool) (givenUp bool, err error) {
	return state.Do(ctx, s, func(tx *state.Tx) (bool, error) {
		v, ok := FindAnyVideo(tx.View(), id)
		if !ok || v.Purge.IsZero() {
			return false, nil
		}
		next := tx.Now().Add(purgeRetry)
		v.Purge = time.Time{}
		switch {
		case !failed:
			v.Until = tx.Now()
		case next.Before(v.Until):
			v.Purge = next
		}
		_, err := PutVideo(tx, v)
		return failed && v.Purge.IsZero(), err
	})
}
