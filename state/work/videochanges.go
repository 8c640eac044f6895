package work

import (
	"encoding/binary"

	"stagedoor/state"
)

const byChange = "change"

// videoChanges indexes jobs by owner and then by the time at which a client could last see a change of them. Deleted
// jobs are included.
var videoChanges = state.Index[Video]{
	Unique: true, Key: func(v *Video) []byte { return changeOfVideo(v.Owner, v.Changed) },
}

func changeOfVideo(owner state.Owner, n int64) []byte {
	return binary.BigEndian.AppendUint64(state.TextKey(string(owner)), uint64(n))
}

// numberVideo gives a job that clients see changed the owner's next number.
// Numbers are the time in microseconds or just above the one before: they need
// not be kept to go on rising when the jobs that had the last ones are gone.
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

// LastVideoChange is the number of the last change of an owner's jobs; 0: there
// was none.
func LastVideoChange(v state.View, owner state.Owner) int64 {
	last := int64(0)
	videosBack(v, owner, func(r *Video) bool { last = r.Changed; return false })
	return last
}

// VideoChangesOf is the number after which the changes of an owner's most
// recently changed jobs begin, n of them that are not deleted.
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

// videosBack calls yield with the jobs of an owner, the last changed one first,
// until it says stop.
func videosBack(v state.View, owner state.Owner, yield func(*Video) bool) {
	videos.Back(v, byChange, changeOfVideo(owner, -1), func(r *state.Row[Video]) bool {
		return r.Rec.Owner == owner && yield(&r.Rec)
	})
}

// VideosChanged calls yield with the jobs of an owner that have changed after a
// number, as they are now, in the order of their last changes, until it says stop.
// Deleted ones are among them until they are swept. A job that changed several
// times is there once. WatchVideos says when there may be more.
func VideosChanged(v state.View, owner state.Owner, after int64, yield func(*Video) bool) {
	videos.From(v, byChange, changeOfVideo(owner, after+1), func(r *state.Row[Video]) bool {
		return r.Rec.Owner == owner && yield(&r.Rec)
	})
}
