package engine

import (
	"errors"

	"stagedoor/actors/throttle"
	"stagedoor/providers/catalog"
	"stagedoor/providers/upstream"
)

// nextTarget returns the index of the first entry of a plan behind the one at from to which a failure leads, or 0 if
// there is none. An entry with conditions takes only failures that meet one of them. Any other entry takes all failures
// but those of the request itself, which would fail there as well.
func nextTarget(plan []catalog.Candidate, from int, met catalog.Conditions, callersFault bool) int {
	for i := from + 1; i < len(plan); i++ {
		if on := plan[i].On; on&met != 0 || on == 0 && !callersFault {
			return i
		}
	}
	return 0
}

// noPermit has the conditions that a request may meet which gets no permit.
const noPermit = catalog.OnRateLimited | catalog.OnUnavailable

// conditionsOf returns the conditions that a failure meets. A failure of the request itself that is not about its
// length or its content meets none.
func conditionsOf(f *upstream.Failure) catalog.Conditions {
	switch {
	case f.LongPrompt:
		return catalog.OnContextLength
	case f.Filtered:
		return catalog.OnContentFilter
	}
	switch f.Class {
	case upstream.RateLimited:
		return catalog.OnRateLimited
	case upstream.Overloaded:
		return catalog.OnOverloaded
	case upstream.Transient, upstream.MaybeSent:
		return catalog.OnServerError
	case upstream.TimedOut:
		return catalog.OnTimeout
	case upstream.Credential:
		return catalog.OnCredential
	case upstream.NotSent:
		var refused *throttle.Refused
		if errors.As(f, &refused) && refused.Reason != throttle.BreakerOpen && refused.Reason != throttle.Closed {
			return catalog.OnRateLimited
		}
		return catalog.OnUnavailable
	}
	return 0
}

// LeadsOn reports whether a target is left for a failure of the request itself that meets a condition. An exchange
// asks before it makes a failure of a reply that it could deliver.
func (c *Candidate) LeadsOn(met catalog.Conditions) bool {
	return nextTarget(c.run.plan, c.index, met, true) > 0
}
