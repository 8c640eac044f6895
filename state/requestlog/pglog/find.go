package pglog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"stagedoor/state"
	"stagedoor/state/requestlog"
)

// columns names the columns of the table that scan reads, in its order.
const columns = "at, owner, took, first, queued, entry"

const (
	// recent is the number of the newest records that a search reads one by one before it uses the index of words. The
	// index has no order, so that a search for a word which many records have would read all of these.
	recent = 5000
	// few is the number of records that a search reads at once where the index finds them, and part the number of
	// records among which it looks at once if it may find more.
	few, part = 20_000, 128_000
)

// numberColumns are the columns of the fields that can be compared.
var numberColumns = map[string]string{"cost": "cost", "took": "took", "first": "first", "queued": "queued",
	"in": "input", "out": "output", "attempts": "attempts"}

// search is the state of one query while it runs. It goes from the newest records to the oldest ones.
type search struct {
	from, to  int64  // places
	condition string // of the words and numbers of a record, with the parameters from $4 on, or ""
	// words are the words of the condition, without the marks that stand for the sizes of numbers and with them. The
	// first is for reading records one by one, because there are many such marks and the numbers are in the record.
	words, marks string
	numbers      []any // further parameters of the condition
	left         int   // records that may still be found
	each         func(*requestlog.Record) bool
}

// Find implements requestlog.Reader. It reads the newest records first, and then uses the index: for all of the time if
// that finds few, and otherwise in one part of the time after the other, until it has enough.
func (l *Log) Find(ctx context.Context, q *requestlog.Query, each func(*requestlog.Record) bool) error {
	return l.use(ctx, l.read, func(conn *pgx.Conn) error {
		s := l.search(q, each)
		err := s.newestFirst(ctx, conn, &l.options)
		if err != nil && s.left < q.Limit {
			return fmt.Errorf("%w: %w", errFinal, err)
		}
		return err
	})
}

// newestFirst calls each with what a search finds.
func (s *search) newestFirst(ctx context.Context, conn *pgx.Conn, o *Options) error {
	if s.condition == "" {
		return s.run(ctx, conn, s.left)
	}
	if err := s.run(ctx, conn, o.recent); err != nil || s.left == 0 {
		return err
	}
	var read int
	err := conn.QueryRow(ctx, `SELECT coalesce(min(at), 0), count(*) FROM
		(SELECT at FROM stagedoor.request_log WHERE at >= $1 AND at < $2 ORDER BY at DESC LIMIT $3) r`,
		s.from, s.to, o.recent).Scan(&s.to, &read)
	if err != nil || read < o.recent {
		return err
	}
	found, err := s.estimate(ctx, conn)
	switch {
	case err != nil:
		return err
	case found < o.few:
		return s.useIndex(ctx, conn, "")
	}
	counts, err := s.count(ctx, conn)
	if err != nil {
		return err
	}
	return s.useParts(ctx, conn, counts, int64(o.part))
}

// search translates a query into the condition of a statement. Words are searched in the index of words, and numbers
// are compared with columns.
func (l *Log) search(q *requestlog.Query, each func(*requestlog.Record) bool) *search {
	s := &search{from: l.oldest(), to: math.MaxInt64, left: q.Limit, each: each}
	if !q.From.IsZero() {
		s.from = max(s.from, requestlog.Place(q.From))
	}
	if !q.To.IsZero() {
		s.to = requestlog.Place(q.To)
	}
	if q.Before != 0 {
		s.to = min(s.to, q.Before)
	}
	plain := *q
	plain.Terms = slices.DeleteFunc(slices.Clone(q.Terms), func(t requestlog.Term) bool { return t.Operator != "" })
	if s.words, s.marks = plain.TSQuery(), q.TSQuery(); s.marks == "" {
		return s
	}
	s.condition = "($4 = '' OR words @@ $4::tsquery)"
	for i := range q.Terms {
		if t := &q.Terms[i]; t.Operator != "" {
			s.numbers = append(s.numbers, t.Number)
			s.condition += fmt.Sprintf(" AND %s %s $%d", numberColumns[t.Field], t.Operator, 4+len(s.numbers))
		}
	}
	return s
}

// run reads the newest records one by one, at most a number of them, and finds those with a condition.
func (s *search) run(ctx context.Context, conn *pgx.Conn, most int) error {
	statement := "SELECT " + columns + ` FROM (SELECT * FROM stagedoor.request_log WHERE at >= $1 AND at < $2
		ORDER BY at DESC LIMIT ` + strconv.Itoa(most) + ") r"
	if s.condition == "" {
		return s.find(ctx, conn, statement+" ORDER BY at DESC LIMIT $3")
	}
	return s.find(ctx, conn, statement+" WHERE "+s.condition+" ORDER BY at DESC LIMIT $3",
		append([]any{s.words}, s.numbers...)...)
}

// byWords selects the places of the records with the condition.
func (s *search) byWords() string {
	return "SELECT at FROM stagedoor.request_log WHERE at >= $1 AND at < $2 AND " + s.condition
}

