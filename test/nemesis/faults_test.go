package nemesis

import (
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/jackc/pgx/v5"

	"stagedoor/state"
	"stagedoor/state/journal"
	"stagedoor/state/journal/postgres"
	"stagedoor/state/money"
	"stagedoor/state/schema"
	"stagedoor/state/statetest/pgserver"
	"stagedoor/state/work"
)

// cluster is a database with a synchronous standby, and two nodes that reach it through proxies.
type cluster struct {
	t                *testing.T
	primary, replica *pgserver.Server
	proxies          []*pgserver.Proxy
	states           [2]atomic.Pointer[state.State]
	begunAgain       int // nodes that a failover has left behind the log
}

// open starts a node, or starts it again.
func (c *cluster) open(i int) {
	c.t.Helper()
	store, err := postgres.Open(ctx, c.proxies[i].URL(),
		postgres.Options{Node: string(rune('a' + i)), Several: true, AnswerWait: time.Second})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { store.Close() })
	s, err := schema.Open(store, time.Now)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { s.Close() })
	c.states[i].Store(s)
}

// restart starts nodes again that have found a fork, as their service manager does. While the primary dies it shows
// commits for a moment which its standby does not have. A node that has read one ends, and nothing of it was
// acknowledged.
func (c *cluster) restart() {
	for i := range c.states {
		if errors.Is(c.states[i].Load().Err(), journal.ErrForked) {
			c.begunAgain++
			c.open(i)
		}
	}
}

func startCluster(t *testing.T) *cluster {
	t.Helper()
	// The standby looks for its primary ten times a second, and not every five seconds.
	server, err := pgserver.Start("fsync=off", "wal_retrieve_retry_interval=100ms")
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{t: t, primary: server}
	t.Cleanup(func() {
		c.primary.Stop()
		c.replica.Stop()
	})
	c.replicate()
	for i := range c.states {
		c.proxies = append(c.proxies, pgserver.NewProxy(t, server))
		c.open(i)
	}
	return c
}

// sql runs statements on the primary.
func (c *cluster) sql(statements ...string) {
	c.t.Helper()
	conn, err := pgx.Connect(ctx, c.primary.URL())
	if err != nil {
		c.t.Fatal(err)
	}
	defer conn.Close(ctx)
	for _, s := range statements {
		if _, err := conn.Exec(ctx, s); err != nil {
			c.t.Fatal(err)
		}
	}
}

// replicate gives the primary a new synchronous standby.
func (c *cluster) replicate() {
	c.t.Helper()
	var err error
	if c.replica, err = c.primary.Replica(); err != nil {
		c.t.Fatal(err)
	}
	c.sql("ALTER SYSTEM SET synchronous_standby_names = 'replica'", "SELECT pg_reload_conf()")
	conn, err := pgx.Connect(ctx, c.primary.URL())
	if err != nil {
		c.t.Fatal(err)
	}
	defer conn.Close(ctx)
	// One statement for each look: a connection reads the new setting, which sync_state depends on, between statements.
	for synchronous := false; !synchronous; time.Sleep(10 * time.Millisecond) {
		const look = "SELECT EXISTS (SELECT FROM pg_stat_replication WHERE sync_state = 'sync')"
		if err := conn.QueryRow(ctx, look).Scan(&synchronous); err != nil {
			c.t.Fatal(err)
		}
	}
}

func (c *cluster) run() {
	c.t.Helper()
	if err := c.primary.Run(); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) fail(node int, f pgserver.Fault) {
	c.proxies[node].Set(f)
	time.Sleep(300 * time.Millisecond)
	c.proxies[node].Set(pgserver.None)
}

