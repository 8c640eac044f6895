// Package pglog keeps the log of requests of all gateways of a shared store in its database, in tables beside those of
// state/journal/postgres. A record has the name of the node that wrote it, and a search finds the records of all.
//
// The log matters less than any request and than the state. It has connections of its own, whose statements the
// database ends after a few seconds, and it does not wait until the database has made a batch durable: a crash of the
// database may lose the batches of the last second.
//
// # Usage
//
// Open returns a Log at once and connects at its first use, so a gateway starts also while its
// database is away. Append, Find, Count and Spent are those of requestlog.Writer and
// requestlog.Reader. Prune is called from time to time by actors/requests, and one node at a time
// does its work.
//
// # Concurrency
//
// One goroutine appends and prunes, which is that of actors/requests. Any number may read. Nodes do
// not coordinate: their records differ by the name of the node.
package pglog

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"stagedoor/state/journal/postgres"
	"stagedoor/state/requestlog"
)

//go:embed schema.sql
var schema string

const (
	// readers is the number of connections for searches. One more connection writes.
	readers = 2
	present = "to_regclass('stagedoor.request_spent') IS NOT NULL"
	// pruneRows is the number of records that one transaction removes, so that no transaction takes long.
	pruneRows = 2000
	// pruneLock is the advisory lock of the node that removes records.
	pruneLock = 7239018464
)

// Codes of errors of Postgres.
const (
	codeUnique    = "23505"
	codeNoTable   = "42P01"
	codeNoSchema  = "3F000"
	classShutdown = "57P"
)

// settings has the settings of the connections. A commit does not wait for the disk or for a synchronous standby,
// because the log would then slow the database down when the state needs it. Each search gets a plan of its own,
// because a plan that does not know the searched values is a bad one. No search needs to read a whole table.
var settings = map[string]string{"synchronous_commit": "off", "statement_timeout": "6s", "lock_timeout": "2s",
	"idle_in_transaction_session_timeout": "5s", "plan_cache_mode": "force_custom_plan", "jit": "off",
	"enable_seqscan": "off"}

// Options configure a Log.
type Options struct {
	// Node is the name of this gateway.
	Node string
	// Limits returns the bounds of the log of all nodes, which may change at any time.
	Limits func() requestlog.Limits
	Now    func() time.Time
	// recent, few and part tune a search.
	recent, few, part int
	// otherClock is set in tests whose times are not those of the database.
	otherClock bool
}

// Log implements requestlog.Reader and requestlog.Writer. It goes on by itself after the database was away.
type Log struct {
	options     Options
	write, read *pgxpool.Pool
	ready       atomic.Bool // the tables were there
	counter     int64       // of the goroutine that appends
	rows        copyBuffer  // likewise
}

// Database is a postgres.Store.
type Database interface {
	Connections(most int32, settings map[string]string) (*pgxpool.Pool, error)
}

// Open returns the log in a database. The first use connects to it and makes the tables.
func Open(db Database, o Options) (*Log, error) {
	o.recent, o.few, o.part = cmp.Or(o.recent, recent), cmp.Or(o.few, few), cmp.Or(o.part, part)
	write, err := db.Connections(1, settings)
	if err != nil {
		return nil, fmt.Errorf("open the log of requests: %w", err)
	}
	read, err := db.Connections(readers, settings)
	if err != nil {
		write.Close()
		return nil, fmt.Errorf("open the log of requests: %w", err)
	}
	// A node that starts again in the microsecond of an earlier record takes another place than that.
	return &Log{options: o, write: write, read: read, counter: o.Now().UnixNano()}, nil
}

// Close implements requestlog.Writer.
func (l *Log) Close() error {
	l.read.Close()
	l.write.Close()
	return nil
}

// Remove removes the records of all nodes. Nodes that go on writing begin with an empty log.
func Remove(ctx context.Context, db Database) error {
	pool, err := db.Connections(1, settings)
	if err != nil {
		return err
	}
	defer pool.Close()
	var there bool
	if err := pool.QueryRow(ctx, "SELECT "+present).Scan(&there); err != nil || !there {
		return err
	}
	_, err = pool.Exec(ctx, "TRUNCATE stagedoor.request_log, stagedoor.request_minute, stagedoor.request_spent")
	return err
}

// use runs statements on a connection of a pool. They are tried a second time on a new connection if the first one was
// broken, as all are when the database was started again, or if the tables were missing. An errFinal is returned at
// once.
func (l *Log) use(ctx context.Context, pool *pgxpool.Pool, do func(*pgx.Conn) error) error {
	err := l.once(ctx, pool, do)
	if err == nil || !missing(err) && refused(err) != nil || errors.Is(err, errFinal) || ctx.Err() != nil {
		return err
	}
	return l.once(ctx, pool, do)
}

