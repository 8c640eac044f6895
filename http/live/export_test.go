package live

import "stagedoor/state"

// Fill enters as many watchers of an owner as there may be, and returns how many.
func (hs *Handlers) Fill(owner state.Owner) (n int, leave func()) {
	for hs.enter(owner) == nil {
		n++
	}
	return n, func() {
		for range n {
			hs.leave(owner)
		}
	}
}
