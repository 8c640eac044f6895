package live

import "stagedoor/state"

// Fill enters as many watchers of an owner as there may be, and returns how many.
func (d *Doors) Fill(owner state.Owner) (n int, leave func()) {
	for d.enter(owner) == nil {
		n++
	}
	return n, func() {
		for range n {
			d.leave(owner)
		}
	}
}
