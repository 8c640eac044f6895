package sqlite

import (
	"context"
	"database/sql"
	"runtime"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"stagedoor/state/requestlog"
)

// Adding to a sum in the file takes longer than all else of writing a record, and the requests of a batch may have many
// sums: one for each key, model and so on. So the records of many blocks are added together, and until then readers sum
// them up. The file says which blocks these are, so that no end of the process loses a record or counts it twice.

// sumEvery is the number of full blocks whose records are added to the sums together.
const sumEvery = 64

// reader is a connection or a transaction.
type reader interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// alike names the requests of one kind that began in one minute.
type alike struct{ kind, minute int64 }

// toSum has what is to be added to the sums, by the kinds and minutes of the requests.
type toSum map[alike]*sumOf

// sumOf is a number of requests and the sums of their amounts. The other fields of its row are those of one of them.
type sumOf struct {
	row
	requests int64
}

// add counts a record and adds its amounts to the sum of its kind and minute.
func (t toSum) add(r *row) {
	of := alike{r.kind, minuteOf(r.at)}
	sum := t[of]
	if sum == nil {
		t[of] = &sumOf{*r, 1}
		return
	}
	sum.requests++
	for _, i := range summed {
		sum.amounts[i] += r.amounts[i]
	}
}

// unsummed returns the records in the file that are not in the tables of sums.
func unsummed(ctx context.Context, from reader) (toSum, error) {
	all := make(toSum)
	var b block
	const blocks = "SELECT base, rows FROM blocks WHERE summed = 0"
	err := scan(ctx, from, blocks, nil, []any{&b.base, &b.rows}, func() error {
		return b.each(func(r *row, _, _ int) error {
			all.add(r)
			return nil
		})
	})
	return all, err
}

// sums returns t as the sums that readers get, with the names of the kinds from the file.
func (t toSum) sums(ctx context.Context, from reader) (requestlog.Sums, error) {
	sums := requestlog.NewSums()
	if len(t) == 0 {
		return sums, nil
	}
	kinds, err := kindsOf(ctx, from, t)
	for of, sum := range t {
		r := kinds[of.kind]
		sum.measure(&r)
		sums.Add(&r, sum.requests)
	}
	return sums, err
}

// unsummedSums returns the sums of the records that are not in the tables of sums.
func unsummedSums(ctx context.Context, from reader) (requestlog.Sums, error) {
	all, err := unsummed(ctx, from)
	if err != nil {
		return requestlog.Sums{}, err
	}
	return all.sums(ctx, from)
}

// kindsOf returns, for each kind of the sums, a record that has only the names that all records of the kind share.
func kindsOf(ctx context.Context, from reader, of toSum) (map[int64]requestlog.Record, error) {
	var kinds []int64
	for each := range of {
		kinds = append(kinds, each.kind)
	}
	slices.Sort(kinds)
	kinds = slices.Compact(kinds)
	list, err := json.Marshal(kinds)
	if err != nil {
		return nil, err
	}
	records := make(map[int64]requestlog.Record, len(kinds))
	var kind int64
	var k kindNames
	const query = "SELECT kind, owner, names FROM kinds WHERE kind IN (SELECT value FROM json_each(?))"
	err = scan(ctx, from, query, []any{string(list)}, []any{&kind, &k.owner, &k.names}, func() error {
		r := requestlog.Record{Owner: k.owner}
		r.ReadEntry(k.names)
		records[kind] = r
		return nil
	})
	return records, err
}

// scan calls each for every row of a query, whose columns are in to.
func scan(ctx context.Context, from reader, query string, args, to []any, each func() error) error {
	rows, err := from.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(to...); err != nil {
			return err
		}
		if err := each(); err != nil {
			return err
		}
	}
	return rows.Err()
}

