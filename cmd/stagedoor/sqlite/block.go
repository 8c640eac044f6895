package sqlite

import (
	"encoding/binary"
	"errors"
	"time"

	"stagedoor/state/requestlog"
)

// block has the records of one or more batches, and is one row of the table blocks. A statement for each record would
// take ten times as long as the rest of writing it. A search reads the rows of a block, which have the numbers that it
// compares, and reads the entries of the block only if it finds a record there.
type block struct {
	first, last int64 // the smallest and the largest place
	base        int64 // to which the places of the rows are relative
	count       int
	rows        []byte // of each record the fields of a row, as varints
	ids         []byte // one after the other
	entries     []byte // requestlog.Record.AppendOwn of each record
}

// fullBlock is the number of records from which on a block takes no others. Batches that are small because there are
// few requests share a block, which is written anew for each of them.
const fullBlock = 64

// amounts are the fields of a record that a search compares, in the order of a row.
var amounts = [...]string{"cost", "took", "first", "queued", "in", "out", "attempts"}

// summed are the places of those in amounts that are added up in sums.
var summed = [...]int{0, 4, 5}

// row has the numbers of a record in a block.
type row struct {
	at, kind int64
	amounts  [len(amounts)]int64
	id       int // the length of its id
	entry    int // and of its entry
}

// rowOf returns the row of a record, whose kind is in the file.
func rowOf(r *requestlog.Record, kind int64) (to row) {
	to.at, to.kind = r.At, kind
	for i, field := range amounts {
		to.amounts[i] = r.Number(field)
	}
	return to
}

// add adds a record.
func (b *block) add(r *row, id string, entry []byte) {
	if b.count == 0 {
		b.first, b.last, b.base = r.at, r.at, r.at
	}
	b.first, b.last, b.count = min(b.first, r.at), max(b.last, r.at), b.count+1
	b.ids, b.entries = append(b.ids, id...), append(b.entries, entry...)
	b.rows = binary.AppendVarint(b.rows, r.at-b.base)
	b.rows = binary.AppendVarint(b.rows, r.kind)
	b.rows = binary.AppendVarint(b.rows, int64(len(id)))
	b.rows = binary.AppendVarint(b.rows, int64(len(entry)))
	for _, n := range r.amounts {
		b.rows = binary.AppendVarint(b.rows, n)
	}
}

// empty removes the records, but keeps the memory for others.
func (b *block) empty() { *b = block{rows: b.rows[:0], ids: b.ids[:0], entries: b.entries[:0]} }

// errBlock is the error of a block that has something else than its records. The file is broken then.
var errBlock = errors.New("a block of records cannot be read")

// each calls found with each row and with the places of its id and of its entry in those of the block, until it returns
// an error.
func (b *block) each(found func(r *row, id, entry int) error) error {
	var fields [4 + len(amounts)]int64
	var r row
	for at, id, entry := 0, 0, 0; at < len(b.rows); id, entry = id+r.id, entry+r.entry {
		for i := range fields {
			n, size := int64(0), 1
			if at < len(b.rows) && b.rows[at] < 0x80 { // most are short
				n = int64(b.rows[at]>>1) ^ -int64(b.rows[at]&1)
			} else if n, size = binary.Varint(b.rows[at:]); size <= 0 {
				return errBlock
			}
			fields[i], at = n, at+size
		}
		r.at, r.kind, r.id, r.entry = b.base+fields[0], fields[1], int(fields[2]), int(fields[3])
		copy(r.amounts[:], fields[4:])
		if r.id < 0 || r.entry < 0 || r.id > maxField || r.entry > maxField {
			return errBlock
		}
		if err := found(&r, id, entry); err != nil {
			return err
		}
	}
	return nil
}

// maxField is more than any id or entry has.
const maxField = 1 << 24

// part returns a part of ids or entries.
func part(of []byte, from, length int) ([]byte, error) {
	if from+length > len(of) {
		return nil, errBlock
	}
	return of[from : from+length], nil
}

// record returns the record of a row.
func (r *row) record(id, entry []byte, k *kindNames) (rec requestlog.Record) {
	rec.At = r.at
	if rec.ReadEntry(k.names); rec.Code != requestlog.Unreadable {
		rec.ReadOwn(entry)
	}
	rec.ID, rec.Owner = string(id), k.owner
	r.measure(&rec)
	return rec
}

// measure sets the time and the amounts of rec to those of the row.
func (r *row) measure(rec *requestlog.Record) {
	us := func(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
	rec.Cost, rec.Took, rec.First, rec.Queued = r.amounts[0], us(r.amounts[1]), us(r.amounts[2]), us(r.amounts[3])
	rec.Input, rec.Output = r.amounts[4], r.amounts[5]
	rec.Began = time.UnixMicro(requestlog.TimeOf(r.at)).UTC()
}
