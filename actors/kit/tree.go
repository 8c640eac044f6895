package kit

import (
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// maxListed bounds the actors of one kind that are listed one by one.
const maxListed = 256

// LastFailure describes the last panic that was passed to supervision.
type LastFailure struct {
	At      time.Time
	Message string // the type of the message
	Reason  string // the text of a runtime error, or the type of the panic value
}

// listing is the entry of one actor in the tree. It outlives restarts.
type listing struct {
	id       string
	since    time.Time
	mailbox  *LaneMailbox
	restarts atomic.Int64
	failure  atomic.Pointer[LastFailure]
}

// ActorStats describes one actor of the tree.
type ActorStats struct {
	ID       string // begins with the ids of its parents
	Parent   string // "" for a top-level actor
	Name     string // the name without the part that made it unique
	Kind     string
	Since    time.Time
	Depth    int64 // messages in its mailbox
	Restarts int64
	Last     *LastFailure // nil if there was none
}

// Actors returns the actors one by one, parents before their children. It leaves out the actors of kinds with
// CountedByKind, and those of a kind beyond the first maxListed; Stats counts all of them. Any goroutine may call it.
func (s *System) Actors() []ActorStats {
	var all []ActorStats
	s.list.Range(func(_, value any) bool {
		l := value.(*listing)
		all = append(all, l.snapshot())
		return true
	})
	slices.SortFunc(all, func(a, b ActorStats) int { return strings.Compare(a.ID, b.ID) })
	for i := range all {
		all[i].Parent, all[i].Name = place(all, all[i].ID)
	}
	return all
}

// place divides an id into the id of the nearest parent in a sorted list and a name. Names may contain slashes.
func place(all []ActorStats, id string) (parent, name string) {
	for at := strings.LastIndexByte(id, '/'); at >= 0; at = strings.LastIndexByte(id[:at], '/') {
		_, found := slices.BinarySearchFunc(all, id[:at],
			func(a ActorStats, id string) int { return strings.Compare(a.ID, id) })
		if found {
			parent = id[:at]
			break
		}
	}
	name = strings.TrimPrefix(id[len(parent):], "/")
	if at := strings.LastIndexByte(name, '@'); at > 0 {
		name = name[:at]
	}
	return parent, name
}

// snapshot returns what is known of one actor now.
func (l *listing) snapshot() ActorStats {
	return ActorStats{ID: l.id, Kind: l.mailbox.kind.name, Since: l.since,
		Depth: int64(l.mailbox.UserMessageCount()), Restarts: l.restarts.Load(), Last: l.failure.Load()}
}

// list adds the mailbox's actor, which is about to start, to the tree.
func (m *LaneMailbox) list() {
	c, ok := m.invoker.(actor.Context)
	if !ok || m.system == nil {
		return
	}
	if m.kind.listed.Add(1) > maxListed {
		m.kind.listed.Add(-1)
		return
	}
	l := &listing{id: c.Self().GetId(), since: time.Now(), mailbox: m}
	m.system.list.Store(l.id, l)
}

// unlist removes an actor from the tree before its parent learns that it has stopped, so that a caller which waited
// for the parent sees none of its children.
func (s *System) unlist(id string, k *kind) {
	if k.listed.Load() == 0 {
		return // no actor of the kind is listed
	}
	if _, listed := s.list.LoadAndDelete(id); listed {
		k.listed.Add(-1)
	}
}

// listingOf returns the entry of a running actor, or nil.
func (s *System) listingOf(id string) *listing {
	if l, ok := s.list.Load(id); ok {
		return l.(*listing)
	}
	return nil
}

// noteFailure keeps the last failure of an actor and of its kind. The kind keeps it also after the
// actor is gone.
func (s *System) noteFailure(id string, k *kind, f *LastFailure) {
	k.failure.Store(f)
	if l := s.listingOf(id); l != nil {
		l.failure.Store(f)
	}
}

// noteRestart counts a restart of an actor that the tree lists.
func (s *System) noteRestart(id string) {
	if l := s.listingOf(id); l != nil {
		l.restarts.Add(1)
	}
}
