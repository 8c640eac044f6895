package journal

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"sync"

	iradix "github.com/hashicorp/go-immutable-radix"
)

// Memory is a Store that lasts until the process ends, for tests and for gateways
// that are configured to keep nothing.
type Memory struct {
	mu      sync.Mutex // held while trees are replaced
	trees   map[Table]*iradix.Tree
	lsn     LSN
	commits uint64
	closed  bool
}

// cell is one value of a tree. It is never changed.
type cell struct {
	value []byte
	rev   uint64
}

// NewMemory returns an empty store.
func NewMemory() *Memory {
	m := &Memory{trees: make(map[Table]*iradix.Tree, len(tables))}
	for _, t := range tables {
		m.trees[t] = iradix.New()
	}
	return m
}

// Commit implements Store.
func (m *Memory) Commit(ctx context.Context, batches []Batch) (LSN, error) {
	if err := Check(batches); err != nil {
		return 0, err
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return 0, ErrClosed
	}
	trees := maps.Clone(m.trees)
	for i, batch := range batches {
		for _, c := range batch.Pre {
			if have := rev(trees[c.Table], c.Key); have != c.Rev {
				return 0, &ConflictError{Batch: i, Cond: c, Have: have}
			}
		}
		for _, op := range batch.Ops {
			trees[op.Table] = op.applyTo(trees[op.Table])
		}
	}
	if !writes(batches) {
		return m.lsn, nil
	}
	m.trees = trees
	m.lsn++
	m.commits++
	return m.lsn, nil
}

// applyTo returns the tree with the operation. The old tree stays as it is, so that readers of it
// are not disturbed and a commit that fails is simply dropped.
func (op Op) applyTo(tree *iradix.Tree) *iradix.Tree {
	switch op.Kind {
	case Put:
		before := uint64(0)
		if !op.New {
			before = rev(tree, op.Key)
		}
		tree, _, _ = tree.Insert(clone(op.Key), cell{clone(op.Value), before + 1})
	case Delete:
		tree, _, _ = tree.Delete(op.Key)
	default:
		tree, _ = tree.DeletePrefix(op.Key)
	}
	return tree
}

// rev returns the revision of a record, or 0 if there is none.
func rev(tree *iradix.Tree, key []byte) uint64 {
	v, ok := tree.Get(key)
	if !ok {
		return 0
	}
	return v.(cell).rev
}

// snapshot returns trees that do not change any more.
func (m *Memory) snapshot(ctx context.Context) (map[Table]*iradix.Tree, LSN, error) {
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, 0, ErrClosed
	}
	return m.trees, m.lsn, nil
}

// Copy returns a store with the same records, which later commits to either of them do not change in the other.
func (m *Memory) Copy() *Memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &Memory{trees: m.trees, lsn: m.lsn, commits: m.commits}
}

// Load implements Store.
func (m *Memory) Load(ctx context.Context, tables []Table, fn func(Table, Record) error) (LSN, error) {
	trees, lsn, err := m.snapshot(ctx)
	if err != nil {
		return 0, err
	}
	for _, t := range tables {
		each := func(rec Record) error { return fn(t, rec) }
		if err := iterate(trees, t, nil, nil, 0, each); err != nil {
			return lsn, err
		}
	}
	return lsn, nil
}

// Get implements Store.
func (m *Memory) Get(ctx context.Context, table Table, key []byte) (Record, error) {
	if err := CheckKey(table, key); err != nil {
		return Record{}, err
	}
	trees, _, err := m.snapshot(ctx)
	if err != nil {
		return Record{}, err
	}
	v, ok := trees[table].Get(key)
	if !ok {
		return Record{}, fmt.Errorf("%w: %s/%q", ErrNotFound, table, key)
	}
	c := v.(cell)
	return Record{Key: clone(key), Value: clone(c.value), Rev: c.rev}, nil
}

// Range implements Store.
func (m *Memory) Range(ctx context.Context, table Table, from, to []byte, limit int, fn func(Record) error) error {
	trees, _, err := m.snapshot(ctx)
	if err != nil {
		return err
	}
	return iterate(trees, table, from, to, limit, fn)
}

// iterate calls fn with the records in from <= key < to. A limit of 0 and a nil to set no bound.
func iterate(trees map[Table]*iradix.Tree, t Table, from, to []byte, limit int, fn func(Record) error) error {
	tree, ok := trees[t]
	if !ok {
		return fmt.Errorf("%w: no table %q", ErrInvalid, string(t))
	}
	it := tree.Root().Iterator()
	if len(from) > 0 {
		it.SeekLowerBound(from)
	}
	for n := 0; limit <= 0 || n < limit; n++ {
		k, v, ok := it.Next()
		if !ok || (to != nil && bytes.Compare(k, to) >= 0) {
			return nil
		}
		c := v.(cell)
		if err := fn(Record{Key: k, Value: c.value, Rev: c.rev}); err != nil {
			return err
		}
	}
	return nil
}

// line is a record in a Memory's backup; the first line has only the LSN.
type line struct {
	LSN   LSN    `json:"lsn,omitempty"`
	Table Table  `json:"table,omitempty"`
	Key   []byte `json:"key,omitempty"`
	Rev   uint64 `json:"rev,omitempty"`
	Value []byte `json:"value,omitempty"`
}

// Backup implements Store: one JSON object a line.
func (m *Memory) Backup(ctx context.Context, w io.Writer) error {
	trees, lsn, err := m.snapshot(ctx)
	if err != nil {
		return err
	}
	enc := json.NewEncoder(untilDone{ctx, w})
	if err := enc.Encode(line{LSN: lsn}); err != nil {
		return err
	}
	for _, t := range tables {
		err := iterate(trees, t, nil, nil, 0, func(r Record) error {
			return enc.Encode(line{Table: t, Key: r.Key, Rev: r.Rev, Value: r.Value})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Stats implements Store.
func (m *Memory) Stats() Stats {
	m.mu.Lock()
	s := Stats{LSN: m.lsn, Commits: m.commits, DiskFree: -1}
	trees := m.trees
	m.mu.Unlock()
	for _, tree := range trees {
		tree.Root().Walk(func(k []byte, v any) bool {
			s.Size += int64(len(k) + len(v.(cell).value))
			return false
		})
	}
	return s
}

// Close implements Store.
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	return nil
}
