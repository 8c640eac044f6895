package webhook_test

import (
	"testing"
	"time"

	"stagedoor/state/statetest"
	"stagedoor/state/work"
)

// TestANodeSendsItsDeliveriesAndThoseOfNodesThatEnded: a delivery of a live node is left to that one.
func TestANodeSendsItsDeliveriesAndThoseOfNodesThatEnded(t *testing.T) {
	cluster, r := statetest.NewCluster(), newReceiver(t, 204)
	e := r.endpoint(t, "wh_1")
	a, b := newStage(t), newStage(t)
	first := cluster.Join("a")
	a.store, b.store = first, cluster.Join("b")
	a.start() // has no endpoints, so it stores events for hooksOnly and sends none
	a.hooksOnly(e)
	b.start(e)
	a.finish(work.VideoCompleted)
	b.finish(work.VideoCompleted)
	await(t, "the node's own event arrives", func() bool { return len(r.all()) == 1 })
	takeOver := func() {
		t.Helper()
		ended, err := b.state.Ended(t.Context())
		if err == nil {
			err = work.TakeOverDeliveries(t.Context(), b.state, ended)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	takeOver()
	time.Sleep(20 * time.Millisecond)
	if n, tries := b.waiting(e); len(r.all()) != 1 || n != 1 || tries != 0 {
		t.Errorf("%d events sent, %d wait after %d tries, while their node was live", len(r.all()), n, tries)
	}
	name, epoch, _ := first.Members().Self()
	if done, err := first.Members().Expel(t.Context(), name, epoch); !done || err != nil {
		t.Fatal(done, err)
	}
	takeOver()
	await(t, "the other event arrives", func() bool { n, _ := b.waiting(e); return n == 0 && len(r.all()) == 2 })
}
