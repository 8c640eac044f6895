package pglog

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"io"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"stagedoor/state/requestlog"
)

// Append implements requestlog.Writer.
func (l *Log) Append(ctx context.Context, records []requestlog.Record) error {
	for i := range records {
		records[i].Node = l.options.Node
	}
	for {
		requestlog.Arrange(records, &l.counter)
		sums := l.fill(records)
		err := l.change(ctx, func(tx pgx.Tx) error { return l.insert(ctx, tx, sums) })
		if answer := refused(err); answer == nil || answer.Code != codeUnique || ctx.Err() != nil {
			return err
		}
		// A record of another node has begun in the same microsecond and has the same number. The next ones differ.
	}
}

// fill makes the rows of a batch, with the bytes of each minute.
func (l *Log) fill(records []requestlog.Record) batchSums {
	sums := batchSums{requestlog.NewSums(), make(map[int64]int64)}
	l.rows.begin()
	for i := range records {
		r := &records[i]
		before := len(l.rows.data)
		l.rows.row(r, r.Entry())
		sums.Add(r, 1)
		sums.bytes[r.Began.Unix()/60] += int64(len(l.rows.data)-before) + l.rows.indexed()
	}
	l.rows.end()
	return sums
}

// batchSums are the sums of a batch, and the bytes of its records by the minute.
type batchSums struct {
	requestlog.Sums
	bytes map[int64]int64
}

const (
	copyRows = `COPY stagedoor.request_log (at, cost, took, first, queued, input, output, attempts, owner, entry, words)
		FROM STDIN (FORMAT binary)`
	addMinutes = `INSERT INTO stagedoor.request_minute AS m
		SELECT o, t, $1, a, f, s, l, b FROM unnest($2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[],
			$7::bigint[], $8::bigint[]) AS u (o, t, a, f, s, l, b)
		ON CONFLICT (owner, minute, node) DO UPDATE SET requests = m.requests + excluded.requests,
			failed = m.failed + excluded.failed, slow = m.slow + excluded.slow, lossy = m.lossy + excluded.lossy,
			bytes = m.bytes + excluded.bytes`
	addSpent = `INSERT INTO stagedoor.request_spent AS s
		SELECT h, o, k, m, p, a, $1, n, i, t, c FROM unnest($2::bigint[], $3::text[], $4::text[], $5::text[],
			$6::text[], $7::text[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[])
			AS u (h, o, k, m, p, a, n, i, t, c)
		ON CONFLICT (hour, owner, key, model, provider, app, node) DO UPDATE SET
			requests = s.requests + excluded.requests, input = s.input + excluded.input,
			output = s.output + excluded.output, cost = s.cost + excluded.cost`
)

func (l *Log) insert(ctx context.Context, tx pgx.Tx, sums batchSums) error {
	if _, err := tx.Conn().PgConn().CopyFrom(ctx, l.rows.reader(), copyRows); err != nil {
		return err
	}
	var owners []string
	var minutes, all, failed, slow, lossy, sizes []int64
	for m, c := range sums.Minutes {
		owners, minutes = append(owners, clean(m.Owner)), append(minutes, m.At)
		all, failed, slow, lossy = append(all, c.All), append(failed, c.Failed), append(slow, c.Slow),
			append(lossy, c.Lossy)
		size := int64(0)
		if m.Owner == "" {
			size = sums.bytes[m.At]
		}
		sizes = append(sizes, size)
	}
	batch := &pgx.Batch{}
	batch.Queue(addMinutes, l.options.Node, owners, minutes, all, failed, slow, lossy, sizes)
	if len(sums.Hours) > 0 {
		var names [5][]string
		var hours, requests, input, output, cost []int64
		for _, s := range sums.Hours {
			for i, name := range []string{s.Owner, s.Key, s.Model, s.Provider, s.App} {
				names[i] = append(names[i], clean(name))
			}
			hours, requests, input, output, cost = append(hours, int64(s.Step)), append(requests, s.Requests),
				append(input, s.Input), append(output, s.Output), append(cost, s.MicroUSD)
		}
		batch.Queue(addSpent, l.options.Node, hours, names[0], names[1], names[2], names[3], names[4], requests, input,
			output, cost)
	}
	return tx.SendBatch(ctx, batch).Close()
}

