package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"stagedoor/state/journal"
)

// querier is a pool, a connection or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// View implements journal.Shared. The transaction is REPEATABLE READ, so the position and all records are of
// one moment. fn should not take long, because the database keeps old versions of rows for it.
func (s *Store) View(ctx context.Context, fn func(journal.Reader, journal.Position) error) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	var failed error
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err := pgx.BeginTxFunc(ctx, s.pool, options, func(tx pgx.Tx) error {
		at, err := head(ctx, tx)
		if err != nil {
			return err
		}
		if s.followed.Load() == nil {
			s.follows(at) // the caller loads its copy
		}
		failed = fn(reader{tx, at.LSN}, at)
		return failed
	})
	if failed != nil {
		return failed
	}
	return readError(err)
}

// head returns the end of the log. The tag is a random number of the entry there, by which a log that was
// replaced by a backup is found.
func head(ctx context.Context, q querier) (at journal.Position, err error) {
	var lsn, tag int64
	err = q.QueryRow(ctx, "SELECT lsn, tag FROM stagedoor.head").Scan(&lsn, &tag)
	return journal.Position{LSN: journal.LSN(lsn), Tag: uint64(tag)}, err
}

// Load implements journal.Reader.
func (s *Store) Load(
	ctx context.Context, tables []journal.Table, fn func(journal.Table, journal.Record) error,
) (lsn journal.LSN, err error) {
	err = s.View(ctx, func(r journal.Reader, _ journal.Position) error {
		lsn, err = r.Load(ctx, tables, fn)
		return err
	})
	return lsn, err
}

// Get implements journal.Reader.
func (s *Store) Get(ctx context.Context, t journal.Table, key []byte) (rec journal.Record, err error) {
	if err := s.usable(ctx); err != nil {
		return rec, err
	}
	err = s.retry(ctx, func(ctx context.Context) (err error) {
		rec, err = reader{s.pool, 0}.Get(ctx, t, key)
		return err
	})
	return rec, err
}

// Range implements journal.Reader. The range is read in parts, each in a snapshot of its own. What changes
// between two parts may be seen or not.
func (s *Store) Range(
	ctx context.Context, t journal.Table, from, to []byte, limit int, fn func(journal.Record) error,
) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	if !t.Known() {
		return fmt.Errorf("%w: no table %q", journal.ErrInvalid, string(t))
	}
	for {
		part, err := s.part(ctx, t, from, to, limit)
		for i := range part {
			if err := fn(part[i]); err != nil {
				return err
			}
		}
		if err != nil || len(part) == 0 {
			return err
		}
		if limit > 0 {
			if limit -= len(part); limit <= 0 {
				return nil
			}
		}
		from = append(part[len(part)-1].Key, 0) // the least key behind the last one
	}
}

const (
	maxPart      = 256
	maxPartBytes = 1 << 20
)

// part returns the first records of a range, at most maxPart and about maxPartBytes of them, but at least one. A
// connection is used only while they are read, and not while fn of Range works on them. That may be slow, as for a
// client that reads a stored response slowly, and appends need connections, too.
func (s *Store) part(ctx context.Context, t journal.Table, from, to []byte, limit int) ([]journal.Record, error) {
	if limit <= 0 || limit > maxPart {
		limit = maxPart
	}
	if from == nil {
		from = []byte{}
	}
	// The sizes of values are found without reading them.
	rows, err := s.pool.Query(ctx, `SELECT key, value, rev FROM (
			SELECT key, rev, value, sum(octet_length(value)) OVER (ORDER BY key) - octet_length(value) AS before
			FROM (`+selectOf(t)+rangeOf+`) AS r (key, rev, value)
		) AS p WHERE before < $5 ORDER BY key`, string(t), from, to, limit, maxPartBytes)
	if err != nil {
		return nil, readError(err)
	}
	part, err := pgx.CollectRows(rows, pgx.RowToStructByPos[journal.Record])
	return part, readError(err)
}

// reader reads records, each call in a snapshot of its own unless it has a transaction.
type reader struct {
	querier
	lsn journal.LSN
}

// Load implements journal.Reader.
func (r reader) Load(
	ctx context.Context, tables []journal.Table, fn func(journal.Table, journal.Record) error,
) (journal.LSN, error) {
	for _, t := range tables {
		err := r.Range(ctx, t, nil, nil, 0, func(rec journal.Record) error { return fn(t, rec) })
		if err != nil {
			return r.lsn, err
		}
	}
	return r.lsn, nil
}

// Values of cold tables may be in the table of large ones.
const (
	selectHot  = "SELECT r.key, r.rev, r.value FROM stagedoor.rec r "
	selectCold = "SELECT r.key, r.rev, coalesce(r.value, l.value) FROM stagedoor.rec r " +
		"LEFT JOIN stagedoor.large l ON l.id = r.large "
)

const rangeOf = `WHERE r.tbl = $1 AND r.key >= $2 AND ($3::bytea IS NULL OR r.key < $3) ORDER BY r.key LIMIT $4`

