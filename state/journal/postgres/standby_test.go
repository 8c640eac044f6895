package postgres_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stagedoor/state/journal"
	"stagedoor/state/journal/postgres"
	"stagedoor/state/money"
	"stagedoor/state/statetest/pgserver"
)

func TestAStandbyFollowsTheLogAndCannotAppend(t *testing.T) {
	server := server(t)
	url := empty(t, server)
	a := openNode(t, url, "a", &network{})
	b := openWith(t, url, postgres.Options{Node: "b", Standby: true})
	if a.store.Standby() || !b.store.Standby() {
		t.Error("not the second node is the stand-by")
	}
	_, _, err := money.CommitPostings(ctx, a.state, "anna", []money.Posting{{Kind: money.Credit, Amount: 7}})
	if err != nil {
		t.Fatal(err)
	}
	for money.FindAccount(b.state.View(), "anna").Credits != 7 {
		time.Sleep(time.Millisecond)
	}
	at, err := b.store.Head(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.store.Append(ctx, at, time.Now(), smallWrite); !errors.Is(err, journal.ErrFenced) {
		t.Errorf("an append of a stand-by: %v", err)
	}
	all, err := b.store.Members().List(ctx)
	if err != nil || len(all) != 2 || all[0].Standby || !all[1].Standby || !all[1].Live {
		t.Errorf("the nodes: %+v, %v", all, err)
	}
}

func TestAStandbyTakesOverWhenTheLiveNodeLeaves(t *testing.T) {
	server := server(t)
	url := empty(t, server)
	a := open(t, url, postgres.Options{Node: "a"})
	b := open(t, url, postgres.Options{Node: "b", Standby: true})
	at, err := a.Head(ctx)
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	if err := b.Await(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("beside a live node: %v", err)
	}
	a.Close()
	if err := b.Await(ctx); err != nil || b.Standby() {
		t.Fatalf("after it has left: %v", err)
	}
	if _, err := b.Append(ctx, at, time.Now(), smallWrite); err != nil {
		t.Errorf("an append after the takeover: %v", err)
	}
	beats(t, b, "b", 1) // in the epoch that it had as a stand-by
}

func TestOneOfSeveralStandbysTakesOverFromADeadNodeWhichIsFenced(t *testing.T) {
	server := server(t)
	url, n := empty(t, server), &network{}
	a := open(t, url, postgres.Options{Node: "a", Configure: n.configure})
	waiting, enough := context.WithCancel(ctx)
	defer enough()
	var took atomic.Int32
	var wg sync.WaitGroup
	for _, name := range []string{"b", "c", "d"} {
		s := open(t, url, postgres.Options{Node: name, Standby: true, Lease: longLease})
		wg.Go(func() {
			if err := s.Await(waiting); err == nil {
				took.Add(1)
				commitOne(t, s)
			}
		})
	}
	n.cut.Store(true)
	for took.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(2 * longLease) // enough for a second one to take over if it could
	enough()
	wg.Wait()
	if took.Load() != 1 {
		t.Errorf("%d stand-bys have taken over", took.Load())
	}
	n.cut.Store(false)
	at, err := a.Head(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Append(ctx, at, time.Now(), smallWrite); !errors.Is(err, journal.ErrFenced) {
		t.Errorf("the node that was dead: %v", err)
	}
}

func TestAStandbyThatIsExpelledStopsWaiting(t *testing.T) {
	server := server(t)
	url := empty(t, server)
	open(t, url, postgres.Options{Node: "a"})
	b := open(t, url, postgres.Options{Node: "b", Standby: true})
	members, err := postgres.OpenMembers(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer members.Close()
	all, err := members.List(ctx)
	if err != nil || len(all) != 2 {
		t.Fatal(all, err)
	}
	if ended, err := members.Expel(ctx, "b", all[1].Epoch); !ended || err != nil {
		t.Fatal(ended, err)
	}
	if err := b.Await(ctx); !errors.Is(err, journal.ErrFenced) {
		t.Errorf("got %v", err)
	}
}

func TestANodeThatIsAskedToLeaveLearnsIt(t *testing.T) {
	a, b, _ := pair(t, &network{})
	members, err := postgres.OpenMembers(ctx, pgserver.Shared(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	defer members.Close()
	all, err := members.List(ctx)
	if err != nil || len(all) != 2 {
		t.Fatal(all, err)
	}
	if asked, err := members.Leave(ctx, "a", all[0].Epoch-1); asked || err != nil {
		t.Errorf("in an epoch that has ended: %t, %v", asked, err)
	}
	if asked, err := members.Leave(ctx, "a", all[0].Epoch); !asked || err != nil {
		t.Errorf("%t, %v", asked, err)
	}
	<-a.Leaving()
	select {
	case <-b.Leaving():
		t.Error("the other node was asked to leave")
	default:
	}
}

func TestMembersAreNotThereBeforeTheTables(t *testing.T) {
	server := server(t)
	exec(t, server, "CREATE DATABASE bare")
	defer exec(t, server, "DROP DATABASE bare")
	if _, err := postgres.OpenMembers(ctx, server.URLOf("bare")); !errors.Is(err, journal.ErrNotFound) {
		t.Errorf("got %v", err)
	}
}
