package postgres

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"stagedoor/state/journal"
)

// Options say how a node takes part.
type Options struct {
	// Node is the name of this process among those that write. A process of the same name that runs still is fenced.
	Node string
	// Lease is the time for which this node must see the beat of another one unchanged before it may expel it. The
	// default is five seconds.
	Lease time.Duration
	// AnswerWait bounds the wait for an answer of the database, after which the connection is taken for broken. The
	// default is ten seconds.
	AnswerWait time.Duration
	// Version is the version of the program, which Members shows.
	Version string
	// Address is that on which the node answers the others, which Members shows. It may be empty.
	Address string
	// Standby makes the node a stand-by if another one is live. It follows the log, and cannot append until Await
	// has returned.
	Standby bool
	// Several permits several live nodes, if all of them set it. Open waits until nodes that do not set it have ended,
	// and fails if they do not end. A node with Several expels silent nodes as long as it runs.
	Several bool
	// tidyEvery is the time between two calls of tidy, by default tidyEvery.
	tidyEvery time.Duration
	// reads is the newest format that this node reads, by default format. Tests set it to that of an older program.
	reads int
	// Configure, if set, changes how connections are made.
	Configure func(*pgx.ConnConfig)
}

// Store is one node's connection to the database. Any goroutine may use it, but see journal.Shared.
type Store struct {
	options Options
	config  *pgx.ConnConfig
	pool    *pgxpool.Pool // for reads and for tidying
	epoch   int64

	// writing is held while conn is used: by Append and Turn.
	writing sync.Mutex
	conn    *pgx.Conn // nil after it broke
	turn    bool      // conn has locked the end of the log
	seq     int64     // of the last append
	staged  map[record]stagedValue

	lsn, commits atomic.Uint64
	appender     atomic.Uint32 // the process of the database behind conn, which its notifications name
	// followed is the last entry that the caller has applied or made, or nil before the first.
	followed atomic.Pointer[journal.Position]
	size     atomic.Int64
	away     atomic.Pointer[error] // why the database cannot be reached, or nil
	standby  atomic.Bool
	format   atomic.Int64 // of the log, when it was last looked at
	leave    sync.Once
	leaving  chan struct{}             // closed by leave once this node is asked to leave
	end      atomic.Uint64             // of the log, when it was last looked at
	turns    atomic.Uint64             // that were taken
	contact  atomic.Pointer[time.Time] // when the database was last asked something that it answered
	beaten   atomic.Pointer[time.Time] // when the last beat that counted was sent
	fenced   atomic.Bool
	changed  chan struct{}
	silence  silence // of the other nodes

	running context.Context // until Close
	stop    context.CancelFunc
	work    sync.WaitGroup
}

//go:embed schema.sql
var schemaSQL string

const (
	// format is the newest that this program reads and writes. The log has it once all nodes read it, so that nodes of
	// two versions can serve side by side while one after the other is upgraded. The formats are
	//
	//	1  the first one
	//	2  entries may change the tables with this journal.Table.Format
	//	3  the index of receipts has one record for several requests
	format = 3
	// oldest is the oldest format that this program reads. A log without entries has every format.
	oldest = 3
	// connections bounds those that read. A node has three more, to append, to listen and to beat.
	connections = 4
	// patience bounds the wait for a database before a change is refused.
	patience = 2 * time.Second
	// schemaLock is the advisory lock under which nodes join one after the other.
	schemaLock = 7239018463
	fencedCode = "SD001" // of append
)

// Open connects to the database of a URL, makes the tables if they are not there and joins as a node. The error wraps
// journal.ErrLocked if another node is live and Options do not permit that, and journal.ErrSchema if a newer version
// has written the log.
func Open(ctx context.Context, url string, o Options) (*Store, error) {
	s, err := connect(url, o.filled())
	if err != nil {
		return nil, err
	}
	if err := s.join(ctx); err != nil {
		s.stop()
		s.pool.Close()
		return nil, fmt.Errorf("open the shared store: %w", err)
	}
	s.work.Go(s.watch)
	s.work.Go(s.beatOn)
	s.work.Go(s.tidyUp)
	if s.options.Several {
		s.work.Go(s.expelOthers)
	}
	return s, nil
}

