// Package sqlite keeps the log of requests in one file of SQLite with a full-text index. Only the program imports it,
// because its driver takes long to compile.
//
// The log matters less than any request. A file that is broken is set aside as a whole and a new one is begun.
package sqlite

import (
	"context"
	"database/sql"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	driver "modernc.org/sqlite"

	"stagedoor/state/ownership"
	"stagedoor/state/requestlog"
)

// FileName is the name of the log in the data directory. Beside it are SQLite's -wal and -shm, and, under Broken, the
// last file that was set aside.
const (
	FileName = "requests.sqlite"
	Broken   = ".broken"
)

const (
	pageBytes = 4096
	// version is that of the tables. A file of another version is set aside.
	version = 1
	// placeBits are the low bits of a place, which tell records of one microsecond apart.
	placeBits = 10
	// pruneRows is the number of records that one transaction removes, so that no transaction takes long.
	pruneRows = 2000
	// pruneEvery is the number of records after which the bounds are checked.
	pruneEvery = 1000
	readers    = 2
)

//go:embed schema.sql
var schema string

// Log implements requestlog.Store.
type Log struct {
	path   string
	logger *slog.Logger
	now    func() time.Time

	mu      sync.RWMutex // held for writing while the file is opened, replaced or closed
	write   *sql.DB      // one connection
	read    *sql.DB
	limits  requestlog.Limits
	added   int // since the bounds were checked
	counter int64
}

// Open opens the log at path, or makes it. A file that is broken or of another version is set aside.
func Open(path string, l requestlog.Limits, now func() time.Time, logger *slog.Logger) (*Log, error) {
	log := &Log{path: path, logger: logger, now: now, limits: l, added: pruneEvery}
	err := log.open()
	if isBroken(err) {
		err = log.replace(err)
	}
	if err != nil {
		return nil, fmt.Errorf("open the log of requests: %w", err)
	}
	return log, nil
}

// errVersion is the error of a file that another version of the program wrote.
var errVersion = errors.New("the file is of another version")

