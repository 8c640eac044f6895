package runtime

import (
	"time"

	"stagedoor/actors/kit"
)

// How failures are treated, and why:
//
//	ledger        parent of the accounts, which it spawns and nothing else: restarted
//	              by the system, should it ever fail
//	account       resumed: it alone knows the holds that are not journaled yet, and
//	              it changes nothing before it has checked (ledger.Client)
//	engine        restarted by the system; it only cancels the requests when it is
//	              stopped
//	engine/r      stopped: half a reply cannot be begun again
//	sweeper       restarted by the system; it knows only when it sweeps next
//	videos        restarted by the system; it goes on with all jobs that have not
//	              ended
//	videos/v      restarted with back-off and without end: it goes on from its
//	              record, which has a hold and the video of an owner
//	providers     restarted, which stops its children; it spawns them anew
//	p/*           restarted with back-off and without end: a provider whose
//	              throttle is gone can't be reached, and one bad ticket must not
//	              take it away; the new incarnation starts with empty buckets
//	tokens        restarted by the system; it knows nothing but who guessed
//	              wrongly of late
//	webhooks      restarted by the system; its deliveries are in the store
//	background    restarted by the system; it only ends the responses when it is
//	              stopped. A recorder that panics settles its record

// providerPolicy restarts a throttle after 0.2 s, 0.4 s, ... up to 30 s.
func providerPolicy(report func(kit.Failure)) *kit.Backoff {
	return &kit.Backoff{Initial: 200 * time.Millisecond, Max: 30 * time.Second, Report: report}
}
