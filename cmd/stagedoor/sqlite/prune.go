package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"os"

	"stagedoor/state/requestlog"
)

// Bounds of what one transaction removes, so that none takes long.
const (
	pruneBytes  = 256 << 10
	pruneBlocks = 64
)

// oldest returns the first place of the records that are not too old.
func (l *Log) oldest() int64 { return requestlog.Place(l.options.Now().Add(-l.options.Limits().Keep)) }

// Prune implements requestlog.Writer. It removes the records that are too old, and then the oldest blocks until the log
// has its size and leaves the disk its room. It does a bounded part at a time and returns true if there is more, so
// that records are not kept waiting for one long change. The file that was set aside is removed when all of it would be
// too old.
func (l *Log) Prune(ctx context.Context) (more bool, err error) {
	aside := l.options.Path + Broken
	if info, err := os.Stat(aside); err == nil && requestlog.Place(info.ModTime()) < l.oldest() {
		if err := os.Remove(aside); err != nil {
			return false, err
		}
	}
	l.writing.Lock()
	defer l.writing.Unlock()
	err = l.use(func() error {
		if more, err = l.remove(ctx, l.oldest()); more || err != nil {
			return err
		}
		size, err := l.size(ctx)
		large, short := size > l.options.Limits().Bytes, l.full.Swap(false) || l.options.Room() < 0
		if err != nil || !large && !short {
			return err
		}
		more, err = l.remove(ctx, math.MaxInt64)
		if err == nil && !more && large {
			return errors.New("the log of requests is too small for one record")
		}
		for _, statement := range []string{"PRAGMA incremental_vacuum", "PRAGMA wal_checkpoint(TRUNCATE)"} {
			if err == nil {
				_, err = l.write.ExecContext(ctx, statement)
			}
		}
		return err
	})
	return more && err == nil, err
}

// size returns the bytes of the file that are in use.
func (l *Log) size(ctx context.Context) (int64, error) {
	var pages, free int64
	const figures = "SELECT page_count, freelist_count FROM pragma_page_count, pragma_freelist_count"
	err := l.write.QueryRowContext(ctx, figures).Scan(&pages, &free)
	return (pages - free) * pageBytes, err
}

// remove removes some of what is older than a place: blocks as a whole as long as there are any, then that part of
// blocks. It reports whether there may be more.
func (l *Log) remove(ctx context.Context, before int64) (more bool, err error) {
	err = l.change(ctx, func(tx *sql.Tx) error {
		last, err := oldBlocks(ctx, tx, before)
		if err != nil {
			return err
		}
		end := before
		if last != 0 {
			end = last + 1
		}
		if err := l.addToSums(ctx, tx, end); err != nil {
			return err
		}
		if last != 0 {
			_, err = tx.ExecContext(ctx, "DELETE FROM blocks WHERE last <= ?", last)
			more = true
		} else {
			more, err = l.trim(ctx, tx, before)
		}
		if err != nil || !more {
			return err
		}
		l.filling = block{} // it may have been removed
		var oldest int64
		const first = "SELECT coalesce(min(first), ?) FROM blocks"
		if err := tx.QueryRowContext(ctx, first, last+1).Scan(&oldest); err != nil {
			return err
		}
		for _, statement := range []string{
			"DELETE FROM minutes WHERE minute < (?1 >> 10) / 60000000",
			"DELETE FROM spent WHERE hour < (?1 >> 10) / 3600000000",
		} {
			if _, err := tx.ExecContext(ctx, statement, oldest); err != nil {
				return err
			}
		}
		unused := minuteOf(oldest)
		if oldest == last+1 { // no block is left
			unused = math.MaxInt64
		}
		removed, err := removeKinds(ctx, tx, unused)
		if removed {
			l.kinds = knownKinds{}
		}
		return err
	})
	return more, err
}

// oldBlocks returns the last place of some of the oldest blocks that end before a place, or 0 if there are none.
func oldBlocks(ctx context.Context, tx *sql.Tx, before int64) (last int64, err error) {
	const oldest = `SELECT last, length(rows) + length(ids) + length(entries) FROM blocks WHERE last < ?
		ORDER BY last LIMIT ?`
	rows, err := tx.QueryContext(ctx, oldest, before, pruneBlocks)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for bytes := 0; bytes < pruneBytes && rows.Next(); {
		var n int
		if err := rows.Scan(&last, &n); err != nil {
			return 0, err
		}
		bytes += n
	}
	return last, rows.Err()
}

// trim removes what is older than a place from one of the blocks that reach beyond it.
func (l *Log) trim(ctx context.Context, tx *sql.Tx, before int64) (trimmed bool, err error) {
	var old, rest block
	const blocks = "SELECT last, base, rows, ids, entries FROM blocks WHERE first < ? LIMIT 1"
	err = tx.QueryRowContext(ctx, blocks, before).Scan(&old.last, &old.base, &old.rows, &old.ids, &old.entries)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	err = old.each(func(r *row, id, entry int) error {
		if r.at < before {
			return nil
		}
		name, err := part(old.ids, id, r.id)
		if err != nil {
			return err
		}
		own, err := part(old.entries, entry, r.entry)
		if err == nil {
			rest.add(r, string(name), own)
		}
		return err
	})
	if err != nil {
		return false, err
	}
	if _, err := tx.ExecContext(ctx, "DELETE FROM blocks WHERE last = ?", old.last); err != nil {
		return false, err
	}
	return true, rest.write(ctx, tx, true)
}

// write adds a block to the file. summed says whether its records are in the sums.
func (b *block) write(ctx context.Context, tx *sql.Tx, summed bool) error {
	const add = "INSERT INTO blocks VALUES (?, ?, ?, ?, ?, ?, ?)"
	_, err := tx.ExecContext(ctx, add, b.last, b.first, b.base, b.rows, b.ids, b.entries, summed)
	return err
}