// selectOf returns the statement that reads records of a table.
func selectOf(t journal.Table) string {
	if t.Hot() {
		return selectHot
	}
	return selectCold
}

// Get implements journal.Reader.
func (r reader) Get(ctx context.Context, t journal.Table, key []byte) (rec journal.Record, err error) {
	if err := journal.CheckKey(t, key); err != nil {
		return rec, err
	}
	err = r.QueryRow(ctx, selectOf(t)+"WHERE r.tbl = $1 AND r.key = $2", string(t), key).
		Scan(&rec.Key, &rec.Rev, &rec.Value)
	if errors.Is(err, pgx.ErrNoRows) {
		return rec, fmt.Errorf("%w: %s/%q", journal.ErrNotFound, t, key)
	}
	return rec, readError(err)
}

// Range implements journal.Reader.
func (r reader) Range(
	ctx context.Context, t journal.Table, from, to []byte, limit int, fn func(journal.Record) error,
) error {
	if !t.Known() {
		return fmt.Errorf("%w: no table %q", journal.ErrInvalid, string(t))
	}
	most := &limit
	if limit <= 0 {
		most = nil
	}
	if from == nil {
		from = []byte{}
	}
	rows, err := r.Query(ctx, selectOf(t)+rangeOf, string(t), from, to, most)
	if err != nil {
		return readError(err)
	}
	defer rows.Close()
	for rows.Next() {
		var key, value pgtype.DriverBytes // valid until the next row
		var rec journal.Record
		if err := rows.Scan(&key, &rec.Rev, &value); err != nil {
			return err
		}
		rec.Key, rec.Value = key, value
		if err := fn(rec); err != nil {
			return err
		}
	}
	return readError(rows.Err())
}

// Head implements journal.Shared.
func (s *Store) Head(ctx context.Context) (at journal.Position, err error) {
	if err := s.usable(ctx); err != nil {
		return at, err
	}
	before := s.followed.Load()
	err = s.retry(ctx, func(ctx context.Context) (err error) {
		at, err = head(ctx, s.pool)
		return readError(err)
	})
	if err == nil && forkedAt(before, at) {
		err = fmt.Errorf("%w: its end is before entry %d, or another entry", journal.ErrForked, before.LSN)
	}
	return at, err
}

// applied returns the number of the last entry that the caller has applied.
func (s *Store) applied() journal.LSN {
	if at := s.followed.Load(); at != nil {
		return at.LSN
	}
	return 0
}

// forkedAt reports whether a log that was followed up to a position, and whose end was read after that, has lost
// entries or got others.
func forkedAt(followed *journal.Position, end journal.Position) bool {
	return followed != nil && (end.LSN < followed.LSN || end.LSN == followed.LSN && end.Tag != followed.Tag)
}

// retry repeats a small read for as long as a change would wait for the database. A connection of the pool may have
// broken since it was used, as all have when the database was started again.
func (s *Store) retry(ctx context.Context, read func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for wait := 10 * time.Millisecond; ; wait *= 2 {
		err := read(limited)
		switch {
		case err == nil, refusedBy(err) != nil, ctx.Err() != nil:
			return err
		case errors.Is(err, journal.ErrUnreachable) && limited.Err() == nil:
		case limited.Err() != nil && !errors.Is(err, journal.ErrUnreachable):
			return fmt.Errorf("%w: %w", journal.ErrUnreachable, err)
		default:
			return err
		}
		select {
		case <-limited.Done():
		case <-time.After(wait):
		}
	}
}

// Tail implements journal.Shared.
func (s *Store) Tail(ctx context.Context, at journal.Position, fn func(journal.Entry) error) error {
	for {
		if err := s.usable(ctx); err != nil {
			return err
		}
		if s.fenced.Load() {
			return journal.ErrFenced
		}
		s.follows(at)
		var entries []journal.Entry
		if err := s.retry(ctx, func(ctx context.Context) (err error) {
			entries, err = tail(ctx, s.pool, at, maxTail)
			return err
		}); err != nil {
			return err
		}
		for _, e := range entries {
			if err := fn(e); err != nil {
				return err
			}
		}
		if len(entries) < maxTail {
			return nil
		}
		at = entries[len(entries)-1].Position
	}
}

// follows notes up to where the caller has applied the log.
func (s *Store) follows(at journal.Position) {
	s.followed.Store(&at)
	s.lsn.Store(max(s.lsn.Load(), uint64(at.LSN)))
}

// maxTail bounds the entries that are read at a time. The function append has the same bound.
const maxTail = 500

// tail reads at most limit entries after a position.
func tail(ctx context.Context, q querier, at journal.Position, limit int) ([]journal.Entry, error) {
	rows, err := q.Query(ctx, `SELECT lsn, tag, node, decided, hot FROM stagedoor.log WHERE lsn >= $1
		ORDER BY lsn LIMIT $2`, int64(at.LSN), limit+1)
	if err != nil {
		return nil, readError(err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[entryRow])
	if err != nil {
		return nil, readError(err)
	}
	return entriesAfter(at, found)
}
