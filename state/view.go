package state

import (
	"time"

	"github.com/hashicorp/go-memdb"
)

// View is the state at one moment: all that was acknowledged, or what a command
// sees. Its methods are in the files of the tables. They never wait, and what
// they return is shared and must not be changed.
type View struct {
	txn *memdb.Txn
	now time.Time
}

// View is the state as it is now.
func (s *State) View() View { return View{s.snapshot(), s.now()} }

// View is the state as the command sees it, its own changes included.
func (tx *Tx) View() View { return View{tx.mem, tx.now} }

// Now is the time of the view.
func (v View) Now() time.Time { return v.now }

// records copies rows out.
func records[R any](rows []*row[R]) []R {
	var found []R
	for _, r := range rows {
		found = append(found, r.rec)
	}
	return found
}

func found[R any](r *row[R]) (R, bool) {
	if r == nil {
		var none R
		return none, false
	}
	return r.rec, true
}
