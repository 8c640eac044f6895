package ledger

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"stagedoor/state"
	"stagedoor/state/budget"
	"stagedoor/state/identity"
	"stagedoor/state/money"
	"stagedoor/state/schema"
	"stagedoor/state/statetest"
)

// sharing is a process that shares the account "a", driven without its actor.
type sharing struct {
	name    string
	cluster *statetest.Cluster
	node    *statetest.Node
	store   *state.State
	core    *core
	flying  []money.Posting
	asked   []*asked
	usable  bool
	members int64
}

// asked is a hold that the core was asked for. It is granted once an answer without an error has come.
type asked struct {
	hold *hold
	answers
}

func (a *asked) granted() bool { return a.hold != nil && a.count > 0 && a.err == nil }

func (n *sharing) begin() {
	n.core = newCore(money.FindAccount(n.store.View(), "a"), nil, budgetsOf(n.store), new(shared))
	n.core.allowances = make(map[money.AllowanceName]*allowance)
	n.core.others = &others{
		room: func(b *bounds) int64 { return money.Room(n.store.View(), "a", b.limits()) },
		usable: func() bool {
			a := money.FindAccount(n.store.View(), "a")
			return n.usable && a.Available() >= 0
		},
		processes: func() int64 { return n.members },
	}
}

// unsettled returns what the process has promised and not written: the amounts of its open holds, and the charges of
// those that have ended.
func (n *sharing) unsettled(key string) (sum int64) {
	of := func(h *hold) bool { return key == "" || h.known.key == key }
	for _, a := range n.asked {
		if a.granted() && a.hold.phase == open && of(a.hold) {
			sum += a.hold.amount
		}
	}
	for _, ops := range [][]op{n.core.ops, n.core.inFlight} {
		for i := range ops {
			if o := &ops[i]; o.kind == money.Settle && of(o.hold) {
				sum += o.amount
			}
		}
	}
	return sum
}

// land commits the batch in flight, or has it fail.
func (n *sharing) land(tb rapid.TB, fail bool) {
	if n.flying == nil {
		return
	}
	if fail {
		n.core.posted(money.Account{}, nil, state.ErrUnavailable)
	} else {
		a, results, err := money.CommitPostings(context.Background(), n.store, "a", n.flying)
		if err != nil {
			tb.Fatal(err)
		}
		n.core.posted(a, results, nil)
	}
	n.flying = nil
}

// TestAllowancesOfSeveralProcessesNeverOverdraw drives the cores of three processes with random operations, and checks
// after each what they have promised together. Commits fail, allowances are recalled, and processes lose their leases
// and end. What is free of an allowance in memory is compared with the allowance that is stored.
func TestAllowancesOfSeveralProcessesNeverOverdraw(t *testing.T) {
	rounds := 10
	if testing.Short() {
		rounds = 3
	}
	for range rounds {
		rapid.Check(t, allowancesNeverOverdraw)
	}
}

