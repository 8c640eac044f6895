package postgres_test

import (
	"bytes"
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
	"github.com/jackc/pgx/v5/pgconn"

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
	// lossy connections break before every 100th request is sent, and after every 60th answer before it arrives.
	lossy                  atomic.Bool
	sent, answered, broken atomic.Int64
	// A connection on which this text is sent is dead from then on, without an error: nothing arrives and nothing
	// answers.
	deadly atomic.Pointer[string]
	mu     sync.Mutex
	dead   []net.Conn
}

// bury closes the connections that are dead, for which a pool that closes would wait.
func (n *network) bury() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.dead {
		c.Close()
	}
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
	dead    atomic.Bool
}

// fails breaks the connection if the network is cut or this is the last one of every so many events.
func (w *wire) fails(events *atomic.Int64, every int64) bool {
	if w.network.cut.Load() || w.network.lossy.Load() && events.Add(1)%every == 0 {
		w.network.broken.Add(1)
		w.Conn.Close()
		return true
	}
	return false
}

func (w *wire) Write(b []byte) (int, error) {
	if w.fails(&w.network.sent, 100) {
		return 0, io.ErrClosedPipe
	}
	if text := w.network.deadly.Load(); text != nil && bytes.Contains(b, []byte(*text)) && !w.dead.Swap(true) {
		w.network.mu.Lock()
		w.network.dead = append(w.network.dead, w.Conn)
		w.network.mu.Unlock()
	}
	if w.dead.Load() {
		return len(b), nil
	}
	return w.Conn.Write(b)
}

