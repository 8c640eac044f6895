package state

import (
	"time"

	"github.com/hashicorp/go-memdb"
)

// View is the state at one moment: all that was acknowledged, or what a command sees. The methods of Table and the
// functions of the modules read from it. They never wait, and what they return is shared and must not be changed.
type View struct {
	txn *memdb.Txn
	now time.Time
}

// View returns the state as it is now.
func (s *State) View() View { return View{s.mem.Txn(false), s.now()} }

// View returns the state as the command sees it, with the command's own changes.
func (tx *Tx) View() View { return View{tx.mem, tx.now} }

// Now returns the time of the view.
func (v View) Now() time.Time { return v.now }
