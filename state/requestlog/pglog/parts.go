package pglog

import (
	"context"
	"maps"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5"

	"stagedoor/state/requestlog"
)

// A record has a lexeme for each of the parts of the time in which it has begun: of 3 days, of 4 hours and of 16
// minutes. With it the index finds what has a word in a part, without reading all that has the word.

// levels are the lengths of the parts as powers of two of minutes, from the longest to the shortest.
var levels = []int{12, 8, 4}

// minuteOf returns the minute since 1970 of a place.
func minuteOf(place int64) int64 { return requestlog.TimeOf(place) / 60_000_000 }

// partLexeme returns the lexeme of a part. Lexemes of columns begin with other letters.
func partLexeme(level int, part int64) string {
	return "t" + strconv.Itoa(level) + strconv.FormatInt(part, 36)
}

// counts are the numbers of records in the parts of each level.
type counts [3]map[int64]int64

// count counts the records in the time of a search.
func (s *search) count(ctx context.Context, conn *pgx.Conn) (c counts, err error) {
	shortest := len(levels) - 1
	for i := range c {
		c[i] = make(map[int64]int64)
	}
	rows, err := conn.Query(ctx, `SELECT minute >> $1, sum(requests)::bigint FROM stagedoor.request_minute
		WHERE owner = '' AND minute BETWEEN $2 AND $3 GROUP BY 1`, levels[shortest], minuteOf(s.from), minuteOf(s.to))
	if err != nil {
		return c, err
	}
	var part, count int64
	_, err = pgx.ForEachRow(rows, []any{&part, &count}, func() error {
		for i := range c {
			c[i][part>>(levels[i]-levels[shortest])] += count
		}
		return nil
	})
	return c, err
}

// useParts uses the index in one part of the time after the other, from the newest to the oldest, until enough is
// found. A part with more than most records is divided.
func (s *search) useParts(ctx context.Context, conn *pgx.Conn, c counts, most int64) error {
	var look func(level int, part int64) error
	look = func(level int, part int64) error {
		switch n := c[level][part]; {
		case n == 0 || s.left == 0:
			return nil
		case n <= most || level == len(levels)-1:
			return s.useIndex(ctx, conn, partLexeme(level, part))
		}
		shift := levels[level] - levels[level+1]
		for inner := (part+1)<<shift - 1; inner >= part<<shift; inner-- {
			if err := look(level+1, inner); err != nil {
				return err
			}
		}
		return nil
	}
	for _, part := range slices.Backward(slices.Sorted(maps.Keys(c[0]))) {
		if err := look(0, part); err != nil {
			return err
		}
	}
	return nil
}
