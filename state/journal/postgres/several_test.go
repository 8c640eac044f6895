package postgres_test

import (
	"errors"
	"strings"
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
	const after = 300 * time.Millisecond
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
	time.Sleep(after + 100*time.Millisecond)
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