// estimate returns about how many records the index finds.
func (s *search) estimate(ctx context.Context, conn *pgx.Conn) (int, error) {
	var plan []struct {
		Plan struct {
			Rows float64 `json:"Plan Rows"`
		}
	}
	// The third parameter stands for the number of records, which all other statements have.
	err := conn.QueryRow(ctx, "EXPLAIN (FORMAT json) "+s.byWords()+" AND $3 >= 0",
		append([]any{s.from, s.to, s.left, s.marks}, s.numbers...)...).Scan(&plan)
	if err != nil || len(plan) == 0 {
		return 0, err
	}
	return int(plan[0].Plan.Rows), nil
}

// useIndex finds the places of the records with the condition in the index, in a part of the time if one is given, and
// reads the newest of them.
func (s *search) useIndex(ctx context.Context, conn *pgx.Conn, partOfTime string) error {
	words := s.marks
	if partOfTime != "" {
		// With another condition, the index answers sooner without the marks, and the numbers are in the records.
		words = cmp.Or(s.words, s.marks) + " & '" + partOfTime + "'"
	}
	return s.find(ctx, conn, "WITH found AS MATERIALIZED ("+s.byWords()+`)
		SELECT `+columns+` FROM stagedoor.request_log WHERE at IN (SELECT at FROM found ORDER BY at DESC LIMIT $3)
		ORDER BY at DESC`, append([]any{words}, s.numbers...)...)
}

// find runs a statement whose first parameters are the bounds of the time and the number of records.
func (s *search) find(ctx context.Context, conn *pgx.Conn, statement string, values ...any) error {
	values = append([]any{s.from, s.to, s.left}, values...)
	rows, err := conn.Query(ctx, statement, values...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		r, err := scan(rows)
		if err != nil {
			return err
		}
		if s.left--; !s.each(&r) {
			s.left = 0
			return nil
		}
	}
	return rows.Err()
}

// scan reads one row.
func scan(row pgx.Row) (r requestlog.Record, err error) {
	var at, took, first, queued int64
	var owner string
	var entry []byte
	if err := row.Scan(&at, &owner, &took, &first, &queued, &entry); err != nil {
		return r, err
	}
	r.At = at
	r.ReadEntry(entry)
	r.Owner = owner
	r.Took, r.First, r.Queued = microseconds(took), microseconds(first), microseconds(queued)
	return r, nil
}

func microseconds(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

// Get implements requestlog.Reader.
func (l *Log) Get(ctx context.Context, at int64, owner string) (r requestlog.Record, err error) {
	err = l.use(ctx, l.read, func(conn *pgx.Conn) error {
		r, err = scan(conn.QueryRow(ctx, "SELECT "+columns+` FROM stagedoor.request_log
			WHERE at = $1 AND at >= $2 AND $3 IN ('', owner)`, at, l.oldest(), clean(owner)))
		if errors.Is(err, pgx.ErrNoRows) {
			r, err = requestlog.Record{}, nil
		}
		return err
	})
	if err == nil && r.At == 0 {
		err = state.ErrNotFound
	}
	return r, err
}

// Count implements requestlog.Reader.
func (l *Log) Count(ctx context.Context, owner string, from, to time.Time, width time.Duration) (bars []requestlog.Bar,
	err error) {
	bars, first, end, minutes := requestlog.Bars(from, to, width)
	oldest := requestlog.TimeOf(l.oldest()) / 60_000_000
	err = l.use(ctx, l.read, func(conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, `SELECT (minute - $1) / $2, sum(requests)::bigint, sum(failed)::bigint,
				sum(slow)::bigint, sum(lossy)::bigint FROM stagedoor.request_minute
			WHERE owner = $3 AND minute >= $4 AND minute < $5 GROUP BY 1`, first, minutes, clean(owner),
			max(first, oldest), end)
		if err != nil {
			return err
		}
		var n int
		var c requestlog.Counts
		_, err = pgx.ForEachRow(rows, []any{&n, &c.All, &c.Failed, &c.Slow, &c.Lossy}, func() error {
			bars[n].Counts = c
			return nil
		})
		return err
	})
	return bars, err
}

// Spent implements requestlog.Reader.
func (l *Log) Spent(ctx context.Context, q *requestlog.SpentQuery, each func(*requestlog.Spent) error) error {
	from, hours := q.From.Unix()/3600, max(int64(q.Step/time.Hour), 1)
	oldest := requestlog.TimeOf(l.oldest()) / 3_600_000_000
	return l.once(ctx, l.read, func(conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, `SELECT (hour - $1) / $2, owner, key, model, provider, app, sum(requests)::bigint,
				sum(input)::bigint, sum(output)::bigint, sum(cost)::bigint FROM stagedoor.request_spent
			WHERE hour >= $3 AND hour < $4 AND $5 IN ('', owner) GROUP BY 1, 2, 3, 4, 5, 6`, from, hours,
			max(from, oldest), (q.To.Unix()+3599)/3600, clean(q.Owner))
		if err != nil {
			return err
		}
		var s requestlog.Spent
		_, err = pgx.ForEachRow(rows, []any{&s.Step, &s.Owner, &s.Key, &s.Model, &s.Provider, &s.App, &s.Requests,
			&s.Input, &s.Output, &s.MicroUSD}, func() error {
			one := s
			return each(&one)
		})
		return err
	})
}
