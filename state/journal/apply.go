package journal

import (
	"context"
	"encoding/binary"

	"go.etcd.io/bbolt"

	"stagedoor/state/journal/redo"
)

// appended are the tables whose keys nearly always follow all those before them:
// their pages are filled to the brim, since little will come between.
var appended = []Table{Ledger, Receipt}

// brim is the part of a page that bbolt fills in appended tables. Its default leaves half of a page
// free for keys that come between.
const brim = 0.95

// draft is a commit whose conditions are checked and whose revisions are determined, before it is
// durable. Each batch sees the file, the overlays, and the batches before it.
type draft struct {
	snapshot
	frame []byte  // what the redo log will hold; keys and values of changes are in it
	own   overlay // the changes
}

// newDraft checks the conditions of batches and encodes their changes. The error is a
// *ConflictError if a condition does not hold. Nothing has changed then.
func newDraft(s snapshot, batches []Batch) (*draft, error) {
	size := 0
	var changes [len(tables)]int
	for _, b := range batches {
		for i := range b.Ops {
			size += changeHeader + len(b.Ops[i].Key) + len(b.Ops[i].Value)
			changes[b.Ops[i].Table.index()]++
		}
	}
	d := &draft{snapshot: s, frame: redo.NewFrame(size)}
	for t, n := range changes {
		if n > 0 {
			d.own.expect(t, n)
		}
	}
	for i, batch := range batches {
		for _, c := range batch.Pre {
			have, err := d.revision(c.Table.index(), c.Key)
			if err != nil {
				return nil, err
			}
			if have != c.Rev {
				return nil, &ConflictError{Batch: i, Cond: c, Have: have}
			}
		}
		for j := range batch.Ops {
			if err := d.op(&batch.Ops[j]); err != nil {
				return nil, err
			}
		}
	}
	return d, nil
}

// op adds one operation. Put needs the revision before it, unless the caller knows that there is no
// such record (Op.New), which saves reading the file.
func (d *draft) op(op *Op) error {
	t := op.Table.index()
	switch op.Kind {
	case Put:
		rev := uint64(0)
		if !op.New {
			var err error
			if rev, err = d.revision(t, op.Key); err != nil {
				return err
			}
		}
		d.put(t, op.Key, rev+1, op.Value)
	case Delete:
		d.remove(t, op.Key)
	case DeletePrefix:
		return d.removePrefix(t, op.Key)
	}
	return nil
}

// put adds the new value of a record. Key and value are copied once, into the frame for the redo
// log; the overlay points into the frame. The slice is limited to its length, so that an append to
// it cannot overwrite the next change.
func (d *draft) put(t int, key []byte, rev uint64, value []byte) {
	key = d.key(t, key)
	d.frame = binary.AppendUvarint(d.frame, uint64(1+sealHeader+len(value)))
	n := len(d.frame)
	d.frame = appendSealed(d.frame, tables[t], key, rev, value)
	d.own.put(t, change{key: key, sealed: d.frame[n:len(d.frame):len(d.frame)]})
}

// remove adds the removal of a record, whether it exists or not.
func (d *draft) remove(t int, key []byte) {
	key = d.key(t, key)
	d.frame = binary.AppendUvarint(d.frame, 0)
	d.own.put(t, change{key: key})
}

// key writes the beginning of a change and returns the key in it.
func (d *draft) key(t int, key []byte) []byte {
	d.frame = appendChangeKey(d.frame, tables[t], key)
	return d.frame[len(d.frame)-len(key) : len(d.frame) : len(d.frame)]
}

// revision returns the revision of a record in the state that the draft has reached, or 0 if there
// is no such record.
func (d *draft) revision(t int, key []byte) (uint64, error) {
	sealed, found := d.own.get(t, key)
	if !found {
		sealed = d.snapshot.get(t, key)
	}
	if sealed == nil {
		return 0, nil
	}
	rev, _, err := unseal(tables[t], key, sealed)
	return rev, err
}

// removePrefix removes each record whose key begins with prefix. The log gets a change for each of
// them, as it has no form for a prefix.
func (d *draft) removePrefix(t int, prefix []byte) error {
	var keys [][]byte
	to := PrefixEnd(prefix)
	news := collect(t, prefix, to, &d.own, d.newest, d.older)
	err := scan(context.Background(), d.tx, tables[t], news, prefix, to, 0, func(r Record) error {
		keys = append(keys, clone(r.Key))
		return nil
	})
	for _, key := range keys {
		d.remove(t, key)
	}
	return err
}

// snapshot reads the store as of one moment: the file's tables and, over them, the
// changes that the file does not have yet.
type snapshot struct {
	tx            *bbolt.Tx
	newest, older *overlay
}

// get returns a record's sealed value; nil: there is no such record.
func (s *snapshot) get(t int, key []byte) []byte {
	for _, o := range []*overlay{s.newest, s.older} {
		if sealed, found := o.get(t, key); found {
			return sealed
		}
	}
	return valueOf(s.tx, tables[t], key)
}
