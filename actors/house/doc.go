// Package house is the supervision tree: it starts the branches, hands out
// their typed clients, gives each provider of the configuration its throttle
// and its HTTP client, exchanges them when the configuration changes, and stops
// everything in order. It decides nothing about requests.
//
//	stagedoor
//	├ ledger             parent of the accounts with money in motion (actors/ledger)
//	│  └ account         one user's money
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
package house
