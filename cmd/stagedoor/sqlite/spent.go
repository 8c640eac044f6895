package sqlite

import (
	"context"
	"database/sql"
	"time"

	"stagedoor/state/requestlog"
)

// addSpent adds a record to the sums of its hour. The Step of a sum is the hour since 1970.
func addSpent(sums map[requestlog.Spent]*requestlog.Spent, r *requestlog.Record) {
	name := requestlog.Spent{Step: int(r.Began.Unix() / 3600), Owner: r.Owner, Key: r.Key, Model: r.Model,
		Provider: r.Provider, App: r.App}
	sum := sums[name]
	if sum == nil {
		copied := name
		sum = &copied
		sums[name] = sum
	}
	sum.Requests++
	sum.Input, sum.Output, sum.MicroUSD = sum.Input+r.Input, sum.Output+r.Output, sum.MicroUSD+r.Cost
}

// writeSpent adds sums to those of earlier batches.
func writeSpent(ctx context.Context, tx *sql.Tx, sums map[requestlog.Spent]*requestlog.Spent) error {
	add, err := tx.PrepareContext(ctx, `INSERT INTO spent VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET requests = requests + excluded.requests, input = input + excluded.input,
		output = output + excluded.output, cost = cost + excluded.cost`)
	if err != nil {
		return err
	}
	defer add.Close()
	for _, s := range sums {
		_, err := add.ExecContext(ctx, s.Step, s.Owner, s.Key, s.Model, s.Provider, s.App, s.Requests, s.Input,
			s.Output, s.MicroUSD)
		if err != nil {
			return err
		}
	}
	return nil
}

// Spent implements requestlog.Reader.
func (l *Log) Spent(ctx context.Context, q *requestlog.SpentQuery, each func(*requestlog.Spent) error) error {
	from, hours := q.From.Unix()/3600, max(int64(q.Step/time.Hour), 1)
	return l.query(func(db *sql.DB) error {
		rows, err := db.QueryContext(ctx, `SELECT (hour - ?1) / ?2, owner, key, model, provider, app, sum(requests),
			sum(input), sum(output), sum(cost) FROM spent WHERE hour >= max(?1, ?3) AND hour < ?4 AND ?5 IN ('', owner)
			GROUP BY 1, 2, 3, 4, 5, 6`, from, hours, l.oldest()>>placeBits/3_600_000_000, (q.To.Unix()+3599)/3600,
			q.Owner)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var s requestlog.Spent
			err := rows.Scan(&s.Step, &s.Owner, &s.Key, &s.Model, &s.Provider, &s.App, &s.Requests, &s.Input, &s.Output,
				&s.MicroUSD)
			if err == nil {
				err = each(&s)
			}
			if err != nil {
				return err
			}
		}
		return rows.Err()
	})
}
