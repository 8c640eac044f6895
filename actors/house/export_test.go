package house

// BreakProviders makes the throttles' parent panic.
func (h *House) BreakProviders() { h.system.Send(h.gates.parent, (*adopt)(nil)) }
