package state

import (
	"github.com/hashicorp/go-memdb"

	"stagedoor/state/journal"
)

// VideoKey remembers the idempotency key of a video job whose record was swept, so that the
// same request does not begin, and charge, a second job.
//
// It has no expiry. A wall clock that leaps forward and back sweeps the record of a recent
// job, and its client may not have had the answer yet. Instead each owner keeps its latest
// maxVideoKeys, which are few, because videos are.
type VideoKey struct {
	Owner Owner  `json:"owner"`
	Once  string `json:"once"` // the client's key
	Asked Hash   `json:"asked"`
	Video string `json:"video"` // the job's id, which grows with time
}

// maxVideoKeys is how many keys of one owner are remembered beyond their jobs.
const maxVideoKeys = 1000

var videoKeys = table[VideoKey]{
	durable: journal.Idem,
	id:      func(k *VideoKey) string { return string(k.Owner) + "\x00" + k.Once },
	more: map[string]*memdb.IndexSchema{
		byOwner: {Name: byOwner, Unique: true, Indexer: index[VideoKey](func(k *VideoKey) []byte { return ownedVideo(k.Owner, k.Video) })},
	},
}

// VideoKey finds the idempotency key of a job of the owner whose record was swept.
func (v View) VideoKey(owner Owner, once string) (VideoKey, bool) {
	return found(videoKeys.get(v.txn, string(owner)+"\x00"+once))
}

// videoSweep removes records of video jobs, and remembers the keys of those that their
// client has not deleted.
type videoSweep struct{}

func (videoSweep) sweep(tx *Tx, limit int) int {
	doomed := videos.expired(tx.mem, tx.now, limit)
	for _, r := range doomed {
		videos.remove(tx, r)
		if r.rec.Once != "" && r.rec.Deleted.IsZero() {
			_ = tx.rememberVideoKey(&r.rec) // it can be encoded, because the record could
		}
	}
	return len(doomed)
}

func (tx *Tx) rememberVideoKey(v *Video) error {
	kept := videoKeys.under(tx.mem, byOwner, terminated(string(v.Owner)))
	for _, oldest := range kept[:max(len(kept)+1-maxVideoKeys, 0)] {
		videoKeys.remove(tx, oldest)
	}
	return videoKeys.put(tx, VideoKey{Owner: v.Owner, Once: v.Once, Asked: v.Asked, Video: v.ID})
}