func (l *Log) open() (err error) {
	f, err := os.OpenFile(l.path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(ownership.File(f), f.Close()); err != nil {
		return err
	}
	l.write = l.connect("rw", "journal_mode(WAL)", "synchronous(NORMAL)", "journal_size_limit(8388608)",
		"auto_vacuum(INCREMENTAL)", "cache_size(-1024)")
	l.write.SetMaxOpenConns(1)
	l.read = l.connect("ro", "query_only(1)", "cache_size(-1024)")
	l.read.SetMaxOpenConns(readers)
	l.read.SetConnMaxIdleTime(time.Minute)
	defer func() {
		if err != nil {
			l.disconnect()
		}
	}()
	var found, tables int
	if err := l.write.QueryRow("PRAGMA user_version").Scan(&found); err != nil {
		return err
	}
	if err := l.write.QueryRow("SELECT count(*) FROM sqlite_schema").Scan(&tables); err != nil {
		return err
	}
	switch {
	case found == version:
		return nil
	case found != 0 || tables != 0:
		return errVersion
	}
	return l.change(context.Background(), func(tx *sql.Tx) error {
		_, err := tx.Exec(schema + fmt.Sprintf("PRAGMA user_version = %d;", version))
		return err
	})
}

func (l *Log) connect(mode string, pragmas ...string) *sql.DB {
	query := url.Values{"mode": {mode}, "_txlock": {"immediate"}, "_pragma": append(pragmas, "busy_timeout(2000)")}
	name := url.URL{Scheme: "file", OmitHost: true, Path: l.path, RawQuery: query.Encode()}
	db, err := sql.Open("sqlite", name.String())
	if err != nil {
		panic(err) // the driver is in the program, and no connection is made yet
	}
	return db
}

func (l *Log) disconnect() error {
	return errors.Join(l.read.Close(), l.write.Close())
}

// isBroken reports whether an error says that the file is no log that this program can use.
func isBroken(err error) bool {
	if errors.Is(err, errVersion) {
		return true
	}
	const corrupt, noDatabase, badSchema = 11, 26, 1
	e, ok := errors.AsType[*driver.Error](err)
	if !ok {
		return false
	}
	code := e.Code() & 0xff
	return code == corrupt || code == noDatabase || code == badSchema && strings.Contains(e.Error(), "no such table")
}

// replace sets the file aside and begins a new one. l.mu is held for writing, or Open has not returned.
func (l *Log) replace(cause error) error {
	aside := l.path + Broken
	for _, suffix := range []string{"-wal", "-shm"} {
		if err := os.Remove(l.path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := os.Rename(l.path, aside); err != nil {
		return err
	}
	l.logger.Warn("the log of requests was broken and begins anew", "file", l.path, "set_aside", aside, "cause", cause)
	return l.open()
}

// repair sets a broken file aside after an operation failed with err. It reports whether the operation may succeed now.
func (l *Log) repair(failed *sql.DB, err error) bool {
	if !isBroken(err) {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if failed != l.write && failed != l.read {
		return true // another goroutine has repaired it
	}
	if e := l.disconnect(); e != nil {
		l.logger.Warn("the broken log of requests did not close", "cause", e)
	}
	if e := l.replace(err); e != nil {
		l.logger.Warn("the broken log of requests was not replaced", "cause", e)
		return false
	}
	return true
}

// Limit implements requestlog.Store.
func (l *Log) Limit(limits requestlog.Limits) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.limits != limits {
		l.limits, l.added = limits, pruneEvery
	}
}

// Close implements requestlog.Store.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.disconnect()
}

// Append implements requestlog.Store.
func (l *Log) Append(ctx context.Context, records []requestlog.Record) error {
	db, err := l.append(ctx, records)
	if err != nil && l.repair(db, err) {
		_, err = l.append(ctx, records)
	}
	return err
}

func (l *Log) append(ctx context.Context, records []requestlog.Record) (*sql.DB, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	err := l.change(ctx, func(tx *sql.Tx) error { return l.insert(ctx, tx, records) })
	if l.added += len(records); err == nil && l.added >= pruneEvery {
		l.added = 0
		err = l.prune(ctx)
	}
	return l.write, err
}

// change runs one transaction.
func (l *Log) change(ctx context.Context, do func(tx *sql.Tx) error) error {
	tx, err := l.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := do(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// columns are those of the table, in the order of values and scan.
const columns = "at, owner, cost, took, first, queued, input, output, attempts, entry"

// minute is one row of counts.
type minute struct {
	owner string
	at    int64
}

func (l *Log) insert(ctx context.Context, tx *sql.Tx, records []requestlog.Record) error {
	row, err := tx.PrepareContext(ctx, "INSERT INTO requests ("+columns+") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
	if err != nil {
		return err
	}
	defer row.Close()
	names := requestlog.Columns()
	words, err := tx.PrepareContext(ctx, "INSERT INTO words (rowid, "+strings.Join(names, ", ")+") VALUES (?"+
		strings.Repeat(", ?", len(names))+")")
	if err != nil {
		return err
	}
	defer words.Close()
	counts := make(map[minute]*requestlog.Counts)
	for i := range records {
		r := &records[i]
		l.counter++
		r.At = place(r.Began) | l.counter&(1<<placeBits-1)
		entry, err := json.Marshal(r)
		if err != nil {
			return err
		}
		_, err = row.ExecContext(ctx, r.At, r.Owner, r.Cost, r.Took.Microseconds(), r.First.Microseconds(),
			r.Queued.Microseconds(), r.Input, r.Output, r.Attempts, entry)
		if err != nil {
			return err
		}
		values := []any{r.At}
		for _, text := range r.Words() {
			values = append(values, text)
		}
		if _, err := words.ExecContext(ctx, values...); err != nil {
			return err
		}
		for _, owner := range []string{"", r.Owner} {
			count(counts, minute{owner, r.Began.Unix() / 60}, r)
		}
	}
	for m, c := range counts {
		_, err := tx.ExecContext(ctx, `INSERT INTO minutes (owner, minute, requests, failed, slow, lossy)
			VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET requests = requests + excluded.requests,
			failed = failed + excluded.failed, slow = slow + excluded.slow, lossy = lossy + excluded.lossy`,
			m.owner, m.at, c.All, c.Failed, c.Slow, c.Lossy)
		if err != nil {
			return err
		}
	}
	return nil
}

func count(counts map[minute]*requestlog.Counts, m minute, r *requestlog.Record) {
	c := counts[m]
	if c == nil {
		c = new(requestlog.Counts)
		counts[m] = c
	}
	c.All++
	for n, is := range map[*int64]bool{&c.Failed: r.Failed(), &c.Slow: r.Slow(), &c.Lossy: r.Losses != ""} {
		if is {
			*n++
		}
	}
}

// place returns the first place of the records that began at a time.
func place(t time.Time) int64 { return max(t.UnixMicro(), 0) << placeBits }

// prune removes the records that are too old, and then the oldest ones until the log has its size.
func (l *Log) prune(ctx context.Context) error {
	oldest := l.now().Add(-l.limits.Keep)
	for {
		removed, err := l.remove(ctx, place(oldest))
		if err != nil {
			return err
		}
		if removed == pruneRows {
			continue
		}
		size, err := l.size(ctx)
		if err != nil || size <= l.limits.Bytes {
			return err
		}
		// The index gives the pages of removed records back as it merges, so a round may free little.
		removed, err = l.remove(ctx, 1<<62)
		if err == nil && removed == 0 {
			return errors.New("the log of requests is too small for one record")
		}
		if err == nil {
			_, err = l.write.ExecContext(ctx, "PRAGMA incremental_vacuum")
		}
		if err != nil {
			return err
		}
	}
}

// size returns the bytes of the file that are in use.
func (l *Log) size(ctx context.Context) (int64, error) {
	var pages, free int64
	const figures = "SELECT page_count, freelist_count FROM pragma_page_count, pragma_freelist_count"
	err := l.write.QueryRowContext(ctx, figures).Scan(&pages, &free)
	return (pages - free) * pageBytes, err
}

// remove removes up to pruneRows of the oldest records before a place, and their counts.
func (l *Log) remove(ctx context.Context, before int64) (removed int64, err error) {
	err = l.change(ctx, func(tx *sql.Tx) error {
		var last sql.NullInt64
		const oldest = "SELECT max(at), count(*) FROM (SELECT at FROM requests WHERE at < ? ORDER BY at LIMIT ?)"
		err := tx.QueryRowContext(ctx, oldest, before, pruneRows).Scan(&last, &removed)
		if err != nil || removed == 0 {
			return err
		}
		for _, statement := range []string{
			"DELETE FROM words WHERE rowid IN (SELECT at FROM requests WHERE at <= ?1)",
			"DELETE FROM requests WHERE at <= ?1",
			"DELETE FROM minutes WHERE minute < (?1 >> 10) / 60000000",
		} {
			if _, err := tx.ExecContext(ctx, statement, last.Int64); err != nil {
				return err
			}
		}
		return nil
	})
	return removed, err
}
