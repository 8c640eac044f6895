package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"stagedoor/state/journal"
)

// entryRow is an entry as the database has it, or the result of an append that has been made, which has no node.
type entryRow struct {
	LSN, Tag int64
	Node     *string
	Decided  int64
	Hot      []byte
}

// entriesAfter returns what was read of the log from a position on as the entries after it. The first row must be the
// entry at the position itself, which shows that this log is the one that was followed.
func entriesAfter(at journal.Position, rows []entryRow) ([]journal.Entry, error) {
	if len(rows) == 0 || rows[0].LSN != int64(at.LSN) || rows[0].Tag != int64(at.Tag) {
		return nil, fmt.Errorf("%w: at entry %d", journal.ErrForked, at.LSN)
	}
	var all []journal.Entry
	for _, r := range rows[1:] {
		changes, err := journal.ReadChanges(r.Hot)
		if err != nil {
			return nil, err
		}
		all = append(all, journal.Entry{
			Position: journal.Position{LSN: journal.LSN(r.LSN), Tag: uint64(r.Tag)},
			Node:     *r.Node, At: time.Unix(0, r.Decided).UTC(), Changes: changes,
		})
	}
	return all, nil
}

// callAppend is the statement of an append. One of Commit has no number.
const callAppend = "SELECT lsn, tag, node, decided, hot FROM stagedoor.append($1, $2, $3, $4, $5, $6, $7, $8, " +
	"$9, $10, $11, $12, $13, $14, $15, $16, $17, $18)"

// appending is one append, as it is sent once or more often. seq rises with each append of the epoch and is
// stored with the node, so that an append is made once however often it is sent.
type appending struct {
	at     journal.Position
	newTag int64
	seq    int64 // 0 for one that is not made by Append
	now    time.Time
	*arguments
}

func (s *Store) values(a *appending) []any {
	var seq *int64
	if a.seq != 0 {
		seq = &a.seq
	}
	return []any{s.options.Node, s.epoch, seq, int64(a.at.LSN), int64(a.at.Tag), a.newTag, a.now.UnixNano(), a.hot,
		a.rangeTable, a.rangeFrom, a.rangeTo, a.deleted, a.deletedKey,
		a.put, a.putKey, a.putRev, a.putValue, a.putLarge}
}

// next is the position after the append.
func (a *appending) next() journal.Position {
	return journal.Position{LSN: a.at.LSN + 1, Tag: uint64(a.newTag)}
}

// Append implements journal.Shared. Only one append of a process runs at a time (writing). Large values are
// written before it, in transactions of their own, and are used again if the append has to be decided anew.
func (s *Store) Append(
	ctx context.Context, at journal.Position, now time.Time, batches []journal.Batch,
) (journal.Position, error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	if err := errors.Join(s.usable(ctx), journal.Check(batches)); err != nil {
		s.endTurn(ctx)
		return at, err
	}
	s.follows(at)
	p, err := planOf(batches)
	if err != nil || len(p.touched)+len(p.ranges) == 0 {
		s.endTurn(ctx)
		return at, err
	}
	a := &appending{at: at, newTag: rand.Int64(), now: now, arguments: p.arguments()}
	if err := s.stage(ctx, a.arguments); err != nil {
		s.endTurn(ctx)
		return at, err
	}
	s.seq += 2 // the number between is for conclude
	a.seq = s.seq
	next, err := s.deliver(ctx, a)
	if err == nil {
		s.commits.Add(1)
		s.follows(next)
	}
	if !errors.Is(err, journal.ErrDecideAgain) {
		clear(s.staged)
	}
	return next, err
}

