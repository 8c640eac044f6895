package work

import (
	"encoding/binary"

	"stagedoor/state"
)

const byChange = "change"

// videoChanges indexes jobs by owner and then by their last change that clients can see. It
// includes deleted jobs.
var videoChanges = state.Index[Video]{
	Unique: true, Key: func(v *Video) []byte { return changeOfVideo(v.Owner, v.Changed) },
}

// changeOfVideo returns a key of that index.
func changeOfVideo(owner state.Owner, n int64) []byte {
	return binary.BigEndian.AppendUint64(state.TextKey(string(owner)), uint64(n))
}

// numberVideo gives a changed job the owner's next number, as Changed and, if its status is another one than before,
// also as Moved. Numbers are the time in microseconds, or one above the last number. They therefore keep rising
// without being stored, even if the jobs with the last numbers are gone.
func numberVideo(tx *state.Tx, v *Video, before *Video) {
	n := tx.Now().UnixMicro()
	if last := LastVideoChange(tx.View(), v.Owner); n <= last {
		n = last + 1
	}
	v.Changed = n
	if before == nil || v.Status() != before.Status() {
		v.Moved = n
	}
}

// LastVideoChange returns the number of the last change of an owner's jobs, or 0.
func LastVideoChange(v state.View, owner state.Owner) int64 {
	last := int64(0)
	videosBack(v, owner, func(r *Video) bool { last = r.Changed; return false })
	return last
}

// VideoChangesOf returns the number after which the last changes of an owner's n most recently
// changed jobs begin. Deleted jobs do not count towards n.
func VideoChangesOf(v state.View, owner state.Owner, n int) int64 {
	after := int64(0)
	videosBack(v, owner, func(r *Video) bool {
		if n == 0 {
			after = r.Changed
			return false
		}
		if r.Deleted.IsZero() {
			n--
		}
		return true
	})
	return after
}

// videosBack calls yield with the jobs of an owner, most recently changed first, until yield
// returns false.
func videosBack(v state.View, owner state.Owner, yield func(*Video) bool) {
	videos.Back(v, byChange, changeOfVideo(owner, -1), func(r *state.Row[Video]) bool {
		return r.Rec.Owner == owner && yield(&r.Rec)
	})
}

// VideosChanged calls yield with the current state of the owner's jobs that have changed after a
// number, in the order of their last changes, until yield returns false. Deleted jobs are included
// until they are swept. A job that changed several times occurs once. WatchVideos says when to call
// it again.
func VideosChanged(v state.View, owner state.Owner, after int64, yield func(*Video) bool) {
	videos.From(v, byChange, changeOfVideo(owner, after+1), func(r *state.Row[Video]) bool {
		return r.Rec.Owner == owner && yield(&r.Rec)
	})
}
