package webhook

import (
	"stagedoor/state"
	"stagedoor/state/share"
)

// perEndpoint is how many tries are under way at one endpoint. An owner alone has half of them.
const perEndpoint = 8

// turns chooses which deliveries to one endpoint are tried next. Owners take turns, and each has
// its share of the tries under way, so that a delivery does not wait for those of another owner
// however many there are and however slowly they are answered.
type turns struct {
	slots *share.Pool
	under map[string]string // owners of the deliveries being tried, by the delivery's id
	// served numbers the last turn of each owner with a delivery that is due or under way.
	served map[string]int
	turn   int
}

func newTurns() *turns {
	return &turns{
		slots:  share.New(share.Tries, perEndpoint, 1),
		under:  make(map[string]string),
		served: make(map[string]int),
	}
}

// full reports whether no further try may begin.
func (t *turns) full() bool { return len(t.under) >= perEndpoint }

// ended gives the slot of a try back.
func (t *turns) ended(id string) {
	if owner, ok := t.under[id]; ok {
		t.slots.Give(owner, 1)
		delete(t.under, id)
	}
}

// waiting are deliveries that are due, by owner.
type waiting struct {
	owners []string // in the order of their first deliveries
	due    map[string][]*state.Delivery
}

// add notes a delivery. No owner gets more slots at once than there are, so more of its
// deliveries need not be noted.
func (w *waiting) add(d *state.Delivery) {
	owner := string(d.Owner)
	if w.due == nil {
		w.due = make(map[string][]*state.Delivery)
	}
	if w.due[owner] == nil {
		w.owners = append(w.owners, owner)
	}
	if len(w.due[owner]) < perEndpoint {
		w.due[owner] = append(w.due[owner], d)
	}
}

// begin takes slots for deliveries that wait and returns these deliveries.
func (t *turns) begin(w *waiting) (chosen []*state.Delivery) {
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

// next takes a slot for the owner that was served longest ago, of those that have a delivery
// left and room in their share.
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

// forget removes the turns of owners that have nothing due and nothing under way.
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
