// Package tokens is the registry of users, sessions, OAuth apps, grants and
// tokens: everything that decides who somebody is and what an app may read of
// them (imagegen-and-oauth.md 2.2-2.4, 4.3-4.7, 5). It is the only writer of
// those tables.
//
// It is not for HTTP, pages or money, and knows no redirects: those who serve
// them call Client.
//
//	Client     typed front; reads go to a snapshot, past the actor
//	registry   the actor: authenticates clients, limits guesses, hands commands on
//	commands   one a protocol step, each a pure function of a state.Tx
//
// The actor takes a command, decides from a snapshot whether its client is who
// it says, submits it to the state and takes the next one. It does not wait for
// the commit: state runs commands one after the other and commits those that
// gathered meanwhile together, so 256 callers share an fsync, and who asked is
// answered from there. An actor that waited would make every group a group of
// one: 1, 16 and 256 callers get some 240, 2,700 and 4,700 exchanges a second on
// two cores (go test -bench Durable), at 1, 11 and 170 commands a commit. Looking up, comparing and marking happen in one command, so of any number
// of parallel exchanges one wins, and it wins once it is on disk.
//
// A grant:
//
//	code --exchange--> tokens --refresh--> tokens ... --> expired
//	  |  \ misused        \ code or old refresh token again
//	  v   v                v
//	expired  revoked <-----+-- by the user, by the client
//
// Passwords are checked on the caller's goroutine, a few at a time (package
// password), after the actor let the attempt in.
package tokens
