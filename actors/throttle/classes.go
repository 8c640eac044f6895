package throttle

import "stagedoor/providers/upstream"

// kinds maps the failure classes of the upstream client to outcomes.
var kinds = [...]Kind{
	upstream.OK: Success, upstream.NotSent: NotSent, upstream.MaybeSent: Transient, upstream.RateLimited: RateLimited,
	upstream.Overloaded: Overloaded, upstream.Transient: Transient, upstream.CallerFault: CallerFault,
	upstream.Credential: Credential, upstream.Cancelled: Cancelled, upstream.TimedOut: Transient,
}

// KindOf returns the outcome to release a permit with, for a call of this failure class.
func KindOf(class upstream.Class) Kind { return kinds[class] }
