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
package runtime
