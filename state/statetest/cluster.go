package statetest

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"stagedoor/state/journal"
)

// Cluster is a shared store in memory. Each of its nodes is a journal.Shared, on which a state is opened. It checks the
// conditions of every append, which hold unless a state has diverged.
//
// It stands in for a database in tests of packages that need several processes: no server has to run, and a
// test decides when nodes hear of each other (Silence). It passes the suite of journal/conformance.
type Cluster struct {
	mu      sync.Mutex
	moved   *sync.Cond // the turn has ended
	store   *journal.Memory
	entries []journal.Entry // the first one is at base
	members map[string]journal.Member
	nodes   []*Node
	turn    *Node
	quiet   bool
}

// few bounds the entries of a BehindError, so that small tests read the rest of the tail, too.
const few = 3

// NewCluster returns an empty store that no node has joined.
func NewCluster() *Cluster {
	c := &Cluster{store: journal.NewMemory(), members: map[string]journal.Member{}}
	c.moved = sync.NewCond(&c.mu)
	c.entries = []journal.Entry{{Position: journal.Position{Tag: rand.Uint64()}}}
	return c
}

// Join returns a new node. An earlier one of the same name is fenced.
func (c *Cluster) Join(name string) *Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := &Node{cluster: c, name: name, epoch: c.members[name].Epoch + 1, changed: make(chan struct{}, 1)}
	c.members[name] = journal.Member{Node: name, Epoch: n.epoch, Live: true}
	c.nodes = append(c.nodes, n)
	return n
}

// Silence keeps nodes from hearing of each other's entries, so that they find them when they append.
func (c *Cluster) Silence() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.quiet = true
}

// EndSilence has nodes hear of each other's entries again.
func (c *Cluster) EndSilence() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.quiet = false
}

// Trim removes the entries of the log but for the last one. A node that is behind gets ErrForked then and
// must read everything again.
func (c *Cluster) Trim() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entries = c.entries[len(c.entries)-1:]
}

// Store returns the records of the cluster, for a look at them that is no node's.
func (c *Cluster) Store() journal.Store { return c.store }

// head is the end of the log. The caller holds mu.
func (c *Cluster) head() journal.Position { return c.entries[len(c.entries)-1].Position }

// after returns the entries after a position. The caller holds mu.
func (c *Cluster) after(at journal.Position) ([]journal.Entry, error) {
	i := slices.IndexFunc(c.entries, func(e journal.Entry) bool { return e.Position == at })
	if i < 0 {
		return nil, journal.ErrForked
	}
	return slices.Clone(c.entries[i+1:]), nil
}

// Node is a node of a Cluster.
type Node struct {
	cluster *Cluster
	name    string
	epoch   uint64
	changed chan struct{}
	closed  bool
	shared  *journal.SharedStats
}

// Listen says where the node answers the others, as its Members show it from then on.
func (n *Node) Listen(address string) {
	n.cluster.mu.Lock()
	defer n.cluster.mu.Unlock()
	m := n.cluster.members[n.name]
	m.Address = address
	n.cluster.members[n.name] = m
}

// begin locks the cluster for an operation of the node that may append, once no other node has its turn.
func (n *Node) begin(ctx context.Context) (end func(), err error) {
	c := n.cluster
	c.mu.Lock()
	for c.turn != nil && c.turn != n {
		c.moved.Wait()
	}
	if n.closed {
		err = journal.ErrClosed
	} else {
		err = ctx.Err()
	}
	if err != nil {
		c.mu.Unlock()
		return nil, err
	}
	return c.mu.Unlock, nil
}

