package house

import (
	"time"

	"stagedoor/actors/kit"
)

// How failures are treated, and why:
//
//	gate/s*       restarted by the system; its requests have ended with an error
//	              each (their parent's restart stops them), new ones find a parent
//	r             stopped: half a reply cannot be begun again (translator.shard)
//	providers     restarted; it has no state but its children's names
//	p/*           restarted with back-off and without end: a provider whose
//	              throttle is gone can't be reached, and one bad ticket must not
//	              take it away; the new incarnation starts with empty buckets
//	background/*  stopped: its record is settled as failed before that

// providerPolicy restarts a throttle after 0.2 s, 0.4 s, ... up to 30 s.
func providerPolicy(report func(kit.Failure)) *kit.Backoff {
	return &kit.Backoff{Initial: 200 * time.Millisecond, Max: 30 * time.Second, Report: report}
}
