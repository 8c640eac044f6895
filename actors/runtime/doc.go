// Package runtime starts and stops the actors of the gateway. It is the supervision
// tree: it starts the branches, returns their typed clients, makes the throttle and
// the HTTP client of each configured provider, replaces them when the configuration
// changes, and stops everything in reverse order. It decides nothing about requests.
//
//	stagedoor
//	├ ledger             parent of the accounts with open holds      (actors/ledger)
//	│  └ account         one account's holds
//	├ engine             cancels the requests when it stops       (actors/engine)
//	├ engine/r           one request
//	├ sweeper            removes pictures that have expired       (actors/images)
//	├ videos             parent of the video jobs under way      (actors/videojob)
//	│  └ v               one of them
//	├ providers          parent of the throttles
//	│  └ p/<provider>    one provider's rate-limiting mailbox     (actors/throttle)
//	├ tokens             users, sessions, apps and their tokens   (actors/tokens)
//	├ webhooks           tries to deliver what is due             (actors/webhook)
//	└ background         ends background responses when it stops  (actors/background)
//
// # Usage
//
// Start returns a Runtime whose actors run and which has no providers yet. Configure puts a
// catalogue in force and may be called again at any time. TakeOver continues what an ended process
// left, and comes last, because what it begins is charged. Drain and Stop end everything. The typed
// clients (Text, Ledger, Tokens and so on) stay valid until Stop.
//
// # Concurrency
//
// Any goroutine may call the methods. Configure, SetPaused and ShareLimits change the same tables
// and wait for each other. Requests in flight keep the catalogue and the throttles with which they
// began, so a reload never waits for them.
//
// # Errors
//
// Configure either puts all of a catalogue in force or none of it, and then returns why. Which
// actor is restarted, stopped or escalated after a crash is decided in policy.go alone, with a
// reason for each.
package runtime