// once calls do with a connection, after it has made the tables if they are not there. If do finds no tables, the next
// call makes them: the database may have been replaced by an empty one.
func (l *Log) once(ctx context.Context, pool *pgxpool.Pool, do func(*pgx.Conn) error) error {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	if !l.ready.Load() {
		if err := postgres.MakeTables(ctx, conn.Conn(), present, schema); err != nil {
			return err
		}
		l.ready.Store(true)
	}
	err = do(conn.Conn())
	if missing(err) {
		l.ready.Store(false)
	}
	return err
}

// errFinal says that statements must not be repeated: a transaction may have been committed, or the caller may have got
// some of the records.
var errFinal = errors.New("the connection to the database broke")

// change runs one transaction of the writer.
func (l *Log) change(ctx context.Context, do func(pgx.Tx) error) error {
	return l.use(ctx, l.write, func(conn *pgx.Conn) error {
		tx, err := conn.Begin(ctx)
		if err != nil {
			return err
		}
		if err := do(tx); err != nil {
			return errors.Join(err, tx.Rollback(context.WithoutCancel(ctx)))
		}
		if err = tx.Commit(ctx); err != nil {
			return fmt.Errorf("%w: %w", errFinal, err)
		}
		return nil
	})
}

// refused returns the error with which the database has answered a statement. It returns nil if the database has not
// answered, or has only said that it shuts down.
func refused(err error) *pgconn.PgError {
	answer, _ := errors.AsType[*pgconn.PgError](err)
	if answer != nil && strings.HasPrefix(answer.Code, classShutdown) {
		return nil
	}
	return answer
}

// missing reports whether an error says that the tables are not there.
func missing(err error) bool {
	answer := refused(err)
	return answer != nil && (answer.Code == codeNoTable || answer.Code == codeNoSchema)
}

// oldest returns the first place of the records that are not too old.
func (l *Log) oldest() int64 { return l.oldestAt(l.options.Now()) }

// oldestAt returns the first place of the records that are not too old at a time.
func (l *Log) oldestAt(now time.Time) int64 {
	return requestlog.Place(now.Add(-l.options.Limits().Keep))
}

// tooMuch selects the first minute from which on all records are within a number of bytes.
const tooMuch = `SELECT coalesce(max(minute) + 1, 0) FROM (
	SELECT minute, sum(sum(bytes)) OVER (ORDER BY minute DESC) AS size
	FROM stagedoor.request_minute WHERE owner = '' GROUP BY minute) m WHERE size > $1`

// Prune implements requestlog.Writer. It removes the oldest records of all nodes, unless another node is doing so at
// this moment. What is too much by its bytes goes by whole minutes.
func (l *Log) Prune(ctx context.Context) (more bool, err error) {
	err = l.change(ctx, func(tx pgx.Tx) error {
		var mine bool
		now, minute := l.options.Now(), int64(0)
		var theirs time.Time
		err := tx.QueryRow(ctx, "SELECT pg_try_advisory_xact_lock($1), clock_timestamp()", int64(pruneLock)).
			Scan(&mine, &theirs)
		if err != nil || !mine {
			return err
		}
		if theirs.Before(now) && !l.options.otherClock {
			now = theirs // a node whose clock is ahead would remove what the others keep
		}
		if err := tx.QueryRow(ctx, tooMuch, l.options.Limits().Bytes).Scan(&minute); err != nil {
			return err
		}
		before := max(l.oldestAt(now), requestlog.Place(time.Unix(minute*60, 0)))
		var last *int64
		var removed int
		const oldest = `SELECT max(at), count(*) FROM
			(SELECT at FROM stagedoor.request_log WHERE at < $1 ORDER BY at LIMIT $2) o`
		err = tx.QueryRow(ctx, oldest, before, pruneRows).Scan(&last, &removed)
		if err != nil {
			return err
		}
		if more = removed == pruneRows; !more {
			last = &before // so that no count outlives its records
		}
		us := requestlog.TimeOf(*last)
		batch := &pgx.Batch{}
		if removed > 0 {
			batch.Queue("DELETE FROM stagedoor.request_log WHERE at <= $1 AND at < $2", *last, before)
		}
		batch.Queue("DELETE FROM stagedoor.request_minute WHERE minute < $1", us/60_000_000)
		batch.Queue("DELETE FROM stagedoor.request_spent WHERE hour < $1", us/3_600_000_000)
		return tx.SendBatch(ctx, batch).Close()
	})
	return more && err == nil, err
}
