package videojob_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"stagedoor/actors/kit/kittest"
	"stagedoor/state"
	"stagedoor/state/statetest"
	"stagedoor/state/work"
)

// takeOver goes on with the jobs of nodes that have ended and ends their other holds.
func (p *process) takeOver(ctx context.Context) error {
	ended, err := p.state.Ended(ctx, work.Nodes)
	if err != nil {
		return err
	}
	return errors.Join(p.svc.TakeOver(ctx, ended), p.recover())
}

// keepTakingOver takes over from nodes that have ended every second, as a gateway does, until the returned function is
// called.
func (p *process) keepTakingOver() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			if err := p.takeOver(ctx); err != nil && ctx.Err() == nil {
				p.t.Error(err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		}
	}()
	return func() { cancel(); <-done }
}

// TestAnotherNodeGoesOnWithAJob: the nodes that are left take each job of a node that was expelled over once, and make
// and charge its video once, while the node that was expelled goes on without being able to change anything.
func TestAnotherNodeGoesOnWithAJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster, vendor := statetest.NewCluster(), newVendor()
		first := cluster.Join("a")
		a := start(t, first, vendor, nil)
		b, c := start(t, cluster.Join("b"), vendor, nil), start(t, cluster.Join("c"), vendor, nil)
		a.credit()
		a.credit()
		stopB, stopC := b.keepTakingOver(), c.keepTakingOver()
		var ids []string
		for range 2 {
			v := a.create(newRequest("a cat"))
			if v.Node != a.state.Node() {
				t.Errorf("%s works on the job of %s", v.Node, a.state.Node())
			}
			ids = append(ids, v.ID)
		}
		own := b.create(newRequest("a dog"))
		kittest.Pass(5 * time.Second)
		if n, m := b.svc.InFlight(), c.svc.InFlight(); n != 1 || m != 0 {
			t.Errorf("other nodes work on %d and %d jobs while the first one does", n, m)
		}
		name, epoch, _ := first.Members().Self()
		if done, err := first.Members().Expel(t.Context(), name, epoch); !done || err != nil {
			t.Fatal(done, err)
		}
		kittest.Pass(2 * time.Second)
		if n := b.svc.InFlight() + c.svc.InFlight(); n != 3 {
			t.Errorf("the other nodes work on %d jobs two seconds later", n)
		}
		kittest.Pass(5 * time.Minute)
		for _, id := range append(ids, own.ID) {
			if v := b.look(id); v.Phase != work.VideoCompleted || v.Cost != 4*second || v.Node != "" {
				t.Errorf("ended as %+v", v)
			}
		}
		b.checkCharge(3 * 4 * second)
		if vendor.made() != 3 || len(vendor.keys) != 3 {
			t.Errorf("%d videos were made for %d submissions", vendor.made(), len(vendor.keys))
		}
		stopB()
		stopC()
		for _, p := range []*process{a, b, c} {
			p.end()
		}
		time.Sleep(5 * time.Second) // the actor library's last timer
	})
}

// TestAJobOfANodeThatHasLeftGoesOn: a job that was being submitted is submitted again under its idempotency key.
func TestAJobOfANodeThatHasLeftGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster, vendor := statetest.NewCluster(), newVendor()
		first := cluster.Join("a")
		a := start(t, first, vendor, nil)
		a.credit()
		v := a.create(newRequest("a cat"))
		b := start(t, cluster.Join("b"), vendor, nil)
		if b.svc.InFlight() != 0 {
			t.Error("a node has taken a job over when it joined")
		}
		a.end()
		first.Close()
		if err := b.takeOver(t.Context()); err != nil {
			t.Fatal(err)
		}
		kittest.Pass(5 * time.Minute)
		if v := b.look(v.ID); v.Phase != work.VideoCompleted || v.Cost != 4*second {
			t.Errorf("ended as %+v", v)
		}
		b.checkCharge(4 * second)
		b.end()
		time.Sleep(5 * time.Second) // the actor library's last timer
	})
}

// TestAJobIsLeftToTheNodeThatTookItOver: the node that has lost it neither polls nor charges any more.
func TestAJobIsLeftToTheNodeThatTookItOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster, vendor := statetest.NewCluster(), newVendor()
		a, b := start(t, cluster.Join("a"), vendor, nil), start(t, cluster.Join("b"), vendor, nil)
		a.credit()
		ended, err := b.state.Ended(t.Context(), work.Nodes)
		if err != nil {
			t.Fatal(err)
		}
		v := a.create(newRequest("a cat"))
		kittest.Pass(time.Second)
		if err := b.svc.TakeOver(t.Context(), ended); err != nil || b.svc.InFlight() != 0 {
			t.Errorf("took %d jobs over that were begun after the question: %v", b.svc.InFlight(), err)
		}
		own := func(n state.Node) bool { return n == a.state.Node() }
		if err := b.svc.TakeOver(t.Context(), own); err != nil {
			t.Fatal(err)
		}
		kittest.Pass(15 * time.Second)
		if n, m := a.svc.InFlight(), b.svc.InFlight(); n != 0 || m != 1 {
			t.Errorf("%d and %d nodes work on the job", n, m)
		}
		if err := b.svc.TakeOver(t.Context(), func(n state.Node) bool { return n == b.state.Node() }); err != nil {
			t.Fatal(err)
		}
		if n := b.svc.InFlight(); n != 1 {
			t.Errorf("a node works %d times on its job", n)
		}
		kittest.Pass(5 * time.Minute)
		if v := b.look(v.ID); v.Phase != work.VideoCompleted || v.Cost != 4*second || vendor.made() != 1 {
			t.Errorf("ended as %+v, %d videos were made", v, vendor.made())
		}
		b.checkCharge(4 * second)
		a.end()
		b.end()
		time.Sleep(5 * time.Second) // the actor library's last timer
	})
}
