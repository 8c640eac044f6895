package postgres

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"stagedoor/state/journal"
)

// wantLasts is the time for which a node counts as waiting for units after it last asked for some.
const wantLasts = 3 * time.Second

// Lend implements journal.Lender. One node at a time lends units of a limit, to all nodes that wait for some, so that
// no node has to be quick to get one. Units that no node waits for go to the caller, if it needs any.
//
// Unlike a beat, the transaction waits for a synchronous standby: after a failover, a unit must not have two nodes.
func (m *Members) Lend(ctx context.Context, loan journal.Loan) (lent journal.Lent, err error) {
	err = pgx.BeginTxFunc(ctx, m.store.pool, short, func(tx pgx.Tx) error {
		t := lending{tx: tx, loan: loan, node: m.store.options.Node, epoch: m.store.epoch}
		lent, err = t.run(ctx)
		return err
	})
	return lent, readError(err)
}

// lending is the state of one transaction, which lends units of one limit.
type lending struct {
	tx    pgx.Tx
	loan  journal.Loan
	node  string
	epoch int64
	units []unit
	wants []want // the node with the fewest units first, then the one that waits longest
}

// unit is a row of stagedoor.unit. An empty node has none.
type unit struct {
	Number int
	Node   string
	Credit time.Duration // at the time of the transaction
}

// want is a row of stagedoor.want.
type want struct {
	Node  string
	Epoch int64
	Units int
}

// run makes all steps, and returns what the node has then.
func (l *lending) run(ctx context.Context) (journal.Lent, error) {
	for _, step := range []func(context.Context) error{l.open, l.giveBack, l.ask, l.read, l.lend} {
		if err := step(ctx); err != nil {
			return journal.Lent{}, err
		}
	}
	lent := journal.Lent{}
	nodes := map[string]bool{l.node: true}
	for _, u := range l.units {
		if u.Node == l.node {
			lent.Units = append(lent.Units, journal.Unit{Number: u.Number, Credit: u.Credit})
		} else if u.Node != "" {
			nodes[u.Node] = true
		}
	}
	waiting := slices.DeleteFunc(l.wants, func(w want) bool { return w.Node == l.node || w.Units <= 0 })
	for _, w := range waiting {
		lent.Wanted += w.Units
		nodes[w.Node] = true
	}
	lent.Part = l.loan.Size / len(nodes)
	for _, w := range waiting {
		lent.Short += max(min(w.Units, max(lent.Part, 1)-l.has(w.Node)), 0)
	}
	return lent, nil
}

// open waits for other nodes that lend units of the limit, and makes those that have never been used.
func (l *lending) open(ctx context.Context) error {
	const lock = "SELECT pg_advisory_xact_lock(hashtextextended('stagedoor.unit ' || $1, 0))"
	if _, err := l.tx.Exec(ctx, lock, l.loan.Limit); err != nil {
		return err
	}
	_, err := l.tx.Exec(ctx, `INSERT INTO stagedoor.unit (name, number) SELECT $1, generate_series(1, $2::int)
		ON CONFLICT DO NOTHING`, l.loan.Limit, l.loan.Size)
	if err != nil {
		return err
	}
	var live bool
	err = l.tx.QueryRow(ctx, "SELECT EXISTS (SELECT FROM stagedoor.node WHERE id = $1 AND epoch = $2 AND live)",
		l.node, l.epoch).Scan(&live)
	if !live {
		l.loan.Need = 0 // a node that was expelled gets nothing more
	}
	return err
}

