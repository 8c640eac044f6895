package postgres_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"stagedoor/state/journal/postgres"
	"stagedoor/state/statetest/pgserver"
)

// loseReplica makes commits wait for a synchronous standby that is not there, until the function that it returns is
// called.
func loseReplica(t *testing.T, server *pgserver.Server) (back func()) {
	t.Helper()
	exec(t, server, "ALTER SYSTEM SET synchronous_standby_names = 'missing'")
	exec(t, server, "SELECT pg_reload_conf()")
	back = sync.OnceFunc(func() {
		exec(t, server, "ALTER SYSTEM RESET synchronous_standby_names")
		exec(t, server, "SELECT pg_reload_conf()")
	})
	t.Cleanup(back)
	for { // until the server has read it
		conn, err := pgx.Connect(ctx, server.URL())
		if err != nil {
			t.Fatal(err)
		}
		sending, cancel := context.WithCancel(ctx)
		done := make(chan error, 1)
		go func() {
			_, err := conn.Exec(sending, "UPDATE stagedoor.head SET format = format")
			done <- err
		}()
		waiting, committed := false, false
		for !waiting && !committed {
			err := admin.QueryRow(ctx, `SELECT count(*) > 0 FROM pg_stat_activity
				WHERE wait_event = 'SyncRep' AND pid = $1`, conn.PgConn().PID()).Scan(&waiting)
			if err != nil {
				t.Fatal(err)
			}
			select {
			case err := <-done:
				if committed = true; err != nil {
					t.Fatal(err)
				}
			case <-time.After(time.Millisecond):
			}
		}
		cancel()
		if !committed {
			<-done
		}
		conn.Close(ctx)
		if waiting {
			return back
		}
	}
}

// waits returns the process that waits for replication in a statement with a text, once there is another one than
// before. It fails if there is none for long. A process whose client has given up may go on waiting, if the request to
// cancel its statement came too early, and has the row until then. So another one than before may also wait for a lock.
func waits(t *testing.T, text string, before int) int {
	t.Helper()
	for late := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		var pid int
		err := admin.QueryRow(ctx, `SELECT coalesce(min(pid), 0) FROM pg_stat_activity
			WHERE (wait_event = 'SyncRep' OR wait_event_type = 'Lock' AND $2 <> 0)
			AND query LIKE '%' || $1 || '%' AND pid <> $2`, text, before).Scan(&pid)
		if err != nil {
			t.Fatal(err)
		}
		if pid != 0 {
			return pid
		}
		if time.Now().After(late) {
			t.Fatalf("no process waits for replication in %q", text)
		}
	}
}

// An append that can be read in the database is not acknowledged before the synchronous standby of the database has it:
// not when the wait for the standby is longer than the wait for an answer, and not when that wait is cancelled.
func TestAnAppendIsAcknowledgedOnlyAfterItWasReplicated(t *testing.T) {
	server := server(t)
	const again = "SET format = format" // the change that shows that the append was replicated
	for name, c := range map[string]struct {
		wait   time.Duration
		cancel bool
	}{
		"without an answer":  {wait: 200 * time.Millisecond},
		"after cancellation": {cancel: true},
	} {
		a := open(t, empty(t, server), postgres.Options{Node: "a", AnswerWait: c.wait})
		at, err := a.Head(ctx)
		if err != nil {
			t.Fatal(err)
		}
		back := loseReplica(t, server)
		acknowledged := make(chan error, 1)
		go func() {
			_, err := a.Append(ctx, at, time.Now(), smallWrite)
			acknowledged <- err
		}()
		cancel := func(pid int) {
			if _, err := admin.Exec(ctx, "SELECT pg_cancel_backend($1)", pid); err != nil {
				t.Fatal(err)
			}
		}
		if c.cancel {
			cancel(waits(t, "stagedoor.append", 0))
		}
		first := waits(t, again, 0)
		if c.cancel {
			cancel(first)
		}
		waits(t, again, first)
		if end, err := a.Head(ctx); err != nil || end.LSN != at.LSN+1 {
			t.Errorf("%s: the log ends at %v, %v", name, end, err)
		}
		select {
		case err := <-acknowledged:
			t.Errorf("%s: an append that was not replicated was answered: %v", name, err)
		default:
			back()
			if err := <-acknowledged; err != nil {
				t.Errorf("%s: after it was replicated: %v", name, err)
			}
		}
		if end, err := a.Head(ctx); err != nil || end.LSN != at.LSN+1 {
			t.Errorf("%s: the log ends at %v in the end, %v", name, end, err)
		}
		a.Close()
	}
}

func TestACommitWhoseReplicationIsCancelledIsNotAcknowledged(t *testing.T) {
	server := server(t)
	a := open(t, empty(t, server), postgres.Options{Node: "a"})
	back := loseReplica(t, server)
	done := make(chan error, 1)
	go func() { _, err := a.Commit(ctx, smallWrite); done <- err }()
	if _, err := admin.Exec(ctx, "SELECT pg_cancel_backend($1)", waits(t, "commit", 0)); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err == nil {
		t.Error("a commit that may be lost with the database was acknowledged")
	}
	back()
	if _, err := a.Commit(ctx, smallWrite); err != nil {
		t.Errorf("the next commit: %v", err)
	}
}

