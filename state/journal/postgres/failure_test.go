package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"stagedoor/state"
	"stagedoor/state/journal"
	"stagedoor/state/journal/postgres"
	"stagedoor/state/money"
	"stagedoor/state/schema"
	"stagedoor/state/statetest/pgserver"
)

// network lies between a node and the database.
type network struct {
	cut atomic.Bool
	// lossy connections break now and then: before a request is sent, or after it was answered and before the answer
	// arrives.
	lossy  atomic.Bool
	broken atomic.Int64
}

func (n *network) configure(c *pgx.ConnConfig) {
	c.DialFunc = func(ctx context.Context, _, address string) (net.Conn, error) {
		if n.cut.Load() {
			return nil, errors.New("the network is cut")
		}
		conn, err := new(net.Dialer).DialContext(ctx, "unix", address)
		if err != nil {
			return nil, err
		}
		return &wire{Conn: conn, network: n}, nil
	}
	c.LookupFunc = nil
}

type wire struct {
	net.Conn
	network *network
}

func (w *wire) fails(oneIn int) bool {
	if w.network.cut.Load() || w.network.lossy.Load() && rand.IntN(oneIn) == 0 {
		w.network.broken.Add(1)
		w.Conn.Close()
		return true
	}
	return false
}

func (w *wire) Write(b []byte) (int, error) {
	if w.fails(100) {
		return 0, io.ErrClosedPipe
	}
	return w.Conn.Write(b)
}

func (w *wire) Read(b []byte) (int, error) {
	n, err := w.Conn.Read(b)
	if err == nil && w.fails(60) {
		return 0, io.ErrUnexpectedEOF
	}
	return n, err
}

// node is a state on a node of a shared store, and what it has acknowledged.
type node struct {
	store *postgres.Store
	state *state.State
	acked map[string]int64
}

func openNode(t testing.TB, url, name string, n *network) *node {
	t.Helper()
	store := open(t, url, postgres.Options{Node: name, Several: true, Configure: n.configure})
	s, err := schema.Open(store, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return &node{store: store, state: s, acked: map[string]int64{}}
}

// credit makes credits of 1 on accounts chosen at random until stop is closed.
func (n *node) credit(t *testing.T, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		account := []string{"anna", "bert", "cleo"}[rand.IntN(3)]
		_, _, err := money.CommitPostings(ctx, n.state, account, []money.Posting{{Kind: money.Credit, Amount: 1}})
		switch {
		case err == nil:
			n.acked[account]++
		case !errors.Is(err, journal.ErrUnreachable):
			t.Errorf("a credit: %v", err)
			return
		}
	}
}

// exact checks that the accounts have what was acknowledged, all of it and once.
func exact(t *testing.T, server *pgserver.Server, nodes ...*node) {
	t.Helper()
	total := int64(0)
	for _, account := range []string{"anna", "bert", "cleo"} {
		acked := int64(0)
		for _, n := range nodes {
			acked += n.acked[account]
		}
		total += acked
		for i, n := range nodes {
			if err := state.Run(ctx, n.state, func(*state.Tx) error { return nil }); err != nil {
				t.Fatalf("node %d: %v", i, err)
			}
			if a := money.FindAccount(n.state.View(), account); a.Credits != acked {
				t.Errorf("account %s has credits of %d on node %d, and %d were acknowledged",
					account, a.Credits, i, acked)
			}
		}
	}
	if total < 20 {
		t.Errorf("only %d credits were made", total)
	}
	store := open(t, server.URL(), postgres.Options{Node: "auditor", Several: true})
	if v, err := schema.Verify(ctx, store); err != nil || !v.Sound() {
		t.Errorf("the store: %v, problems %q", err, v.Problems)
	}
}

// length returns the duration of a test of failures.
func length() time.Duration {
	if testing.Short() {
		return 1500 * time.Millisecond
	}
	return 4 * time.Second
}

