package webhook

import (
	"stagedoor/state/share"
	"stagedoor/state/work"
)

// perEndpoint is the number of tries at a time at one endpoint. One owner alone has half of them.
const perEndpoint = 8

// turns chooses the next deliveries to one endpoint. Owners take turns, and each has its share of the tries in flight,
// so that a delivery does not wait for those of another owner, however many these are and however slow their replies.
type turns struct {
	slots *share.Pool
	under map[string]string // owners of the tries in flight, by the delivery's id
	// served has the number of the last turn of each owner with a delivery that is due or in flight.
	served map[string]int
	turn   int
}

// newTurns returns turns in which each endpoint has at most perEndpoint tries at a time.
func newTurns() *turns {
	return &turns{
		slots:  share.New(share.Tries, perEndpoint, 1),
		under:  make(map[string]string),
		served: make(map[string]int),
	}
}

// full reports whether no further try may begin.
func (t *turns) full() bool { return len(t.under) >= perEndpoint }

// ended gives back the slot of a try that has ended.
func (t *turns) ended(id string) {
	if owner, ok := t.under[id]; ok {
		t.slots.Give(owner, 1)
		delete(t.under, id)
	}
}

// waiting has the deliveries that are due, by owner.
type waiting struct {
	owners []string // in the order of their first deliveries
	due    map[string][]*work.Delivery
}

// add adds a delivery. An owner cannot get more slots at once than there are, so further deliveries of it are left
// out.
func (w *waiting) add(d *work.Delivery) {
	owner := string(d.Owner)
	if w.due == nil {
		w.due = make(map[string][]*work.Delivery)
	}
	if w.due[owner] == nil {
		w.owners = append(w.owners, owner)
	}
	if len(w.due[owner]) < perEndpoint {
		w.due[owner] = append(w.due[owner], d)
	}
}

// begin chooses the waiting deliveries that can begin now, takes a slot for each, and returns them.
func (t *turns) begin(w *waiting) (chosen []*work.Delivery) {
	t.forget(w)
	for {
		owner, ok := t.next(w)
		if !ok {
			return chosen
		}
		d := w.due[owner][0]
		w.due[owner] = w.due[owner][1:]
		t.turn++
		t.served[owner] = t.turn
		t.under[d.ID] = owner
		chosen = append(chosen, d)
	}
}

// next returns the owner whose delivery begins next, and takes a slot for it. That is the owner that was served longest
// ago, of those with a delivery left and room in their share. It returns false if there is none.
func (t *turns) next(w *waiting) (owner string, ok bool) {
	for {
		first := -1
		for i, o := range w.owners {
			if len(w.due[o]) > 0 && (first < 0 || t.served[o] < t.served[w.owners[first]]) {
				first = i
			}
		}
		if first < 0 {
			return "", false
		}
		owner = w.owners[first]
		if t.slots.Take(owner, 1) == nil {
			return owner, true
		}
		w.due[owner] = nil
	}
}

// forget removes the turns of owners without deliveries that are due or in flight.
func (t *turns) forget(w *waiting) {
	busy := make(map[string]bool, len(t.under))
	for _, owner := range t.under {
		busy[owner] = true
	}
	for owner := range t.served {
		if !busy[owner] && w.due[owner] == nil {
			delete(t.served, owner)
		}
	}
}
