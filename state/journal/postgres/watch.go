package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"stagedoor/state/journal"
)

const (
	// pollEvery bounds the time until an entry is found whose notification was lost.
	pollEvery = 250 * time.Millisecond
	beatEvery = time.Second
	tidyEvery = time.Minute
	// forgetAfter is the age at which the row of a node that was expelled is deleted.
	forgetAfter = 24 * time.Hour
	// Entries are kept for nodes that were away for a short time. A node that needs older ones loads all records.
	keepEntries = 10 * time.Minute
	// awaitStandby is the time for which entries are kept for a stand-by that does not beat.
	awaitStandby = time.Hour
	// maxTrim bounds what is deleted at a time.
	maxTrim = 10_000
	// maxSwept bounds the large values that are deleted by one statement.
	maxSwept = 100
)

// watch listens for entries of other nodes until the store is closed.
func (s *Store) watch() {
	s.keep(&s.contact, func(err error) {
		away := fmt.Errorf("%w: %w", journal.ErrUnreachable, err)
		s.away.Store(&away)
	}, s.listen)
}

// beatOn beats until the store is closed. It has a connection of its own: the database commits a beat to its disk, and
// a notification that arrives meanwhile would wait for that. It does not use the pool, whose connections slow reads may
// have.
func (s *Store) beatOn() {
	s.keep(&s.beaten, func(error) {}, func(ctx context.Context, conn *pgx.Conn) error {
		for {
			if err := s.bounded(ctx, func(ctx context.Context) error { return s.beat(ctx, conn) }); err != nil {
				return err
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(beatEvery):
			}
		}
	})
}

// keep calls do with a connection, and with a new one each time that it fails, until the store is closed or this node
// is fenced. Each wait after a failure is longer than the one before, unless do has had a success in between. succeeded
// has the time of the last success.
func (s *Store) keep(
	succeeded *atomic.Pointer[time.Time], failed func(error), do func(context.Context, *pgx.Conn) error,
) {
	for wait := pollEvery; s.running.Err() == nil; {
		before := succeeded.Load()
		err := s.withConnection(s.running, do)
		if s.running.Err() != nil || s.fenced.Load() {
			return
		}
		failed(err)
		// A stand-by gives this node a lease to beat again after the database was away, and much of that must be left.
		if succeeded.Load() != before {
			wait = pollEvery
		}
		select {
		case <-s.running.Done():
		case <-time.After(wait):
		}
		wait = min(2*wait, time.Second)
	}
}

// withConnection calls do with a connection that it makes and closes. Commits on it do not wait for a synchronous
// standby of the database, which may be away. A beat that is lost in a failover costs nothing.
func (s *Store) withConnection(ctx context.Context, do func(context.Context, *pgx.Conn) error) error {
	config := s.config.Copy()
	config.RuntimeParams["synchronous_commit"] = "local"
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		conn.Close(ctx)
	}()
	return do(ctx, conn)
}

// bounded calls do with at most half the lease to wait for an answer, so that a connection that is dead without an
// error does not cost the node its lease.
func (s *Store) bounded(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, min(s.options.AnswerWait, s.options.Lease/2))
	defer cancel()
	return do(ctx)
}

// listen follows the end of the log on one connection, until that breaks or the node is fenced.
func (s *Store) listen(ctx context.Context, conn *pgx.Conn) error {
	if err := s.bounded(ctx, func(ctx context.Context) error {
		_, err := conn.Exec(ctx, "LISTEN stagedoor")
		return err
	}); err != nil {
		return err
	}
	for {
		before, asked := s.followed.Load(), time.Now()
		var at journal.Position
		if err := s.bounded(ctx, func(ctx context.Context) (err error) {
			at, err = s.headAsMember(ctx, conn)
			return err
		}); err != nil {
			return err
		}
		s.away.Store(nil)
		s.contacted(asked)
		s.end.Store(uint64(at.LSN))
		if at.LSN > s.applied() || forkedAt(before, at) {
			s.hint()
		}
		if err := s.awaitNotifications(ctx, conn, asked.Add(pollEvery)); err != nil {
			return err
		}
	}
}

// awaitNotifications makes Changed receive with each notification of another node, up to a time. It asks the database
// nothing, since the entry can be read when its notification arrives.
func (s *Store) awaitNotifications(ctx context.Context, conn *pgx.Conn, until time.Time) error {
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	for {
		n, err := conn.WaitForNotification(ctx)
		switch {
		case pgconn.Timeout(err):
			return nil
		case err != nil:
			return err
		case n.PID != s.appender.Load():
			s.hint()
		}
	}
}