// Append implements journal.Shared. A record of a hot table that is changed without a condition is refused,
// because the decision may rest on an older value.
func (n *Node) Append(ctx context.Context, at journal.Position, now time.Time,
	batches []journal.Batch) (journal.Position, error) {
	end, err := n.begin(ctx)
	if err != nil {
		return at, err
	}
	defer end()
	c := n.cluster
	c.turn = nil
	c.moved.Broadcast()
	if len(batches) == 0 {
		return at, nil
	}
	newer, err := c.after(at)
	if err != nil {
		return at, err
	}
	if len(newer) > 0 {
		few := newer[:min(few, len(newer))]
		return at, &journal.BehindError{Entries: few, More: len(newer) > len(few)}
	}
	expected := map[string]bool{}
	for _, b := range batches {
		for _, cond := range b.Pre {
			expected[string(cond.Table)+"/"+string(cond.Key)] = true
		}
		for _, op := range b.Ops {
			if op.Table.Hot() && !expected[string(op.Table)+"/"+string(op.Key)] {
				return at, fmt.Errorf("%w: %s/%q without a condition", journal.ErrInvalid, op.Table, op.Key)
			}
		}
	}
	return n.commit(ctx, now, batches)
}

// commit makes an entry. The caller holds mu. The entry has the records as they are after the commit,
// whatever the operations were.
func (n *Node) commit(ctx context.Context, now time.Time, batches []journal.Batch) (journal.Position, error) {
	c := n.cluster
	if m := c.members[n.name]; m.Epoch != n.epoch || !m.Live {
		return c.head(), journal.ErrFenced
	}
	touched := map[journal.Table]map[string]bool{}
	note := func(t journal.Table, key []byte) {
		if touched[t] == nil {
			touched[t] = map[string]bool{}
		}
		touched[t][string(key)] = true
	}
	for _, b := range batches {
		for _, op := range b.Ops {
			if !op.Table.Hot() {
				continue
			}
			note(op.Table, op.Key)
			if op.Kind == journal.DeletePrefix {
				_ = c.store.Range(ctx, op.Table, op.Key, nil, 0, func(r journal.Record) error {
					note(op.Table, r.Key) // those behind the prefix are written as they are
					return nil
				})
			}
		}
	}
	lsn, err := c.store.Commit(ctx, batches)
	if err != nil || lsn == c.head().LSN {
		return c.head(), err
	}
	e := journal.Entry{Position: journal.Position{LSN: lsn, Tag: rand.Uint64()}, Node: n.name, At: now}
	for t, keys := range touched {
		for key := range keys {
			rec, err := c.store.Get(ctx, t, []byte(key))
			rec.Key = []byte(key)
			e.Changes = append(e.Changes, journal.Change{Table: t, Record: rec, Deleted: err != nil})
		}
	}
	c.entries = append(c.entries, e)
	for _, other := range c.nodes {
		if other != n && !c.quiet {
			select {
			case other.changed <- struct{}{}:
			default:
			}
		}
	}
	return e.Position, nil
}

// Turn implements journal.Shared.
func (n *Node) Turn(ctx context.Context, at journal.Position) ([]journal.Entry, bool, error) {
	end, err := n.begin(ctx)
	if err != nil {
		return nil, false, err
	}
	defer end()
	newer, err := n.cluster.after(at)
	if err != nil {
		return nil, false, err
	}
	n.cluster.turn = n
	return newer, true, nil
}

// Tail implements journal.Shared.
func (n *Node) Tail(ctx context.Context, at journal.Position, fn func(journal.Entry) error) error {
	if err := n.check(ctx); err != nil {
		return err
	}
	n.cluster.mu.Lock()
	newer, err := n.cluster.after(at)
	n.cluster.mu.Unlock()
	for _, e := range newer {
		if err := fn(e); err != nil {
			return err
		}
	}
	return err
}

// Head implements journal.Shared.
func (n *Node) Head(ctx context.Context) (journal.Position, error) {
	if err := n.check(ctx); err != nil {
		return journal.Position{}, err
	}
	n.cluster.mu.Lock()
	defer n.cluster.mu.Unlock()
	return n.cluster.head(), nil
}

// View implements journal.Shared.
func (n *Node) View(ctx context.Context, fn func(journal.Reader, journal.Position) error) error {
	if err := n.check(ctx); err != nil {
		return err
	}
	n.cluster.mu.Lock()
	at, snapshot := n.cluster.head(), n.cluster.store.Copy()
	n.cluster.mu.Unlock()
	return fn(snapshot, at)
}

// Changed implements journal.Shared.
func (n *Node) Changed() <-chan struct{} { return n.changed }

