package ledger_test

import (
	crand "crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stagedoor/actors/kit"
	"stagedoor/actors/kit/kittest"
	"stagedoor/actors/ledger"
	"stagedoor/state"
	"stagedoor/state/budget"
	"stagedoor/state/identity"
	"stagedoor/state/journal"
	"stagedoor/state/money"
	"stagedoor/state/schema"
	"stagedoor/state/statetest"
)

// serving is a node that serves: its state and its ledger.
type serving struct {
	node  *statetest.Node
	state *state.State
	*ledger.Client
}

// onTwoNodes runs body with two ledgers over one shared store in a bubble of fake time, and checks the ledger
// afterwards. The nodes hear nothing of each other, so each finds out what the other one did only when it commits.
func onTwoNodes(t *testing.T, body func(t *testing.T, c *statetest.Cluster, a, b *serving)) {
	kittest.Run(t, func(t *testing.T, _ *kit.System) {
		cluster := statetest.NewCluster()
		cluster.Silence()
		var nodes []*serving
		var systems []*kit.System
		for _, name := range []string{"a", "b"} {
			node := cluster.Join(name)
			s, err := schema.Open(node, time.Now)
			if err != nil {
				t.Fatal(err)
			}
			sys := kit.NewSystem(kit.Options{Logger: quiet})
			nodes, systems = append(nodes, &serving{node, s, start(t, sys, s)}), append(systems, sys)
		}
		body(t, cluster, nodes[0], nodes[1])
		kittest.Pass(time.Second)
		for i, n := range nodes {
			if err := systems[i].Stop(ctx); err != nil {
				t.Error(err)
			}
			n.state.Close()
		}
		s, err := schema.Open(cluster.Join("auditor"), time.Now)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if _, err := money.CheckLedger(ctx, s); err != nil {
			t.Error(err)
		}
	})
}

// holdAtOnce asks both nodes for as many holds of an amount at the same time, and returns those that were granted. Each
// other one must have been refused with an error that the function refused accepts.
func holdAtOnce(t *testing.T, nodes []*serving, each int, ask ledger.Ask, refused func(error) bool) []*ledger.Hold {
	t.Helper()
	var mu sync.Mutex
	var granted []*ledger.Hold
	var wg sync.WaitGroup
	for n, node := range nodes {
		for i := range each {
			wg.Go(func() {
				ask := ask
				ask.RequestID = fmt.Sprintf("r%d-%d-%d", n, i, ask.Amount)
				h, err := node.Hold(ctx, ask)
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					granted = append(granted, h)
				} else if !refused(err) {
					t.Errorf("refused with %v", err)
				}
			})
		}
	}
	wg.Wait()
	return granted
}

func TestSeveralNodesGrantABalanceOnce(t *testing.T) {
	onTwoNodes(t, func(t *testing.T, _ *statetest.Cluster, a, b *serving) {
		credit(t, a.Client, "7", 100)
		insufficient := func(err error) bool { return errors.Is(err, money.ErrInsufficient) }
		granted := holdAtOnce(t, []*serving{a, b}, 20, ledger.Ask{Account: "7", Amount: 10, Model: "m"}, insufficient)
		if len(granted) != 10 {
			t.Fatalf("%d holds of 10 were granted on a balance of 100", len(granted))
		}
		if err := granted[0].Extend(ctx, 1); !insufficient(err) {
			t.Errorf("a hold was extended beyond the balance: %v", err)
		}
		granted[1].Release("end", nil)
		kittest.Pass(time.Second)
		if err := granted[0].Extend(ctx, 10); err != nil || granted[0].Amount() != 20 {
			t.Errorf("a hold was not extended by what another node has released: %v", err)
		}
		if err := b.Adjust(ctx, "7", -1, "test"); !insufficient(err) {
			t.Errorf("money was taken that the other node holds: %v", err)
		}
		for _, h := range granted {
			if err := h.Settle(ctx, ledger.Settlement{Amount: 10, Reason: "finished"}); err != nil && h != granted[1] {
				t.Error(err)
			}
		}
		if _, err := a.Hold(ctx, ledger.Ask{Account: "7", RequestID: "last", Amount: 11}); !insufficient(err) {
			t.Errorf("a balance of 10 held 11: %v", err)
		}
		credit(t, b.Client, "7", 1) // b hears of what a has done last
		if got := balance(t, b.Client, "7"); got != (ledger.Balance{Credits: 101, Spent: 90}) {
			t.Errorf("the balance is %+v", got)
		}
	})
}