// filled returns options in which what was not set has its default.
func (o Options) filled() Options {
	o.Lease = cmp.Or(o.Lease, 5*time.Second)
	o.tidyEvery = cmp.Or(o.tidyEvery, tidyEvery)
	o.reads = cmp.Or(o.reads, format)
	o.AnswerWait = cmp.Or(o.AnswerWait, 10*time.Second)
	return o
}

// connect returns a Store that has not joined. It makes connections when they are needed.
func connect(url string, o Options) (*Store, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		// The cause may have the password in it.
		return nil, fmt.Errorf("%w: the URL of the database cannot be read", journal.ErrInvalid)
	}
	config.ConnConfig.ConnectTimeout = cmp.Or(config.ConnConfig.ConnectTimeout, patience)
	// Appending relies on seeing what was committed while it waited.
	config.ConnConfig.RuntimeParams["default_transaction_isolation"] = "read committed"
	config.ConnConfig.RuntimeParams["application_name"] = "stagedoor " + o.Node
	// Without its warnings a commit that was not replicated would look like one that was.
	config.ConnConfig.RuntimeParams["client_min_messages"] = "warning"
	config.ConnConfig.OnNotice = noteUnreplicated
	if config.ConnConfig.ValidateConnect == nil {
		// A standby is behind the end of the log, so a refusal that is decided on it could be wrong. With several hosts
		// in the URL the next one is tried. A primary that only reads is accepted, because its records can be read.
		config.ConnConfig.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsPrimary
	}
	if o.Configure != nil {
		o.Configure(config.ConnConfig)
	}
	config.MaxConns = connections
	s := &Store{options: o, config: config.ConnConfig.Copy(), changed: make(chan struct{}, 1),
		leaving: make(chan struct{})}
	s.contacted(time.Now())
	s.running, s.stop = context.WithCancel(context.Background())
	if s.pool, err = pgxpool.NewWithConfig(s.running, config); err != nil {
		return nil, fmt.Errorf("open the shared store: %w", err)
	}
	return s, nil
}

// join begins an epoch of this node. While another one is live that must not be, it becomes a stand-by, or waits until
// it has seen the other one silent for a lease if Options do not say so.
func (s *Store) join(ctx context.Context) error {
	for deadline := time.Now().Add(2 * s.options.Lease); ; {
		other, err := s.tryJoin(ctx)
		switch {
		case err != nil:
			return err
		case other == "" || s.standby.Load():
			return s.measure(ctx, s.pool)
		case time.Now().After(deadline):
			return fmt.Errorf("%w: the node %q is live, and that one or this one permits no other beside it",
				journal.ErrLocked, other)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(s.options.Lease / 10):
		}
	}
}

// short are the options of transactions that other nodes wait for. The database ends such a transaction if its process
// is stopped or unreachable in the middle of it, so that the other nodes can go on.
var short = pgx.TxOptions{BeginQuery: "BEGIN; SET LOCAL idle_in_transaction_session_timeout = '5s'"}

// tryJoin joins, or returns the name of another live node that is in the way.
func (s *Store) tryJoin(ctx context.Context) (other string, err error) {
	standby := false
	err = s.alone(ctx, s.makeTables, func(tx pgx.Tx, live string) error {
		if other, standby = live, live != "" && s.options.Standby; other != "" && !standby {
			return nil
		}
		var lsn int64
		// An epoch is never used twice, although the row of a node that has left is gone: it is a time.
		err := tx.QueryRow(ctx, `INSERT INTO stagedoor.node AS n
				(id, epoch, beat, applied, version, live, standby, several, address, reads, reads_epoch)
			SELECT $1, e, clock_timestamp(), lsn, $2, NOT $3, $3, $4, $5, $6, e FROM stagedoor.head,
				(SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS e) AS t
			ON CONFLICT (id) DO UPDATE
				SET epoch = greatest(n.epoch + 1, excluded.epoch), seq = 0, beat = excluded.beat, live = excluded.live,
					applied = excluded.applied, version = excluded.version, standby = excluded.standby,
					several = excluded.several, address = excluded.address, leaving = false, parts = 0,
					reads = excluded.reads,
					reads_epoch = greatest(n.epoch + 1, excluded.epoch)
			RETURNING epoch, applied`, s.options.Node, s.options.Version, standby, s.options.Several,
			s.options.Address, s.options.reads).Scan(&s.epoch, &lsn)
		s.lsn.Store(uint64(lsn))
		if err == nil {
			err = s.raiseFormat(ctx, tx)
		}
		return err
	})
	if err == nil {
		s.standby.Store(standby)
	}
	return other, err
}