func (w *wire) Read(b []byte) (int, error) {
	n, err := w.Conn.Read(b)
	if err == nil && w.fails(&w.network.answered, 60) {
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
	t.Cleanup(n.bury)
	return openWith(t, url, postgres.Options{
		Node: name, Several: true, Configure: n.configure, AnswerWait: 5 * time.Second,
	})
}

func openWith(t testing.TB, url string, o postgres.Options) *node {
	t.Helper()
	store := open(t, url, o)
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
	if total == 0 {
		t.Error("no credit was made")
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
	url, network := empty(t, server), &network{}
	a, b := openNode(t, url, "a", network), openNode(t, url, "b", network)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { a.credit(t, stop) })
	wg.Go(func() { b.credit(t, stop) })
	network.lossy.Store(true)
	killed := 0
	for end := time.Now().Add(length()); time.Now().Before(end) || network.broken.Load() < 3; killed++ {
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
	exact(t, server, a, b)
}

func TestWhatWasAcknowledgedSurvivesACrashOfTheDatabase(t *testing.T) {
	server := server(t)
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

// The leases of nodes that are to be found silent, which are looked at ten times in one, and of nodes that must stay
// live, which beat each second. Both are long enough for a busy machine.
const (
	lease     = 3 * time.Second
	longLease = 5 * time.Second
)

func TestASecondNodeIsRefusedWhileTheFirstIsLive(t *testing.T) {
	server := server(t)
	url := empty(t, server)
	a := open(t, url, postgres.Options{Node: "a"})
	_, err := postgres.Open(ctx, url, postgres.Options{Node: "b", Lease: longLease})
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
	url := empty(t, server)
	exec(t, server, "ALTER ROLE stagedoor SET synchronous_commit = off")
	_, err := postgres.Open(ctx, url, postgres.Options{Node: "a"})
	exec(t, server, "ALTER ROLE stagedoor RESET synchronous_commit")
	if err == nil || !strings.Contains(err.Error(), "synchronous_commit") {
		t.Errorf("got %v", err)
	}
	exec(t, server, "UPDATE stagedoor.head SET format = 99")
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

// pair returns two nodes of an empty store and the end of its log. The network is that of the first one only.
func pair(t *testing.T, n *network) (a, b *postgres.Store, at journal.Position) {
	t.Helper()
	url := empty(t, server(t))
	a = open(t, url, postgres.Options{Node: "a", Several: true, Configure: n.configure, AnswerWait: time.Second})
	b = open(t, url, postgres.Options{Node: "b", Several: true})
	at, err := a.Head(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.bury)
	return a, b, at
}

// soon is less than the time after which the database ends a transaction that was left open.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(ctx, 1500*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

var smallWrite = []journal.Batch{{Ops: []journal.Op{{Table: journal.Ledger, Key: []byte("k"), Value: []byte("v")}}}}

func TestAStandbyIsNotReadAsTheDatabase(t *testing.T) {
	server := server(t)
	a := open(t, empty(t, server), postgres.Options{Node: "a"})
	restart := func(standby bool) {
		t.Helper()
		server.Crash()
		if err := errors.Join(server.SetStandby(standby), server.Run()); err != nil {
			t.Fatal(err)
		}
	}
	restart(true)
	if at, err := a.Head(ctx); !errors.Is(err, journal.ErrUnreachable) {
		t.Errorf("the end of the log as a standby knows it: %v, %v", at, err)
	}
	_, err := postgres.Open(ctx, server.URL(), postgres.Options{Node: "b"})
	if !errors.Is(err, pgconn.ErrStandbyConnection) {
		t.Errorf("a node that joins on a standby: %v", err)
	}
	restart(false)
	if _, err := a.Head(ctx); err != nil {
		t.Errorf("on the primary: %v", err)
	}
}

func TestATurnWithoutAnAnswerSaysThatNothingHasChanged(t *testing.T) {
	n := &network{}
	a, b, at := pair(t, n)
	text := "FROM stagedoor.log WHERE lsn >=" // the turn has begun by then
	n.deadly.Store(&text)
	_, turn, err := a.Turn(ctx, at)
	if turn || !errors.Is(err, journal.ErrUnreachable) {
		t.Errorf("turn %t, %v", turn, err)
	}
	n.deadly.Store(nil)
	if _, err := b.Append(soon(t), at, time.Now(), smallWrite); err != nil {
		t.Errorf("another node after that: %v", err)
	}
}

func TestACommitOfAProcessThatHangsDoesNotBlockOthers(t *testing.T) {
	n := &network{}
	a, b, _ := pair(t, n)
	text := "stagedoor.append" // the end of the log is locked by then
	n.deadly.Store(&text)
	hanging, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := a.Commit(hanging, smallWrite); err == nil {
			t.Error("a commit that was not sent was made")
		}
	})
	for { // until the end of the log is locked
		short, done := context.WithTimeout(ctx, 50*time.Millisecond)
		_, err := b.Commit(short, smallWrite)
		if done(); err != nil {
			break
		}
	}
	late, done := context.WithTimeout(ctx, time.Minute)
	defer done()
	if _, err := b.Commit(late, smallWrite); err != nil {
		t.Errorf("a commit of another node: %v", err)
	}
	cancel()
	wg.Wait()
}

func TestALargeValueIsNotWrittenDuringATurn(t *testing.T) {
	n := &network{}
	a, b, at := pair(t, n)
	if _, turn, err := a.Turn(ctx, at); !turn || err != nil {
		t.Fatal(turn, err)
	}
	text := "INSERT INTO stagedoor.large"
	n.deadly.Store(&text)
	var wg sync.WaitGroup
	wg.Go(func() {
		large := journal.Op{Table: journal.Body, Key: []byte("b"), Value: make([]byte, 1<<20)}
		_, err := a.Append(ctx, at, time.Now(), []journal.Batch{{Ops: []journal.Op{large}}})
		if !errors.Is(err, journal.ErrUnreachable) {
			t.Errorf("a large value that the database does not answer: %v", err)
		}
	})
	if _, err := b.Append(soon(t), at, time.Now(), smallWrite); err != nil {
		t.Errorf("another node meanwhile: %v", err)
	}
	wg.Wait()
}

func TestAnAppendThatIsRefusedAtOnceEndsItsTurn(t *testing.T) {
	a, b, at := pair(t, &network{})
	if _, turn, err := a.Turn(ctx, at); !turn || err != nil {
		t.Fatal(turn, err)
	}
	bad := []journal.Batch{{Ops: []journal.Op{{Table: "no such table", Key: []byte("k")}}}}
	if _, err := a.Append(ctx, at, time.Now(), bad); !errors.Is(err, journal.ErrInvalid) {
		t.Errorf("an unknown table: %v", err)
	}
	if _, err := b.Append(soon(t), at, time.Now(), smallWrite); err != nil {
		t.Errorf("another node after that: %v", err)
	}
}

func TestANodeThatLeavesIsForgottenAndItsEpochIsNotUsedAgain(t *testing.T) {
	a, b, _ := pair(t, &network{})
	epoch := func() uint64 {
		all, err := b.Members().List(ctx)
		if err != nil || len(all) != 2 {
			t.Fatal(all, err)
		}
		return all[0].Epoch
	}
	first := epoch()
	a.Close()
	var rows int
	if err := admin.QueryRow(ctx, "SELECT count(*) FROM stagedoor.node").Scan(&rows); err != nil || rows != 1 {
		t.Errorf("%d rows, %v", rows, err)
	}
	open(t, pgserver.Shared(t).URL(), postgres.Options{Node: "a", Several: true})
	if again := epoch(); again <= first {
		t.Errorf("epoch %d after %d", again, first)
	}
}

// kill makes the connection dead on which a text is sent next, and returns when that has happened.
func (n *network) kill(text string) {
	n.deadly.Store(&text)
	for before := n.burials(); n.burials() == before; {
		time.Sleep(time.Millisecond)
	}
	n.deadly.Store(nil)
}

func (n *network) burials() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.dead)
}

