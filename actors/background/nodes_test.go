package background_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"stagedoor/actors/background"
	"stagedoor/actors/kit"
	"stagedoor/actors/kit/kittest"
	"stagedoor/providers/dialogue/dialoguetest"
	"stagedoor/state"
	"stagedoor/state/schema"
	"stagedoor/state/statetest"
	"stagedoor/state/work"
)

// onNodes runs body with a stage on each of three nodes over one shared store. Their providers dribble.
func onNodes(t *testing.T, body func(t *testing.T, c *statetest.Cluster, a, b, c3 *stage)) {
	t.Helper()
	kittest.Run(t, func(t *testing.T, _ *kit.System) {
		cluster := statetest.NewCluster()
		var all []*stage
		for _, name := range []string{"a", "b", "c"} {
			all = append(all, join(t, cluster, name))
		}
		body(t, cluster, all[0], all[1], all[2])
		kittest.Pass(time.Minute)
		for _, s := range all {
			s.leave()
		}
	})
}

// join returns a stage on another node.
func join(t *testing.T, cluster *statetest.Cluster, name string) *stage {
	t.Helper()
	s := &stage{t: t, sys: kit.NewSystem(kit.Options{Logger: kittest.Logger(t), MaxIdle: -1}),
		env: dialoguetest.NewLiveEnv(), simulate: dribble}
	var err error
	if s.store, err = schema.Open(cluster.Join(name), time.Now); err != nil {
		t.Fatal(err)
	}
	s.startRegistry(s.sys)
	return s
}

// leave ends a stage that join has returned, on which nothing may run.
func (s *stage) leave() {
	s.t.Helper()
	if n := s.engine.InFlight(); n != 0 {
		s.t.Errorf("%d requests in flight at the end", n)
	}
	if err := s.sys.Stop(context.Background()); err != nil {
		s.t.Error(err)
	}
	s.store.Close()
}

// expel ends a node that is in its first epoch.
func expel(t *testing.T, cluster *statetest.Cluster, name string) {
	t.Helper()
	if done, err := cluster.Join("operator").Members().Expel(t.Context(), name, 1); !done || err != nil {
		t.Fatal(done, err)
	}
}

// resume goes on with what nodes have left that have ended.
func (s *stage) resume() (resumed, failed int) {
	s.t.Helper()
	ended, err := s.store.Ended(context.Background(), work.Nodes)
	if err == nil {
		resumed, failed, err = s.registry.Resume(context.Background(), ended, s.again)
	}
	if err != nil {
		s.t.Error(err)
	}
	return resumed, failed
}

func TestAnotherNodeCancelsABackgroundResponse(t *testing.T) {
	onNodes(t, func(t *testing.T, _ *statetest.Cluster, a, b, _ *stage) {
		id := a.begin()
		kittest.Pass(time.Second)
		if b.registry.Cancel(t.Context(), id, "key:other") {
			t.Error("cancelled for another owner")
		}
		if n := a.engine.InFlight(); n != 1 {
			t.Fatalf("%d requests in flight", n)
		}
		before := time.Now()
		if !b.registry.Cancel(t.Context(), id, owner) || time.Since(before) > time.Second {
			t.Errorf("not cancelled within %v", time.Since(before))
		}
		if got := b.stored(id); got.Status != "cancelled" || got.Node != "" || got.Cancelled {
			t.Errorf("kept %+v", got.ResponseHeader)
		}
		if a.engine.InFlight() != 0 || b.registry.Cancel(t.Context(), id, owner) {
			t.Error("it goes on")
		}
	})
}