// executor is a pool, a connection or a transaction.
type executor interface {
	querier
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// beat says that this node is live, and up to where it has applied the log.
func (s *Store) beat(ctx context.Context, q executor) error {
	began := time.Now()
	var leaving bool
	err := q.QueryRow(ctx, `UPDATE stagedoor.node SET beat = clock_timestamp(), applied = $3
		WHERE id = $1 AND epoch = $2 AND (live OR standby) RETURNING leaving`,
		s.options.Node, s.epoch, int64(s.applied())).Scan(&leaving)
	if errors.Is(err, pgx.ErrNoRows) {
		return s.fence()
	}
	if err != nil {
		return readError(err)
	}
	s.beaten.Store(&began)
	if leaving {
		s.leave.Do(func() { close(s.leaving) })
	}
	return nil
}

// headAsMember returns the end of the log if this node is still in its epoch, and ErrFenced if it is not. A node that
// was away so learns that it was replaced from the first answer that it gets, before it counts itself as up to date.
func (s *Store) headAsMember(ctx context.Context, q querier) (at journal.Position, err error) {
	var lsn, tag, format int64
	var member bool
	err = q.QueryRow(ctx, `SELECT lsn, tag, format, EXISTS (SELECT FROM stagedoor.node
		WHERE id = $1 AND epoch = $2 AND (live OR standby)) FROM stagedoor.head`, s.options.Node, s.epoch).
		Scan(&lsn, &tag, &format, &member)
	if err == nil {
		s.format.Store(format)
	}
	if err == nil && !member {
		err = s.fence()
	}
	return journal.Position{LSN: journal.LSN(lsn), Tag: uint64(tag)}, err
}

// fence notes that the epoch of this node has ended.
func (s *Store) fence() error {
	s.fenced.Store(true)
	s.hint() // the state asks for the tail and gets the error
	return journal.ErrFenced
}

// tidyUp tidies and measures now and then until the store is closed. It does so beside the listener, because a node
// beats while the database deletes.
func (s *Store) tidyUp() {
	for {
		select {
		case <-s.running.Done():
			return
		case <-time.After(s.options.tidyEvery):
		}
		ctx, cancel := context.WithTimeout(s.running, tidyEvery)
		_ = errors.Join(s.tidy(ctx, s.pool, keepEntries), s.measure(ctx, s.pool)) // tried again in a minute
		cancel()
	}
}

// tidy deletes entries that are older than an age and that all live nodes and stand-bys have applied, but never the
// last one, large values that no record refers to, and nodes that were expelled long ago. A stand-by that has not
// beaten for awaitStandby does not count, since it may never come back.
func (s *Store) tidy(ctx context.Context, q executor, age time.Duration) error {
	_, err := q.Exec(ctx, `DELETE FROM stagedoor.log WHERE lsn < least(
			(SELECT min(applied) FROM stagedoor.node
				WHERE live OR standby AND beat > clock_timestamp() - $3::interval),
			(SELECT min(lsn) + $2 FROM stagedoor.log), (SELECT lsn FROM stagedoor.head))
		AND added < clock_timestamp() - $1::interval`, age, maxTrim, awaitStandby)
	if err != nil {
		return err
	}
	_, err = q.Exec(ctx, "DELETE FROM stagedoor.node WHERE NOT live AND beat < clock_timestamp() - $1::interval",
		forgetAfter)
	if err == nil {
		_, err = q.Exec(ctx, "DELETE FROM stagedoor.want WHERE said < clock_timestamp() - $1::interval", forgetAfter)
	}
	for deleted := int64(maxSwept); err == nil && deleted == maxSwept; {
		var done pgconn.CommandTag
		done, err = q.Exec(ctx, `DELETE FROM stagedoor.large WHERE id IN (
			SELECT l.id FROM stagedoor.large l WHERE l.added < clock_timestamp() - $1::interval
				AND NOT EXISTS (SELECT FROM stagedoor.rec r WHERE r.large = l.id)
			ORDER BY l.id LIMIT $2)`, age, maxSwept)
		deleted = done.RowsAffected()
	}
	// Another node may tidy at the same time, or an append may have come to refer to a value.
	if refusedBy(err) != nil {
		return nil
	}
	return err
}

// measure notes the size of the database.
func (s *Store) measure(ctx context.Context, q querier) error {
	var size int64
	err := q.QueryRow(ctx, "SELECT pg_database_size(current_database())").Scan(&size)
	s.size.Store(size)
	return err
}