func TestCommandsBehindAnAppendOfUnknownOutcomeAreRefused(t *testing.T) {
	server := server(t)
	n := &network{}
	a := openNode(t, empty(t, server), "a", n)
	credit := func() error {
		_, _, err := money.CommitPostings(ctx, a.state, "anna", []money.Posting{{Kind: money.Credit, Amount: 1}})
		return err
	}
	first := make(chan error, 1)
	go func() { first <- credit() }()
	n.kill("stagedoor.append")
	n.cut.Store(true)
	if err := credit(); !errors.Is(err, journal.ErrUnreachable) || !errors.Is(err, state.ErrUnavailable) {
		t.Errorf("a command that waited behind it: %v", err)
	}
	if err := credit(); !errors.Is(err, journal.ErrUnreachable) {
		t.Errorf("a command that came later: %v", err)
	}
	done := make(chan error, 1)
	if err := state.Submit(a.state, func(*state.Tx) error { return nil }, func(err error) { done <- err }); err == nil {
		t.Errorf("Submit: no error, then %v", <-done)
	}
	select {
	case err := <-first:
		t.Errorf("the command whose outcome is not known was answered: %v", err)
	default:
	}
	n.cut.Store(false)
	if err := errors.Join(<-first, credit()); err != nil {
		t.Errorf("after the network was mended: %v", err)
	}
	if have := money.FindAccount(a.state.View(), "anna").Credits; have != 2 {
		t.Errorf("credits %d", have)
	}
}

func TestAnAppendThatIsRefusedAfterAnUnknownSendingCannotArriveLater(t *testing.T) {
	n := &network{}
	a, _, at := pair(t, n)
	server := pgserver.Shared(t)
	exec(t, server, "ALTER TABLE stagedoor.rec ADD CONSTRAINT refuse CHECK (value <> 'v') NOT VALID")
	defer exec(t, server, "ALTER TABLE stagedoor.rec DROP CONSTRAINT IF EXISTS refuse")
	var wg sync.WaitGroup
	wg.Go(func() { n.kill("stagedoor.append") })
	if _, err := a.Append(ctx, at, time.Now(), smallWrite); !errors.Is(err, journal.ErrReadOnly) {
		t.Errorf("got %v", err)
	}
	wg.Wait()
	exec(t, server, "ALTER TABLE stagedoor.rec DROP CONSTRAINT refuse")
	// The first sending, which only now arrives.
	_, err := admin.Exec(ctx, `SELECT stagedoor.append('a', epoch, 2, head.lsn, head.tag, 77, 0, '',
		'{}', '{}', '{}', '{}', '{}', '{led}', '{k}', '{1}', '{v}', ARRAY[NULL]::bigint[])
		FROM stagedoor.node, stagedoor.head WHERE id = 'a'`)
	if answer, _ := errors.AsType[*pgconn.PgError](err); answer == nil || answer.Code != "SD002" {
		t.Errorf("the earlier sending: %v", err)
	}
	if _, err := a.Append(ctx, at, time.Now(), smallWrite); err != nil {
		t.Errorf("the next append: %v", err)
	}
}

