package work

import (
	"stagedoor/state"
	"stagedoor/state/journal"
)

// VideoKey records the idempotency key of a video job whose record was swept, so that a repeated
// request does not start, and charge, a second job.
//
// It does not expire. If the clock leaps forward and back, the record of a recent job is swept,
// although its client may not have received the response yet. Instead each owner keeps its latest
// maxVideoKeys, which are few because videos are.
type VideoKey struct {
	Owner state.Owner `json:"owner"`
	Once  string      `json:"once"` // idempotency key
	Asked state.Hash  `json:"asked"`
	Video string      `json:"video"` // id of the job, which increases with time
}

// maxVideoKeys is the number of keys that are kept for one owner after their jobs were swept.
const maxVideoKeys = 1000

// videoKeys holds the idempotency keys of video jobs whose records were swept. byOwner finds the key of a job and lists
// those of an owner, the oldest job in front.
var videoKeys = state.Table[VideoKey]{
	Name: journal.Idem,
	ID:   func(k *VideoKey) string { return string(k.Owner) + "\x00" + k.Once },
	Indexes: map[string]state.Index[VideoKey]{
		byOwner: {Unique: true, Key: func(k *VideoKey) []byte { return ownedVideo(k.Owner, k.Video) }},
	},
}

// FindVideoKey returns the record of an owner's idempotency key whose job was swept.
func FindVideoKey(v state.View, owner state.Owner, once string) (VideoKey, bool) {
	return videoKeys.Get(v, string(owner)+"\x00"+once).Record()
}

// sweepVideos removes expired video jobs and records the keys of those that their client has not
// deleted.
func sweepVideos(*state.State, int) func(*state.Tx, int) int {
	return func(tx *state.Tx, limit int) int {
		expired := videos.Expired(tx.View(), limit)
		for _, r := range expired {
			videos.Remove(tx, r)
			if r.Rec.Once != "" && r.Rec.Deleted.IsZero() {
				_ = rememberVideoKey(tx, &r.Rec) // cannot fail: the job with the same values could be encoded
			}
		}
		return len(expired)
	}
}

// rememberVideoKey stores the key of a job and drops the owner's oldest ones beyond maxVideoKeys.
func rememberVideoKey(tx *state.Tx, v *Video) error {
	kept := videoKeys.Under(tx.View(), byOwner, state.TextKey(string(v.Owner)))
	for _, oldest := range kept[:max(len(kept)+1-maxVideoKeys, 0)] {
		videoKeys.Remove(tx, oldest)
	}
	return videoKeys.Put(tx, VideoKey{Owner: v.Owner, Once: v.Once, Asked: v.Asked, Video: v.ID})
}
