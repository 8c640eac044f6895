package kit

import (
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// maxListed bounds how many actors of one kind are listed one by one.
const maxListed = 256

// LastFailure is the last panic that went to supervision.
type LastFailure struct {
	At      time.Time
	Message string // the type of the message it was about
	Reason  string // the runtime's own words, or the type of what was raised
}

// listing is one actor as the tree shows it. It outlives restarts.
type listing struct {
	id       string
	since    time.Time
	mailbox  *LaneMailbox
	restarts atomic.Int64
	failure  atomic.Pointer[LastFailure]
}

// ActorStats is one actor of the tree.
type ActorStats struct {
	ID       string // with the ids of its parents before it
	Parent   string // "": a top-level one
	Name     string // as it was spawned, without what made it unique
	Kind     string
	Since    time.Time
	Depth    int64 // messages in its mailbox
	Restarts int64
	Last     *LastFailure // nil: none
}

// Actors lists the actors one by one, parents before their children. Crowds are only
// in Stats. Any goroutine may call it.
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

// place divides an id into that of the nearest parent in a sorted list and a name.
// Names may have slashes, too.
func place(all []ActorStats, id string) (parent, name string) {
	for at := strings.LastIndexByte(id, '/'); at >= 0; at = strings.LastIndexByte(id[:at], '/') {
		_, found := slices.BinarySearchFunc(all, id[:at], func(a ActorStats, id string) int { return strings.Compare(a.ID, id) })
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

func (l *listing) snapshot() ActorStats {
	return ActorStats{ID: l.id, Kind: l.mailbox.kind.name, Since: l.since,
		Depth: int64(l.mailbox.UserMessageCount()), Restarts: l.restarts.Load(), Last: l.failure.Load()}
}

// list puts the mailbox's actor, which is about to start, into the tree.
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

// unlist takes an actor out of the tree. It is gone from there before its parent hears
// that it has stopped: whoever has waited for the parent sees none of its children.
func (s *System) unlist(id string, k *kind) {
	if k.listed.Load() == 0 {
		return // a crowd
	}
	if _, listed := s.list.LoadAndDelete(id); listed {
		k.listed.Add(-1)
	}
}

func (s *System) listingOf(id string) *listing {
	if l, ok := s.list.Load(id); ok {
		return l.(*listing)
	}
	return nil
}

func (s *System) noteFailure(id string, k *kind, f *LastFailure) {
	k.failure.Store(f)
	if l := s.listingOf(id); l != nil {
		l.failure.Store(f)
	}
}

func (s *System) noteRestart(id string) {
	if l := s.listingOf(id); l != nil {
		l.restarts.Add(1)
	}
}