func TestReadersThatAreSlowHoldNoConnections(t *testing.T) {
	a := open(t, empty(t, server(t)), postgres.Options{Node: "a", Several: true, AnswerWait: time.Minute})
	at, err := a.Head(ctx)
	if err != nil {
		t.Fatal(err)
	}
	const records = 600
	var ops []journal.Op
	for i := range records {
		value := []byte{byte(i)}
		if i%300 == 0 {
			value = make([]byte, 1<<20+1) // larger than a part, and so the only one in it
		}
		ops = append(ops, journal.Op{Table: journal.Event, Key: fmt.Appendf(nil, "%03d", i), Value: value})
	}
	if at, err = a.Append(ctx, at, time.Now(), []journal.Batch{{Ops: ops}}); err != nil {
		t.Fatal(err)
	}
	slow, began := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	const readers = 6 // more than there are connections
	for range readers {
		wg.Go(func() {
			n := 0
			err := a.Range(ctx, journal.Event, nil, nil, 0, func(r journal.Record) error {
				if n == 0 {
					began <- struct{}{}
					<-slow
				}
				if want := fmt.Sprintf("%03d", n); string(r.Key) != want {
					return fmt.Errorf("record %q at %s", r.Key, want)
				}
				n++
				return nil
			})
			if n != records || err != nil {
				t.Errorf("%d records, %v", n, err)
			}
		})
	}
	for range readers {
		<-began
	}
	if end, err := a.Head(soon(t)); err != nil || end != at {
		t.Errorf("the end of the log meanwhile: %v, %v", end, err)
	}
	if _, err := a.Append(soon(t), at, time.Now(), smallWrite); err != nil {
		t.Errorf("an append meanwhile: %v", err)
	}
	close(slow)
	wg.Wait()
	for _, limit := range []int{1, 256, 257, 599, 601} {
		n := 0
		err := a.Range(ctx, journal.Event, nil, nil, limit, func(journal.Record) error { n++; return nil })
		if n != min(limit, records) || err != nil {
			t.Errorf("at most %d: %d records, %v", limit, n, err)
		}
	}
}