// deliver sends an append until it is known what became of it.
//
// The difficulty is a connection that breaks after the append was sent: it may have been committed. The
// node's sequence number and the tag of the new entry, which are in the same transaction, show whether it was
// (wasAppended). Only after that is known, it is sent again or reported.
func (s *Store) deliver(ctx context.Context, a *appending) (journal.Position, error) {
	unknown := false // an earlier sending may have arrived
	for wait := time.Duration(0); ; wait = min(2*wait+10*time.Millisecond, time.Second) {
		select {
		case <-ctx.Done():
			return a.at, fmt.Errorf("the outcome of an append is not known: %w", context.Cause(ctx))
		case <-time.After(wait):
		}
		conn, err := s.connection(ctx, unknown)
		if err != nil {
			return a.at, err
		}
		if unknown {
			arrived, err := s.wasAppended(ctx, conn, a)
			if err != nil {
				s.drop()
				continue
			}
			if arrived {
				return a.next(), nil
			}
		}
		rows, err := s.send(ctx, conn, a)
		switch {
		case err == nil:
			next, err := s.result(a, rows)
			if err == nil || !unknown {
				return next, err
			}
			// The earlier sending may have won this race after it was looked for.
			arrived, look := s.wasAppended(ctx, conn, a)
			switch {
			case arrived:
				return a.next(), nil
			case look == nil:
				return next, err
			}
			s.drop()
		case refusedBy(err) != nil:
			s.endTurn(ctx)
			// A node that is fenced stops, and none of its sendings can arrive any more.
			if refused := refusedBy(err); !unknown || errors.Is(refused, journal.ErrFenced) {
				return a.at, refused
			}
			// This sending was refused, but an earlier one may still be on its way to the database.
			made, look := s.conclude(ctx, conn, a)
			switch {
			case made:
				return a.next(), nil
			case look == nil:
				return a.at, refusedBy(err)
			}
			s.drop()
		default:
			unknown = unknown || !pgconn.SafeToRetry(err)
			s.drop()
		}
	}
}

// result returns the position after an append that was made. The error is a *journal.BehindError if the log has grown
// before it, and journal.ErrForked if the log is not the one that was followed.
func (s *Store) result(a *appending, rows []entryRow) (journal.Position, error) {
	if len(rows) == 1 && rows[0].Node == nil {
		return a.next(), nil
	}
	entries, err := entriesAfter(a.at, rows)
	switch {
	case err != nil:
		return a.at, err
	case len(entries) == 0: // the entry at the position is as it should be, but the end of the log is not
		return a.at, fmt.Errorf("%w: its end is not its last entry", journal.ErrForked)
	}
	return a.at, &journal.BehindError{Entries: entries, More: len(entries) == maxTail}
}

// refusedBy returns the error for the caller if the database has answered with a refusal, after which nothing has
// changed: journal.ErrFenced or journal.ErrReadOnly. It returns nil for any other error. An error with which the
// connection ends is no refusal, because the commit may have been made before.
func refusedBy(err error) error {
	answer, ok := errors.AsType[*pgconn.PgError](err)
	switch {
	case !ok || answer.SeverityUnlocalized != "ERROR":
		return nil
	case answer.Code == fencedCode:
		return journal.ErrFenced
	}
	return fmt.Errorf("%w: the database refuses to write: %s (SQLSTATE %s)",
		journal.ErrReadOnly, answer.Message, answer.Code)
}

// send sends an append once. In a turn it ends the turn's transaction, too.
func (s *Store) send(ctx context.Context, conn *pgx.Conn, a *appending) ([]entryRow, error) {
	ctx, cancel := context.WithTimeout(ctx, s.options.AnswerWait)
	defer cancel()
	if !s.turn {
		rows, err := conn.Query(ctx, callAppend, s.values(a)...)
		if err != nil {
			return nil, err
		}
		found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[entryRow])
		return found, replicated(conn, err)
	}
	b := &pgx.Batch{}
	b.Queue(callAppend, s.values(a)...)
	b.Queue("COMMIT")
	sent := conn.SendBatch(ctx, b)
	rows, err := sent.Query()
	var found []entryRow
	if err == nil {
		found, err = pgx.CollectRows(rows, pgx.RowToStructByPos[entryRow])
	}
	if err == nil {
		_, err = sent.Exec()
	}
	if closed := sent.Close(); err == nil {
		err = closed
	}
	if err == nil {
		s.turn = false
	}
	return found, replicated(conn, err)
}

