package identity

import "stagedoor/state"

// Module returns the tables of users, groups, keys, sessions and OAuth.
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
					a.roster.applyUser(before, after)
					a.bumpVersion()
				},
			}),
			state.Register(&groups, state.Hooks[Group]{Committed: func(_ *state.State, before, after *Group) {
				a.roster.applyGroup(before, after)
				a.bumpVersion()
			}}),
			state.Register(&sessions, state.Hooks[Session]{}),
			state.Register(&developers, state.Hooks[DeveloperToken]{}),
			state.Register(&apps, state.Hooks[App]{}),
			state.Register(&accessTokens, state.Hooks[AccessToken]{}),
			state.Register(&grants, state.Hooks[Grant]{}),
			state.Register(&consents, state.Hooks[Consent]{}),
		},
		Verify: verify,
	}
}
