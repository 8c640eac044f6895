package state_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"stagedoor/state"
	"stagedoor/state/identity"
	"stagedoor/state/journal"
	"stagedoor/state/money"
	"stagedoor/state/schema"
	"stagedoor/state/statetest"
	"stagedoor/state/work"
)

// openNode opens the state on a node of a shared store. It closes the state, but not the node, when the test ends.
func openNode(t testing.TB, node journal.Store, now func() time.Time) *state.State {
	t.Helper()
	s, err := schema.Open(node, now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// twoNodes returns the states of two nodes of one store. If they are quiet, each finds what the other did only when it
// commits.
func twoNodes(t testing.TB, quiet bool) (a, b *state.State, c *statetest.Cluster) {
	t.Helper()
	c = statetest.NewCluster()
	if quiet {
		c.Silence()
	}
	clock := newClock()
	return openNode(t, c.Join("a"), clock.Now), openNode(t, c.Join("b"), clock.Now), c
}

func credit(t testing.TB, s *state.State, account string, amount int64) {
	t.Helper()
	_, posted, err := money.CommitPostings(ctx, s, account, []money.Posting{{Kind: money.Credit, Amount: amount}})
	if err != nil || posted[0].Err != nil {
		t.Fatal(err, posted)
	}
}

func TestNodesFollowEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := statetest.NewCluster()
		a, b := openNode(t, c.Join("a"), time.Now), openNode(t, c.Join("b"), time.Now)
		access := identity.AccessOf(b)
		era, changed := access.AccessVersion(), access.WatchAccess()
		k := newKey(t, 1)
		if err := identity.CreateKey(ctx, a, k); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		select {
		case <-changed:
		default:
			t.Error("a watcher on the other node was not woken")
		}
		if found, ok := access.Key(k.Hash); !ok || found.ID != k.ID || access.AccessVersion() == era {
			t.Errorf("a key of the other node: %t, era %d after %d", ok, access.AccessVersion(), era)
		}
		credit(t, a, "anna", 5)
		r := newResponse(1, "completed")
		r.Expires = a.Now().Add(time.Hour)
		if err := work.PutResponse(ctx, a, r); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if n := money.FindAccount(b.View(), "anna").Credits; n != 5 {
			t.Errorf("credits on the other node: %d", n)
		}
		if n := work.KeptResponses(b, me); n.Responses != 1 || n != work.KeptResponses(a, me) {
			t.Errorf("the owner keeps %+v on one node and %+v on the other", work.KeptResponses(a, me), n)
		}
		if got, err := work.ReadResponse(ctx, b, r.ID, me); err != nil || string(got.Body) != string(r.Body) {
			t.Errorf("a response of the other node: %v", err)
		}
		if err := errors.Join(identity.DeleteKey(ctx, b, k.ID), work.DeleteResponse(ctx, b, r.ID, me)); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if _, ok := identity.AccessOf(a).Key(k.Hash); ok || work.StatsOf(a).Responses != 0 {
			t.Error("what the other node removed is still there")
		}
		sameAfterReload(t, a, c.Store())
		sameAfterReload(t, b, c.Store())
	})
}

func TestACommandIsDecidedAgainWhereAnotherNodeWasFirst(t *testing.T) {
	a, b, c := twoNodes(t, true)
	credit(t, a, "anna", 10)
	for range 5 { // more entries than one refusal brings
		credit(t, a, "bert", 1)
	}
	runs, effects, seen := 0, 0, int64(-1)
	must(t, b, func(tx *state.Tx) error {
		runs++
		tx.OnCommit(func() { effects++ })
		seen = money.FindAccount(tx.View(), "anna").Credits
		_, _, err := money.Post(tx, "anna", []money.Posting{{Kind: money.Credit, Amount: 1}})
		return err
	})
	if runs != 2 || effects != 1 || seen != 10 || b.Stats().Again != 1 {
		t.Errorf("ran %d times, %d effects, saw %d; %+v", runs, effects, seen, b.Stats())
	}
	settle(t, a)
	for name, s := range map[string]*state.State{"a": a, "b": b} {
		if got := money.FindAccount(s.View(), "anna"); got.Credits != 11 || got.Last != 7 {
			t.Errorf("node %s: %+v", name, got)
		}
	}
	sound(t, c.Store(), "decided again")
}

