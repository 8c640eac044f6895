package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"stagedoor/state/journal"
)

// Members lists and ends the nodes of a database. It implements journal.Members, and is also for commands that take no
// part themselves; see OpenMembers.
type Members struct{ store *Store }

// Members implements journal.Shared.
func (s *Store) Members() journal.Members { return &Members{s} }

// OpenMembers returns the nodes of the database of a URL without joining them. The error is ErrNotFound if no node has
// made the tables yet, or only one of an earlier version. Close ends it.
func OpenMembers(ctx context.Context, url string) (*Members, error) {
	s, err := connect(url, Options{Node: "members"}.filled())
	if err != nil {
		return nil, err
	}
	m := &Members{s}
	var there bool
	if err := s.pool.QueryRow(ctx, haveTables).Scan(&there); err != nil {
		m.Close()
		return nil, readError(err)
	}
	if !there {
		m.Close()
		return nil, fmt.Errorf("%w: no gateway of this version has used the database yet", journal.ErrNotFound)
	}
	return m, nil
}

// Close ends Members that OpenMembers has returned.
func (m *Members) Close() {
	m.store.stop()
	m.store.pool.Close()
}

// Beat implements journal.Members. The store does so by itself every second.
func (m *Members) Beat(ctx context.Context) error { return m.store.beat(ctx, m.store.pool) }

// List implements journal.Members.
func (m *Members) List(ctx context.Context) ([]journal.Member, error) {
	rows, err := m.store.pool.Query(ctx, `SELECT id, epoch, beat >= clock_timestamp() - $1::interval,
		(extract(epoch FROM clock_timestamp() - beat) * 1e9)::bigint, applied, version, standby,
		address
		FROM stagedoor.node WHERE live OR standby ORDER BY id`, m.store.options.Lease)
	if err != nil {
		return nil, readError(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[journal.Member])
	return all, readError(err)
}

// Expel implements journal.Members.
func (m *Members) Expel(ctx context.Context, node string, epoch uint64) (bool, error) {
	return m.change(ctx, "live = false, standby = false", node, epoch)
}

// Self implements journal.Members.
func (m *Members) Self() (node string, epoch uint64, several bool) {
	return m.store.options.Node, uint64(m.store.epoch), m.store.options.Several
}

// Epochs implements journal.Members. The epochs of stand-bys are included, because a stand-by keeps its epoch when it
// takes over.
func (m *Members) Epochs(ctx context.Context) (map[string]uint64, error) {
	all, err := m.List(ctx)
	if err != nil {
		return nil, err
	}
	epochs := make(map[string]uint64, len(all))
	for i := range all {
		epochs[all[i].Node] = all[i].Epoch
	}
	return epochs, nil
}

// Leave asks a node to end as it does by itself after SIGTERM, and reports whether it was in this epoch still. The node
// finds out with its next beat.
func (m *Members) Leave(ctx context.Context, node string, epoch uint64) (bool, error) {
	return m.change(ctx, "leaving = true", node, epoch)
}

// Divide implements journal.Divider. It takes the lock that joining nodes take, so that the parts of all nodes are
// known.
func (m *Members) Divide(ctx context.Context, parts int, after time.Duration) (granted bool, err error) {
	s := m.store
	err = pgx.BeginTxFunc(ctx, s.pool, short, func(tx pgx.Tx) error {
		const lock = "SELECT pg_advisory_xact_lock($1)"
		if _, err := tx.Exec(ctx, lock, int64(schemaLock)); err != nil {
			return err
		}
		// As with beats, no change that was acknowledged depends on it.
		if _, err := tx.Exec(ctx, "SET LOCAL synchronous_commit = local"); err != nil {
			return err
		}
		var own int
		var others float64
		err := tx.QueryRow(ctx, `SELECT coalesce(sum(parts) FILTER (WHERE id = $1), 0),
			coalesce(sum(1.0 / parts) FILTER (WHERE id <> $1 AND parts > 0), 0)::float8
			FROM stagedoor.node WHERE live OR beat > clock_timestamp() - $2::interval`, s.options.Node, after).
			Scan(&own, &others)
		if err != nil {
			return err
		}
		const rounding = 1e-9 // of numbers that have no end, as thirds
		if smaller := own > 0 && parts >= own; !smaller && others+1/float64(parts) > 1+rounding {
			return nil
		}
		done, err := tx.Exec(ctx, "UPDATE stagedoor.node SET parts = $3 WHERE id = $1 AND epoch = $2 AND live",
			s.options.Node, s.epoch, parts)
		granted = done.RowsAffected() > 0
		return err
	})
	return granted && err == nil, readError(err)
}

// change updates a node in its epoch. It returns false if the node has left or begun another epoch.
func (m *Members) change(ctx context.Context, set, node string, epoch uint64) (bool, error) {
	done, err := m.store.pool.Exec(ctx, "UPDATE stagedoor.node SET "+set+
		" WHERE id = $1 AND epoch = $2 AND (live OR standby)", node, int64(epoch))
	return done.RowsAffected() > 0, readError(err)
}