// addToSums adds all records that are not yet in the tables of sums to these tables, and marks their blocks as summed.
// It does nothing if none of these records began before a place (requestlog.TimeOf), so that pruning can call it before
// it removes records, and a full batch can call it with the largest place.
func (l *Log) addToSums(ctx context.Context, tx *sql.Tx, before int64) error {
	var any bool
	const some = "SELECT EXISTS (SELECT 1 FROM blocks WHERE summed = 0 AND first < ?)"
	if err := tx.QueryRowContext(ctx, some, before).Scan(&any); err != nil || !any {
		return err
	}
	all := l.toSum
	if all == nil {
		var err error
		if all, err = unsummed(ctx, tx); err != nil {
			return err
		}
	}
	sums, err := all.sums(ctx, tx)
	if err != nil {
		return err
	}
	hours, err := tx.PrepareContext(ctx, `INSERT INTO spent VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET requests = requests + excluded.requests, input = input + excluded.input,
		output = output + excluded.output, cost = cost + excluded.cost`)
	if err != nil {
		return err
	}
	defer hours.Close()
	for _, s := range sums.Hours {
		runtime.Gosched()
		_, err := hours.ExecContext(ctx, s.Step, s.Owner, s.Key, s.Model, s.Provider, s.App, s.Requests, s.Input,
			s.Output, s.MicroUSD)
		if err != nil {
			return err
		}
	}
	minutes, err := tx.PrepareContext(ctx, `INSERT INTO minutes (owner, minute, requests, failed, slow, lossy)
		VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET requests = requests + excluded.requests,
		failed = failed + excluded.failed, slow = slow + excluded.slow, lossy = lossy + excluded.lossy`)
	if err != nil {
		return err
	}
	defer minutes.Close()
	for m, c := range sums.Minutes {
		runtime.Gosched()
		if _, err := minutes.ExecContext(ctx, m.Owner, m.At, c.All, c.Failed, c.Slow, c.Lossy); err != nil {
			return err
		}
	}
	l.unsummed, l.toSum = 0, make(toSum)
	l.filling.empty()
	_, err = tx.ExecContext(ctx, "UPDATE blocks SET summed = 1 WHERE summed = 0")
	return err
}

// Spent implements requestlog.Reader.
func (l *Log) Spent(ctx context.Context, q *requestlog.SpentQuery, each func(*requestlog.Spent) error) error {
	oldest := requestlog.TimeOf(l.oldest()) / 3_600_000_000
	from, to := max(q.From.Unix()/3600, oldest), (q.To.Unix()+3599)/3600
	begin, hours := q.From.Unix()/3600, max(int64(q.Step/time.Hour), 1)
	return l.read(ctx, func(conn *sql.Conn) error {
		sums, err := unsummedSums(ctx, conn)
		if err != nil {
			return err
		}
		for _, s := range sums.Hours {
			hour := int64(s.Step)
			if hour < from || hour >= to || q.Owner != "" && s.Owner != q.Owner {
				continue
			}
			s.Step = int((hour - begin) / hours)
			if err := each(s); err != nil {
				return err
			}
		}
		var s requestlog.Spent
		return scan(ctx, conn, `SELECT (hour - ?1) / ?2, owner, key, model, provider, app, sum(requests), sum(input),
			sum(output), sum(cost) FROM spent WHERE hour >= ?3 AND hour < ?4 AND ?5 IN ('', owner)
			GROUP BY 1, 2, 3, 4, 5, 6`, []any{begin, hours, from, to, q.Owner}, []any{&s.Step, &s.Owner, &s.Key,
			&s.Model, &s.Provider, &s.App, &s.Requests, &s.Input, &s.Output, &s.MicroUSD},
			func() error { return each(&s) })
	})
}

// Count implements requestlog.Reader.
func (l *Log) Count(ctx context.Context, owner string, from, to time.Time, width time.Duration) (bars []requestlog.Bar,
	err error) {
	bars, first, end, minutes := requestlog.Bars(from, to, width)
	begin := max(first, requestlog.TimeOf(l.oldest())/60_000_000)
	err = l.read(ctx, func(conn *sql.Conn) error {
		sums, err := unsummedSums(ctx, conn)
		if err != nil {
			return err
		}
		for m, c := range sums.Minutes {
			if m.Owner == owner && m.At >= begin && m.At < end {
				bars[(m.At-first)/minutes].Add(c)
			}
		}
		var n int
		var c requestlog.Counts
		return scan(ctx, conn, `SELECT (minute - ?1) / ?2, sum(requests), sum(failed), sum(slow), sum(lossy)
			FROM minutes WHERE owner = ?3 AND minute >= ?5 AND minute < ?4 GROUP BY 1`,
			[]any{first, minutes, owner, end, begin}, []any{&n, &c.All, &c.Failed, &c.Slow, &c.Lossy}, func() error {
				bars[n].Add(&c)
				return nil
			})
	})
	return bars, err
}