// unreplicatedKey names the note that noteUnreplicated leaves on a connection.
const unreplicatedKey = "stagedoor: unreplicated"

// errUnreplicated says that the wait for a synchronous standby of the database was cancelled after a commit. The commit
// can be seen then, but it is lost if the standby takes the place of the primary.
var errUnreplicated = errors.New("it is not known whether the commit was replicated")

// noteUnreplicated notes the warning that a wait for synchronous replication was cancelled. The warning has no code of
// its own, and its text may be in any language, so every general warning counts. The function append raises none.
func noteUnreplicated(conn *pgconn.PgConn, n *pgconn.Notice) {
	if n.Code == "01000" {
		conn.CustomData()[unreplicatedKey] = true
	}
}

// replicated returns err, or errUnreplicated if the commit that has just succeeded on a connection was not replicated.
func replicated(conn *pgx.Conn, err error) error {
	noted := conn.PgConn().CustomData()
	if _, warned := noted[unreplicatedKey]; warned && err == nil {
		err = errUnreplicated
	}
	delete(noted, unreplicatedKey)
	return err
}

// wasAppended reports whether an append has been made that was sent on another connection.
//
// That its entry can be read is not enough. A database that waits for its synchronous standby shows a commit at once
// when the connection that waits breaks or its statement is cancelled, although the standby may never get it. So a
// change follows that changes nothing. Once that has been replicated, all that was committed before it has been, too.
func (s *Store) wasAppended(ctx context.Context, conn *pgx.Conn, a *appending) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, s.options.AnswerWait)
	defer cancel()
	var arrived bool
	err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM stagedoor.node WHERE id = $1 AND epoch = $2 AND seq = $3)
		OR EXISTS (SELECT FROM stagedoor.log WHERE lsn = $4 AND tag = $5)`,
		s.options.Node, s.epoch, a.seq, int64(a.at.LSN)+1, a.newTag).Scan(&arrived)
	if err == nil && arrived {
		_, err = conn.Exec(ctx, "UPDATE stagedoor.head SET format = format")
		err = replicated(conn, err)
	}
	return arrived && err == nil, err
}

// conclude makes the outcome of an append certain after a sending was refused while an earlier one may still be on its
// way, and returns it. It raises the node's number past the append's, because the database refuses an append whose
// number has been passed.
func (s *Store) conclude(ctx context.Context, conn *pgx.Conn, a *appending) (made bool, err error) {
	limited, cancel := context.WithTimeout(ctx, s.options.AnswerWait)
	defer cancel()
	// This waits for an append that is being made, since that has changed the same row.
	_, err = conn.Exec(limited, `UPDATE stagedoor.node SET seq = $4
		WHERE id = $1 AND epoch = $2 AND live AND seq < $3`, s.options.Node, s.epoch, a.seq, a.seq+1)
	if err != nil {
		return false, err
	}
	return s.wasAppended(ctx, conn, a)
}

// connection returns the connection for appends. If nothing was sent that may have arrived, it fails after a short
// while with journal.ErrUnreachable; otherwise the outcome must be known, so it tries as long as ctx lasts.
func (s *Store) connection(ctx context.Context, forever bool) (*pgx.Conn, error) {
	if s.conn != nil && !s.conn.IsClosed() {
		return s.conn, nil
	}
	s.turn = false
	deadline := time.Now().Add(patience)
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		conn, err := pgx.ConnectConfig(ctx, s.config.Copy())
		if err == nil {
			s.conn = conn
			s.appender.Store(conn.PgConn().PID())
			return conn, nil
		}
		if !forever && time.Now().After(deadline) {
			return nil, fmt.Errorf("%w: %w", journal.ErrUnreachable, err)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("the outcome of an append is not known: %w", context.Cause(ctx))
		case <-s.running.Done():
			return nil, journal.ErrClosed
		case <-time.After(wait):
		}
	}
}

// drop closes a connection that is of no use any more.
func (s *Store) drop() {
	if s.conn != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		s.conn.Close(ctx)
	}
	s.conn, s.turn = nil, false
}

// dropIf closes the connection after an error, because it is not known what the server has seen.
func (s *Store) dropIf(err error) {
	if err != nil {
		s.drop()
	}
}

// endTurn ends the turn, if there is one.
func (s *Store) endTurn(ctx context.Context) {
	if s.turn {
		s.turn = false
		ctx, cancel := context.WithTimeout(ctx, s.options.AnswerWait)
		defer cancel()
		_, err := s.conn.Exec(ctx, "ROLLBACK")
		s.dropIf(err)
	}
}

// A turn ends by itself if this process is stopped in the middle of it, so that the other nodes can go on.
const beginTurn = "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = '500ms'; " +
	"SET LOCAL idle_in_transaction_session_timeout = '2s'; SELECT lsn FROM stagedoor.head FOR UPDATE"

// lockTimeout is the code of a wait for a turn that was too long.
const lockTimeout = "55P03"

// Turn implements journal.Shared.
func (s *Store) Turn(ctx context.Context, at journal.Position) (entries []journal.Entry, turn bool, err error) {
	if err := s.usable(ctx); err != nil {
		return nil, false, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.options.AnswerWait)
	defer cancel()
	defer func() { err = nothingChanged(err) }()
	s.writing.Lock()
	defer s.writing.Unlock()
	s.follows(at)
	s.endTurn(ctx)
	conn, err := s.connection(ctx, false)
	if err != nil {
		return nil, false, err
	}
	_, err = conn.PgConn().Exec(ctx, beginTurn).ReadAll()
	answer, answered := errors.AsType[*pgconn.PgError](err)
	if err != nil && (!answered || answer.Code != lockTimeout) {
		s.drop()
		return nil, false, err
	}
	s.turn = true
	if answered {
		s.endTurn(ctx)
		entries, err = tail(ctx, s.pool, at, maxTail)
		return entries, false, err
	}
	// All that is newer, since nothing can follow: mostly what was appended during the wait.
	if entries, err = tail(ctx, conn, at, 1<<30); err != nil {
		s.endTurn(ctx)
		return nil, false, err
	}
	s.turns.Add(1)
	return entries, true, nil
}

// nothingChanged returns an error of Turn as ErrUnreachable, with which the caller goes on. That includes the end of
// Turn's own deadline. Only what was read can make the caller stop, which is a log that has forked or is corrupt.
func nothingChanged(err error) error {
	_, corrupt := errors.AsType[*journal.CorruptError](err)
	if err == nil || corrupt || errors.Is(err, journal.ErrForked) || errors.Is(err, journal.ErrUnreachable) {
		return err
	}
	return fmt.Errorf("%w: %w", journal.ErrUnreachable, err)
}

// stagedValue is a large value that has been written for an append that was refused, and is used by the next.
type stagedValue struct {
	id    int64
	value []byte
}

// stage writes the large values of an append before it, so that other nodes do not wait for them. A turn ends
// for that, unless the values have been written for an earlier append of the same group. A value that is
// never referred to, because its append was given up, is removed later (watch.go).
func (s *Store) stage(ctx context.Context, a *arguments) error {
	ctx, cancel := context.WithTimeout(ctx, s.options.AnswerWait)
	defer cancel()
	for _, i := range a.large {
		r := record{journal.Table(a.put[i]), string(a.putKey[i])}
		have, found := s.staged[r]
		if !found || !bytes.Equal(have.value, a.putValue[i]) {
			s.endTurn(ctx)
			have.value = bytes.Clone(a.putValue[i])
			err := s.pool.QueryRow(ctx, "INSERT INTO stagedoor.large (value) VALUES ($1) RETURNING id", a.putValue[i]).
				Scan(&have.id)
			if refused := refusedBy(err); refused != nil {
				return refused
			}
			if err != nil {
				return fmt.Errorf("%w: %w", journal.ErrUnreachable, err) // no record refers to it, if it is there
			}
			if s.staged == nil {
				s.staged = map[record]stagedValue{}
			}
			s.staged[r] = have
		}
		a.putValue[i], a.putLarge[i] = nil, &have.id
	}
	return nil
}