func allowancesNeverOverdraw(rt *rapid.T) {
	ctx := context.Background()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	cluster := statetest.NewCluster()
	cluster.Silence()
	var all []*sharing
	members := rapid.Int64Range(2, 3).Draw(rt, "processes")
	join := func(name string) *sharing {
		n := &sharing{name: name, node: cluster.Join(name), usable: true, members: members}
		var err error
		if n.store, err = schema.Open(n.node, func() time.Time { return now }); err != nil {
			rt.Fatal(err)
		}
		n.begin()
		return n
	}
	for i := range members {
		all = append(all, join(fmt.Sprint("n", i)))
	}
	defer func() {
		for _, n := range all {
			n.store.Close()
		}
	}()
	credits := rapid.Int64Range(0, 1000).Draw(rt, "credits")
	limit := rapid.Int64Range(1, 1000).Draw(rt, "budget")
	overHold := rapid.Bool().Draw(rt, "charges above holds")
	indebted, ended, requests := false, 0, 0
	err := state.Run(ctx, all[0].store, func(tx *state.Tx) error {
		_, _, err := money.Post(tx, "a", []money.Posting{{Kind: money.Credit, Amount: credits}})
		return err
	})
	err = errors.Join(err, identity.CreateKey(ctx, all[0].store, identity.Key{ID: "key_1", Hash: state.Hash{1},
		Budget: limit}))
	if err != nil {
		rt.Fatal(err)
	}
	// follow has a process read the log to its end.
	follow := func(n *sharing) state.View {
		if err := state.Run(ctx, n.store, func(*state.Tx) error { return nil }); err != nil {
			rt.Fatal(err)
		}
		return n.store.View()
	}
	for _, n := range all {
		follow(n)
	}
	amount := rapid.Int64Range(0, 80)
	process := func(rt *rapid.T) *sharing { return rapid.SampledFrom(all).Draw(rt, "process") }
	granted := func(rt *rapid.T) (*sharing, *hold) {
		n := process(rt)
		var some []*hold
		for _, a := range n.asked {
			if a.granted() && a.hold.phase == open {
				some = append(some, a.hold)
			}
		}
		if len(some) == 0 {
			rt.Skip("no hold")
		}
		return n, rapid.SampledFrom(some).Draw(rt, "hold")
	}
	hold := func(rt *rapid.T) {
		n, key := process(rt), rapid.SampledFrom([]string{"key_1", "key_2"}).Draw(rt, "key")
		for range rapid.IntRange(1, 4).Draw(rt, "holds") {
			requests++
			a, receipt := new(asked), money.Receipt{Request: fmt.Sprint("r", requests), Key: key}
			durable := rapid.IntRange(0, 4).Draw(rt, "durable") == 0
			h, err := n.core.beginHold(now, amount.Draw(rt, "amount"), receipt, durable, a)
			if a.hold = h; err == nil {
				a.count++
			} else if !errors.Is(err, errPending) {
				rt.Fatal(err)
			}
			n.asked = append(n.asked, a)
		}
	}
	commit := func(rt *rapid.T) {
		n := process(rt)
		if n.flying == nil {
			n.flying = n.core.next(now)
		}
		n.land(rt, false)
	}
	rt.Repeat(map[string]func(*rapid.T){
		"hold": hold, "hold more": hold, "hold again": hold,
		"commit": commit, "commit more": commit, "commit again": commit,
		"extend": func(rt *rapid.T) {
			n, h := granted(rt)
			_ = n.core.extend(now, h, amount.Draw(rt, "amount"), new(answers))
		},
		"settle": func(rt *rapid.T) {
			n, h := granted(rt)
			charge := min(amount.Draw(rt, "amount"), h.amount)
			if overHold {
				charge += rapid.SampledFrom([]int64{0, 0, 0, 50}).Draw(rt, "more")
				indebted = indebted || charge > h.amount
			}
			var w waiter
			if rapid.Bool().Draw(rt, "wait") {
				w = new(answers)
			}
			_ = n.core.settle(now, h, &Settlement{Amount: charge, Reason: "finished"}, w)
		},
		"release": func(rt *rapid.T) {
			n, h := granted(rt)
			_ = n.core.release(h, "refused", nil, nil)
		},
		"leave": func(rt *rapid.T) { // a caller that does not wait for its hold any more
			n := process(rt)
			for _, a := range n.asked {
				if a.count == 0 && a.hold.phase == open {
					_ = n.core.release(a.hold, ReasonLeft, nil, nil)
				}
			}
		},
		"progress": func(rt *rapid.T) {
			n, h := granted(rt)
			n.core.progress(h, amount.Draw(rt, "amount"))
		},
		"time passes": func(rt *rapid.T) { now = now.Add(20 * time.Millisecond) },
		"much time passes": func(rt *rapid.T) {
			now = now.Add(returnAfter)
			process(rt).core.giveBackIdle(now)
		},
		"flush": func(rt *rapid.T) {
			if n := process(rt); n.flying == nil {
				n.flying = n.core.next(now)
			}
		},
		"fail":       func(rt *rapid.T) { process(rt).land(rt, true) },
		"recall all": func(rt *rapid.T) { process(rt).core.giveBackAll(now.Add(recallPause)) },
		"recall": func(rt *rapid.T) {
			key := rapid.SampledFrom([]string{"key_1", "key_2"}).Draw(rt, "key")
			process(rt).core.recalled(money.AllowanceName{Key: key}, now.Add(recallPause))
		},
		"lose touch": func(rt *rapid.T) { n := process(rt); n.usable = !n.usable },
		"end": func(rt *rapid.T) {
			i := rapid.IntRange(0, 5*len(all)-1).Draw(rt, "process")
			if i >= len(all) {
				rt.Skip("it goes on")
			}
			n := all[i]
			self, epoch, _ := n.node.Members().Self()
			if _, err := n.node.Members().Expel(ctx, self, epoch); err != nil {
				rt.Fatal(err)
			}
			n.store.Close()
			ended++
			all[i] = join(n.name)
			gone := func(node state.Node) bool { return node == n.store.Node() }
			_, err := Recover(ctx, all[i].store, func(_ state.View, h *money.Hold) bool { return !gone(h.Node) })
			if err = errors.Join(err, TakeBack(ctx, all[i].store, gone)); err != nil {
				rt.Fatal(err)
			}
		},
		"": func(rt *rapid.T) {
			v := follow(all[0])
			a, of := money.FindAccount(v, "a"), money.SpentByKey(v, "key_1")
			promised, ofKey := a.Spent, of.Total
			for _, n := range all {
				promised, ofKey = promised+n.unsettled(""), ofKey+n.unsettled("key_1")
			}
			if !indebted && (promised > credits || ofKey > limit) {
				rt.Fatalf("%d of %d, and %d of a budget of %d, are spent and promised", promised, credits, ofKey, limit)
			}
			if free := a.Available() - a.Granted; free < 0 && !indebted {
				rt.Fatalf("%+v is overdrawn by %d", a, -free)
			}
			for _, n := range all {
				n.compareAllowances(rt, follow(n))
			}
		},
	})
	for _, n := range all {
		n.core.giveBackAll(now.Add(recallPause))
		batches := 0
		for again := true; again; again = len(n.core.ops) > 0 || n.flying != nil {
			if batches++; batches > 100 {
				rt.Fatalf("process %s always has more to write", n.name)
			}
			if n.flying == nil {
				n.flying = n.core.next(now)
			}
			n.land(rt, false)
			for _, a := range n.asked {
				if a.granted() && a.hold.phase == open {
					_ = n.core.settle(now, a.hold, &Settlement{Amount: a.hold.amount / 2, Reason: "finished"}, nil)
				}
			}
		}
	}
	v := follow(all[0])
	left, a := money.ListAllowances(v, ""), money.FindAccount(v, "a")
	if len(left) > 0 || a.Granted != 0 || a.Held != 0 {
		rt.Fatalf("%+v and %+v are left after everything has ended", a, left)
	}
	if _, err := money.CheckLedger(ctx, all[0].store); err != nil {
		rt.Fatal(err)
	}
}

