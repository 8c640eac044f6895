// Package tokens is the registry of users, sessions, OAuth apps, grants and tokens, which decides who a caller is
// and what an app may read of a user. It is the only writer of those
// tables. It knows neither HTTP nor pages, redirects or money. The packages that serve those call Client.
//
//	Client     typed access; reads use a snapshot and do not pass through the actor
//	registry   the actor; authenticates clients, limits guesses, passes commands on
//	commands   one for each step of the protocol, each a pure function of a state.Tx
//
// The actor takes a command, authenticates its client against a snapshot, submits the command to the state and
// takes the next one. It does not wait for the commit. The state runs commands one after the other and commits
// those that gathered meanwhile together, so that 256 callers share one fsync, and it sends the reply. An actor
// that waited would make each command a commit of its own: 1, 16 and 256 callers get about 240, 2,700 and 4,700
// exchanges a second on two cores (go test -bench Durable), at 1, 11 and 170 commands a commit.
//
// A code is looked up, compared and marked as used in one command, so that of any number of parallel exchanges
// one succeeds, and it succeeds once it is on disk.
//
// A grant has these states:
//
//	code --exchange--> tokens --refresh--> tokens ... --> expired
//	  |  \ misused        \ code or old refresh token again
//	  v   v                v
//	expired  revoked <-----+-- by the user, by the client
//
// Passwords are checked on the caller's goroutine, a few at a time (package password), after the actor has
// admitted the attempt.
//
// # Files
//
//	client.go registry.go messages.go config.go   the actor and its typed client
//	users.go sessions.go secondfactor.go          users, sign-ins and second factors
//	passkeys.go external.go links.go once.go      other ways to sign in
//	limiter.go                                    addresses and names with too many wrong passwords
//	apps.go approve.go exchange.go refresh.go     OAuth: apps, consent, codes, refresh tokens
//	successor.go grants.go token.go scopes.go     rotation, lookups, the form of tokens, scopes
//	keys.go groups.go operate.go developers.go    keys, groups, changes by operators, developer tokens
//	erase.go rules.go errors.go views.go logo.go  erasure, rules for names, errors, what callers get, logos
package tokens
