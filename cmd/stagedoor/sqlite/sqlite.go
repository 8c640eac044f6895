// Package sqlite keeps the log of requests in one file of SQLite with a full-text index. Only the program imports it,
// because its driver takes long to compile.
//
// The log matters less than any request. A file that is broken is set aside as a whole and a new one is begun.
//
// # Usage
//
// Open returns a Log, which implements requestlog.Reader and requestlog.Writer. Records that have the
// same names and the same outcome are of one kind, which is kept once and has a row of the full-text
// index. A block of many records has the place, the kind and the amounts of each, with its id and the
// rest beside them. Counts and sums are kept in tables of their own, so that charts do not read
// records, but for those of the last blocks, which are added to the tables together.
//
// # Concurrency
//
// One goroutine writes, which is that of actors/requests. Readers have connections of their own and
// see the last committed batch, so a search never delays the writer.
//
// # Errors
//
// A file of another version or with a fault is renamed and a new one is begun, because a log must
// never keep a gateway from starting. A fault while the gateway runs closes the file, and the next
// use opens it again.
//
// # Files
//
//	sqlite.go             opening, writing, and what happens to a broken file
//	block.go kinds.go     how records are packed, and the names that they share
//	find.go sums.go       searches and sums
//	prune.go              the bounds of age and size
//	schema.sql            the tables
package sqlite

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"net/url"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
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
	// version is that of the tables. Those of the version before are the same, but its blocks have JSON
	// (requestlog.Record.ReadOwn). A file of another version is set aside.
	version = 5
	// yieldEvery is the number of records after which a batch, which takes the processor for longer than most requests
	// do, lets these go on.
	yieldEvery = 16
	// openAgain is the time between two tries to open a file that does not open.
	openAgain  = 30 * time.Second
	maxReaders = 2
)

//go:embed schema.sql
var schema string

// setVersion is the statement that says that the tables are of this version.
var setVersion = fmt.Sprintf("PRAGMA user_version = %d;", version)

// Options configure a Log.
type Options struct {
	Path string
	// Limits returns the bounds of the log, which may change at any time.
	Limits func() requestlog.Limits
	// Room returns how many bytes of the disk the log may still take. While it is negative nothing is appended, and
	// Prune removes records. The log needs a few mebibytes for that, so Room must not count the last ones.
	Room   func() int64
	Now    func() time.Time
	Logger *slog.Logger
}

// Log implements requestlog.Reader and requestlog.Writer.
type Log struct {
	options Options
	full    atomic.Bool // the disk was full at the last append

	mu      sync.RWMutex // held for writing while the file is opened, replaced or closed
	write   *sql.DB      // one connection; nil while the file is not open
	readers *sql.DB
	failed  error // why the file did not open at the last try
	tried   time.Time
	closed  bool

	writing  sync.Mutex // held while records are written or removed
	kinds    knownKinds // of the open file; guarded by writing and by mu
	filling  block      // the last block of the open file, if it is not full; guarded likewise
	counter  int64      // of records
	unsummed int        // full blocks whose records were not added to the sums yet; guarded likewise
	toSum    toSum      // of all such records, or nil if only the file has them; guarded likewise
}

// Open opens the log, or makes it. A file that is broken or of another version is set aside. A log that was opened once
// opens its file again by itself after a fault.
func Open(o Options) (*Log, error) {
	log := &Log{options: o}
	if err := log.ensureOpen(); err != nil {
		return nil, fmt.Errorf("open the log of requests: %w", err)
	}
	return log, nil
}

