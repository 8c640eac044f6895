package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"

	"stagedoor/state"
	"stagedoor/state/requestlog"
)

// Find implements requestlog.Reader. The index finds the newest records that have all the marks and words; numbers are
// compared exactly in what it finds.
func (l *Log) Find(ctx context.Context, q *requestlog.Query, each func(*requestlog.Record) bool) error {
	statement, args := find(q, l.oldest())
	return l.query(func(db *sql.DB) error {
		rows, err := db.QueryContext(ctx, statement, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			r, err := scan(rows)
			if err != nil {
				return err
			}
			if !each(&r) {
				return nil
			}
		}
		return rows.Err()
	})
}

// query runs a read. It is not repeated in a new file, because the caller may have some records already.
func (l *Log) query(do func(db *sql.DB) error) error {
	return l.use(func() error { return do(l.read) })
}

// numberColumns are the columns of the fields that can be compared.
var numberColumns = map[string]string{"cost": "cost", "took": "took", "first": "first", "queued": "queued",
	"in": "input", "out": "output", "attempts": "attempts"}

// find returns the statement of a query for records from a place on. CROSS JOIN makes SQLite read the index first, in
// its order.
func find(q *requestlog.Query, oldest int64) (string, []any) {
	from, at := "requests r", "r.at"
	var where []string
	var args []any
	and := func(condition string, value any) {
		where, args = append(where, condition), append(args, value)
	}
	if match := q.Match(); match != "" {
		from, at = "words CROSS JOIN requests r ON r.at = words.rowid", "words.rowid"
		and("words MATCH ?", match)
	}
	if q.Owner != "" {
		and("r.owner = ?", q.Owner)
	}
	if !q.From.IsZero() {
		oldest = max(oldest, requestlog.Place(q.From))
	}
	and(at+" >= ?", oldest)
	if !q.To.IsZero() {
		and(at+" < ?", requestlog.Place(q.To))
	}
	if q.Before != 0 {
		and(at+" < ?", q.Before)
	}
	for i := range q.Terms {
		if t := &q.Terms[i]; t.Operator != "" {
			and("r."+numberColumns[t.Field]+" "+t.Operator+" ?", t.Number)
		}
	}
	statement := "SELECT r." + strings.ReplaceAll(columns, ", ", ", r.") + " FROM " + from + " WHERE " +
		strings.Join(where, " AND ")
	return statement + " ORDER BY " + at + " DESC LIMIT ?", append(args, q.Limit)
}

// scan reads one row.
func scan(row interface{ Scan(...any) error }) (r requestlog.Record, err error) {
	var took, first, queued, input, output, cost, attempts int64
	var at int64
	var owner string
	var entry []byte
	err = row.Scan(&at, &owner, &cost, &took, &first, &queued, &input, &output, &attempts, &entry)
	if err != nil {
		return r, err
	}
	r.At = at
	r.ReadEntry(entry)
	r.Owner = owner
	for to, us := range map[*time.Duration]int64{&r.Took: took, &r.First: first, &r.Queued: queued} {
		*to = time.Duration(us) * time.Microsecond
	}
	return r, nil
}

// Get implements requestlog.Reader.
func (l *Log) Get(ctx context.Context, at int64, owner string) (r requestlog.Record, err error) {
	err = l.query(func(db *sql.DB) error {
		const where = " FROM requests WHERE at = ? AND at >= ? AND ? IN ('', owner)"
		r, err = scan(db.QueryRowContext(ctx, "SELECT "+columns+where, at, l.oldest(), owner))
		return err
	})
	if errors.Is(err, sql.ErrNoRows) {
		err = state.ErrNotFound
	}
	return r, err
}

// Count implements requestlog.Reader.
func (l *Log) Count(ctx context.Context, owner string, from, to time.Time, width time.Duration) (bars []requestlog.Bar,
	err error) {
	bars, first, end, minutes := requestlog.Bars(from, to, width)
	oldest := requestlog.TimeOf(l.oldest()) / 60_000_000
	err = l.query(func(db *sql.DB) error {
		rows, err := db.QueryContext(ctx, `SELECT (minute - ?1) / ?2, sum(requests), sum(failed), sum(slow), sum(lossy)
			FROM minutes WHERE owner = ?3 AND minute >= ?5 AND minute < ?4 GROUP BY 1`, first, minutes, owner, end,
			max(first, oldest))
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var n int
			var c requestlog.Counts
			if err := rows.Scan(&n, &c.All, &c.Failed, &c.Slow, &c.Lossy); err != nil {
				return err
			}
			bars[n].Counts = c
		}
		return rows.Err()
	})
	return bars, err
}
