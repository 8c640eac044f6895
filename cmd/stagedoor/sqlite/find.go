package sqlite

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"errors"
	"math"
	"slices"
	"strings"

	"stagedoor/state"
	"stagedoor/state/requestlog"
)

// Find implements requestlog.Reader. The full-text index finds the kinds that satisfy the query, and the blocks are
// read from the newest on until no older one can have a record that is newer than those that were found.
func (l *Log) Find(ctx context.Context, q *requestlog.Query, each func(*requestlog.Record) bool) error {
	s := newSearch(q, l.oldest())
	err := l.read(ctx, func(conn *sql.Conn) error { return s.run(ctx, conn) })
	for i := range s.found {
		if err != nil || !each(&s.found[i]) {
			break
		}
	}
	return err
}

// query runs a read. It is not repeated in a new file, because the caller may have some records already.
func (l *Log) query(do func(db *sql.DB) error) error {
	return l.use(func() error { return do(l.readers) })
}

// read runs several statements that see the same state of the file. ctx does not reach the first and the last one,
// because one that is cancelled may have been carried out, and the connection would stay in a transaction in which no
// other reader can begin.
func (l *Log) read(ctx context.Context, do func(conn *sql.Conn) error) error {
	return l.query(func(db *sql.DB) (err error) {
		conn, err := db.Conn(ctx)
		if err != nil {
			return err
		}
		defer conn.Close()
		uncancelled := context.WithoutCancel(ctx)
		if _, err := conn.ExecContext(uncancelled, "BEGIN"); err != nil {
			return err
		}
		defer func() {
			_, end := conn.ExecContext(uncancelled, "ROLLBACK")
			err = errors.Join(err, end)
		}()
		return do(conn)
	})
}

// search is a Find.
//
// A search has two stages. Conditions on names and outcomes are looked up in the full-text index, once, and
// give the kinds that satisfy them (kinds). Then blocks are read from the newest on, and the rows of each are
// compared with the kinds, the times and the numbers (holds). A row is small and its record is not, so only
// the rows that are found are read whole (record).
type search struct {
	from, to   int64 // places; to is excluded
	limit      int
	terms      []requestlog.Term // whose numbers are compared
	amounts    []int             // of a row, for each of terms
	conditions []requestlog.KindCondition
	kinds      []kindSet // of each of conditions
	ids        bool      // whether a condition may be satisfied by an id
	names      map[int64]*kindNames
	found      []requestlog.Record // newest first
}

// newSearch returns the search of a query among the records from a place on, which is the later one of the
// query's and of the log's oldest.
func newSearch(q *requestlog.Query, oldest int64) *search {
	s := &search{from: oldest, to: math.MaxInt64, limit: q.Limit, names: make(map[int64]*kindNames)}
	if !q.From.IsZero() {
		s.from = max(s.from, requestlog.Place(q.From))
	}
	if !q.To.IsZero() {
		s.to = requestlog.Place(q.To)
	}
	if q.Before != 0 {
		s.to = min(s.to, q.Before)
	}
	for _, t := range q.Terms {
		if t.Operator != "" {
			s.terms, s.amounts = append(s.terms, t), append(s.amounts, slices.Index(amounts[:], t.Field))
		}
	}
	var only []string // what kinds alone can satisfy is one condition
	for _, c := range q.KindConditions() {
		if c.ID == "" {
			only = append(only, c.Match)
		} else {
			s.ids, s.conditions = true, append(s.conditions, c)
		}
	}
	if only != nil {
		s.conditions = append(s.conditions, requestlog.KindCondition{Match: strings.Join(only, " AND ")})
	}
	return s
}

// run reads blocks until the limit is reached and no older block can have a newer record. Blocks overlap in
// time, because a batch has the requests that ended together, whenever they began.
func (s *search) run(ctx context.Context, conn *sql.Conn) error {
	for _, c := range s.conditions {
		var set kindSet
		var err error
		if c.Match != "" {
			set, err = kindsThat(ctx, conn, c.Match)
		}
		if err != nil || set == nil && c.ID == "" {
			return err
		}
		s.kinds = append(s.kinds, set)
	}
	ids := "x''"
	if s.ids {
		ids = "ids"
	}
	rows, err := conn.QueryContext(ctx, "SELECT last, base, rows, "+ids+` FROM blocks WHERE last >= ? AND first < ?
		ORDER BY last DESC`, s.from, s.to)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var b block
		if err := rows.Scan(&b.last, &b.base, &b.rows, &b.ids); err != nil {
			return err
		}
		if len(s.found) >= s.limit && s.found[s.limit-1].At >= b.last {
			return nil
		}
		if err := s.search(ctx, conn, &b); err != nil {
			return err
		}
	}
	return rows.Err()
}