// Remove removes the log at path, and the file that was set aside. It removes the files of the write-ahead log too,
// because SQLite would apply those of an earlier file to a new one. It goes on after a file that cannot be removed.
func Remove(path string) (err error) {
	for _, suffix := range []string{"", "-wal", "-shm", Broken} {
		if e := os.Remove(path + suffix); !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return err
}

var (
	errClosed = errors.New("the log of requests is closed")
	errNoRoom = errors.New("too little disk space for the log of requests")
)

// ensureOpen opens the file if it is not open, and replaces it if it is broken. After a failure it returns the same
// error for openAgain, and then tries again.
func (l *Log) ensureOpen() error {
	l.mu.RLock()
	open := l.write != nil
	l.mu.RUnlock()
	if open {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.write != nil:
		return nil
	case l.closed:
		return errClosed
	case l.failed != nil && l.options.Now().Sub(l.tried) < openAgain:
		return l.failed
	}
	if l.failed = l.open(); isBroken(l.failed) {
		l.failed = l.replace(l.failed)
	}
	l.tried = l.options.Now()
	return l.failed
}

// errVersion is the error of a file that another version of the program wrote.
var errVersion = errors.New("the file is of another version")

// open opens the file and makes its tables if it is new. It returns errVersion for a file of another version that
// cannot be read. l.mu is held for writing.
func (l *Log) open() (err error) {
	l.forget()
	l.unsummed = sumEvery // an earlier process may have left some
	f, err := os.OpenFile(l.options.Path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(ownership.File(f), f.Close()); err != nil {
		return err
	}
	l.write = l.connect("rw", "journal_mode(WAL)", "synchronous(NORMAL)", "journal_size_limit(8388608)",
		"auto_vacuum(INCREMENTAL)", "cache_size(-1024)")
	l.write.SetMaxOpenConns(1)
	l.readers = l.connect("ro", "query_only(1)", "cache_size(-1024)")
	l.readers.SetMaxOpenConns(maxReaders)
	l.readers.SetConnMaxIdleTime(time.Minute)
	defer func() {
		if err != nil {
			err = errors.Join(err, l.disconnect())
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
	case found == version-1:
		return l.change(context.Background(), func(tx *sql.Tx) error {
			_, err := tx.Exec(setVersion)
			return err
		})
	case found != 0 || tables != 0:
		return errVersion
	}
	return l.change(context.Background(), func(tx *sql.Tx) error {
		_, err := tx.Exec(schema + setVersion)
		return err
	})
}

func (l *Log) connect(mode string, pragmas ...string) *sql.DB {
	query := url.Values{"mode": {mode}, "_txlock": {"immediate"}, "_pragma": append(pragmas, "busy_timeout(2000)")}
	name := url.URL{Scheme: "file", OmitHost: true, Path: l.options.Path, RawQuery: query.Encode()}
	db, err := sql.Open("sqlite", name.String())
	if err != nil {
		panic(err) // the driver is in the program, and no connection is made yet
	}
	return db
}

func (l *Log) disconnect() error {
	if l.write == nil {
		return nil
	}
	err := errors.Join(l.readers.Close(), l.write.Close())
	l.write, l.readers = nil, nil
	return err
}

// SQLite's codes of errors.
const (
	codeBadSchema  = 1
	codeCorrupt    = 11
	codeFull       = 13
	codeNoDatabase = 26
)

func codeOf(err error) int {
	if e, ok := errors.AsType[*driver.Error](err); ok {
		return e.Code() & 0xff
	}
	return 0
}

// isBroken reports whether an error says that the file is no log that this program can use.
func isBroken(err error) bool {
	code := codeOf(err)
	return code == codeCorrupt || code == codeNoDatabase || errors.Is(err, errVersion) || errors.Is(err, errBlock) ||
		code == codeBadSchema && strings.Contains(err.Error(), "no such table")
}

// replace sets the file aside and begins a new one. l.mu is held for writing. The file goes first, because SQLite
// ignores a -wal beside a new file.
func (l *Log) replace(cause error) error {
	aside := l.options.Path + Broken
	if err := os.Rename(l.options.Path, aside); err != nil {
		return err
	}
	for _, suffix := range []string{"-wal", "-shm"} {
		if err := os.Remove(l.options.Path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	l.options.Logger.Warn("the log of requests was broken and begins anew", "file", l.options.Path, "set_aside", aside,
		"cause", cause)
	return l.open()
}

// use runs an operation with the open file. If the operation finds the file broken, the next one has a new file.
func (l *Log) use(do func() error) error {
	if err := l.ensureOpen(); err != nil {
		return err
	}
	used, err := l.run(do)
	if !isBroken(err) {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.write != used || used == nil {
		return err // another goroutine has replaced it
	}
	if e := l.disconnect(); e != nil {
		l.options.Logger.Warn("the broken log of requests did not close", "cause", e)
	}
	l.tried = l.options.Now()
	if l.failed = l.replace(err); l.failed != nil {
		l.options.Logger.Warn("the broken log of requests was not replaced", "cause", l.failed)
	}
	return err
}

// run calls do while the file cannot be closed or replaced, and returns the file's connection, by which use finds out
// whether another goroutine has replaced the file meanwhile.
func (l *Log) run(do func() error) (used *sql.DB, err error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.write == nil {
		return nil, errClosed
	}
	return l.write, do()
}

// Close implements requestlog.Writer.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	return l.disconnect()
}

// Append implements requestlog.Writer. Without room on the disk nothing is written.
func (l *Log) Append(ctx context.Context, records []requestlog.Record) error {
	if l.options.Room() < 0 {
		return errNoRoom
	}
	l.writing.Lock()
	defer l.writing.Unlock()
	add := func() error {
		return l.change(ctx, func(tx *sql.Tx) error { return l.insert(ctx, tx, records) })
	}
	err := l.use(add)
	if isBroken(err) {
		err = l.use(add)
	}
	l.full.Store(codeOf(err) == codeFull)
	return err
}

// change runs one transaction. If it fails, it may have been undone, so change forgets what was known of the file.
func (l *Log) change(ctx context.Context, do func(tx *sql.Tx) error) (err error) {
	defer func() {
		if err != nil {
			l.forget()
		}
	}()
	tx, err := l.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := do(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// forget forgets which kinds and which block are in the file, and what of it is to be summed up.
func (l *Log) forget() { l.kinds, l.filling, l.toSum = knownKinds{}, block{}, nil }

// insert adds records to the block that is being filled, and writes that block anew. When enough blocks are full, it
// adds their records to the sums.
func (l *Log) insert(ctx context.Context, tx *sql.Tx, records []requestlog.Record) error {
	requestlog.SetPlaces(records, &l.counter)
	b := &l.filling
	if b.count > 0 {
		if _, err := tx.ExecContext(ctx, "DELETE FROM blocks WHERE last = ?", b.last); err != nil {
			return err
		}
	}
	var entry []byte
	uncancelled := context.WithoutCancel(ctx) // the driver starts a goroutine for each statement that may be cancelled
	for i := range records {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if i%yieldEvery == 0 {
			runtime.Gosched()
		}
		kind, err := l.kinds.of(uncancelled, tx, &records[i])
		if err != nil {
			return err
		}
		entry = records[i].AppendOwn(entry[:0])
		r := rowOf(&records[i], kind)
		b.add(&r, records[i].ID, entry)
		if l.toSum != nil {
			l.toSum.add(&r)
		}
	}
	if err := b.write(ctx, tx, false); err != nil {
		return err
	}
	if b.count < fullBlock {
		return nil
	}
	b.empty()
	if l.unsummed++; l.unsummed < sumEvery {
		return nil
	}
	return l.addToSums(uncancelled, tx, math.MaxInt64)
}
