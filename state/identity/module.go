package identity

import (
	"reflect"

	"stagedoor/state"
)

// Module returns the tables of users, groups, keys, sessions and OAuth, and the Access that answers from them. Hooks
// keep the Access current with each commit.
func Module() state.Module {
	a := &Access{}
	changed := make(chan struct{})
	a.changed.Store(&changed)
	return state.Module{
		Memory: a,
		Tables: []state.Registration{
			state.Register(&keys, state.Hooks[Key]{
				Loaded: func(s *state.State) {
					a.state = s
					a.keys.fill(keys.All(s.View()))
				},
				Committed: func(_ *state.State, before, after *Key) {
					a.keys.apply(before, after)
					a.bumpVersion()
				},
			}),
			state.Register(&users, state.Hooks[User]{
				Loaded: func(s *state.State) { a.roster.fill(s.View()) }, // of users and groups
				Committed: func(_ *state.State, before, after *User) {
					if onlySeen(before, after) {
						return // requests in flight need not look again
					}
					a.roster.applyUser(before, after)
					a.bumpVersion()
				},
			}),
			state.Register(&groups, state.Hooks[Group]{Committed: func(_ *state.State, before, after *Group) {
				a.roster.applyGroup(before, after)
				a.bumpVersion()
			}}),
			state.Register(&sessions, state.Hooks[Session]{}),
			state.Register(&links, state.Hooks[Link]{}),
			state.Register(&passkeys, state.Hooks[Passkey]{}),
			state.Register(&externals, state.Hooks[ExternalIdentity]{}),
			state.Register(&developers, state.Hooks[DeveloperToken]{}),
			state.Register(&apps, state.Hooks[App]{}),
			state.Register(&accessTokens, state.Hooks[AccessToken]{}),
			state.Register(&grants, state.Hooks[Grant]{}),
			state.Register(&consents, state.Hooks[Consent]{}),
		},
		Verify: verify,
	}
}

// putHashed stores a record under an id and a hash. The id must be valid, and no other record of the table may have
// the hash.
func putHashed[R any](tx *state.Tx, t *state.Table[R], record R, id string, hash func(*R) *state.Hash) error {
	if err := state.CheckID(id); err != nil {
		return err
	}
	if err := t.CheckHash(tx.View(), &record, hash); err != nil {
		return err
	}
	return t.Put(tx, record)
}

// removeByID removes a record if it exists.
func removeByID[R any](tx *state.Tx, t *state.Table[R], id string) {
	if r := t.Get(tx.View(), id); r != nil {
		t.Remove(tx, r)
	}
}

// onlySeen reports whether a change of a user concerns only the time at which the user was last seen.
func onlySeen(before, after *User) bool {
	if before == nil || after == nil {
		return false
	}
	same := *after
	same.Seen = before.Seen
	return reflect.DeepEqual(same, *before)
}
