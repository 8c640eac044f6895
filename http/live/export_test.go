package live

import "stagedoor/state"

// Fill enters as many watchers of an owner as there may be.
func (d *Doors) Fill(owner state.Owner) (leave func()) {
	for range MaxPerOwner {
		if err := d.enter(owner); err != nil {
			panic(err)
		}
	}
	return func() {
		for range MaxPerOwner {
			d.leave(owner)
		}
	}
}
