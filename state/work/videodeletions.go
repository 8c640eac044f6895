package work

import (
	"context"
	"time"

	"stagedoor/state"
)

// byPurge is the index of videos whose providers must delete them, by the time of the next attempt.
const byPurge = "purge"

// The time for which the gateway tries to delete a video at its provider, and the wait after an attempt that failed.
const (
	purgeFor   = 7 * 24 * time.Hour
	purgeRetry = time.Hour
)

// PurgeFrom makes the video due for deletion at its provider from a time on. The record then stays until
// EndVideoDeletion, because without it nothing would know what to delete. It does nothing if no provider has the video.
func (v *Video) PurgeFrom(due time.Time) {
	if v.UpstreamID != "" {
		v.Purge = due
	}
}

// erased returns a finished job as its erasure leaves it.
func (v *Video) erased(now time.Time) Video {
	gone := *v
	gone.Deleted, gone.Until, gone.Prompt = now, now, ""
	gone.PurgeFrom(now)
	return gone
}

// ListVideoDeletions returns at most limit videos that their providers must delete now, those that wait longest first:
// those of erased owners, and those that their clients or operators have deleted. Call EndVideoDeletion for each.
func ListVideoDeletions(v state.View, limit int) (list []Video) {
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

// EndVideoDeletion records the result of an attempt to delete a video at its provider. After a success the record may
// be removed at its Until. A failed attempt is repeated every hour, until the job has been deleted, or had ended, for a
// week. Then givenUp is true, which happens after one attempt at the earliest.
func EndVideoDeletion(ctx context.Context, s *state.State, id string, failed bool) (givenUp bool, err error) {
	givenUp, err = state.Do(ctx, s, func(tx *state.Tx) (bool, error) {
		v, ok := FindAnyVideo(tx.View(), id)
		if !ok || v.Purge.IsZero() {
			return false, nil
		}
		since := v.Deleted
		if since.IsZero() {
			since = v.Completed
		}
		v.Purge = time.Time{}
		if next := tx.Now().Add(purgeRetry); failed && next.Before(since.Add(purgeFor)) {
			v.Purge = next
		}
		_, err := PutVideo(tx, v)
		return failed && v.Purge.IsZero(), err
	})
	if err == nil && givenUp {
		state.MemoryOf[*memory](s).videosGivenUp.Add(1)
	}
	return givenUp, err
}
