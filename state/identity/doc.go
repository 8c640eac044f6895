// Package identity keeps who may use the gateway and what they may do: users and their groups, API keys, browser
// sessions, and what OAuth needs, which is apps, grants with their codes and refresh tokens, access tokens, consents
// and developer tokens.
//
// # Usage
//
// Find and List functions read a View, which is a state.State's or a command's. Put, Add and Remove functions are part
// of a command and take its transaction:
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
// What every request asks (which key it has, what the key and its user may do, which budgets bind it) is answered by
// Access from maps in memory, without a transaction or a lock.
//
// Secrets are never kept. A key, session, token or client secret has a Hash, by which it is found. Keys that are
// written in the configuration are not here; package http/auth adds them.
//
// # Errors
//
// A command refuses with state.ErrNotFound, state.ErrExists or state.ErrInvalid. Key.Permits and Access.UserPermits say
// with ErrKeyRevoked and its neighbours why a key may not be used.
package identity
