package runtime

// BreakProviders makes the throttles' parent panic.
func (r *Runtime) BreakProviders() { r.system.Send(r.limiters.parent, (*adopt)(nil)) }
