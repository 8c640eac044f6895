package webhook_test

import (
	"testing"
	"time"

	"stagedoor/state"
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
	await(t, "the node's own event arrives and is recorded", func() bool {
		n, _ := b.waiting(e)
		return len(r.all()) == 1 && n == 1
	})
	takeOver := func() {
		t.Helper()
		ended, err := b.state.Ended(t.Context(), work.Nodes)
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

// TestTheDeliveriesOfANodeThatJoinsLaterAreLeftToIt: it joins after another node has asked which nodes have ended.
func TestTheDeliveriesOfANodeThatJoinsLaterAreLeftToIt(t *testing.T) {
	cluster, r := statetest.NewCluster(), newReceiver(t, 204)
	e := r.endpoint(t, "wh_1")
	a, b := newStage(t), newStage(t)
	a.store = cluster.Join("a")
	a.start(e)
	ended, err := a.state.Ended(t.Context(), work.Nodes)
	if err != nil {
		t.Fatal(err)
	}
	b.store = cluster.Join("b")
	b.start() // has no endpoints, so it stores an event for hooksOnly and does not send it
	b.hooksOnly(e)
	b.finish(work.VideoCompleted)
	await(t, "the other node hears of it", func() bool { n, _ := a.waiting(e); return n == 1 })
	if err := work.TakeOverDeliveries(t.Context(), a.state, ended); err != nil {
		t.Fatal(err)
	}
	work.Deliveries(a.state.View(), e.ID, func(d *work.Delivery) bool {
		if d.Node != b.state.Node() {
			t.Errorf("%s has taken it over", d.Node)
		}
		return true
	})
}

// TestANodeSendsTheAlertsThatItFinds without taking them over first.
func TestANodeSendsTheAlertsThatItFinds(t *testing.T) {
	r := newReceiver(t, 204)
	e := r.endpoint(t, "wh_1")
	e.Alerts = true
	s := newStage(t)
	s.store = statetest.NewCluster().Join("a")
	s.start(e)
	err := state.Run(t.Context(), s.state, func(tx *state.Tx) error {
		_, err := work.AddAlert(tx, work.AlertDisk, "data", []byte(`{}`), 0)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	await(t, "the alert arrives", func() bool { return len(r.all()) == 1 })
}
