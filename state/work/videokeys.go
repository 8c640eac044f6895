package work

import (
	"stagedoor/state"
	"stagedoor/state/journal"
)

// VideoKey remembers the idempotency key of a video job whose record was swept, so that the
// same request does not begin, and charge, a second job.
//
// It has no expiry. A wall clock that leaps forward and back sweeps the record of a recent
// job, and its client may not have had the answer yet. Instead each owner keeps its latest
// maxVideoKeys, which are few, because videos are.
type VideoKey struct {
	Owner state.Owner `json:"owner"`
	Once  string      `json:"once"` // the client's key
	Asked state.Hash  `json:"asked"`
	Video string      `json:"video"` // the job's id, which grows with time
}

// maxVideoKeys bounds the keys of one owner that are remembered beyond their jobs.
const maxVideoKeys = 1000

var videoKeys = state.Table[VideoKey]{
	Name: journal.Idem,
	ID:   func(k *VideoKey) string { return string(k.Owner) + "\x00" + k.Once },
	Indexes: map[string]state.Index[VideoKey]{
		byOwner: {Unique: true, Key: func(k *VideoKey) []byte { return ownedVideo(k.Owner, k.Video) }},
	},
}

// FindVideoKey finds the idempotency key of a job of the owner whose record was swept.
func FindVideoKey(v state.View, owner state.Owner, once string) (VideoKey, bool) {
	return videoKeys.Get(v, string(owner)+"\x00"+once).Record()
}

// sweepVideos removes records of video jobs, and remembers the keys of those that their client has not deleted.
func sweepVideos(*state.State, int) func(*state.Tx, int) int {
	return func(tx *state.Tx, limit int) int {
		expired := videos.Expired(tx.View(), limit)
		for _, r := range expired {
			videos.Remove(tx, r)
			if r.Rec.Once != "" && r.Rec.Deleted.IsZero() {
				_ = rememberVideoKey(tx, &r.Rec) // it can be encoded, because the record could
			}
		}
		return len(expired)
	}
}

func rememberVideoKey(tx *state.Tx, v *Video) error {
	kept := videoKeys.Under(tx.View(), byOwner, state.TextKey(string(v.Owner)))
	for _, oldest := range kept[:max(len(kept)+1-maxVideoKeys, 0)] {
		videoKeys.Remove(tx, oldest)
	}
	return videoKeys.Put(tx, VideoKey{Owner: v.Owner, Once: v.Once, Asked: v.Asked, Video: v.ID})
}