func TestSeveralNodesGrantABudgetOnce(t *testing.T) {
	overrun := func(err error) bool {
		_, ok := errors.AsType[*budget.Error](err)
		return ok
	}
	for _, kind := range []budget.ScopeKind{budget.KeyScope, budget.UserScope, budget.GroupScope} {
		t.Run("of "+string(kind), func(t *testing.T) {
			onTwoNodes(t, func(t *testing.T, _ *statetest.Cluster, a, b *serving) {
				credit(t, a.Client, "7", 10_000)
				credit(t, a.Client, "8", 10_000)
				limitTo(t, a.state, kind, 100)
				credit(t, b.Client, "7", 1) // b hears of the group and the users
				ask := ledger.Ask{Account: "7", Amount: 10, Key: "key_1"}
				first := holdAtOnce(t, []*serving{a, b}, 3, ask, overrun)
				for _, h := range first { // the budget has 40 left
					if err := h.Settle(ctx, ledger.Settlement{Amount: 10, Reason: "finished"}); err != nil {
						t.Error(err)
					}
				}
				if kind == budget.GroupScope {
					ask = ledger.Ask{Account: "8", Amount: 8, Key: "key_2"}
				}
				ask.Amount = 8
				if granted := holdAtOnce(t, []*serving{a, b}, 6, ask, overrun); len(first) != 6 || len(granted) != 5 {
					t.Errorf("a budget of 100 granted %d holds of 10 and then %d of 8", len(first), len(granted))
				}
			})
		})
	}
}