func TestWhatWasAcknowledgedCountsOnceWhenConnectionsBreak(t *testing.T) {
	server := server(t)
	if server == nil {
		return
	}
	url, network := empty(t, server), &network{}
	a, b := openNode(t, url, "a", network), openNode(t, url, "b", network)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { a.credit(t, stop) })
	wg.Go(func() { b.credit(t, stop) })
	network.lossy.Store(true)
	killed := 0
	for end := time.Now().Add(length()); time.Now().Before(end); killed++ {
		// In the middle of an append, more often than not.
		exec(t, server, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE application_name LIKE 'stagedoor%' AND query LIKE '%append%' ORDER BY random() LIMIT 1`)
		time.Sleep(100 * time.Millisecond)
	}
	network.lossy.Store(false)
	close(stop)
	wg.Wait()
	t.Logf("%v and %v acknowledged, %d connections broken, %d attempts to end a backend; %+v %+v",
		a.acked, b.acked, network.broken.Load(), killed, a.state.Stats(), b.state.Stats())
	if network.broken.Load() < 3 {
		t.Errorf("only %d connections broke", network.broken.Load())
	}
	exact(t, server, a, b)
}

func TestWhatWasAcknowledgedSurvivesACrashOfTheDatabase(t *testing.T) {
	server := server(t)
	if server == nil {
		return
	}
	url, network := empty(t, server), &network{}
	a, b := openNode(t, url, "a", network), openNode(t, url, "b", network)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { a.credit(t, stop) })
	wg.Go(func() { b.credit(t, stop) })
	for range 2 {
		time.Sleep(length() / 4)
		server.Crash()
		if err := server.Run(); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(length() / 4)
	close(stop)
	wg.Wait()
	exact(t, server, a, b)
}

func TestANodeThatCannotReachTheDatabaseRefusesChangesAndServesReads(t *testing.T) {
	server := server(t)
	if server == nil {
		return
	}
	network := &network{}
	a := openNode(t, empty(t, server), "a", network)
	credit := func() error {
		_, _, err := money.CommitPostings(ctx, a.state, "anna", []money.Posting{{Kind: money.Credit, Amount: 1}})
		return err
	}
	if err := credit(); err != nil {
		t.Fatal(err)
	}
	network.cut.Store(true)
	// The first append may have been sent. It would wait for its outcome, so a command that writes nothing goes first.
	err := state.Run(ctx, a.state, func(*state.Tx) error { return state.ErrNotFound })
	if !errors.Is(err, state.ErrUnavailable) {
		t.Errorf("a refusal that was decided without the log: %v", err)
	}
	if n := money.FindAccount(a.state.View(), "anna").Credits; n != 1 {
		t.Errorf("credits %d", n)
	}
	for a.store.Stats().Full == nil {
		time.Sleep(time.Millisecond)
	}
	network.cut.Store(false)
	if err := credit(); err != nil {
		t.Errorf("after the network was mended: %v", err)
	}
	if n := money.FindAccount(a.state.View(), "anna").Credits; n != 2 || a.state.Err() != nil {
		t.Errorf("credits %d, %v", n, a.state.Err())
	}
}

const lease = 300 * time.Millisecond

func TestASecondNodeIsRefusedWhileTheFirstIsLive(t *testing.T) {
	server := server(t)
	if server == nil {
		return
	}
	url := empty(t, server)
	a := open(t, url, postgres.Options{Node: "a"})
	// Longer than a beat, so that a stays live.
	_, err := postgres.Open(ctx, url, postgres.Options{Node: "b", Lease: 1500 * time.Millisecond})
	if !errors.Is(err, journal.ErrLocked) || !strings.Contains(err.Error(), `"a"`) {
		t.Errorf("beside a live node: %v", err)
	}
	commitOne(t, a)
	young := open(t, url, postgres.Options{Node: "a"}) // as the same node after a kill, with nothing to wait for
	commitOne(t, young)
	young.Close()
	commitOne(t, open(t, url, postgres.Options{Node: "b"})) // which has left
}

func commitOne(t *testing.T, s *postgres.Store) {
	t.Helper()
	op := journal.Op{Table: journal.Ledger, Key: []byte("k")}
	if _, err := s.Commit(ctx, []journal.Batch{{Ops: []journal.Op{op}}}); err != nil {
		t.Error(err)
	}
}

func TestANodeWhoseLeaseHasEndedIsFenced(t *testing.T) {
	server := server(t)
	if server == nil {
		return
	}
	url, network := empty(t, server), &network{}
	a := open(t, url, postgres.Options{Node: "a", Configure: network.configure})
	at, err := a.Head(ctx)
	if err != nil {
		t.Fatal(err)
	}
	network.cut.Store(true)
	b := open(t, url, postgres.Options{Node: "b", Lease: lease}) // waits for a's lease to end
	network.cut.Store(false)
	write := []journal.Batch{{Ops: []journal.Op{{Table: journal.Ledger, Key: []byte("k"), Value: []byte("v")}}}}
	if _, err := a.Append(ctx, at, time.Now(), write); !errors.Is(err, journal.ErrFenced) {
		t.Errorf("the node that was cut off: %v", err)
	}
	for !errors.Is(a.Stats().Poisoned, journal.ErrFenced) { // it finds out by itself
		time.Sleep(time.Millisecond)
	}
	if err := a.Tail(ctx, at, nil); !errors.Is(err, journal.ErrFenced) {
		t.Errorf("Tail of a fenced node: %v", err)
	}
	if _, err := b.Append(ctx, at, time.Now(), write); err != nil {
		t.Errorf("the other node: %v", err)
	}
}

func TestLargeValuesThatNoRecordHasAreRemoved(t *testing.T) {
	server := server(t)
	if server == nil {
		return
	}
	a := open(t, empty(t, server), postgres.Options{Node: "a"})
	count := func() (n int) {
		t.Helper()
		conn, err := pgx.Connect(ctx, server.URL())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(ctx)
		if err := errors.Join(a.Tidy(ctx),
			conn.QueryRow(ctx, "SELECT count(*) FROM stagedoor.large").Scan(&n)); err != nil {
			t.Fatal(err)
		}
		return n
	}
	at, err := a.Head(ctx)
	if err != nil {
		t.Fatal(err)
	}
	put := func(at journal.Position) (journal.Position, error) {
		return a.Append(ctx, at, time.Now(), []journal.Batch{{Ops: []journal.Op{
			{Table: journal.Body, Key: []byte("b"), Value: []byte(strings.Repeat("x", 1<<20))},
		}}})
	}
	old := at
	for range 2 {
		if at, err = put(at); err != nil {
			t.Fatal(err)
		}
	}
	if n := count(); n != 1 {
		t.Errorf("%d large values for one record", n)
	}
	if _, err := put(old); err == nil {
		t.Error("an append behind the end of the log was made")
	}
	if n := count(); n != 1 {
		t.Errorf("%d large values after an append that was refused", n)
	}
	// The refused value is gone now, though the store remembers to have written it.
	if at, err = put(at); err == nil {
		t.Log("the value was written again")
	} else if at, err = put(at); err != nil {
		t.Errorf("a value that was removed is not written again: %v", err)
	}
	if _, err := a.Append(ctx, at, time.Now(), []journal.Batch{{Ops: []journal.Op{
		{Kind: journal.Delete, Table: journal.Body, Key: []byte("b")},
	}}}); err != nil {
		t.Fatal(err)
	}
	if n := count(); n != 0 {
		t.Errorf("%d large values after the record was removed", n)
	}
}

func TestADatabaseThatCouldLoseCommitsIsRefused(t *testing.T) {
	server := server(t)
	if server == nil {
		return
	}
	url := empty(t, server)
	exec(t, server, "ALTER ROLE stagedoor SET synchronous_commit = off")
	_, err := postgres.Open(ctx, url, postgres.Options{Node: "a"})
	exec(t, server, "ALTER ROLE stagedoor RESET synchronous_commit")
	if err == nil || !strings.Contains(err.Error(), "synchronous_commit") {
		t.Errorf("got %v", err)
	}
	exec(t, server, "UPDATE stagedoor.head SET format = 2")
	if _, err := postgres.Open(ctx, url, postgres.Options{Node: "a"}); !errors.Is(err, journal.ErrSchema) {
		t.Errorf("a log of a newer version: %v", err)
	}
	empty(t, server)
}

func TestErrorsDoNotShowThePassword(t *testing.T) {
	for _, url := range []string{
		"postgres://u:tOpSeCrEt@127.0.0.1:1/db?connect_timeout=1", "postgres://u:tOpSeCrEt@host:port/db", "tOpSeCrEt",
	} {
		_, err := postgres.Open(ctx, url, postgres.Options{Node: "a"})
		if err == nil || strings.Contains(fmt.Sprintf("%v %+v", err, err), "tOpSeCrEt") {
			t.Errorf("%v", err)
		}
	}
}