// An append that waits for replication locks the row of its node, so that the node cannot beat.
func TestANodeWhoseAppendWaitsForReplicationIsNotExpelled(t *testing.T) {
	server := server(t)
	// Much longer than the time between two beats, which a busy machine delays. The lease of a bounds its wait for the
	// answer to a beat, so that beats which wait for the row are behind the stand-by, if that waited for it, too.
	const lease = 8 * time.Second
	url := empty(t, server)
	a := open(t, url, postgres.Options{Node: "a", Lease: lease / 2})
	b := open(t, url, postgres.Options{Node: "b", Standby: true, Lease: lease})
	at, err := a.Head(ctx)
	if err != nil {
		t.Fatal(err)
	}
	back := loseReplica(t, server)
	acknowledged := make(chan error, 1)
	go func() {
		_, err := a.Append(ctx, at, time.Now(), smallWrite)
		acknowledged <- err
	}()
	waits(t, "stagedoor.append", 0)
	waiting, enough := context.WithCancel(ctx)
	took := make(chan error, 1)
	go func() { took <- b.Await(waiting) }()
	time.Sleep(lease * 3 / 2) // enough for the stand-by to expel a, or to wait for the lock of its row
	back()
	if err := <-acknowledged; err != nil {
		t.Errorf("the append: %v", err)
	}
	if _, err := a.Commit(ctx, smallWrite); err != nil {
		t.Errorf("the next commit: %v", err)
	}
	enough()
	if err := <-took; !errors.Is(err, context.Canceled) {
		t.Errorf("the stand-by has stopped to wait: %v", err)
	}
}

func TestAStandbyTakesOverWhileTheDatabaseCannotReplicate(t *testing.T) {
	server := server(t)
	url, n := empty(t, server), &network{}
	open(t, url, postgres.Options{Node: "a", Configure: n.configure})
	b := open(t, url, postgres.Options{Node: "b", Standby: true, Lease: lease})
	loseReplica(t, server)
	n.cut.Store(true)
	late, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := b.Await(late); err != nil {
		t.Errorf("the stand-by of a dead node: %v", err)
	}
}

func TestANodeIsNotExpelledForTheTimeThatTheDatabaseWasAway(t *testing.T) {
	server := server(t)
	url := empty(t, server)
	a := open(t, url, postgres.Options{Node: "a"})
	b := open(t, url, postgres.Options{Node: "b", Standby: true, Lease: longLease})
	waiting, enough := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer enough()
	wg.Go(func() {
		if err := b.Await(waiting); err == nil {
			t.Error("the stand-by took over")
		}
	})
	server.Crash()
	time.Sleep(longLease + longLease/4) // nodes cannot beat meanwhile
	if err := server.Run(); err != nil {
		t.Fatal(err)
	}
	for a.Stats().Poisoned == nil && a.Stats().Shared.Lease < 4*time.Second { // until it has beaten again
		time.Sleep(time.Millisecond)
	}
	if err := a.Stats().Poisoned; err != nil {
		t.Errorf("the live node: %v", err)
	}
	enough()
}

func TestClocksOfDatabasesDoNotEndOrProlongALease(t *testing.T) {
	server := server(t)
	url, n := empty(t, server), &network{}
	const lease = 1500 * time.Millisecond
	a := open(t, url, postgres.Options{Node: "a", Configure: n.configure})
	b := open(t, url, postgres.Options{Node: "b", Standby: true, Lease: lease})
	// After a failover to a machine whose clock is an hour ahead, the last beat of the live node is an hour old.
	exec(t, server, "UPDATE stagedoor.node SET beat = beat - interval '1 hour' WHERE id = 'a'")
	short, cancel := context.WithTimeout(ctx, lease/2)
	defer cancel()
	if err := b.Await(short); err == nil || a.Stats().Poisoned != nil {
		t.Errorf("a clock that is ahead: %v", err)
	}
	// After one to a machine whose clock is an hour behind, the beat of the node that has died is an hour ahead.
	n.cut.Store(true)
	exec(t, server, "UPDATE stagedoor.node SET beat = beat + interval '1 hour' WHERE id = 'a'")
	late, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := b.Await(late); err != nil {
		t.Errorf("a clock that is behind: %v", err)
	}
}

func TestANodeThatWasReplacedDoesNotCountAsUpToDateWhenItIsBack(t *testing.T) {
	server := server(t)
	url, n := empty(t, server), &network{}
	a := open(t, url, postgres.Options{Node: "a", Configure: n.configure})
	n.cut.Store(true)
	open(t, url, postgres.Options{Node: "b", Lease: lease})
	replaced := time.Now()
	n.cut.Store(false)
	for a.Stats().Poisoned == nil {
		time.Sleep(time.Millisecond)
	}
	if silent := a.Silent(); silent < time.Since(replaced) {
		t.Errorf("it was silent for %v, and replaced %v ago", silent, time.Since(replaced))
	}
}

func TestATidyKeepsTheEntriesThatAStandbyNeedsForAnHour(t *testing.T) {
	server := server(t)
	a := open(t, empty(t, server), postgres.Options{Node: "a"})
	at, err := a.Head(ctx)
	for range 3 {
		if err == nil {
			at, err = a.Append(ctx, at, time.Now(), smallWrite)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		away    string
		entries int
	}{{"50 minutes", 4}, {"70 minutes", 1}} {
		exec(t, server, `INSERT INTO stagedoor.node (id, epoch, beat, live, standby)
			VALUES ('b', 1, now() - interval '`+c.away+`', false, true)
			ON CONFLICT (id) DO UPDATE SET beat = excluded.beat`)
		if err := a.Members().Beat(ctx); err != nil {
			t.Fatal(err)
		}
		if err := a.Tidy(ctx); err != nil {
			t.Fatal(err)
		}
		var entries int
		err := admin.QueryRow(ctx, "SELECT count(*) FROM stagedoor.log").Scan(&entries)
		if err != nil || entries != c.entries {
			t.Errorf("%d entries for a stand-by that was away for %s, %v", entries, c.away, err)
		}
	}
}
