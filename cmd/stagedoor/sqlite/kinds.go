package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"strings"

	"stagedoor/state/requestlog"
)

// The names and the outcome of a request are its kind (requestlog.Record.AppendKind). Many requests have the same one,
// because the same user sends requests to the same model again and again with the same outcome. So the file has a kind
// once, and the full-text index has an entry of each kind and not of each request.

// knownKind is a kind that is in the file.
type knownKind struct{ kind, used int64 }

// knownKinds are those that were used lately. Zero is ready for use.
type knownKinds struct {
	kinds map[requestlog.Kind]knownKind
	bytes int // which they take, about
}

// These bound the memory of knownKinds. Kinds that are not among them are looked up in the file, by their hashes.
const (
	maxKnown      = 1 << 14
	maxKnownBytes = 8 << 20
	kindBytes     = 512 // of one, without its texts
)

// minuteOf returns the minute of a place since 1970.
func minuteOf(place int64) int64 { return requestlog.TimeOf(place) / 60_000_000 }

// of returns the number of the kind of a record, which it adds to the file if it is new. If the transaction fails, the
// kinds that it knows are no longer valid.
func (known *knownKinds) of(ctx context.Context, tx *sql.Tx, r *requestlog.Record) (int64, error) {
	is := r.Kind()
	k, ok := known.kinds[is]
	names := 0
	if !ok {
		var err error
		if k, names, err = findKind(ctx, tx, r); err != nil {
			return 0, err
		}
	}
	minute := minuteOf(r.At)
	if ok && k.used >= minute {
		return k.kind, nil
	}
	if k.used < minute {
		k.used = minute
		if _, err := tx.ExecContext(ctx, "UPDATE kinds SET used = ? WHERE kind = ?", k.used, k.kind); err != nil {
			return 0, err
		}
	}
	if known.kinds == nil || len(known.kinds) >= maxKnown || known.bytes >= maxKnownBytes {
		known.kinds, known.bytes = make(map[requestlog.Kind]knownKind), 0
	}
	if !ok {
		known.bytes += kindBytes + names
	}
	known.kinds[is.Clone()] = k // a map takes the new key also where it has an equal one
	return k.kind, nil
}

// findKind returns the kind of a record from the file, to which it adds a new one, and the bytes of its names.
func findKind(ctx context.Context, tx *sql.Tx, r *requestlog.Record) (k knownKind, bytes int, err error) {
	names := append([]byte(r.Owner), 0)
	if r.Slow() {
		names = append(names, 's') // which the full text has, and the names do not
	}
	start := len(names)
	names = r.AppendKind(names)
	hash := sha256.Sum256(names)
	err = tx.QueryRowContext(ctx, "SELECT kind, used FROM kinds WHERE hash = ?", hash[:]).Scan(&k.kind, &k.used)
	if errors.Is(err, sql.ErrNoRows) {
		k.used = minuteOf(r.At)
		k.kind, err = addKind(ctx, tx, r, k.used, hash[:], names[start:])
	}
	return k, len(names), err
}

// addKind adds the kind of a record to the file and to the full-text index, and returns its number.
func addKind(ctx context.Context, tx *sql.Tx, r *requestlog.Record, used int64, hash, names []byte) (int64, error) {
	result, err := tx.ExecContext(ctx, "INSERT INTO kinds (hash, used, owner, names) VALUES (?, ?, ?, ?)", hash, used,
		r.Owner, names)
	if err != nil {
		return 0, err
	}
	kind, err := result.LastInsertId()
	if err != nil {
		return 0, err
	}
	columns, values := requestlog.KindColumns(), []any{kind}
	for _, text := range r.KindWords() {
		values = append(values, text)
	}
	_, err = tx.ExecContext(ctx, "INSERT INTO words (rowid, "+strings.Join(columns, ", ")+") VALUES (?"+
		strings.Repeat(", ?", len(columns))+")", values...)
	return kind, err
}

// removeKinds removes the kinds that have not been used since a minute, and reports whether there were any.
func removeKinds(ctx context.Context, tx *sql.Tx, minute int64) (bool, error) {
	const old = "DELETE FROM words WHERE rowid IN (SELECT kind FROM kinds WHERE used < ?)"
	if _, err := tx.ExecContext(ctx, old, minute); err != nil {
		return false, err
	}
	result, err := tx.ExecContext(ctx, "DELETE FROM kinds WHERE used < ?", minute)
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n > 0, err
}

// kindNames has the owner and the names of a kind.
type kindNames struct {
	owner string
	names []byte
}

// kindSet has the kinds that satisfy a condition, as bits by their numbers.
type kindSet []uint64

func (s kindSet) has(kind int64) bool {
	i := uint64(kind) / 64
	return i < uint64(len(s)) && s[i]>>(uint64(kind)%64)&1 != 0
}

// kindsThat returns the kinds that the full-text index finds.
func kindsThat(ctx context.Context, conn *sql.Conn, match string) (set kindSet, err error) {
	// In descending order, so that the set has its size at once.
	rows, err := conn.QueryContext(ctx, "SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid DESC", match)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var kind int64
		if err := rows.Scan(&kind); err != nil {
			return nil, err
		}
		if set == nil {
			set = make(kindSet, kind/64+1)
		}
		set[kind/64] |= 1 << (kind % 64)
	}
	return set, rows.Err()
}
