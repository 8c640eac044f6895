// Package house is the supervision tree: it starts the branches, hands out
// their typed clients, gives each provider of the configuration its throttle
// and its HTTP client, exchanges them when the configuration changes, and stops
// everything in order. It decides nothing about requests.
//
//	stagedoor
//	├ gate/s0..sN        parents of the requests under way        (actors/translator)
//	│  └ r               one request
//	├ providers          parent of the throttles
//	│  └ p/<provider>    one provider's rate-limiting mailbox     (actors/throttle)
//	└ background/<id>    one background response                  (actors/background)
package house
