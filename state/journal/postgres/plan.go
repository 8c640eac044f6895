package postgres

import (
	"bytes"
	"fmt"
	"slices"

	"stagedoor/state/journal"
)

// plan says what the batches of a commit come to: for each record, the last thing that they do to it. Ranges are
// removed first, so that the rest does not depend on the sequence of the operations.
type plan struct {
	ranges  []journal.Op
	records map[record]*outcome
	touched []record // the keys of records, in the sequence in which they were first touched
	// base returns the revision that a record has before the commit, or false if that is not known.
	base func(journal.Table, string) (uint64, bool)
}

// record names a record.
type record struct {
	table journal.Table
	key   string
}

// outcome says what becomes of a record.
type outcome struct {
	known   bool   // rev is the revision; otherwise rev is by how much it grows
	rev     uint64 // 0 with known: there is no such record
	written bool   // value is the record's; otherwise it is removed
	changed bool
	value   []byte
}

// planOf plans batches whose conditions hold by the position of the log. The revisions of hot records follow from
// the conditions.
func planOf(batches []journal.Batch) (*plan, error) {
	expected := map[record]uint64{}
	p := &plan{records: map[record]*outcome{}}
	p.base = func(t journal.Table, key string) (uint64, bool) {
		rev, found := expected[record{t, key}]
		return rev, found
	}
	for _, b := range batches {
		for _, c := range b.Pre {
			if r := (record{c.Table, string(c.Key)}); p.records[r] == nil {
				expected[r] = c.Rev
			}
		}
		for i := range b.Ops {
			p.add(&b.Ops[i])
		}
	}
	for _, r := range p.touched {
		if o := p.records[r]; r.table.Hot() && o.changed && !o.known {
			return nil, fmt.Errorf("%w: %s/%q is written without a condition", journal.ErrInvalid, r.table, r.key)
		}
	}
	for _, op := range p.ranges {
		if op.Table.Hot() {
			return nil, fmt.Errorf("%w: a range of %s is removed", journal.ErrInvalid, op.Table)
		}
	}
	return p, nil
}

// add adds an operation to the outcome of its record. The statement that follows has one row for each record,
// whatever the number of operations on it.
func (p *plan) add(op *journal.Op) {
	if op.Kind == journal.DeletePrefix {
		p.ranges = append(p.ranges, *op)
		for _, r := range p.touched {
			if r.table == op.Table && bytes.HasPrefix([]byte(r.key), op.Key) {
				*p.records[r] = outcome{known: true, changed: true}
			}
		}
		return
	}
	o := p.of(op.Table, string(op.Key))
	o.changed = true
	if op.Kind == journal.Delete {
		*o = outcome{known: true, changed: true}
		return
	}
	if op.New && !o.known && !o.written {
		*o = outcome{known: true, changed: true}
	}
	o.rev++
	o.written, o.value = true, op.Value
}

// of returns the outcome of a record so far.
func (p *plan) of(t journal.Table, key string) *outcome {
	r := record{t, key}
	o := p.records[r]
	if o == nil {
		o = &outcome{}
		if o.rev, o.known = p.base(t, key); p.removed(t, key) {
			*o = outcome{known: true}
		}
		p.records[r] = o
		p.touched = append(p.touched, r)
	}
	return o
}

// removed reports whether an operation has removed a range with a key in it.
func (p *plan) removed(t journal.Table, key string) bool {
	return slices.ContainsFunc(p.ranges, func(op journal.Op) bool {
		return op.Table == t && bytes.HasPrefix([]byte(key), op.Key)
	})
}

// revision returns the revision that a record has after what was added so far. It must be known.
func (p *plan) revision(t journal.Table, key string) uint64 {
	if o := p.records[record{t, key}]; o != nil {
		return o.rev
	}
	if p.removed(t, key) {
		return 0
	}
	rev, _ := p.base(t, key)
	return rev
}

// arguments are a plan as the function append of the database takes it.
type arguments struct {
	hot                []byte
	rangeTable         []string
	rangeFrom, rangeTo [][]byte
	deleted, put       []string // tables
	deletedKey, putKey [][]byte
	putRev             []int64 // the revision, or minus the number by which an unknown one grows
	putValue           [][]byte
	putLarge           []*int64
	large              []int // of puts, those whose values go to a table of their own
}

// largeValue bounds a cold value that is written as part of an append, while other nodes wait.
const largeValue = 256 << 10

// arguments returns the plan in the form of the function.
func (p *plan) arguments() *arguments {
	a := &arguments{hot: []byte{}}
	for _, op := range p.ranges {
		a.rangeTable = append(a.rangeTable, string(op.Table))
		a.rangeFrom, a.rangeTo = append(a.rangeFrom, op.Key), append(a.rangeTo, journal.PrefixEnd(op.Key))
	}
	for _, r := range p.touched {
		o, key := p.records[r], []byte(r.key)
		if !o.changed {
			continue
		}
		if r.table.Hot() {
			a.hot = journal.AppendChange(a.hot, journal.Change{
				Table: r.table, Record: journal.Record{Key: key, Value: o.value, Rev: o.rev}, Deleted: !o.written,
			})
		}
		if !o.written {
			a.deleted, a.deletedKey = append(a.deleted, string(r.table)), append(a.deletedKey, key)
			continue
		}
		rev := int64(o.rev)
		if !o.known {
			rev = -rev
		}
		if len(o.value) > largeValue && !r.table.Hot() {
			a.large = append(a.large, len(a.put))
		}
		value := o.value
		if value == nil {
			value = []byte{}
		}
		a.put, a.putKey = append(a.put, string(r.table)), append(a.putKey, key)
		a.putRev, a.putValue = append(a.putRev, rev), append(a.putValue, value)
		a.putLarge = append(a.putLarge, nil)
	}
	return a
}
