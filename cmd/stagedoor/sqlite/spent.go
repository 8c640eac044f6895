package sqlite

import (
	"context"
	"database/sql"
	"time"

	"stagedoor/state/requestlog"
)

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
	oldest := requestlog.TimeOf(l.oldest()) / 3_600_000_000
	return l.query(func(db *sql.DB) error {
		rows, err := db.QueryContext(ctx, `SELECT (hour - ?1) / ?2, owner, key, model, provider, app, sum(requests),
			sum(input), sum(output), sum(cost) FROM spent WHERE hour >= max(?1, ?3) AND hour < ?4 AND ?5 IN ('', owner)
			GROUP BY 1, 2, 3, 4, 5, 6`, from, hours, oldest, (q.To.Unix()+3599)/3600, q.Owner)
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
