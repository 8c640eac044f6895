package flow

import (
	"time"

	"stagedoor/actors/kit"
)

// Actors describes the tree of actors.
type Actors struct {
	Actors      []Actor `json:"actors" doc:"one by one, parents before their children"`
	Kinds       []Kind  `json:"kinds" doc:"all actors by kind, also those that come and go by the thousand"`
	Goroutines  int64   `json:"goroutines" doc:"beside the actors, at work for them"`
	Crashed     int64   `json:"crashed" doc:"how many of those panicked since the start"`
	DeadLetters []Count `json:"dead_letters" doc:"messages to actors that had stopped, by type"`
}

// Actor describes one actor.
type Actor struct {
	ID          string        `json:"id"`
	Parent      string        `json:"parent" doc:"the id of its parent; empty: it has none"`
	Name        string        `json:"name"`
	Kind        string        `json:"kind"`
	Started     time.Time     `json:"started" doc:"the first time; restarts do not change it"`
	Depth       int64         `json:"depth" doc:"messages in its mailbox"`
	Restarts    int64         `json:"restarts"`
	LastFailure *ActorFailure `json:"last_failure" doc:"null: it has not failed"`
}

// ActorFailure describes a panic of an actor.
type ActorFailure struct {
	At      time.Time `json:"at"`
	Message string    `json:"message" doc:"the type of the message it was about"`
	Reason  string    `json:"reason"`
}

// Kind counts the actors of one kind since the start.
type Kind struct {
	Name        string        `json:"name"`
	Live        int64         `json:"live"`
	Depth       int64         `json:"depth" doc:"messages in all their mailboxes"`
	Spawned     int64         `json:"spawned"`
	Failed      int64         `json:"failed"`
	Restarted   int64         `json:"restarted"`
	Rejected    int64         `json:"rejected" doc:"messages that were refused"`
	LastFailure *ActorFailure `json:"last_failure" doc:"null: none has failed"`
}

// Actors returns the tree of actors.
func (o *Overview) Actors() Actors {
	tree, stats := o.Tree()
	out := Actors{Actors: []Actor{}, Kinds: []Kind{}, Goroutines: stats.Goroutines, Crashed: stats.Crashed,
		DeadLetters: counts(stats.DeadLetters)}
	for _, a := range tree {
		out.Actors = append(out.Actors,
			Actor{ID: a.ID, Parent: a.Parent, Name: a.Name, Kind: a.Kind, Started: a.Since.UTC(), Depth: a.Depth,
				Restarts: a.Restarts, LastFailure: failure(a.Last)})
	}
	for _, k := range stats.Kinds {
		out.Kinds = append(out.Kinds, Kind{Name: k.Kind, Live: k.Live(), Depth: k.Depth, Spawned: k.Spawned,
			Failed:    k.Failed,
			Restarted: k.Restarted, Rejected: k.Rejected, LastFailure: failure(k.Last)})
	}
	return out
}

// failure returns the last failure of an actor as the API shows it, or nil.
func failure(f *kit.LastFailure) *ActorFailure {
	if f == nil {
		return nil
	}
	return &ActorFailure{At: f.At.UTC(), Message: f.Message, Reason: f.Reason}
}
