package postgres

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// silence notes for how long this node itself has seen the beats of the other live nodes unchanged. Only a node whose
// beat was seen unchanged for a whole lease may be expelled. Times of the database are never compared with each other:
// while the database was away no node could beat, and after a failover its clock is that of another machine.
type silence struct {
	mu       sync.Mutex
	answered time.Time // when the last look ended
	nodes    map[string]observedBeat
}

// liveNode is the row of a live node.
type liveNode struct {
	ID      string
	Epoch   int64
	Beat    time.Time
	Several bool // it permits others that are live, too
}

// observedBeat is a beat of the live node with the time at which this process saw it.
type observedBeat struct {
	liveNode
	since time.Time // when its beat was first seen, by the clock of this process
}

// forget makes the next look the first one. It is called when the database has not answered.
func (s *silence) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nodes = nil
}

// forgetNode makes the next look the first one at a node. It is called when a node has shown that it is live.
func (s *silence) forgetNode(node string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.nodes, node)
}

// note takes the live nodes that a query has returned, and returns those whose beats have not changed for a lease. It
// begins anew after a time without an answer of the database in which other nodes may have given up a beat, too.
func (s *silence) note(nodes []liveNode, asked, answered time.Time, lease time.Duration) (silent []liveNode) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if answered.Sub(s.answered) > max(lease/2, beatEvery) {
		s.nodes = nil
	}
	before := s.nodes
	s.nodes, s.answered = make(map[string]observedBeat, len(nodes)), answered
	for _, n := range nodes {
		seen, ok := before[n.ID]
		if !ok || seen.Epoch != n.Epoch || !seen.Beat.Equal(n.Beat) {
			seen = observedBeat{n, answered}
		}
		s.nodes[n.ID] = seen
		if asked.Sub(seen.since) >= lease {
			silent = append(silent, n)
		}
	}
	return silent
}

// expelSilent expels the nodes that have been silent for a lease, and returns the name of another node that is live
// still and must not be beside this one, or "" if there is none.
func (s *Store) expelSilent(ctx context.Context, tx pgx.Tx) (live string, err error) {
	asked := time.Now()
	rows, err := tx.Query(ctx, `SELECT id, epoch, beat, several FROM stagedoor.node
		WHERE id <> $1 AND live ORDER BY id`, s.options.Node)
	if err != nil {
		return "", err
	}
	nodes, err := pgx.CollectRows(rows, pgx.RowToStructByPos[liveNode])
	if err != nil {
		return "", err
	}
	silent := s.silence.note(nodes, asked, time.Now(), s.options.Lease)
	for _, n := range nodes {
		if slices.Contains(silent, n) {
			// A beat that came since it was read keeps the node. So does a lock of its row: an append of the node has
			// it, perhaps for as long as a synchronous standby of the database is away, and its beats wait for that.
			done, err := tx.Exec(ctx, `UPDATE stagedoor.node SET live = false WHERE id = (SELECT id FROM stagedoor.node
				WHERE id = $1 AND epoch = $2 AND beat = $3 FOR UPDATE SKIP LOCKED)`, n.ID, n.Epoch, n.Beat)
			if err != nil {
				return "", err
			}
			if done.RowsAffected() > 0 {
				continue
			}
			s.silence.forgetNode(n.ID)
		}
		if live == "" && !(n.Several && s.options.Several) {
			live = n.ID
		}
	}
	return live, nil
}

// expelOthers expels nodes that are silent, so that the others can take their work over, and raises the format of the
// log when it can be, until the store is closed or this node is fenced.
func (s *Store) expelOthers() {
	for !s.fenced.Load() {
		select {
		case <-s.running.Done():
			return
		case <-time.After(s.options.Lease / 10):
		}
		ctx, cancel := context.WithTimeout(s.running, s.options.AnswerWait)
		_ = s.alone(ctx, nil, func(tx pgx.Tx, _ string) error { return s.raiseFormat(ctx, tx) }) // tried again soon
		cancel()
	}
}