// alone calls do in a transaction in which no other node joins, with the name of another live node that is in the way,
// if there is one. Nodes that have been silent for the length of the lease are expelled before. first, if not nil, is
// called before anything else.
//
// The transaction does not wait for a synchronous standby of the database, so that a live node can be replaced while
// that standby is away. Nothing that was acknowledged depends on it: an append of this node is acknowledged only after
// it was replicated, and this transaction, which is before it in the log of the database, with it.
func (s *Store) alone(
	ctx context.Context, first func(context.Context, pgx.Tx) error, do func(tx pgx.Tx, live string) error,
) error {
	err := pgx.BeginTxFunc(ctx, s.pool, short, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", int64(schemaLock)); err != nil {
			return err
		}
		if first != nil {
			if err := first(ctx, tx); err != nil {
				return err
			}
		}
		if _, err := tx.Exec(ctx, "SET LOCAL synchronous_commit = local"); err != nil {
			return err
		}
		live, err := s.expelSilent(ctx, tx)
		if err != nil {
			return err
		}
		return do(tx, live)
	})
	if err != nil {
		s.silence.forget()
	}
	return err
}

// Await returns when this node may append: at once, unless Options made it a stand-by. Then it waits until the live
// node has left, has been expelled or was seen not to beat for the length of the lease. It goes on while the database
// cannot be reached. The error is ErrFenced if the stand-by was expelled or another process has taken its name.
func (s *Store) Await(ctx context.Context) error {
	for s.standby.Load() {
		if s.fenced.Load() {
			return journal.ErrFenced
		}
		switch err := s.takeOver(ctx); {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, journal.ErrFenced):
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(s.options.Lease / 10):
		}
	}
	return nil
}

// takeOver makes a stand-by live if no other node is. Its epoch stays as it is.
func (s *Store) takeOver(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.options.AnswerWait)
	defer cancel()
	waiting := true
	err := s.alone(ctx, nil, func(tx pgx.Tx, live string) error {
		if waiting = live != ""; waiting {
			return nil
		}
		done, err := tx.Exec(ctx, `UPDATE stagedoor.node SET live = true, standby = false, beat = clock_timestamp()
			WHERE id = $1 AND epoch = $2 AND (standby OR live)`, s.options.Node, s.epoch)
		switch {
		case err != nil:
			return err
		case done.RowsAffected() == 0:
			return journal.ErrFenced
		}
		return nil
	})
	if err == nil {
		s.standby.Store(waiting)
	}
	return err
}

// raiseFormat gives the log the newest format that all nodes read. A node of an older version does not count as one
// that reads more because an earlier process of its name did. The caller has the lock under which nodes join.
func (s *Store) raiseFormat(ctx context.Context, tx pgx.Tx) error {
	if s.format.Load() >= int64(s.options.reads) {
		return nil
	}
	_, err := tx.Exec(ctx, `UPDATE stagedoor.head h SET format = r.format FROM (
			SELECT coalesce(min(CASE WHEN reads_epoch = epoch THEN reads ELSE 1 END), 1) AS format
			FROM stagedoor.node WHERE live OR standby AND beat > clock_timestamp() - $1::interval) r
		WHERE h.format < r.format`, awaitStandby)
	return err
}

// haveTables asks whether the tables are there, with the newest one.
const haveTables = "SELECT to_regclass('stagedoor.want') IS NOT NULL"