func TestAForkIsNoticedByANodeThatOnlyReads(t *testing.T) {
	server := server(t)
	for name, failover := range map[string]string{
		"the last entry is gone": `DELETE FROM stagedoor.log l USING stagedoor.head h WHERE l.lsn = h.lsn;
			UPDATE stagedoor.head h SET lsn = l.lsn, tag = l.tag
				FROM (SELECT * FROM stagedoor.log ORDER BY lsn DESC LIMIT 1) AS l`,
		"the last entry is another one": `UPDATE stagedoor.head SET tag = 5;
			UPDATE stagedoor.log l SET tag = 5 FROM stagedoor.head h WHERE l.lsn = h.lsn`,
	} {
		a := openNode(t, empty(t, server), "a", &network{})
		_, _, err := money.CommitPostings(ctx, a.state, "anna", []money.Posting{{Kind: money.Credit, Amount: 1}})
		if err != nil {
			t.Fatal(err)
		}
		exec(t, server, "BEGIN; "+failover+"; COMMIT")
		if _, err := a.store.Head(ctx); !errors.Is(err, journal.ErrForked) {
			t.Errorf("%s: Head: %v", name, err)
		}
		<-a.state.Failed() // without a command
		if err := a.state.Err(); !errors.Is(err, journal.ErrForked) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// age returns the age of a node's last beat, and fails if it is not live.
func age(t *testing.T, s *postgres.Store, node string) time.Duration {
	t.Helper()
	all, err := s.Members().List(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		if m.Node == node && m.Live {
			return m.Age
		}
	}
	t.Fatalf("%s is not live: %v", node, all)
	return 0
}

// beats returns after a node has beaten n times.
func beats(t *testing.T, s *postgres.Store, node string, n int) {
	t.Helper()
	for last := age(t, s, node); n > 0; {
		now := age(t, s, node)
		if now < last {
			n--
		}
		last = now
		time.Sleep(10 * time.Millisecond)
	}
}

func TestADeadConnectionDoesNotCostANodeItsLease(t *testing.T) {
	n := &network{}
	_, b, _ := pair(t, n)
	var wg sync.WaitGroup
	wg.Go(func() { n.kill("SET beat") })
	for n.deadly.Load() == nil {
		time.Sleep(time.Millisecond)
	}
	// A statement is sent as text only once on a connection, so a makes a new one.
	exec(t, pgserver.Shared(t), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE application_name = 'stagedoor a'`)
	wg.Wait()
	beats(t, b, "a", 1)
}

func TestANodeBeatsWhileTheDatabaseIsTidied(t *testing.T) {
	_, b, _ := pair(t, &network{})
	server := pgserver.Shared(t)
	open(t, server.URL(), postgres.Options{Node: "c", Several: true}.TidyingEvery(10*time.Millisecond))
	exec(t, server, "BEGIN; LOCK stagedoor.large")
	defer exec(t, server, "COMMIT")
	for waiting := 0; waiting == 0; time.Sleep(time.Millisecond) {
		exec(t, server, "SELECT pg_stat_clear_snapshot()") // which a transaction takes once
		err := admin.QueryRow(ctx, "SELECT count(*) FROM pg_locks WHERE NOT granted").Scan(&waiting)
		if err != nil {
			t.Fatal(err)
		}
	}
	beats(t, b, "c", 2)
}

// A beat waits for the disk of the database, or for an append of its node.
func TestANodeHearsOfOthersWhileItsBeatWaits(t *testing.T) {
	server := server(t)
	url := empty(t, server)
	a := open(t, url, postgres.Options{Node: "a", Several: true})
	b := open(t, url, postgres.Options{Node: "b", Several: true, Lease: time.Hour, AnswerWait: time.Hour})
	at, err := a.Head(ctx)
	if err != nil {
		t.Fatal(err)
	}
	exec(t, server, "BEGIN; SELECT FROM stagedoor.node WHERE id = 'b' FOR UPDATE")
	defer exec(t, server, "COMMIT")
	for waiting := 0; waiting == 0; time.Sleep(time.Millisecond) {
		exec(t, server, "SELECT pg_stat_clear_snapshot()") // which a transaction takes once
		err := admin.QueryRow(ctx, `SELECT count(*) FROM pg_stat_activity
			WHERE wait_event_type = 'Lock' AND application_name = 'stagedoor b'`).Scan(&waiting)
		if err != nil {
			t.Fatal(err)
		}
	}
	for len(b.Changed()) > 0 {
		<-b.Changed()
	}
	if _, err := a.Append(ctx, at, time.Now(), smallWrite); err != nil {
		t.Fatal(err)
	}
	select {
	case <-b.Changed():
	case <-time.After(time.Minute):
		t.Error("nothing is heard of the other node")
	}
}

func TestATidyRemovesAllThatIsNotNeeded(t *testing.T) {
	a, _, _ := pair(t, &network{})
	exec(t, pgserver.Shared(t), `INSERT INTO stagedoor.large (value) SELECT '' FROM generate_series(1, 250);
		INSERT INTO stagedoor.node (id, epoch, beat, live) VALUES
			('old', 1, now() - interval '2 days', false), ('expelled', 1, now() - interval '1 hour', false)`)
	if err := a.Tidy(ctx); err != nil {
		t.Fatal(err)
	}
	var values, nodes int
	err := admin.QueryRow(ctx, "SELECT (SELECT count(*) FROM stagedoor.large), (SELECT count(*) FROM stagedoor.node)").
		Scan(&values, &nodes)
	if err != nil || values != 0 || nodes != 3 {
		t.Errorf("%d large values, %d nodes, %v", values, nodes, err)
	}
}

func TestTheTablesOfAnEarlierVersionAreUpgraded(t *testing.T) {
	server := server(t)
	url := empty(t, server)
	exec(t, server, `ALTER TABLE stagedoor.node DROP COLUMN leaving, DROP COLUMN version, DROP COLUMN several,
		DROP COLUMN address, DROP COLUMN reads, DROP COLUMN reads_epoch; DROP TABLE stagedoor.unit, stagedoor.want`)
	a := open(t, url, postgres.Options{Node: "a", Version: "1.2.3"})
	all, err := a.Members().List(ctx)
	if err != nil || len(all) != 1 || all[0].Version != "1.2.3" {
		t.Errorf("%v, %v", all, err)
	}
	commitOne(t, a)
}