// clean returns a text that the database takes as such.
func clean(s string) string { return strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", ""), "\ufffd") }

// copyBuffer makes rows in the binary format of COPY. It is used again for each batch.
type copyBuffer struct {
	data    []byte
	lexemes []lexeme
	entries int64 // of the index, of the last row
}

// lexeme is a word of a record with its position, as a tsvector has it.
type lexeme struct {
	text     string
	position int
}

// Bounds of a tsvector.
const (
	maxPosition  = 1<<14 - 1
	maxPositions = 255 // of one lexeme
)

// What a record takes beside its fields: its headers and its entry of the primary key, and each lexeme in the index.
const (
	rowBytes   = 70
	indexBytes = 8
)

// begin starts a new copy with the signature and the header of the binary format of COPY.
func (b *copyBuffer) begin() {
	b.data = append(b.data[:0], "PGCOPY\n\xff\r\n\x00\x00\x00\x00\x00\x00\x00\x00\x00"...)
}

// end writes the trailer of the format, which is the number of columns -1.
func (b *copyBuffer) end() { b.data = append(b.data, 0xff, 0xff) }

// reader returns the copy that was written. It is valid until the next begin.
func (b *copyBuffer) reader() io.Reader { return bytes.NewReader(b.data) }

// indexed returns about how many bytes the last row takes beside its fields.
func (b *copyBuffer) indexed() int64 { return rowBytes + indexBytes*b.entries }

// row writes one record in the order of the columns of copyRows. Each value has its length before it.
func (b *copyBuffer) row(r *requestlog.Record, entry []byte) {
	b.data = append(b.data, 0, 11)
	for _, n := range []int64{r.At, r.Cost, r.Took.Microseconds(), r.First.Microseconds(), r.Queued.Microseconds(),
		r.Input, r.Output, int64(r.Attempts)} {
		b.data = append(b.data, 0, 0, 0, 8)
		b.data = binary.BigEndian.AppendUint64(b.data, uint64(n))
	}
	owner := clean(r.Owner)
	b.data = append(b.number(len(owner)), owner...)
	b.data = append(b.number(len(entry)), entry...)
	b.words(r)
}

// number appends a length.
func (b *copyBuffer) number(n int) []byte {
	b.data = binary.BigEndian.AppendUint32(b.data, uint32(n))
	return b.data
}

// words appends the tsvector: each lexeme once, with its positions.
func (b *copyBuffer) words(r *requestlog.Record) {
	b.lexemes = b.lexemes[:0]
	r.Lexemes(func(text string, position int) {
		b.lexemes = append(b.lexemes, lexeme{text, min(position, maxPosition)})
	})
	for level, shift := range levels {
		b.lexemes = append(b.lexemes, lexeme{text: partLexeme(level, minuteOf(r.At)>>shift)})
	}
	slices.SortFunc(b.lexemes, func(x, y lexeme) int {
		return cmp.Or(cmp.Compare(x.text, y.text), cmp.Compare(x.position, y.position))
	})
	start, count := len(b.data), uint32(0)
	b.number(0) // the bytes of the value, and the number of its lexemes
	b.number(0)
	for i := 0; i < len(b.lexemes); count++ {
		text := b.lexemes[i].text
		b.data = append(append(b.data, text...), 0)
		at, positions, last := len(b.data), uint16(0), 0
		b.data = append(b.data, 0, 0)
		for ; i < len(b.lexemes) && b.lexemes[i].text == text; i++ {
			if p := b.lexemes[i].position; p > last && positions < maxPositions {
				b.data = binary.BigEndian.AppendUint16(b.data, uint16(p))
				positions, last = positions+1, p
			}
		}
		binary.BigEndian.PutUint16(b.data[at:], positions)
	}
	b.entries = int64(count)
	binary.BigEndian.PutUint32(b.data[start:], uint32(len(b.data)-start-4))
	binary.BigEndian.PutUint32(b.data[start+4:], count)
}
