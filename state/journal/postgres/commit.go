package postgres

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"stagedoor/state/journal"
)

// Commit implements journal.Store. It locks the end of the log, looks at what the conditions and operations are about,
// and appends there. Its values are part of the append, whatever their size.
func (s *Store) Commit(ctx context.Context, batches []journal.Batch) (lsn journal.LSN, err error) {
	if err := s.usable(ctx); err != nil {
		return 0, err
	}
	if err := journal.Check(batches); err != nil {
		return 0, err
	}
	var refused error // by this function, not by the database
	err = s.commitReplicated(ctx, func(tx pgx.Tx) error {
		var number, tag int64
		err := tx.QueryRow(ctx, "SELECT lsn, tag FROM stagedoor.head FOR UPDATE").Scan(&number, &tag)
		if err != nil {
			return err
		}
		at := journal.Position{LSN: journal.LSN(number), Tag: uint64(tag)}
		lsn = at.LSN
		p, err := planAt(ctx, tx, batches)
		if err != nil {
			refused = err
			return err
		}
		if len(p.touched)+len(p.ranges) == 0 {
			return nil
		}
		a := &appending{at: at, newTag: rand.Int64(), now: time.Now(), arguments: p.arguments()}
		rows, err := tx.Query(ctx, callAppend, s.values(a)...)
		if err != nil {
			return err
		}
		found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[entryRow])
		if err != nil {
			return err
		}
		next, err := s.result(a, found)
		if lsn = next.LSN; err == nil {
			s.commits.Add(1)
		}
		return err
	})
	switch {
	case refused != nil:
		return 0, refused
	case refusedBy(err) != nil:
		return 0, refusedBy(err)
	case err != nil:
		return 0, fmt.Errorf("the outcome of a commit is not known: %w", err)
	}
	s.lsn.Store(max(s.lsn.Load(), uint64(lsn)))
	return lsn, nil
}

// commitReplicated calls do in a transaction, and returns errUnreplicated if that was committed but not replicated.
func (s *Store) commitReplicated(ctx context.Context, do func(pgx.Tx) error) error {
	return s.pool.AcquireFunc(ctx, func(c *pgxpool.Conn) error {
		_ = replicated(c.Conn(), nil) // a warning of an earlier use of the connection is not about this one
		return replicated(c.Conn(), pgx.BeginTxFunc(ctx, c, short, do))
	})
}

// planAt plans batches on what the database holds, which must not change meanwhile.
func planAt(ctx context.Context, tx pgx.Tx, batches []journal.Batch) (*plan, error) {
	have, err := revisions(ctx, tx, batches)
	if err != nil {
		return nil, err
	}
	p := &plan{records: map[record]*outcome{}}
	p.base = func(t journal.Table, key string) (uint64, bool) { return have[record{t, key}], true }
	for i, b := range batches {
		for _, c := range b.Pre {
			if rev := p.revision(c.Table, string(c.Key)); rev != c.Rev {
				return nil, &journal.ConflictError{Batch: i, Cond: c, Have: rev}
			}
		}
		for j := range b.Ops {
			if err := p.addAt(ctx, tx, &b.Ops[j]); err != nil {
				return nil, err
			}
		}
	}
	return p, nil
}

// addAt is add, but removes a range of a hot table record by record, because nodes follow the changes of records.
func (p *plan) addAt(ctx context.Context, tx pgx.Tx, op *journal.Op) error {
	if op.Kind != journal.DeletePrefix || !op.Table.Hot() {
		p.add(op)
		return nil
	}
	var keys [][]byte
	err := reader{tx, 0}.Range(ctx, op.Table, op.Key, journal.PrefixEnd(op.Key), 0, func(r journal.Record) error {
		keys = append(keys, append([]byte{}, r.Key...))
		return nil
	})
	if err != nil {
		return err
	}
	for _, r := range p.touched {
		if r.table == op.Table && len(r.key) >= len(op.Key) && r.key[:len(op.Key)] == string(op.Key) {
			keys = append(keys, []byte(r.key))
		}
	}
	for _, key := range keys {
		p.add(&journal.Op{Kind: journal.Delete, Table: op.Table, Key: key})
	}
	return nil
}

// revisions returns the revisions of all records that batches name.
func revisions(ctx context.Context, tx pgx.Tx, batches []journal.Batch) (map[record]uint64, error) {
	var tables []string
	var keys [][]byte
	for _, b := range batches {
		for _, c := range b.Pre {
			tables, keys = append(tables, string(c.Table)), append(keys, c.Key)
		}
		for _, op := range b.Ops {
			tables, keys = append(tables, string(op.Table)), append(keys, op.Key)
		}
	}
	have := map[record]uint64{}
	if len(keys) == 0 {
		return have, nil
	}
	rows, err := tx.Query(ctx, `SELECT r.tbl, r.key, r.rev FROM stagedoor.rec r
		JOIN (SELECT DISTINCT * FROM unnest($1::text[], $2::bytea[]) AS u (t, k)) AS d ON r.tbl = d.t AND r.key = d.k`,
		tables, keys)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var table string
		var key []byte
		var rev uint64
		if err := rows.Scan(&table, &key, &rev); err != nil {
			return nil, err
		}
		have[record{journal.Table(table), string(key)}] = rev
	}
	return have, rows.Err()
}