// makeTables makes or upgrades the tables, unless the newest one is there, and checks that this program can read and
// keep what is in them.
func (s *Store) makeTables(ctx context.Context, tx pgx.Tx) error {
	var there bool
	err := tx.QueryRow(ctx, haveTables).Scan(&there)
	if err != nil {
		return err
	}
	if !there {
		if _, err := tx.Conn().PgConn().Exec(ctx, schemaSQL).ReadAll(); err != nil {
			return err
		}
	}
	var has int
	var begun bool
	var durable string
	err = tx.QueryRow(ctx, "SELECT format, lsn > 0, current_setting('synchronous_commit') FROM stagedoor.head").
		Scan(&has, &begun, &durable)
	switch {
	case err != nil:
		return err
	case has > s.options.reads:
		return fmt.Errorf("%w: the log has format %d, and this program reads up to %d", journal.ErrSchema, has,
			s.options.reads)
	case begun && has < min(oldest, s.options.reads):
		return fmt.Errorf("%w: the log has format %d, and this program reads from %d on", journal.ErrSchema, has,
			oldest)
	case durable == "off":
		return fmt.Errorf("%w: synchronous_commit is off in the database, so that acknowledged changes could be lost",
			journal.ErrInvalid)
	}
	return nil
}

// Close implements journal.Store. The node leaves, so that its name is free at once and its row does not stay behind.
func (s *Store) Close() error {
	if s.running.Err() != nil {
		return nil
	}
	s.stop()
	s.work.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.conn != nil {
		s.conn.Close(ctx)
	}
	// A node that cannot say that it leaves is live until its lease ends.
	_, _ = s.pool.Exec(ctx, "DELETE FROM stagedoor.node WHERE id = $1 AND epoch = $2", s.options.Node, s.epoch)
	s.pool.Close()
	return nil
}

// usable returns an error if the store is closed or ctx has ended.
func (s *Store) usable(ctx context.Context) error {
	if s.running.Err() != nil {
		return journal.ErrClosed
	}
	return ctx.Err()
}

// Stats implements journal.Store. The size is that of the whole database as of the last minute.
func (s *Store) Stats() journal.Stats {
	stats := journal.Stats{
		LSN: journal.LSN(s.lsn.Load()), Commits: s.commits.Load(), Size: s.size.Load(), DiskFree: -1,
	}
	if away := s.away.Load(); away != nil {
		stats.Full = *away
	}
	if s.fenced.Load() {
		stats.Poisoned = journal.ErrFenced
	}
	stats.Shared = &journal.SharedStats{Turns: s.turns.Load(), Silent: s.Silent(), Format: int(s.format.Load())}
	if end, applied := s.end.Load(), uint64(s.applied()); end > applied {
		stats.Shared.Behind = end - applied
	}
	if beaten := s.beaten.Load(); beaten != nil {
		stats.Shared.Lease = max(s.options.Lease-time.Since(*beaten), 0)
	}
	return stats
}

// Backup implements journal.Store. It always fails.
func (s *Store) Backup(ctx context.Context, _ io.Writer) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	return fmt.Errorf("%w: a shared store is backed up with the tools of its database, such as pg_dump",
		journal.ErrInvalid)
}

// Standby reports whether this node is a stand-by, which Await ends.
func (s *Store) Standby() bool { return s.standby.Load() }

// Leaving returns a channel that is closed when this node has been asked to leave.
func (s *Store) Leaving() <-chan struct{} { return s.leaving }

// Silent returns the time since the database was last asked something that it has answered with this node in its epoch.
func (s *Store) Silent() time.Duration { return time.Since(*s.contact.Load()) }

// contacted notes that the database has answered what it was asked at a time.
func (s *Store) contacted(asked time.Time) { s.contact.Store(&asked) }

// Changed implements journal.Shared.
func (s *Store) Changed() <-chan struct{} { return s.changed }

// hint makes Changed receive.
func (s *Store) hint() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// readError returns an error of a read as callers know it. Whatever it is, nothing has changed.
func readError(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("%w: %w", journal.ErrUnreachable, err)
}