// Members implements journal.Shared.
func (n *Node) Members() journal.Members { return (*members)(n) }

type members Node

func (m *members) Beat(context.Context) error {
	m.cluster.mu.Lock()
	defer m.cluster.mu.Unlock()
	if have := m.cluster.members[m.name]; have.Epoch != m.epoch || !have.Live {
		return journal.ErrFenced
	}
	return nil
}

func (m *members) List(context.Context) ([]journal.Member, error) {
	m.cluster.mu.Lock()
	defer m.cluster.mu.Unlock()
	var all []journal.Member
	for _, one := range m.cluster.members {
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b journal.Member) int { return strings.Compare(a.Node, b.Node) })
	return all, nil
}

func (m *members) Expel(_ context.Context, node string, epoch uint64) (bool, error) {
	m.cluster.mu.Lock()
	defer m.cluster.mu.Unlock()
	have := m.cluster.members[node]
	if have.Epoch != epoch || !have.Live {
		return false, nil
	}
	have.Live = false
	m.cluster.members[node] = have
	return true, nil
}

// Self implements journal.Members.
func (m *members) Self() (node string, epoch uint64, several bool) { return m.name, m.epoch, true }

// Epochs implements journal.Members.
func (m *members) Epochs(ctx context.Context) (map[string]uint64, error) {
	all, err := m.List(ctx)
	epochs := map[string]uint64{}
	for _, one := range all {
		if one.Live {
			epochs[one.Node] = one.Epoch
		}
	}
	return epochs, err
}

// check returns an error if the node must not be used.
func (n *Node) check(ctx context.Context) error {
	n.cluster.mu.Lock()
	defer n.cluster.mu.Unlock()
	if n.closed {
		return journal.ErrClosed
	}
	return ctx.Err()
}

// Commit implements journal.Store.
func (n *Node) Commit(ctx context.Context, batches []journal.Batch) (journal.LSN, error) {
	end, err := n.begin(ctx)
	if err != nil {
		return 0, err
	}
	defer end()
	at, err := n.commit(ctx, time.Now(), batches)
	return at.LSN, err
}

// Load implements journal.Store.
func (n *Node) Load(ctx context.Context, tables []journal.Table,
	fn func(journal.Table, journal.Record) error) (journal.LSN, error) {
	if err := n.check(ctx); err != nil {
		return 0, err
	}
	return n.cluster.store.Load(ctx, tables, fn)
}

// Get implements journal.Store.
func (n *Node) Get(ctx context.Context, t journal.Table, key []byte) (journal.Record, error) {
	if err := n.check(ctx); err != nil {
		return journal.Record{}, err
	}
	return n.cluster.store.Get(ctx, t, key)
}

// Range implements journal.Store.
func (n *Node) Range(ctx context.Context, t journal.Table, from, to []byte, limit int,
	fn func(journal.Record) error) error {
	if err := n.check(ctx); err != nil {
		return err
	}
	return n.cluster.store.Range(ctx, t, from, to, limit, fn)
}

// Backup implements journal.Store.
func (n *Node) Backup(ctx context.Context, w io.Writer) error {
	if err := n.check(ctx); err != nil {
		return err
	}
	return n.cluster.store.Backup(ctx, w)
}

// Stats implements journal.Store.
func (n *Node) Stats() journal.Stats {
	stats := n.cluster.store.Stats()
	n.cluster.mu.Lock()
	defer n.cluster.mu.Unlock()
	stats.Shared = n.shared
	return stats
}

// SetStats sets the figures that a store which other nodes reach would have.
func (n *Node) SetStats(shared *journal.SharedStats) {
	n.cluster.mu.Lock()
	defer n.cluster.mu.Unlock()
	n.shared = shared
}

// Close implements journal.Store. It ends the node's turn, and the node leaves.
func (n *Node) Close() error {
	c := n.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	n.closed = true
	if c.turn == n {
		c.turn = nil
		c.moved.Broadcast()
	}
	if m := c.members[n.name]; m.Epoch == n.epoch {
		m.Live = false
		c.members[n.name] = m
	}
	return nil
}
