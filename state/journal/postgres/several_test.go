package postgres_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"stagedoor/state/journal"
	"stagedoor/state/journal/postgres"
)

func TestOnlyNodesThatAllPermitOthersServeTogether(t *testing.T) {
	url := empty(t, server(t))
	refused := func(o postgres.Options) {
		t.Helper()
		o.Lease = longLease
		if s, err := postgres.Open(ctx, url, o); !errors.Is(err, journal.ErrLocked) {
			t.Errorf("%+v joined: %v", o, err)
			if err == nil {
				s.Close()
			}
		}
	}
	a := open(t, url, postgres.Options{Node: "a", Several: true})
	b := open(t, url, postgres.Options{Node: "b", Several: true})
	commitOne(t, a)
	commitOne(t, b)
	refused(postgres.Options{Node: "c"})
	if c := open(t, url, postgres.Options{Node: "c", Standby: true}); !c.Standby() {
		t.Error("a node that stands by serves beside the others")
	}
	a.Close()
	b.Close()
	open(t, url, postgres.Options{Node: "d", Lease: longLease})
	refused(postgres.Options{Node: "a", Several: true})
}

// TestAServingNodeExpelsASilentOne: the other nodes find out from Epochs and take its work over.
func TestAServingNodeExpelsASilentOne(t *testing.T) {
	url, n := empty(t, server(t)), &network{}
	a := open(t, url, postgres.Options{Node: "a", Several: true, Lease: longLease, Configure: n.configure})
	b := open(t, url, postgres.Options{Node: "b", Several: true, Lease: longLease})
	time.Sleep(2 * longLease)
	epochs, err := b.Members().Epochs(ctx)
	if err != nil || len(epochs) != 2 {
		t.Fatalf("%v, %v while both beat", epochs, err)
	}
	n.cut.Store(true)
	for cut := time.Now(); len(epochs) > 1; time.Sleep(10 * time.Millisecond) {
		if time.Since(cut) > time.Minute {
			t.Fatal("a silent node was not expelled")
		}
		if epochs, err = b.Members().Epochs(ctx); err != nil {
			t.Fatal(err)
		}
	}
	n.cut.Store(false)
	at, err := a.Head(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Append(ctx, at, time.Now(), smallWrite); !errors.Is(err, journal.ErrFenced) {
		t.Errorf("the node that was silent: %v", err)
	}
	commitOne(t, b)
}

// TestTheFormatIsRaisedWhenAllNodesReadIt: until then nodes of two versions serve together, and afterwards the older
// one does not start any more. A node counts with what its own process reads, and not an earlier one of its name.
func TestTheFormatIsRaisedWhenAllNodesReadIt(t *testing.T) {
	url := empty(t, server(t))
	options := func(node string, reads int) postgres.Options {
		return postgres.Options{Node: node, Several: true, Lease: time.Second}.Reading(reads)
	}
	format := func(s *postgres.Store, want int) {
		t.Helper()
		for begun := time.Now(); s.Stats().Shared.Format != want; time.Sleep(10 * time.Millisecond) {
			if time.Since(begun) > time.Minute {
				t.Fatalf("the format is %d, not %d", s.Stats().Shared.Format, want)
			}
		}
	}
	old := open(t, url, options("a", 1))
	b := open(t, url, options("b", 2))
	format(b, 1)
	exec(t, server(t), "UPDATE stagedoor.node SET reads = 2, reads_epoch = epoch - 1 WHERE id = 'a'")
	time.Sleep(300 * time.Millisecond) // the format is looked at ten times a lease
	format(b, 1)
	commitOne(t, old)
	commitOne(t, b)
	old.Close()
	format(b, 2)
	_, err := postgres.Open(ctx, url, options("a", 1))
	if !errors.Is(err, journal.ErrSchema) || !strings.Contains(err.Error(), "format 2, and this program reads up to") {
		t.Errorf("an older program: %v", err)
	}
	format(open(t, url, options("a", 2)), 2)
}

// TestALogOfAnOlderFormatIsRefused: this program cannot read its records. A log that has not begun has none.
func TestALogOfAnOlderFormatIsRefused(t *testing.T) {
	url := empty(t, server(t))
	a := open(t, url, postgres.Options{Node: "a"})
	commitOne(t, a)
	a.Close()
	exec(t, server(t), "UPDATE stagedoor.head SET format = 2")
	_, err := postgres.Open(ctx, url, postgres.Options{Node: "a"})
	if !errors.Is(err, journal.ErrSchema) || !strings.Contains(err.Error(), "format 2, and this program reads from 3") {
		t.Errorf("got %v", err)
	}
	exec(t, server(t), "UPDATE stagedoor.head SET format = 1, lsn = 0; DELETE FROM stagedoor.log; "+
		"INSERT INTO stagedoor.log SELECT 0, tag, '', 0, '' FROM stagedoor.head")
	commitOne(t, open(t, url, postgres.Options{Node: "a"}))
}

// TestThePartsOfLimitsNeverAddUpToMoreThanTheLimit while nodes join, leave, and are expelled without knowing it. A node
// that asks for a smaller part uses it already, and one that asks for a larger one uses it after it was granted.
func TestThePartsOfLimitsNeverAddUpToMoreThanTheLimit(t *testing.T) {
	url := empty(t, server(t))
	after := time.Minute // in which a node that was expelled may still serve
	join := func(name string) *postgres.Store {
		t.Helper()
		return open(t, url, postgres.Options{Node: name, Several: true})
	}
	asks := func(s *postgres.Store, parts int, want bool) {
		t.Helper()
		granted, err := s.Members().(journal.Divider).Divide(ctx, parts, after)
		if err != nil || granted != want {
			name, _, _ := s.Members().Self()
			t.Errorf("%s asks for one of %d parts: %t, %v, want %t", name, parts, granted, err, want)
		}
	}
	a, b := join("a"), join("b")
	asks(a, 1, true)
	asks(b, 2, false) // a has all
	asks(a, 2, true)
	asks(b, 2, true)
	asks(a, 1, false)
	c := join("c")
	asks(c, 3, false)
	asks(a, 3, true)
	asks(c, 3, false) // a sixth is left
	asks(b, 3, true)
	asks(c, 3, true)
	b.Close() // it has left its part
	asks(a, 2, true)
	asks(c, 2, true)

	name, epoch, _ := c.Members().Self()
	if _, err := a.Members().Expel(ctx, name, epoch); err != nil {
		t.Fatal(err)
	}
	asks(a, 1, false) // c does not know yet that it was expelled
	asks(c, 3, false)
	after = time.Millisecond
	asks(a, 1, true)
	asks(join("c"), 2, false) // its name has a new epoch, and no part
}

// TestNodesThatDivideAtTheSameMomentHaveNoMoreThanTheLimit: each has a thousandth and asks for a half, so that only one
// of them can have it.
func TestNodesThatDivideAtTheSameMomentHaveNoMoreThanTheLimit(t *testing.T) {
	url := empty(t, server(t))
	const thousandth, half = 1000, 2
	var nodes []journal.Divider
	for _, name := range []string{"a", "b", "c", "d"} {
		nodes = append(nodes, open(t, url, postgres.Options{Node: name, Several: true}).Members().(journal.Divider))
	}
	all := func(parts int) (granted int) {
		t.Helper()
		answers := make(chan bool, len(nodes))
		for _, n := range nodes {
			go func() {
				ok, err := n.Divide(ctx, parts, time.Minute)
				if err != nil {
					t.Error(err)
				}
				answers <- ok
			}()
		}
		for range nodes {
			if <-answers {
				granted++
			}
		}
		return granted
	}
	for range 30 {
		if n := all(thousandth); n != len(nodes) {
			t.Fatalf("%d of %d nodes have a thousandth", n, len(nodes))
		}
		if n := all(half); n != 1 {
			t.Fatalf("%d nodes have a half beside the thousandths of the others", n)
		}
	}
}

// TestAUnitOfALimitHasOneNodeAtATime: a limit of two is used by three nodes.
func TestAUnitOfALimitHasOneNodeAtATime(t *testing.T) {
	url := empty(t, server(t))
	after := time.Minute // in which a node that was expelled may still serve
	join := func(name string) *postgres.Store {
		t.Helper()
		return open(t, url, postgres.Options{Node: name, Several: true})
	}
	size := 2
	has := func(s *postgres.Store, need, want int, back ...int) journal.Lent {
		t.Helper()
		lent, err := s.Members().(journal.Lender).Lend(ctx, journal.Loan{Limit: fmt.Sprint(size), Size: size,
			Need: need, Back: back, Credit: time.Second, After: after})
		if err != nil || len(lent.Units) != want {
			name, _, _ := s.Members().Self()
			t.Fatalf("%s, which needs %d, has %+v, %v, want %d", name, need, lent, err, want)
		}
		return lent
	}
	a, b, c := join("a"), join("b"), join("c")
	has(a, 0, 0)
	if lent := has(a, 1, 2); lent.Units[0].Credit < time.Minute || lent.Part != 2 { // no other node needs the second
		t.Errorf("the first loan: %+v", lent)
	}
	has(b, 2, 0)
	has(c, 1, 0)
	if lent := has(a, 1, 2); lent.Wanted != 3 || lent.Part != 0 || lent.Short != 2 {
		t.Errorf("two others wait: %+v", lent)
	}
	has(a, 1, 1, 2)
	if lent := has(b, 2, 1); lent.Units[0].Credit < time.Second || lent.Units[0].Credit > 30*time.Second {
		t.Errorf("a unit that was given back with a second: %+v", lent)
	}
	has(a, 1, 0, 1)
	has(c, 1, 1) // before b, which has one
	if lent := has(b, 2, 1); lent.Wanted != 1 {
		t.Errorf("a waits: %+v", lent)
	}
	has(c, 0, 0, 1)
	has(b, 2, 1)
	has(a, 1, 1)
	has(a, 1, 1, 2) // it is b's

	size = 1
	has(a, 1, 1)
	has(b, 2, 0)
	has(c, 1, 0)
	has(a, 0, 0, 1)
	has(b, 2, 1)
	has(b, 2, 0, 1)
	has(c, 1, 1) // although b waited before c, it had the unit since then
	size = 2

	name, epoch, _ := b.Members().Self()
	if _, err := a.Members().Expel(ctx, name, epoch); err != nil {
		t.Fatal(err)
	}
	has(a, 2, 1) // b does not know yet that it was expelled
	has(b, 2, 1)
	after = time.Millisecond
	if lent := has(a, 2, 2); lent.Units[1].Credit > 30*time.Second {
		t.Errorf("what b has used is not known: %+v", lent)
	}
	has(b, 2, 0)
	has(c, 2, 0)
	a.Close() // it has left
	has(c, 2, 2)
	after = time.Minute
	has(join("c"), 2, 0) // its name has a new epoch, and the units are those of the process before
}

// TestNodesThatBorrowAtTheSameMomentHaveNoMoreThanTheLimit: all want the units that are free after a moment in which
// none wanted any.
func TestNodesThatBorrowAtTheSameMomentHaveNoMoreThanTheLimit(t *testing.T) {
	url := empty(t, server(t))
	const size = 3
	var nodes []journal.Lender
	for _, name := range []string{"a", "b", "c", "d"} {
		nodes = append(nodes, open(t, url, postgres.Options{Node: name, Several: true}).Members().(journal.Lender))
	}
	units := make([][]int, len(nodes))
	all := func(need int) (lent int) {
		t.Helper()
		var wg sync.WaitGroup
		for i, n := range nodes {
			wg.Go(func() {
				l, err := n.Lend(ctx, journal.Loan{Limit: "one", Size: size, Need: need, Back: units[i],
					After: time.Minute})
				if err != nil {
					t.Error(err)
				}
				units[i] = nil
				for _, u := range l.Units {
					units[i] = append(units[i], u.Number)
				}
			})
		}
		wg.Wait()
		for i := range units {
			lent += len(units[i])
		}
		return lent
	}
	for range 20 {
		if n := all(size); n == 0 || n > size {
			t.Errorf("%d units of %d are in use", n, size)
		}
		for all(0) > 0 { // some got units that others gave back
		}
	}
}
