package state

import (
	"maps"
	"strings"
	"sync/atomic"

	"github.com/hashicorp/go-memdb"
)

// blocked is the names of disabled users. It is asked on the path of every
// request and nearly always empty: the map is replaced, never changed.
type blocked struct {
	names atomic.Pointer[map[string]struct{}]
}

// Blocked tells whether an account is that of a disabled user, whose keys are
// refused. It takes no transaction.
func (s *State) Blocked(account string) bool {
	names := s.blocked.names.Load()
	if account == "" || names == nil || len(*names) == 0 {
		return false
	}
	_, found := (*names)[strings.ToLower(account)]
	return found
}

func (b *blocked) fill(txn *memdb.Txn) {
	users.from(txn, byID, nil, func(r *row[User]) bool {
		b.change(change{after: r})
		return true
	})
}

// change follows one change of the users. Only the writer calls it.
func (b *blocked) change(c change) {
	var before, after string
	if r, ok := c.before.(*row[User]); ok && !r.rec.Active() {
		before = strings.ToLower(r.rec.Username)
	}
	if r, ok := c.after.(*row[User]); ok && !r.rec.Active() {
		after = strings.ToLower(r.rec.Username)
	}
	if before == after {
		return
	}
	names := map[string]struct{}{}
	if old := b.names.Load(); old != nil {
		names = maps.Clone(*old)
	}
	delete(names, before)
	if after != "" {
		names[after] = struct{}{}
	}
	b.names.Store(&names)
}
