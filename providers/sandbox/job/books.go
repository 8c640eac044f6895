package job

import "slices"

// mostRemembered bounds what an engine remembers; the oldest is forgotten first.
const mostRemembered = 10_000

// Counts are what was done with a job, or with an id there never was one of.
type Counts struct {
	ID          string
	Key         string // idempotency key
	Submissions int
	Polls       int
	Downloads   int
}

// books are an engine's memory. The zero value is empty.
type books struct {
	entries map[string]*entry
	keys    map[string]string // idempotency key to id
	order   []string          // ids, the oldest first
}

type entry struct {
	Counts
	spec    Spec
	deleted bool
}

// enter records a submission and returns the id of its job.
func (b *books) enter(key, id string, s Spec) string {
	if earlier, ok := b.keys[key]; ok && key != "" {
		b.entries[earlier].Submissions++
		return earlier
	}
	e := b.entry(id)
	e.spec, e.Key, e.Submissions = s, key, 1
	if key != "" {
		b.keys[key] = id
	}
	return id
}

// entry finds or makes the entry of an id.
func (b *books) entry(id string) *entry {
	if e := b.entries[id]; e != nil {
		return e
	}
	if b.entries == nil {
		b.entries, b.keys = map[string]*entry{}, map[string]string{}
	}
	if len(b.order) == mostRemembered {
		oldest := b.order[0]
		delete(b.keys, b.entries[oldest].Key)
		delete(b.entries, oldest)
		b.order = slices.Delete(b.order, 0, 1)
	}
	e := &entry{Counts: Counts{ID: id}}
	b.entries[id], b.order = e, append(b.order, id)
	return e
}

// note adds one to a count and returns it.
func (b *books) note(id string, which func(*Counts) *int) int {
	n := which(&b.entry(id).Counts)
	*n++
	return *n
}

func (b *books) about(id string) (s Spec, deleted bool) {
	if e := b.entries[id]; e != nil {
		return e.spec, e.deleted
	}
	return Spec{}, false
}

func (b *books) remove(id string) { b.entry(id).deleted = true }

// Repeated reports whether a job was submitted more than once under its key.
func (e *Engine) Repeated(id string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	entry := e.books.entries[id]
	return entry != nil && entry.Submissions > 1
}

// Counts lists what was done with every job that is remembered, the oldest
// first.
func (e *Engine) Counts() []Counts {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := make([]Counts, 0, len(e.books.order))
	for _, id := range e.books.order {
		out = append(out, e.books.entries[id].Counts)
	}
	return out
}

// List tells how every job stands that is remembered and not deleted, the oldest
// first. It counts as no poll.
func (e *Engine) List() []Status {
	var out []Status
	for _, c := range e.Counts() {
		if _, s, err := e.look(c.ID); err == nil && c.Submissions > 0 {
			out = append(out, s)
		}
	}
	return out
}