// limitTo gives a budget to key_1, to its user or to the user's group, which user 8 is in, too.
func limitTo(t *testing.T, s *state.State, kind budget.ScopeKind, amount int64) {
	t.Helper()
	ceiling := map[budget.ScopeKind]identity.Ceiling{kind: {Budget: amount}}
	err := state.Run(ctx, s, func(tx *state.Tx) error {
		g, err := identity.AddGroup(tx, identity.Group{Name: "staff", Ceiling: ceiling[budget.GroupScope]})
		for _, name := range []string{"7", "8"} {
			if err == nil {
				u := identity.User{Username: name, Status: identity.UserActive, Group: g.ID}
				if name == "7" {
					u.Ceiling = ceiling[budget.UserScope]
				}
				_, err = identity.AddUser(tx, u)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	addKey(t, s, "key_1", ceiling[budget.KeyScope].Budget, "")
}

// TestHoldsOfANodeThatEndedAreEnded: they are charged what they have cost so far, and those of live nodes stay.
func TestHoldsOfANodeThatEndedAreEnded(t *testing.T) {
	onTwoNodes(t, func(t *testing.T, cluster *statetest.Cluster, a, b *serving) {
		credit(t, a.Client, "7", 100)
		lost, other := hold(t, a.Client, "7", "lost", 30), hold(t, b.Client, "7", "other", 20)
		lost.Progress(12)
		kittest.Pass(time.Second)
		recoverHolds := func() int {
			t.Helper()
			ended, err := b.state.Ended(ctx, money.Nodes)
			if err != nil {
				t.Fatal(err)
			}
			n, err := ledger.Recover(ctx, b.state, func(_ state.View, h *money.Hold) bool { return !ended(h.Node) })
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		if n := recoverHolds(); n != 0 {
			t.Errorf("%d holds of live nodes were ended", n)
		}
		all, err := a.node.Members().List(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if done, err := b.node.Members().Expel(ctx, "a", all[0].Epoch); !done || err != nil {
			t.Fatal(done, err)
		}
		if err := lost.Settle(ctx, ledger.Settlement{Amount: 25, Reason: "finished"}); err == nil {
			t.Error("a node that was expelled has settled")
		}
		if n := recoverHolds() + recoverHolds(); n != 1 {
			t.Errorf("%d holds were ended", n)
		}
		if got := balance(t, b.Client, "7"); got != (ledger.Balance{Credits: 100, Spent: 12, Held: 20}) {
			t.Errorf("the balance is %+v", got)
		}
		other.Release("end", nil)
	})
}

func TestSeveralNodesRedeemACodeOnce(t *testing.T) {
	onTwoNodes(t, func(t *testing.T, _ *statetest.Cluster, a, b *serving) {
		codes, _, err := a.Mint(ctx, 1, 50, "test", time.Time{}, crand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		var redeemed atomic.Int64
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				amount, err := []*serving{a, b}[i%2].Redeem(ctx, fmt.Sprint("user", i), codes[0])
				redeemed.Add(amount)
				if err != nil && !errors.Is(err, money.ErrRedeemed) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if redeemed.Load() != 50 {
			t.Errorf("%d was redeemed with a code of 50", redeemed.Load())
		}
	})
}

// TestAnotherNodeSettlesTheHoldOfAJob: as it does after it has taken a video job over.
func TestAnotherNodeSettlesTheHoldOfAJob(t *testing.T) {
	onTwoNodes(t, func(t *testing.T, _ *statetest.Cluster, a, b *serving) {
		credit(t, a.Client, "7", 100)
		hold(t, a.Client, "7", "video_1", 30)
		if moving, err := b.Moving(ctx, "7", "video_1"); !moving || err != nil {
			// b has not heard of the hold, so it reads the log first.
			credit(t, b.Client, "7", 1)
		}
		h, err := b.Resume(ctx, "7", "video_1")
		if err != nil || h.Amount() != 30 {
			t.Fatalf("resumed %v, %v", h, err)
		}
		if err := h.Settle(ctx, ledger.Settlement{Amount: 25, Reason: "finished"}); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Resume(ctx, "7", "video_1"); !errors.Is(err, state.ErrNotFound) {
			t.Errorf("a settled hold was resumed: %v", err)
		}
		if got := balance(t, b.Client, "7"); got != (ledger.Balance{Credits: 101, Spent: 25}) {
			t.Errorf("the balance is %+v", got)
		}
	})
}

// TestSeveralNodesNeverOverdraw has both nodes hold, extend, settle and release at random.
func TestSeveralNodesNeverOverdraw(t *testing.T) {
	onTwoNodes(t, func(t *testing.T, _ *statetest.Cluster, a, b *serving) {
		credit(t, a.Client, "7", 400)
		addKey(t, a.state, "key_1", 300, "")
		var granted, settled atomic.Int64
		var wg sync.WaitGroup
		for i := range 24 {
			node := []*serving{a, b}[i%2]
			wg.Go(func() {
				for j := range 8 {
					h, err := node.Hold(ctx, ledger.Ask{Account: "7", RequestID: fmt.Sprintf("r%d-%d", i, j), Amount: 9,
						Key: "key_1"})
					if err != nil {
						continue
					}
					granted.Add(1)
					if j%3 == 0 {
						_ = h.Extend(ctx, 5) // refused or granted
					}
					switch amount := int64(j % 4); {
					case j%5 == 4:
						h.Release("end", nil)
					case j%2 == 0:
						h.SettleLater(ledger.Settlement{Amount: amount, Reason: "finished"})
						settled.Add(amount)
					default:
						if err := h.Settle(ctx, ledger.Settlement{Amount: amount, Reason: "finished"}); err != nil {
							t.Error(err)
						}
						settled.Add(amount)
					}
					v := node.state.View()
					if acc := money.FindAccount(v, "7"); acc.Spent+acc.Held > 300 {
						t.Errorf("%d spent and %d held of a budget of 300", acc.Spent, acc.Held)
					}
				}
			})
		}
		wg.Wait()
		kittest.Pass(time.Second)
		credit(t, a.Client, "7", 1) // reads what b has done last
		acc := money.FindAccount(a.state.View(), "7")
		if acc.Spent != settled.Load() || acc.Held != 0 || granted.Load() < 50 {
			t.Errorf("%+v after %d holds that were charged %d", acc, granted.Load(), settled.Load())
		}
	})
}

// TestAPaymentDoesNotRepeatAnAdjustment: an account whose actor does not know of a payment yet adjusts once.
func TestAPaymentDoesNotRepeatAnAdjustment(t *testing.T) {
	run(t, func(t *testing.T, c *ledger.Client, s *state.State, _ *statetest.Faulty) {
		credit(t, c, "7", 100)
		h := hold(t, c, "7", "r", 10)
		credit(t, c, "7", 100)
		if err := c.Adjust(ctx, "7", -30, "test"); err != nil {
			t.Fatal(err)
		}
		h.Release("end", nil)
		kittest.Pass(time.Second)
		if got := money.FindAccount(s.View(), "7"); got.Credits != 170 {
			t.Errorf("%d are left of 200 less 30", got.Credits)
		}
	})
}

// TestTheHoldsOfANodeThatJoinsLaterAreLeftToIt: it joins after another node has asked which nodes have ended.
func TestTheHoldsOfANodeThatJoinsLaterAreLeftToIt(t *testing.T) {
	onTwoNodes(t, func(t *testing.T, cluster *statetest.Cluster, a, _ *serving) {
		credit(t, a.Client, "7", 100)
		ended, err := a.state.Ended(ctx, money.Nodes)
		if err != nil {
			t.Fatal(err)
		}
		s, err := schema.Open(cluster.Join("c"), time.Now)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		sys := kit.NewSystem(kit.Options{Logger: quiet})
		c := start(t, sys, s)
		h := hold(t, c, "7", "r", 60)
		credit(t, a.Client, "7", 1) // makes a hear of the hold
		n, err := ledger.Recover(ctx, a.state, func(_ state.View, h *money.Hold) bool { return !ended(h.Node) })
		if n != 0 || err != nil || len(money.ListHolds(a.state.View(), "7")) != 1 {
			t.Errorf("%d holds were ended: %v", n, err)
		}
		if err := h.Settle(ctx, ledger.Settlement{Amount: 50, Reason: "finished"}); err != nil {
			t.Error(err)
		}
		if got := balance(t, c, "7"); got != (ledger.Balance{Credits: 101, Spent: 50}) {
			t.Errorf("the balance is %+v", got)
		}
		if err := sys.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
}

// TestMoneyOfARequestThatHasEndedIsFreeOnAllNodes: a client whose money is enough for one request at a time may send
// the next one to another node.
func TestMoneyOfARequestThatHasEndedIsFreeOnAllNodes(t *testing.T) {
	onTwoNodes(t, func(t *testing.T, _ *statetest.Cluster, a, b *serving) {
		credit(t, a.Client, "7", 100)
		addKey(t, a.state, "key_1", 70, "")
		ask := ledger.Ask{Account: "7", RequestID: "r", Amount: 60, Model: "m"}
		for i, key := range []string{"", "key_1", "key_1"} {
			ask.Key = key
			first, next := a, b
			if i == 2 {
				first, next = b, a
			}
			h, err := first.Hold(ctx, ask)
			if err != nil {
				t.Fatal(err)
			}
			h.SettleLater(ledger.Settlement{Amount: 1, Reason: "finished"})
			h, err = next.Hold(ctx, ask)
			if err != nil {
				t.Fatalf("refused after a request with key %q has ended: %v", key, err)
			}
			if _, err := first.Hold(ctx, ask); err == nil {
				t.Error("the money was held twice")
			}
			h.Release("end", nil)
		}
	})
}

// fill has a node hold and settle once, so that it has an allowance afterwards for holds of this amount.
func (n *serving) fill(t *testing.T, key string, amount int64) {
	t.Helper()
	h, err := n.Hold(ctx, ledger.Ask{Account: "7", RequestID: "first", Amount: amount, Key: key, Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	h.SettleLater(ledger.Settlement{Reason: "finished"})
	kittest.Pass(time.Second)
	for _, a := range money.ListAllowances(n.state.View(), "7") {
		if a.Node == n.state.Node() && a.Key == key {
			return
		}
	}
	t.Fatalf("the node has no allowance for holds of %d: %+v", amount, money.FindAccount(n.state.View(), "7"))
}

// TestAHoldThatAnAllowanceCoversWaitsForNoCommit: neither does its settlement, and both share a commit.
func TestAHoldThatAnAllowanceCoversWaitsForNoCommit(t *testing.T) {
	onTwoNodes(t, func(t *testing.T, c *statetest.Cluster, a, b *serving) {
		credit(t, a.Client, "7", 10_000)
		a.fill(t, "key_1", 10)
		before, began := c.Store().Stats().Commits, time.Now()
		var held []*ledger.Hold
		for i := range 10 {
			held = append(held, hold(t, a.Client, "7", fmt.Sprint("r", i), 10))
		}
		if commits := c.Store().Stats().Commits - before; commits != 0 || time.Since(began) != 0 {
			t.Errorf("10 holds of an allowance took %d commits and %v", commits, time.Since(began))
		}
		for _, h := range held {
			h.SettleLater(ledger.Settlement{Amount: 3, Reason: "finished"})
		}
		kittest.Pass(time.Second)
		if commits := c.Store().Stats().Commits - before; commits != 1 {
			t.Errorf("10 requests took %d commits", commits)
		}
		credit(t, b.Client, "7", 1) // b reads the log
		if got := balance(t, b.Client, "7"); got != (ledger.Balance{Credits: 10_001, Spent: 30}) {
			t.Errorf("the balance is %+v", got)
		}
	})
}

// TestAnAllowanceIsReturnedWhenAnotherNodeNeedsIt: the credits are the limit of all nodes together, and of each one.
func TestAnAllowanceIsReturnedWhenAnotherNodeNeedsIt(t *testing.T) {
	onTwoNodes(t, func(t *testing.T, c *statetest.Cluster, a, b *serving) {
		c.EndSilence()
		credit(t, a.Client, "7", 1000)
		a.fill(t, "key_1", 100)
		first := hold(t, a.Client, "7", "on-a", 100)
		began := time.Now()
		last := hold(t, b.Client, "7", "on-b", 900)
		if waited := time.Since(began); waited > 400*time.Millisecond {
			t.Errorf("money in another node's allowance was held after %v", waited)
		}
		_, err := a.Hold(ctx, ledger.Ask{Account: "7", RequestID: "more", Amount: 1})
		if !errors.Is(err, money.ErrInsufficient) {
			t.Errorf("a node has held money of a recalled allowance: %v", err)
		}
		first.Release("end", nil)
		if h := hold(t, b.Client, "7", "next", 100); h.Amount() != 100 {
			t.Error("what a node has released after a recall is not free")
		}
		last.Release("end", nil)
	})
}

// TestMoneyInAllowancesCanBeTakenOutOfAnAccount: an adjustment recalls it.
func TestMoneyInAllowancesCanBeTakenOutOfAnAccount(t *testing.T) {
	onTwoNodes(t, func(t *testing.T, c *statetest.Cluster, a, b *serving) {
		c.EndSilence()
		credit(t, a.Client, "7", 1000)
		a.fill(t, "key_1", 100)
		if err := b.Adjust(ctx, "7", -1000, "test"); err != nil {
			t.Errorf("the credits in an allowance were not taken: %v", err)
		}
	})
}

// TestAnIdleAllowanceIsReturned: after ten seconds without a hold, and when the node stops.
func TestAnIdleAllowanceIsReturned(t *testing.T) {
	onTwoNodes(t, func(t *testing.T, _ *statetest.Cluster, a, b *serving) {
		credit(t, a.Client, "7", 10_000)
		a.fill(t, "key_1", 100)
		open := hold(t, a.Client, "7", "long", 100)
		kittest.Pass(20 * time.Second)
		if left := money.ListAllowances(a.state.View(), ""); len(left) != 0 {
			t.Errorf("%+v are left although no request uses them", left)
		}
		open.Release("end", nil)
		kittest.Pass(20 * time.Second)
		if acc := money.FindAccount(a.state.View(), "7"); acc.Granted != 0 || acc.Held != 0 {
			t.Errorf("the account is %+v", acc)
		}
	})
}

// TestTheAllowanceOfANodeThatEndedIsTakenBack: what it had not journaled costs nothing. A request whose hold is in the
// journal is charged its progress.
func TestTheAllowanceOfANodeThatEndedIsTakenBack(t *testing.T) {
	onTwoNodes(t, func(t *testing.T, cluster *statetest.Cluster, a, b *serving) {
		credit(t, a.Client, "7", 10_000)
		a.fill(t, "key_1", 100)
		long := hold(t, a.Client, "7", "long", 100)
		kittest.Pass(time.Second)
		long.Progress(40)
		kittest.Pass(time.Second)
		short := hold(t, a.Client, "7", "short", 100)
		all, err := a.node.Members().List(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if done, err := b.node.Members().Expel(ctx, "a", all[0].Epoch); !done || err != nil {
			t.Fatal(done, err)
		}
		short.SettleLater(ledger.Settlement{Amount: 70, Reason: "finished"})
		credit(t, b.Client, "7", 1) // b reads the log
		for range 2 {
			ended, err := b.state.Ended(ctx, money.Nodes)
			if err != nil {
				t.Fatal(err)
			}
			_, err = ledger.Recover(ctx, b.state, func(_ state.View, h *money.Hold) bool { return !ended(h.Node) })
			if err := errors.Join(err, ledger.TakeBack(ctx, b.state, ended)); err != nil {
				t.Fatal(err)
			}
		}
		acc := money.FindAccount(b.state.View(), "7")
		if acc.Spent != 40 || acc.Held != 0 || acc.Granted != 0 || len(money.ListAllowances(b.state.View(), "")) > 0 {
			t.Errorf("the account is %+v", acc)
		}
	})
}

// TestALowerBudgetHoldsForAnAllowance: what was granted under the budget before is returned before the next hold.
func TestALowerBudgetHoldsForAnAllowance(t *testing.T) {
	onTwoNodes(t, func(t *testing.T, _ *statetest.Cluster, a, b *serving) {
		credit(t, a.Client, "7", 10_000)
		limitTo(t, a.state, budget.KeyScope, 5000)
		a.fill(t, "key_1", 100)
		if _, err := identity.ChangeKey(ctx, a.state, "key_1", func(k *identity.Key) error {
			k.Budget = 150
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		h := hold(t, a.Client, "7", "r1", 100)
		_, err := a.Hold(ctx, ledger.Ask{Account: "7", RequestID: "r2", Amount: 100, Key: "key_1"})
		if _, over := errors.AsType[*budget.Error](err); !over {
			t.Errorf("a budget of 150 holds 200: %v", err)
		}
		h.Release("end", nil)
	})
}

// TestANodeThatMayBeExpelledUsesNoAllowance: another node may have taken it back already.
func TestANodeThatMayBeExpelledUsesNoAllowance(t *testing.T) {
	onTwoNodes(t, func(t *testing.T, c *statetest.Cluster, a, _ *serving) {
		credit(t, a.Client, "7", 10_000)
		a.fill(t, "key_1", 100)
		lost, old := journal.SharedStats{Format: journal.Allowance.Format()}, journal.SharedStats{Format: 1, Lease: 1e9}
		for _, shared := range []journal.SharedStats{lost, old} {
			a.node.SetStats(&shared)
			before := c.Store().Stats().Commits
			h := hold(t, a.Client, "7", "r", 100)
			if c.Store().Stats().Commits == before {
				t.Errorf("a node with %+v has used its allowance", shared)
			}
			h.Release("end", nil)
			kittest.Pass(time.Second)
		}
	})
}

// TestAKeyAtItsEndLeavesTheAllowancesOfOtherKeys: only money of its own allowances can help it.
func TestAKeyAtItsEndLeavesTheAllowancesOfOtherKeys(t *testing.T) {
	onTwoNodes(t, func(t *testing.T, c *statetest.Cluster, a, b *serving) {
		c.EndSilence()
		credit(t, a.Client, "7", 10_000)
		addKey(t, a.state, "key_1", 500, "")
		a.fill(t, "key_1", 20)
		a.fill(t, "key_2", 10)
		first := hold(t, b.Client, "7", "all", 500)
		_, err := b.Hold(ctx, ledger.Ask{Account: "7", RequestID: "more", Amount: 1, Key: "key_1"})
		if _, over := errors.AsType[*budget.Error](err); !over {
			t.Errorf("a budget of 500 held 501: %v", err)
		}
		before := c.Store().Stats().Commits
		h, err := a.Hold(ctx, ledger.Ask{Account: "7", RequestID: "r", Amount: 10, Key: "key_2"})
		if err != nil || c.Store().Stats().Commits != before {
			t.Errorf("the other key has lost its allowance: %v", err)
		}
		h.Release("end", nil)
		first.Release("end", nil)
	})
}
