package throttle

import "stagedoor/providers/upstream"

// kinds are the failure classes of the upstream client as the throttle calls them.
var kinds = [...]Kind{
	upstream.OK: Success, upstream.NotSent: NotSent, upstream.MaybeSent: Transient, upstream.RateLimited: RateLimited,
	upstream.Overloaded: Overloaded, upstream.Transient: Transient, upstream.CallerFault: CallerFault,
	upstream.Credential: Credential, upstream.Cancelled: Cancelled, upstream.TimedOut: Transient,
}

// KindOf is what a call that failed so is to the throttle of its provider.
func KindOf(class upstream.Class) Kind { return kinds[class] }