// hit is a row that satisfies a query.
type hit struct {
	row
	id, entry int // their places in the block
}

// search adds what it finds in a block. found stays sorted, the newest first, and is never longer than the
// limit.
func (s *search) search(ctx context.Context, conn *sql.Conn, b *block) error {
	var hits []hit
	err := b.each(func(r *row, id, entry int) error {
		if holds, err := s.holds(b, r, id); !holds || err != nil {
			return err
		}
		hits = append(hits, hit{*r, id, entry})
		return nil
	})
	if err != nil || hits == nil {
		return err
	}
	slices.SortFunc(hits, func(x, y hit) int { return cmp.Compare(y.at, x.at) })
	hits = hits[:min(len(hits), s.limit)]
	const entries = "SELECT ids, entries FROM blocks WHERE last = ?"
	if err := conn.QueryRowContext(ctx, entries, b.last).Scan(&b.ids, &b.entries); err != nil {
		return err
	}
	for i := range hits {
		r, err := s.record(ctx, conn, b, &hits[i])
		if err != nil {
			return err
		}
		s.found = append(s.found, r)
	}
	slices.SortStableFunc(s.found, func(x, y requestlog.Record) int { return cmp.Compare(y.At, x.At) })
	s.found = s.found[:min(len(s.found), s.limit)]
	return nil
}

// holds reports whether a row satisfies the query.
func (s *search) holds(b *block, r *row, id int) (bool, error) {
	if r.at < s.from || r.at >= s.to {
		return false, nil
	}
	for i := range s.terms {
		if !s.terms[i].Holds(r.amounts[s.amounts[i]]) {
			return false, nil
		}
	}
	for i := range s.conditions {
		if s.kinds[i].has(r.kind) {
			continue
		}
		if s.conditions[i].ID == "" {
			return false, nil
		}
		text, err := part(b.ids, id, r.id)
		if err != nil || !isID(text, &s.conditions[i]) {
			return false, err
		}
	}
	return true, nil
}

// ownID is the beginning of the gateway's own ids, which a person need not type.
var ownID = []byte("req_")

// isID reports whether an id satisfies a condition, ignoring case.
func isID(id []byte, c *requestlog.KindCondition) bool {
	for _, id := range [][]byte{id, bytes.TrimPrefix(id, ownID)} {
		if len(id) >= len(c.ID) && (!c.Whole || len(id) == len(c.ID)) && bytes.EqualFold(id[:len(c.ID)], []byte(c.ID)) {
			return true
		}
	}
	return false
}

// record returns a record that was found.
func (s *search) record(ctx context.Context, conn *sql.Conn, b *block, h *hit) (r requestlog.Record, err error) {
	k := s.names[h.kind]
	if k == nil {
		k = new(kindNames)
		const names = "SELECT owner, names FROM kinds WHERE kind = ?"
		if err := conn.QueryRowContext(ctx, names, h.kind).Scan(&k.owner, &k.names); err != nil {
			return r, err
		}
		s.names[h.kind] = k
	}
	id, err := part(b.ids, h.id, h.row.id)
	if err != nil {
		return r, err
	}
	entry, err := part(b.entries, h.entry, h.row.entry)
	if err != nil {
		return r, err
	}
	return h.record(id, entry, k), nil
}

// Get implements requestlog.Reader. A record that is missing, too old or of another owner is state.ErrNotFound.
func (l *Log) Get(ctx context.Context, at int64, owner string) (r requestlog.Record, err error) {
	q := requestlog.Query{Owner: owner, Before: at + 1, Limit: 1}
	s := newSearch(&q, max(l.oldest(), at))
	if err = l.read(ctx, func(conn *sql.Conn) error { return s.run(ctx, conn) }); err != nil {
		return r, err
	}
	if len(s.found) == 0 {
		return r, state.ErrNotFound
	}
	return s.found[0], nil
}