// compareAllowances checks, while nothing is queued, that memory and store have the same allowances.
func (n *sharing) compareAllowances(rt rapid.TB, v state.View) {
	if len(n.core.ops) > 0 || len(n.core.inFlight) > 0 {
		return
	}
	have := map[money.AllowanceName]int64{}
	for name, a := range n.core.allowances {
		have[name] += a.free
	}
	for h := range n.core.open {
		if h.id == 0 && h.phase == open {
			have[h.bounds.allowance.name] += h.part
		}
	}
	for _, a := range money.ListAllowances(v, "a") {
		if a.Node == n.store.Node() {
			have[a.AllowanceName] -= a.Amount
		}
	}
	for name, left := range have {
		if left != 0 {
			rt.Fatalf("process %s has %d more in memory than in the store of allowance %+v", n.name, left, name)
		}
	}
}

// alone returns a process that has an account of 1000 with an allowance, out of which nothing is held.
func alone(t *testing.T, now time.Time) (n *sharing, commit func(at time.Time, fail bool)) {
	cluster := statetest.NewCluster()
	n = &sharing{name: "n0", cluster: cluster, node: cluster.Join("n0"), usable: true, members: 1}
	var err error
	if n.store, err = schema.Open(n.node, func() time.Time { return now }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.store.Close() })
	n.begin()
	if err := state.Run(t.Context(), n.store, func(tx *state.Tx) error {
		_, _, err := money.Post(tx, "a", []money.Posting{{Kind: money.Credit, Amount: 1000}})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	commit = func(at time.Time, fail bool) {
		if n.flying == nil {
			n.flying = n.core.next(at)
		}
		n.land(t, fail)
	}
	fill(t, n, now, commit)
	return n, commit
}

// fill has a process hold and release, so that it has an allowance afterwards.
func fill(t *testing.T, n *sharing, now time.Time, commit func(at time.Time, fail bool)) {
	t.Helper()
	h, err := n.core.beginHold(now, 10, money.Receipt{Request: "first", Key: "k"}, false, new(answers))
	if !errors.Is(err, errPending) {
		t.Fatal(err)
	}
	commit(now, false)
	n.core.release(h, "refused", nil, nil)
	commit(now, false)
}

// TestFailedBeginOfAnExtendedHoldLeavesTheAllowanceRight extends a hold while its Begin is in flight, has that commit
// fail, and ends the hold at different times. The memory must have what the store has, all of which can be returned.
func TestFailedBeginOfAnExtendedHoldLeavesTheAllowanceRight(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	settle := func(n *sharing, h *hold) { n.core.settle(start, h, &Settlement{Amount: 3, Reason: "finished"}, nil) }
	release := func(n *sharing, h *hold) { n.core.release(h, "refused", nil, nil) }
	for name, end := range map[string]struct {
		end                       func(*sharing, *hold)
		beforeFailure, beforeNext bool
		charge                    int64
	}{
		"settled after the next commit":   {end: settle, charge: 3},
		"settled before the next commit":  {end: settle, beforeNext: true, charge: 3},
		"settled before the failure":      {end: settle, beforeFailure: true, charge: 3},
		"released before the failure":     {end: release, beforeFailure: true},
		"released before the next commit": {end: release, beforeNext: true},
	} {
		t.Run(name, func(t *testing.T) {
			n, commit := alone(t, start)
			h, err := n.core.beginHold(start, 10, money.Receipt{Request: "second", Key: "k"}, false, nil)
			if err != nil {
				t.Fatal(err)
			}
			now := start.Add(2 * linger)
			n.flying = n.core.next(now)
			large := n.core.allowances[money.AllowanceName{Key: "k"}].free + 1
			asked := new(answers)
			if err := n.core.extend(now, h, 7, new(answers)); err != nil {
				t.Fatalf("the allowance does not cover the extension: %v", err)
			}
			if err := n.core.extend(now, h, large, asked); !errors.Is(err, errPending) {
				t.Fatalf("the journal is not asked for a large extension: %v", err)
			}
			if end.beforeFailure {
				end.end(n, h)
			}
			commit(now, true)
			if end.beforeNext {
				end.end(n, h)
			}
			commit(now, false)
			if asked.count != 1 || asked.err != nil {
				t.Errorf("the large extension was answered %d times, the last with %v", asked.count, asked.err)
			}
			commit(now, false)
			if h.phase == open {
				if h.amount != 17+large {
					t.Errorf("the hold has %d after extensions of 10 by 7 and %d", h.amount, large)
				}
				end.end(n, h)
			}
			n.core.giveBackAll(now.Add(recallPause))
			for range 4 {
				commit(now, false)
			}
			if len(n.core.ops) > 0 {
				t.Errorf("there is always more to write: %+v", n.core.ops)
			}
			n.compareAllowances(t, n.store.View())
			a, left := money.FindAccount(n.store.View(), "a"), money.ListAllowances(n.store.View(), "a")
			if a.Spent != end.charge || a.Held != 0 || a.Granted != 0 || len(left) > 0 {
				t.Errorf("%+v and %+v are left, want a charge of %d", a, left, end.charge)
			}
		})
	}
}

// TestReturnThatFindsNothingIsNotRepeatedAtOnce has the memory claim money that no allowance has.
func TestReturnThatFindsNothingIsNotRepeatedAtOnce(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	n, commit := alone(t, now)
	n.core.giveBackAll(now.Add(recallPause))
	commit(now, false)
	n.core.allowances[money.AllowanceName{Key: "k"}].free = 7
	n.core.giveBackAll(now.Add(recallPause))
	commit(now, false)
	if len(n.core.ops) > 0 {
		t.Errorf("%+v is queued again", n.core.ops)
	}
}

// TestExtensionThatABudgetRefusesNamesTheBudget extends a hold without an entry beyond the budget of its key. The error
// decides whose allowances are recalled, and what the client reads.
func TestExtensionThatABudgetRefusesNamesTheBudget(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	n, commit := alone(t, now)
	key := identity.Key{ID: "k", Hash: state.Hash{1}, Budget: 500}
	if err := identity.CreateKey(t.Context(), n.store, key); err != nil {
		t.Fatal(err)
	}
	fill(t, n, now, commit)
	h, err := n.core.beginHold(now, 10, money.Receipt{Request: "second", Key: "k"}, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, amount := range []int64{600, 2000} {
		asked := new(answers)
		if err := n.core.extend(now, h, amount, asked); !errors.Is(err, errPending) {
			t.Fatal(err)
		}
		commit(now, false)
		if over, ok := errors.AsType[*budget.Error](asked.err); !ok || over.Scope.Kind != budget.KeyScope {
			t.Errorf("an extension by %d was answered with %v, not with the budget of the key", amount, asked.err)
		}
	}
}

// TestHoldIsGrantedAtOnceOnlyWithItsMoney has the allowance become unusable between two questions of one decision, as
// it does when the lease of the process ends.
func TestHoldIsGrantedAtOnceOnlyWithItsMoney(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for times := range 4 {
		n, _ := alone(t, now)
		asked := 0
		n.core.others.usable = func() bool {
			asked++
			return asked <= times
		}
		h, err := n.core.beginHold(now, 10, money.Receipt{Request: "second", Key: "k"}, false, new(answers))
		if covered := h.part == h.amount; covered != (err == nil) || covered != (times > 0) {
			t.Errorf("a hold with %d of %d was answered with %v, after the allowance was usable %d times", h.part,
				h.amount, err, times)
		}
	}
}

// TestLowerBudgetHoldsForWhatIsInFlight lowers the budget of a key while an allowance is being granted, while a hold
// out of an allowance is open, and before such a hold is extended. No money of the old budget is granted then.
func TestLowerBudgetHoldsForWhatIsInFlight(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	const lowered = 150
	key := money.AllowanceName{Key: "k"}
	lower := func(t *testing.T, n *sharing) {
		if _, err := identity.ChangeKey(t.Context(), n.store, "k", func(k *identity.Key) error {
			k.Budget = lowered
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	begin := func(n *sharing, amount int64) (*hold, error) {
		return n.core.beginHold(now, amount, money.Receipt{Request: "next", Key: "k"}, false, new(answers))
	}
	for name, change := range map[string]func(*testing.T, *sharing, func(time.Time, bool)){
		"grant": func(t *testing.T, n *sharing, commit func(time.Time, bool)) {
			n.core.giveBackAll(time.Time{})
			commit(now, false)
			n.core.refill(n.core.allowances[key])
			n.flying = n.core.next(now)
			a, results, err := money.CommitPostings(t.Context(), n.store, "a", n.flying)
			if err != nil || results[0].Moved <= lowered {
				t.Fatalf("%+v was granted: %v", results, err)
			}
			lower(t, n)
			n.core.boundsOf("k")
			n.core.posted(a, results, nil)
			n.flying = nil
		},
		"hold": func(t *testing.T, n *sharing, _ func(time.Time, bool)) {
			h, err := begin(n, n.core.allowances[key].free)
			if err != nil || h.amount <= lowered {
				t.Fatalf("%d were held: %v", h.amount, err)
			}
			lower(t, n)
			n.core.boundsOf("k")
			n.core.release(h, "refused", nil, nil)
		},
		"extension": func(t *testing.T, n *sharing, _ func(time.Time, bool)) {
			h, err := begin(n, 10)
			if err != nil {
				t.Fatal(err)
			}
			lower(t, n)
			if err := n.core.extend(now, h, lowered, new(answers)); !errors.Is(err, errPending) {
				t.Errorf("a hold of 10 was extended by %d without the journal: %v", lowered, err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			n, commit := alone(t, now)
			key := identity.Key{ID: "k", Hash: state.Hash{1}, Budget: 900}
			if err := identity.CreateKey(t.Context(), n.store, key); err != nil {
				t.Fatal(err)
			}
			fill(t, n, now, commit)
			change(t, n, commit)
			if h, err := begin(n, lowered+1); !errors.Is(err, errPending) {
				t.Errorf("a budget of %d held %d without the journal: %v", lowered, h.amount, err)
			}
			for range 4 {
				commit(now, false)
			}
			n.compareAllowances(t, n.store.View())
			a := money.FindAccount(n.store.View(), "a")
			if a.Held+a.Granted > lowered {
				t.Errorf("%d are held and %d in allowances with a budget of %d", a.Held, a.Granted, lowered)
			}
		})
	}
}

// TestFailedCommitOfAGrantIsAskedAgain: a database that was away for a moment says nothing about the money.
func TestFailedCommitOfAGrantIsAskedAgain(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	n, commit := alone(t, now)
	n.core.giveBackAll(time.Time{})
	commit(now, false)
	a := n.core.allowances[money.AllowanceName{Key: "k"}]
	n.core.refill(a)
	commit(now, true)
	if _, err := n.core.beginHold(now, 10, money.Receipt{Request: "r", Key: "k"}, false, new(answers)); !errors.Is(
		err, errPending) {
		t.Fatal(err)
	}
	if commit(now, false); a.free == 0 {
		t.Error("the hold after a failed commit did not ask for an allowance")
	}
}

// TestAllowanceGrowsWhileItIsGranted uses up an allowance while more of it is asked for, as a busy key does.
func TestAllowanceGrowsWhileItIsGranted(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	n, commit := alone(t, now)
	a := n.core.allowances[money.AllowanceName{Key: "k"}]
	for want := int64(2 * usualHolds); want <= 4*usualHolds; want *= 2 {
		for i := 0; i < 100 && a.holds < want; i++ {
			_, err := n.core.beginHold(now, 10, money.Receipt{Request: "r", Key: "k"}, false, new(answers))
			if err != nil && !errors.Is(err, errPending) {
				t.Fatal(err)
			}
		}
		if a.holds != want {
			t.Fatalf("an allowance that was used up is for %d holds, want %d", a.holds, want)
		}
		for a.asked {
			commit(now, false)
		}
	}
}

// grantMany gives the process so many allowances in a group, each for a key of its own.
func (n *sharing) grantMany(t *testing.T, count int, group string) {
	t.Helper()
	for i := range count {
		p := money.Posting{Kind: money.Grant, Amount: 1, Parts: 1, Least: 1,
			Allowance: &money.AllowanceName{Key: fmt.Sprint("k", i), Group: group}}
		_, results, err := money.CommitPostings(t.Context(), n.store, "a", []money.Posting{p})
		if err = errors.Join(err, results[0].Err); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAllowancesAreTakenBackInSteps: one command for all of a process would hold up those of all others.
func TestAllowancesAreTakenBackInSteps(t *testing.T) {
	n, _ := alone(t, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	n.grantMany(t, 600, "")
	asked, before := 0, n.cluster.Store().Stats().Commits
	err := TakeBack(t.Context(), n.store, func(state.Node) bool { asked++; return true })
	commits := n.cluster.Store().Stats().Commits - before
	left := len(money.ListAllowances(n.store.View(), ""))
	if a := money.FindAccount(n.store.View(), "a"); err != nil || commits != 3 || left != 0 || a.Granted != 0 {
		t.Errorf("%d commits took %d allowances back and left %d and %+v: %v", commits, asked, left, a, err)
	}
}

// TestAllowancesOfAGroupAreRecalledInSteps: a recall that follows at once waits for them without a commit.
func TestAllowancesOfAGroupAreRecalledInSteps(t *testing.T) {
	n, _ := alone(t, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	scope := budget.Scope{Kind: budget.GroupScope, ID: "staff"}
	n.grantMany(t, 600, scope.Name())
	c, reported := &Client{store: n.store}, 0
	money.OnRecall(n.store, func(string, money.AllowanceName) { reported++ })
	for _, want := range []uint64{3, 0} {
		before := n.cluster.Store().Stats().Commits
		found := c.recall(t.Context(), "b", scope)
		commits := n.cluster.Store().Stats().Commits - before
		if !found || commits != want || reported != 600 {
			t.Errorf("a recall (found: %v) made %d commits, want %d, and %d reports", found, commits, want, reported)
		}
	}
}

// TestPartOfARefusedHoldIsReturnedAfterARecall: an actor that stops has no other time to return it.
func TestPartOfARefusedHoldIsReturnedAfterARecall(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	n, commit := alone(t, now)
	n.core.allowances[money.AllowanceName{Key: "k"}].paused = now // no Grant follows the hold
	asked := new(answers)
	h, err := n.core.beginHold(now, 2000, money.Receipt{Request: "r", Key: "k"}, false, asked)
	if !errors.Is(err, errPending) || h.part == 0 {
		t.Fatalf("%d of an allowance were held: %v", h.part, err)
	}
	n.core.giveBackAll(now.Add(recallPause))
	commit(now, false)
	commit(now, false)
	left := money.ListAllowances(n.store.View(), "a")
	if !errors.Is(asked.err, money.ErrInsufficient) || len(left) > 0 {
		t.Errorf("%+v are left after a hold that was refused with %v", left, asked.err)
	}
}
