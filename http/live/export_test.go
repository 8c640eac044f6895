package live

import "stagedoor/state"

// Fill adds watchers of an owner until one is refused, and returns their number.
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
