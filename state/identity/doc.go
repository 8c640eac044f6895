// Package identity stores who may use the gateway and what they may do: users and their groups, API
// keys, browser sessions, and the records of OAuth, which are apps, grants with their codes and
// refresh tokens, access tokens, consents and developer tokens.
//
// # Usage
//
// Find and List functions read a View, either of a state.State or of a command. Put, Add and Remove
// functions are part of a command and take its transaction:
//
//	err := state.Run(ctx, s, func(tx *state.Tx) error {
//		user, found := identity.FindUserByName(tx.View(), name)
//		if !found {
//			return state.ErrNotFound
//		}
//		user.Status = identity.UserDisabled
//		return identity.PutUser(tx, user)
//	})
//
// Every request needs to know which key it has, what the key and its user may do, and which budgets
// apply. Access answers these questions from maps in memory, without a transaction or a lock.
//
// Secrets are never stored. A key, session, token or client secret is found by its Hash. Keys that
// are written in the configuration are not stored here; package http/auth adds them.
//
// # Errors
//
// A command returns state.ErrNotFound, state.ErrExists or state.ErrInvalid. Key.Permits and
// Access.UserPermits return ErrKeyRevoked and the errors beside it to say why a key may not be
// used.
//
// # Files
//
//	users.go groups.go ceilings.go      people, groups, and what they may do at most
//	keys.go keyring.go keysecret.go     keys, and the index by which a request finds its key
//	access.go permits.go roster.go      what a key may do, read without the writer
//	apps.go grants.go consents.go       OAuth: apps, grants with their tokens, consents
//	accesstokens.go developers.go admintoken.go   other tokens
//	sessions.go links.go passkeys.go external.go secondfactor.go failedsignins.go   sign-in
//	module.go verify.go                 the tables, and what must hold between them
package identity