func TestARefusalIsDecidedAtTheEndOfTheLog(t *testing.T) {
	a, b, _ := twoNodes(t, true)
	k := newKey(t, 1)
	if err := identity.CreateKey(ctx, a, k); err != nil {
		t.Fatal(err)
	}
	refused := errors.New("refused")
	find := func(tx *state.Tx) error {
		if _, err := identity.FindKey(tx.View(), k.ID); err != nil {
			return refused
		}
		return nil
	}
	if err := try(b, find); err != nil {
		t.Errorf("refused for what another node had made already: %v", err)
	}
	if err := identity.DeleteKey(ctx, a, k.ID); err != nil {
		t.Fatal(err)
	}
	if err := try(b, find); !errors.Is(err, refused) {
		t.Errorf("found what another node had removed already: %v", err)
	}
}

// TestManyNodesLoseNothing has three nodes change the same accounts at the same time.
func TestManyNodesLoseNothing(t *testing.T) {
	const writers, each = 4, 30
	c, clock := statetest.NewCluster(), newClock()
	var nodes []*state.State
	for _, name := range []string{"a", "b", "c"} {
		nodes = append(nodes, openNode(t, c.Join(name), clock.Now))
	}
	var wg sync.WaitGroup
	for n, s := range nodes {
		for w := range writers {
			random := rand.New(rand.NewPCG(uint64(n), uint64(w)))
			wg.Go(func() {
				for i := range each {
					account := []string{"anna", "bert"}[random.IntN(2)]
					credit(t, s, account, 1)
					k := newKey(t, 1000*n+100*w+i)
					err := identity.CreateKey(ctx, s, k)
					if i%2 == 0 {
						err = errors.Join(err, identity.DeleteKey(ctx, s, k.ID))
					}
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	wg.Wait()
	for i, s := range nodes {
		settle(t, s)
		anna, bert := money.FindAccount(s.View(), "anna"), money.FindAccount(s.View(), "bert")
		if sum := anna.Credits + bert.Credits; sum != 3*writers*each {
			t.Errorf("node %d has credits of %d, want %d", i, sum, 3*writers*each)
		}
		if n := len(identity.ListKeys(s.View(), identity.KeyFilter{})); n != 3*writers*each/2 {
			t.Errorf("node %d has %d keys", i, n)
		}
		sameAfterReload(t, s, c.Store())
	}
	sound(t, c.Store(), "written by three nodes")
}

func TestTimeIsThatOfTheLog(t *testing.T) {
	c := statetest.NewCluster()
	early, late := newClock(), newClock()
	late.Add(time.Hour)
	a, b := openNode(t, c.Join("a"), late.Now), openNode(t, c.Join("b"), early.Now)
	credit(t, a, "anna", 1)
	settle(t, b)
	if b.Now().Before(late.Now()) {
		t.Errorf("a node decides at %v after an entry of %v", b.Now(), late.Now())
	}
}

func TestAFencedNodeStops(t *testing.T) {
	a, _, c := twoNodes(t, true)
	young := openNode(t, c.Join("a"), newClock().Now)
	credit(t, young, "anna", 1)
	settle(t, a) // reads go on
	_, _, err := money.CommitPostings(ctx, a, "anna", []money.Posting{{Kind: money.Credit, Amount: 1}})
	if !errors.Is(err, state.ErrUnavailable) || !errors.Is(err, journal.ErrFenced) ||
		!errors.Is(a.Err(), journal.ErrFenced) {
		t.Errorf("got %v, state %v", err, a.Err())
	}
	<-a.Failed()
	credit(t, young, "anna", 1)
}

func TestANodeThatCannotFollowStops(t *testing.T) {
	t.Run("an entry that cannot be decoded", func(t *testing.T) {
		a, _, c := twoNodes(t, true)
		outsider := c.Join("other")
		if _, err := outsider.Commit(ctx, []journal.Batch{{Ops: []journal.Op{
			{Kind: journal.Put, Table: journal.Key, Key: []byte("k"), Value: []byte("no record")},
		}}}); err != nil {
			t.Fatal(err)
		}
		if err := try(a, func(*state.Tx) error { return nil }); !errors.Is(err, journal.ErrCorrupt) {
			t.Errorf("got %v", err)
		}
		<-a.Failed()
	})
	t.Run("a log that has been trimmed", func(t *testing.T) {
		a, b, c := twoNodes(t, true)
		credit(t, a, "anna", 1)
		c.Trim()
		if err := try(b, func(*state.Tx) error { return nil }); !errors.Is(err, journal.ErrForked) {
			t.Errorf("got %v", err)
		}
		<-b.Failed()
	})
}

// remote is a node whose store can be out of reach.
type remote struct {
	*statetest.Node
	away bool
	hang bool // an append was sent and is not answered
}

func (r *remote) Append(
	ctx context.Context, at journal.Position, now time.Time, batches []journal.Batch,
) (journal.Position, error) {
	switch {
	case r.away:
		return at, journal.ErrUnreachable
	case r.hang:
		<-ctx.Done()
		return at, context.Cause(ctx)
	}
	return r.Node.Append(ctx, at, now, batches)
}

func (r *remote) Head(ctx context.Context) (journal.Position, error) {
	if r.away {
		return journal.Position{}, journal.ErrUnreachable
	}
	return r.Node.Head(ctx)
}

func TestCommandsAreRefusedWhileTheStoreIsOutOfReach(t *testing.T) {
	node := &remote{Node: statetest.NewCluster().Join("a")}
	s := openNode(t, node, newClock().Now)
	credit(t, s, "anna", 1)
	node.away = true
	for what, cmd := range map[string]func(*state.Tx) error{
		"a write": func(tx *state.Tx) error {
			_, _, err := money.Post(tx, "anna", []money.Posting{{Kind: money.Credit, Amount: 1}})
			return err
		},
		"a refusal": func(*state.Tx) error { return state.ErrNotFound },
	} {
		if err := try(s, cmd); !errors.Is(err, state.ErrUnavailable) || errors.Is(err, state.ErrNotFound) {
			t.Errorf("%s: got %v", what, err)
		}
	}
	node.away = false
	credit(t, s, "anna", 1)
	if n := money.FindAccount(s.View(), "anna").Credits; n != 2 || s.Err() != nil {
		t.Errorf("credits %d, %v", n, s.Err())
	}
}

func TestCloseDoesNotWaitForAStoreOutOfReach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := &remote{Node: statetest.NewCluster().Join("a"), hang: true}
		s := openNode(t, node, time.Now)
		answer := make(chan error, 1)
		go func() { answer <- identity.CreateKey(ctx, s, newKey(t, 1)) }()
		synctest.Wait()
		began := time.Now()
		s.Close()
		if err := <-answer; !errors.Is(err, state.ErrUnavailable) || time.Since(began) > time.Minute {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

// A shared table is hot if nodes keep it in memory, which the log of effects relies on.
func TestHotTablesAreThoseInMemory(t *testing.T) {
	loaded := map[journal.Table]bool{journal.Meta: true}
	for _, m := range []state.Module{identity.Module(), money.Module(), work.Module()} {
		for _, r := range m.Tables {
			loaded[r.Table()] = true
		}
	}
	for _, table := range journal.Tables() {
		if table.Hot() != loaded[table] {
			t.Errorf("table %s: hot %t, in memory %t", table, table.Hot(), loaded[table])
		}
	}
}

// TestATableIsWrittenOnlyWhenAllNodesKnowIt: a node of an older version would stop at it.
func TestATableIsWrittenOnlyWhenAllNodesKnowIt(t *testing.T) {
	node := statetest.NewCluster().Join("a")
	s, err := schema.Open(node, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	grant := func() error {
		return state.Run(ctx, s, func(tx *state.Tx) error {
			_, posted, err := money.Post(tx, "7", []money.Posting{{Kind: money.Credit, Amount: 10},
				{Kind: money.Grant, Amount: 5, Parts: 1, Allowance: &money.AllowanceName{Key: "key"}}})
			if err == nil {
				err = posted[1].Err
			}
			return err
		})
	}
	node.SetStats(&journal.SharedStats{Format: journal.Allowance.Format() - 1})
	if err := grant(); !errors.Is(err, state.ErrUnavailable) || len(money.ListAccounts(s.View())) > 0 {
		t.Errorf("beside an older node: %v", err)
	}
	node.SetStats(&journal.SharedStats{Format: journal.Allowance.Format()})
	if err := grant(); err != nil || len(money.ListAllowances(s.View(), "7")) != 1 {
		t.Errorf("when all nodes know the table: %v", err)
	}
}