// giveBack frees the units that the node gives back or that the limit no longer has, and those of processes that serve
// no more. What these had used is not known, so their units have nothing saved up.
func (l *lending) giveBack(ctx context.Context) error {
	_, err := l.tx.Exec(ctx, `UPDATE stagedoor.unit SET node = NULL, credit = $4, at = clock_timestamp()
		WHERE name = $1 AND node = $2 AND epoch = $3 AND (number = ANY ($5::int[]) OR number > $6)`,
		l.loan.Limit, l.node, l.epoch, l.loan.Credit, l.loan.Back, l.loan.Size)
	if err != nil {
		return err
	}
	// An epoch is the time at which it began, in microseconds. A process whose name has a newer one was replaced then.
	_, err = l.tx.Exec(ctx, `UPDATE stagedoor.unit u SET node = NULL, credit = 0, at = clock_timestamp()
		WHERE name = $1 AND node IS NOT NULL AND NOT EXISTS (SELECT FROM stagedoor.node n WHERE n.id = u.node AND (
			n.epoch = u.epoch AND (n.live OR n.beat > clock_timestamp() - $2::interval) OR
			n.epoch > u.epoch AND n.epoch > extract(epoch FROM clock_timestamp() - $2::interval) * 1000000))`,
		l.loan.Limit, l.loan.After)
	return err
}

// ask notes that the node waits for units, or waits no more.
func (l *lending) ask(ctx context.Context) error {
	_, err := l.tx.Exec(ctx, `WITH mine AS (SELECT $4 - count(*) AS units FROM stagedoor.unit
			WHERE name = $1 AND node = $2 AND epoch = $3)
		INSERT INTO stagedoor.want AS w (name, node, epoch, units) SELECT $1, $2, $3, units FROM mine
		ON CONFLICT (name, node) DO UPDATE SET epoch = excluded.epoch, units = excluded.units, said = excluded.said,
			since = CASE WHEN w.units > 0 AND w.epoch = excluded.epoch THEN w.since ELSE excluded.since END`,
		l.loan.Limit, l.node, l.epoch, int64(l.loan.Need))
	return err
}

// read reads the units and the nodes that wait for some.
func (l *lending) read(ctx context.Context) error {
	rows, err := l.tx.Query(ctx, `SELECT number,
			CASE WHEN node = $3 AND epoch <> $4 THEN 'an earlier process' ELSE coalesce(node, '') END,
			credit + (extract(epoch FROM clock_timestamp() - at) * 1e9)::bigint
		FROM stagedoor.unit WHERE name = $1 AND number <= $2 ORDER BY number`,
		l.loan.Limit, l.loan.Size, l.node, l.epoch)
	if err != nil {
		return err
	}
	if l.units, err = pgx.CollectRows(rows, pgx.RowToStructByPos[unit]); err != nil {
		return err
	}
	rows, err = l.tx.Query(ctx, `SELECT node, epoch, units FROM stagedoor.want
		WHERE name = $1 AND units > 0 AND said > clock_timestamp() - $2::interval ORDER BY since`,
		l.loan.Limit, wantLasts)
	if err != nil {
		return err
	}
	l.wants, err = pgx.CollectRows(rows, pgx.RowToStructByPos[want])
	slices.SortStableFunc(l.wants, func(a, b want) int { return cmp.Compare(l.has(a.Node), l.has(b.Node)) })
	return err
}

// has returns how many units a node has.
func (l *lending) has(node string) (n int) {
	for _, u := range l.units {
		if u.Node == node {
			n++
		}
	}
	return n
}

// lend gives the free units to the nodes that wait, one after the other, and what is left to the caller.
func (l *lending) lend(ctx context.Context) error {
	for i := range l.units {
		u := &l.units[i]
		if u.Node != "" {
			continue
		}
		to, epoch := l.node, l.epoch
		if next := slices.IndexFunc(l.wants, func(w want) bool { return w.Units > 0 }); next >= 0 {
			w := &l.wants[next]
			to, epoch = w.Node, w.Epoch
			w.Units--
		} else if l.loan.Need == 0 {
			return nil
		}
		u.Node = to
		_, err := l.tx.Exec(ctx, "UPDATE stagedoor.unit SET node = $3, epoch = $4 WHERE name = $1 AND number = $2",
			l.loan.Limit, u.Number, to, epoch)
		if err == nil {
			// If it waits for more, it does so after the others.
			_, err = l.tx.Exec(ctx, `UPDATE stagedoor.want SET units = units - 1, since = clock_timestamp()
				WHERE name = $1 AND node = $2`, l.loan.Limit, to)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