func TestAnotherNodeFollowsABackgroundResponseFromItsEnd(t *testing.T) {
	onNodes(t, func(t *testing.T, _ *statetest.Cluster, a, b, _ *stage) {
		id := a.begin()
		kittest.Pass(time.Second)
		began := time.Now()
		live, err := b.registry.Watch(t.Context(), id, owner, -1, func(background.Event) error { return nil })
		if live || err != nil || time.Since(began) < 5*time.Second {
			t.Errorf("watched %t, %v after %v", live, err, time.Since(began))
		}
		if log := b.log(id); !strings.Contains(log, "<99>") || terminals(log) != 1 {
			t.Errorf("its events end with %q", log[max(0, len(log)-200):])
		}
		next := a.begin()
		kittest.Pass(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if live, _ := b.registry.Watch(ctx, next, owner, -1, nil); live || ctx.Err() == nil {
			t.Error("a client that leaves is still waited for")
		}
	})
}

// connect makes b follow what the others make, until it is cut off from them.
func connect(b *stage, others ...*stage) (cutOff func()) {
	cut := make(chan struct{})
	b.registry.FollowWith(func(ctx context.Context, node state.Node, id string, owner state.Owner, after int64,
		send func(background.Event) error) error {
		i := slices.IndexFunc(others, func(s *stage) bool { return s.store.Node() == node })
		if i < 0 {
			return errors.New("unknown node")
		}
		follow := others[i].registry.FindHere(id, owner)
		if follow == nil {
			return errors.New("not made there")
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		return follow(ctx, after, func(ev background.Event) error {
			select {
			case <-cut: // a node that hangs ends no stream
				<-ctx.Done()
				return ctx.Err()
			default:
				return send(ev)
			}
		})
	})
	return func() { close(cut) }
}

// follow watches a response on a node and then reads the rest from the store, as a handler does.
func (s *stage) follow(id string) <-chan string {
	out := make(chan string, 1)
	go func() {
		var got strings.Builder
		after := int64(-1)
		live, err := s.registry.Watch(context.Background(), id, owner, after, func(ev background.Event) error {
			got.Write(ev.Raw)
			after = ev.Sequence
			return nil
		})
		if err != nil {
			s.t.Errorf("watched: %v", err)
		}
		if !live {
			err = work.ReadEvents(context.Background(), s.store, id, owner, after, func(log []byte) error {
				for _, ev := range strings.SplitAfter(string(log), "\n\n") {
					if n := sequence(ev); len(n) == 1 && n[0] > after {
						got.WriteString(ev)
					}
				}
				return nil
			})
			if err != nil {
				s.t.Errorf("read the events: %v", err)
			}
		}
		out <- got.String()
	}()
	return out
}

// rising reports whether each number is higher than the one before, so that no event is sent twice.
func rising(numbers []int64) bool {
	return slices.IsSorted(numbers) && len(slices.Compact(slices.Clone(numbers))) == len(numbers)
}

func TestAResponseIsFollowedLiveOnAnotherNode(t *testing.T) {
	onNodes(t, func(t *testing.T, _ *statetest.Cluster, a, b, _ *stage) {
		connect(b, a)
		id := a.begin()
		kittest.Pass(time.Second / 2)
		seen, enough := 0, errors.New("enough")
		live, err := b.registry.Watch(t.Context(), id, owner, -1, func(background.Event) error {
			if seen++; seen == 5 {
				return enough
			}
			return nil
		})
		if !live || !errors.Is(err, enough) || a.stored(id).Status != "queued" {
			t.Errorf("after %d events: live %t, %v, the response is %s", seen, live, err, a.stored(id).Status)
		}
		here, there := a.follow(id), b.follow(id)
		if got, want := <-there, <-here; got != want || terminals(got) != 1 || !strings.Contains(got, "<99>") {
			t.Errorf("on the other node came %v and not %v", sequence(got), sequence(want))
		}
		if b.registry.FindHere(id, owner) != nil || a.registry.FindHere(id, "key:other") != nil {
			t.Error("a response is found that is not made here, or another owner's")
		}
	})
}

// TestAFollowerGetsTheEndOfAResponseThatIsTakenOver: the events of the first run stop without an end, because its node
// hangs, and another one begins again. The client gets the events of that run, up to one end.
func TestAFollowerGetsTheEndOfAResponseThatIsTakenOver(t *testing.T) {
	onNodes(t, func(t *testing.T, cluster *statetest.Cluster, a, b, c *stage) {
		cutOff := connect(b, a, c)
		id := a.begin()
		kittest.Pass(time.Second)
		followed := b.follow(id)
		kittest.Pass(2 * time.Second)
		cutOff()
		kittest.Pass(time.Second)
		connect(b, a, c)
		expel(t, cluster, "a")
		if resumed, _ := c.resume(); resumed != 1 {
			t.Fatalf("%d responses go on", resumed)
		}
		got := <-followed
		if numbers := sequence(got); terminals(got) != 1 || strings.Count(got, "event: response.created") != 2 ||
			!rising(numbers) {
			t.Errorf("the events %v with %d ends", numbers, terminals(got))
		}
	})
}

// TestAFollowerIsNotKeptByAFailedStore: a node that was expelled does not hear of the response any more, whether the
// node that makes it hangs or cannot be reached.
func TestAFollowerIsNotKeptByAFailedStore(t *testing.T) {
	for name, connected := range map[string]bool{"hangs": true, "cannot be reached": false} {
		t.Run(name, func(t *testing.T) {
			onNodes(t, func(t *testing.T, cluster *statetest.Cluster, a, b, _ *stage) {
				hang := func() {}
				if connected {
					hang = connect(b, a)
				}
				id := a.begin()
				kittest.Pass(time.Second / 2)
				watched := make(chan error, 1)
				go func() {
					ignore := func(background.Event) error { return nil }
					_, err := b.registry.Watch(context.Background(), id, owner, -1, ignore)
					watched <- err
				}()
				kittest.Pass(time.Second)
				hang()
				expel(t, cluster, "b")
				if err := work.CancelResponse(t.Context(), b.store, id, owner); !errors.Is(err, state.ErrUnavailable) {
					t.Errorf("an expelled node wrote: %v", err)
				}
				select {
				case err := <-watched:
					if !errors.Is(err, state.ErrUnavailable) {
						t.Errorf("the follower got %v", err)
					}
				case <-time.After(time.Second):
					t.Fatal("the follower waits for a store that has failed")
				}
			})
		})
	}
}

// TestAFollowerDoesNotSeeThatAResponseIsHandedOver: the node that makes it stops, and its own clients are asked to
// resume. Those of other nodes get the events of the one that goes on.
func TestAFollowerDoesNotSeeThatAResponseIsHandedOver(t *testing.T) {
	onNodes(t, func(t *testing.T, cluster *statetest.Cluster, a, b, c *stage) {
		connect(b, a, c)
		id := a.begin()
		kittest.Pass(time.Second)
		own, followed := a.follow(id), b.follow(id)
		kittest.Pass(2 * time.Second)
		if err := a.sys.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		expel(t, cluster, "a")
		if resumed, _ := c.resume(); resumed != 1 {
			t.Fatalf("%d responses go on", resumed)
		}
		if got := <-own; !strings.Contains(got, "shutting_down") {
			t.Errorf("the client of the node itself got %q", got[max(0, len(got)-200):])
		}
		if got := <-followed; strings.Contains(got, "shutting_down") || terminals(got) != 1 || !rising(sequence(got)) {
			t.Errorf("the client of another node got %d ends", terminals(got))
		}
	})
}

// TestOneNodeGoesOnWithTheResponsesOfANodeThatEnded: it begins the background ones again and fails those whose clients
// were connected, each once, although all nodes try at the same time. Those of live nodes stay.
func TestOneNodeGoesOnWithTheResponsesOfANodeThatEnded(t *testing.T) {
	onNodes(t, func(t *testing.T, cluster *statetest.Cluster, a, b, c *stage) {
		lost, cancelled, own := a.begin(), a.begin(), b.begin()
		err := work.PutResponse(t.Context(), a.store, work.StoredResponse{Body: []byte(`{"id":"resp_1"}`),
			ResponseHeader: work.ResponseHeader{ID: "resp_1", Owner: owner, Status: "in_progress"}})
		if err != nil {
			t.Fatal(err)
		}
		kittest.Pass(time.Second)
		for _, s := range []*stage{b, c} {
			if resumed, failed := s.resume(); resumed != 0 || failed != 0 {
				t.Errorf("%d resumed and %d failed while their node was live", resumed, failed)
			}
		}
		expel(t, cluster, "a")
		if err := work.CancelResponse(t.Context(), b.store, cancelled, owner); err != nil {
			t.Fatal(err)
		}
		counts := make(chan int, 2)
		for _, s := range []*stage{b, c} {
			go func() {
				resumed, _ := s.resume()
				counts <- resumed
			}()
		}
		if n := <-counts + <-counts; n != 1 {
			t.Errorf("%d runs were begun for one response", n)
		}
		if got := b.stored("resp_1"); got.Status != "failed" {
			t.Errorf("a response whose client was connected is %s", got.Status)
		}
		if got := b.stored(cancelled); got.Status != "cancelled" {
			t.Errorf("a response that was cancelled is %s", got.Status)
		}
		kittest.Pass(time.Minute)
		for id, runs := range map[string]int{lost: 2, own: 1} {
			if got := c.stored(id); got.Status != "completed" || got.Runs != runs || got.Node != "" {
				t.Errorf("kept %+v", got.ResponseHeader)
			}
		}
	})
}

// TestAResponseIsLeftToANodeThatJoinsLater: it joins after another node has asked which nodes have ended, and goes on
// with the response first.
func TestAResponseIsLeftToANodeThatJoinsLater(t *testing.T) {
	onNodes(t, func(t *testing.T, cluster *statetest.Cluster, a, b, _ *stage) {
		id := a.begin()
		kittest.Pass(time.Second)
		expel(t, cluster, "a")
		ended, err := b.store.Ended(t.Context(), work.Nodes)
		if err != nil {
			t.Fatal(err)
		}
		d := join(t, cluster, "d")
		if resumed, _ := d.resume(); resumed != 1 {
			t.Fatalf("%d responses go on", resumed)
		}
		kittest.Pass(time.Second)
		if resumed, failed, err := b.registry.Resume(t.Context(), ended, b.again); resumed+failed != 0 || err != nil {
			t.Errorf("%d resumed and %d failed that another node has begun: %v", resumed, failed, err)
		}
		kittest.Pass(time.Minute)
		if got := b.stored(id); got.Status != "completed" || got.Runs != 2 {
			t.Errorf("kept %+v", got.ResponseHeader)
		}
		d.leave()
	})
}

// TestARunThatWasTakenOverStoresNoEnd: the end is that of the node that goes on with the response.
func TestARunThatWasTakenOverStoresNoEnd(t *testing.T) {
	onNodes(t, func(t *testing.T, _ *statetest.Cluster, a, b, _ *stage) {
		id := a.begin()
		kittest.Pass(3 * time.Second)
		other := func(n state.Node) bool { return n == a.store.Node() }
		if resumed, _, err := b.registry.Resume(t.Context(), other, b.again); resumed != 1 || err != nil {
			t.Fatalf("%d responses go on: %v", resumed, err)
		}
		kittest.Pass(8 * time.Second)
		if a.engine.InFlight() != 0 || b.engine.InFlight() != 1 {
			t.Errorf("%d and %d runs", a.engine.InFlight(), b.engine.InFlight())
		}
		if got := b.stored(id); got.Status == "completed" || got.Node != b.store.Node() {
			t.Errorf("after the end of the first run: %+v", got.ResponseHeader)
		}
	})
}

// TestCancellingAForegroundResponseDoesNotWait: its client ends it by leaving.
func TestCancellingAForegroundResponseDoesNotWait(t *testing.T) {
	onNodes(t, func(t *testing.T, _ *statetest.Cluster, a, b, _ *stage) {
		err := work.PutResponse(t.Context(), a.store, work.StoredResponse{Body: []byte(`{"id":"resp_1"}`),
			ResponseHeader: work.ResponseHeader{ID: "resp_1", Owner: owner, Status: "in_progress"}})
		if err != nil {
			t.Fatal(err)
		}
		kittest.Pass(time.Second)
		for _, s := range []*stage{a, b} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			if s.registry.Cancel(ctx, "resp_1", owner) || ctx.Err() != nil {
				t.Errorf("it was waited for: %v", ctx.Err())
			}
			cancel()
		}
	})
}
