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
// # Usage
//
// A Client has the methods for each part of the program:
//
//	pages               Login, FinishLogin, LoginPasskey, LoginExternal, Session, Logout, UseLink
//	the OAuth service   AppByClientID, Approve, Exchange, Refresh, Revoke, Introspect, Lookup
//	administration      CreateUser, SetUserStatus, CreateGroup, IssueKey, UpdateKey, Invite, EraseUser
//	owners and leads    the same for what is theirs: EnableKey, UpdateOwnKey, UpdateOwnApp, EnableMemberKey, ...
//
// Secrets, codes and tokens are returned once, when they are made. The state has their hashes.
//
// # Errors
//
// Every refusal is an *Error of errors.go, for errors.Is. Its Word is the error code of RFC 6749 or 6750, or
// "" if the refusal is not one of OAuth. Unknown, expired, used and revoked codes and tokens get the same
// error, and so do an unknown user and a wrong password, so that guessing finds nothing out.
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