// faults follow each other in this sequence.
var faults = []struct {
	name  string
	cause func(*cluster)
}{
	{"a is cut off", func(c *cluster) { c.fail(0, pgserver.Cut) }},
	{"b is slow", func(c *cluster) { c.fail(1, pgserver.Slow) }},
	{"a's connections are half open", func(c *cluster) { c.fail(0, pgserver.HalfOpen) }},
	{"b's replies are lost", func(c *cluster) { c.fail(1, pgserver.DropReplies) }},
	{"connections end in the middle of an append", func(c *cluster) {
		for range 10 {
			c.sql(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'stagedoor%'
				AND query LIKE '%append%' ORDER BY random() LIMIT 1`)
			time.Sleep(20 * time.Millisecond)
		}
	}},
	{"the database is stopped", func(c *cluster) { c.primary.Halt(); c.run() }},
	{"the database crashes", func(c *cluster) { c.primary.Crash(); c.run() }},
	{"the database fails over to its standby", func(c *cluster) {
		old := c.primary
		old.Crash()
		if err := c.replica.Promote(); err != nil {
			c.t.Fatal(err)
		}
		c.primary = c.replica
		c.sql("ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()")
		for _, p := range c.proxies {
			p.To(c.primary)
		}
		old.Stop()
		c.replicate()
	}},
}

// prepare returns an account with credits, codes and names of keys that no call was about yet.
func (c *cluster) prepare(n int) *histories {
	c.t.Helper()
	h := &histories{t: c.t, begun: time.Now(), codes: map[string]string{}, account: fmt.Sprintf("account-%d", n)}
	var codes []money.RedeemCode
	for i := range 20 {
		text, code, err := money.NewRedeemCode(time.Now(), rand.Reader, 1, "")
		if err != nil {
			c.t.Fatal(err)
		}
		codes, h.codes[code.ID] = append(codes, code), text
		h.keys = append(h.keys, fmt.Sprintf("key_%d_%d", n, i))
		h.jobs = append(h.jobs, fmt.Sprintf("job_%d_%d", n, i/4))
	}
	paid := []money.Posting{{Kind: money.Credit, Amount: credits}}
	_, _, err := money.CommitPostings(ctx, c.states[0].Load(), h.account, paid)
	if err := errors.Join(err, money.AddRedeemCodes(ctx, c.states[0].Load(), codes)); err != nil {
		c.t.Fatal(err)
	}
	return h
}

// drive makes calls on both nodes while a fault is caused, and returns the history with a last look at the account on
// each of them, when all of its holds have ended.
func (c *cluster) drive(h *histories, fault func(*cluster)) []porcupine.Operation {
	stop := make(chan struct{})
	var clients sync.WaitGroup
	const perNode = 3
	for i := range perNode * len(c.states) {
		clients.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(4 * time.Millisecond):
					s := c.states[i%len(c.states)].Load()
					h.do(i, s, h.choose(s))
				}
			}
		})
	}
	h.await(enough, c.restart)
	fault(c)
	h.await(enough, c.restart)
	close(stop)
	clients.Wait()
	for _, hold := range h.holds {
		hold.kind = "release"
		h.do(0, c.states[0].Load(), hold)
	}
	for i := range c.states {
		h.do(i, c.states[i].Load(), call{object: h.account, kind: "look"})
	}
	return h.history
}

// enough is the number of calls that are decided before a fault, and again after it.
const enough = 60

func TestWhatNodesAcknowledgeIsThereOnceWhateverFails(t *testing.T) {
	c := startCluster(t)
	calls, refused, away, caused := 0, 0, 0, 0
	for range *rounds {
		for _, f := range faults {
			h := c.prepare(caused)
			history := c.drive(h, f.cause)
			if got := porcupine.CheckOperationsTimeout(model, history, patience); got != porcupine.Ok {
				t.Errorf("while %s: the answers are those of no sequence of the calls: %s", f.name, got)
			}
			looks := 0
			for _, op := range history {
				if op.Input.(call).kind == "look" {
					looks++
				}
			}
			if looks != len(c.states) {
				t.Errorf("after %s: %d looks at the account", f.name, looks)
			}
			calls, refused, away, caused = calls+len(history), refused+h.refused, away+h.away, caused+1
		}
	}
	t.Logf("%d faults; %d calls were decided, %d of them refusals, and %d were not made while the database was away; "+
		"%d nodes had read what a failover lost", caused, calls, refused, away, c.begunAgain)
	if refused < caused {
		t.Errorf("only %d calls were refused: nothing raced", refused)
	}
	auditor, err := postgres.Open(ctx, c.primary.URL(), postgres.Options{Node: "auditor", Several: true})
	if err != nil {
		t.Fatal(err)
	}
	defer auditor.Close()
	if v, err := schema.Verify(ctx, auditor); err != nil || !v.Sound() {
		t.Errorf("the store: %v, problems %q", err, v.Problems)
	}
}

// The checker distinguishes histories that must not happen from those that may.
func TestForgedHistoriesAreNoticed(t *testing.T) {
	at := func(from, to int64, c call, r result) porcupine.Operation {
		return porcupine.Operation{Call: from, Return: to, Input: c, Output: r}
	}
	hold := call{kind: "begin", amount: 600}
	ended := func(kind string) call { return call{kind: kind, amount: 600, hold: 1} }
	queued := func(id string) porcupine.Operation {
		return at(0, 1, call{kind: "queue", node: "a"}, result{ok: true, id: id})
	}
	taken := at(2, 3, call{kind: "take over", node: "b"}, result{ok: true, id: "x"})
	submitted := func(by state.Node, ok bool) porcupine.Operation {
		base := job{id: "x", phase: work.VideoAccepted, node: by}
		return at(4, 5, call{kind: "step", base: base, to: work.VideoSubmitting}, result{ok: ok})
	}
	begun, done := at(0, 1, hold, result{ok: true, hold: 1}), result{ok: true}
	for name, c := range map[string]struct {
		history []porcupine.Operation
		want    bool
	}{
		"a hold that is settled": {[]porcupine.Operation{begun, at(2, 3, ended("settle"), done),
			at(4, 5, call{kind: "look"}, result{ok: true, have: 400})}, true},
		"more than there is": {[]porcupine.Operation{begun, at(0, 1, hold, result{ok: true, hold: 2})}, false},
		"a hold that ends twice": {[]porcupine.Operation{begun, at(2, 3, ended("settle"), done),
			at(2, 3, ended("release"), done)}, false},
		"a settlement that is lost": {[]porcupine.Operation{begun, at(2, 3, ended("settle"), done),
			at(4, 5, call{kind: "look"}, result{ok: true, have: 1000})}, false},
		"a settlement that is doubled": {[]porcupine.Operation{begun, at(2, 3, ended("settle"), done),
			at(4, 5, call{kind: "look"}, result{ok: true, have: -200})}, false},
		"a code that is used twice": {[]porcupine.Operation{at(0, 1, call{kind: "redeem"}, done),
			at(0, 1, call{kind: "redeem"}, done)}, false},
		"a key after its revocation": {[]porcupine.Operation{at(0, 1, call{kind: "create"}, done),
			at(2, 3, call{kind: "revoke"}, done), at(4, 5, call{kind: "check"}, done)}, false},
		"a key during its revocation": {[]porcupine.Operation{at(0, 1, call{kind: "create"}, done),
			at(2, 5, call{kind: "revoke"}, done), at(3, 4, call{kind: "check"}, done)}, true},
		"a job that is queued twice": {[]porcupine.Operation{queued("x"), queued("y")}, false},
		"a job that its second node submits": {[]porcupine.Operation{queued("x"), taken, submitted("b", true),
			submitted("a", false)}, true},
		"a job that two nodes submit": {[]porcupine.Operation{queued("x"), taken, submitted("b", true),
			submitted("a", true)}, false},
		"a job that is lost with its node": {[]porcupine.Operation{queued("x"), taken, submitted("b", false)}, false},
	} {
		if got := porcupine.CheckOperations(model, c.history); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}
