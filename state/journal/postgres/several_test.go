package postgres_test

import (
	"errors"
	"testing"
	"time"

	"stagedoor/state/journal"
	"stagedoor/state/journal/postgres"
)

func TestOnlyNodesThatAllPermitOthersServeTogether(t *testing.T) {
	url := empty(t, server(t))
	const lease = 1500 * time.Millisecond // longer than the time between two beats
	refused := func(o postgres.Options) {
		t.Helper()
		o.Lease = lease
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
	open(t, url, postgres.Options{Node: "d", Lease: lease})
	refused(postgres.Options{Node: "a", Several: true})
}

// TestAServingNodeExpelsASilentOne: the other nodes find out from Epochs and take its work over.
func TestAServingNodeExpelsASilentOne(t *testing.T) {
	url, n := empty(t, server(t)), &network{}
	const lease = 1500 * time.Millisecond // longer than the time between two beats
	a := open(t, url, postgres.Options{Node: "a", Several: true, Lease: lease, Configure: n.configure})
	b := open(t, url, postgres.Options{Node: "b", Several: true, Lease: lease})
	time.Sleep(2 * lease)
	epochs, err := b.Members().Epochs(ctx)
	if err != nil || len(epochs) != 2 {
		t.Fatalf("%v, %v while both beat", epochs, err)
	}
	n.cut.Store(true)
	for cut := time.Now(); len(epochs) > 1; time.Sleep(10 * time.Millisecond) {
		if time.Since(cut) > 10*time.Second {
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
