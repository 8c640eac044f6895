package state_test

import (
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"stagedoor/state"
	"stagedoor/state/identity"
	"stagedoor/state/journal"
	"stagedoor/state/schema"
	"stagedoor/state/statetest"
	"stagedoor/state/work"
)

// TestStateIsItsModel drives random commands, some of which refuse or panic half
// way or meet a store that refuses, beside a model that is two maps.
func TestStateIsItsModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		clock, store := newClock(), statetest.NewFaulty()
		s := open(t, store, clock.Now)
		defer s.Close()
		stateIsItsModel(t, rt, clock, store, s)
		sameAfterReload(t, s, store)
	})
}

// TestSeveralNodesAreOneModel does the same on three nodes that take turns at random. They hear nothing of each other
// until they need to know.
func TestSeveralNodesAreOneModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		clock, cluster := newClock(), statetest.NewCluster()
		cluster.Silence()
		var nodes []*state.State
		for _, name := range []string{"a", "b", "c"} {
			s, err := schema.Open(cluster.Join(name), clock.Now)
			if err != nil {
				rt.Fatal(err)
			}
			defer s.Close()
			nodes = append(nodes, s)
		}
		stateIsItsModel(t, rt, clock, statetest.NewFaulty(), nodes...)
		for _, s := range nodes {
			settle(t, s)
			sameAfterReload(t, s, cluster.Store())
		}
		sound(t, cluster.Store(), "written by several nodes")
	})
}

// settle returns when s has applied everything that was appended before.
func settle(t testing.TB, s *state.State) {
	t.Helper()
	must(t, s, func(*state.Tx) error { return nil })
}

// stateIsItsModel drives the nodes of one store. Only a command is sure to see what other nodes have done, so the reads
// of a step, and those before its command, come after a settle.
func stateIsItsModel(
	t *testing.T, rt *rapid.T, clock *statetest.Clock, store *statetest.Faulty, nodes ...*state.State,
) {
	keys, held := map[string]identity.Key{}, map[string]work.ResponseHeader{}
	node := func(rt *rapid.T) *state.State {
		if len(nodes) == 1 {
			return nodes[0]
		}
		return rapid.SampledFrom(nodes).Draw(rt, "node")
	}
	pool := rapid.IntRange(0, 5)
	stop := errors.New("refused half way")

	rt.Repeat(map[string]func(*rapid.T){
		"keys": func(rt *rapid.T) {
			var after map[string]identity.Key
			ends := []string{"keep", "keep", "refuse", "panic", "full"}
			if len(nodes) > 1 {
				ends = ends[:4] // store is not theirs
			}
			s, end := node(rt), rapid.SampledFrom(ends).Draw(rt, "end")
			// Drawn here: rapid's own panics must not reach a command.
			type step struct {
				key            int
				name           string
				rotate, remove bool
			}
			steps := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) step {
				return step{
					pool.Draw(rt, "key"),
					rapid.StringN(0, 3, -1).Draw(rt, "name"),
					rapid.Bool().Draw(rt, "rotate"),
					rapid.Bool().Draw(rt, "remove"),
				}
			}), 1, 4).Draw(rt, "steps")
			if end == "full" {
				store.Refuse(journal.ErrReadOnly)
			}
			_, err := state.Do(ctx, s, func(tx *state.Tx) (int, error) {
				after = maps.Clone(keys) // the command may be decided again
				for _, step := range steps {
					k := newKey(t, step.key)
					k.Name = step.name
					if step.rotate {
						k.Hash[1] ^= 0xff
					}
					_, there := after[k.ID]
					if there && step.remove {
						if err := identity.RemoveKey(tx, k.ID); err != nil {
							return 0, fmt.Errorf("remove: %w", err)
						}
						delete(after, k.ID)
						continue
					}
					if err := identity.PutKey(tx, k); err != nil {
						return 0, fmt.Errorf("put: %w", err)
					}
					after[k.ID] = k
				}
				switch end {
				case "refuse":
					return 0, stop
				case "panic":
					panic(stop)
				}
				return 0, nil
			})
			store.Refuse(nil)
			var panicked *state.PanicError
			switch {
			case end == "keep" && err == nil:
				keys = after
			case end == "refuse" && errors.Is(err, stop):
			case end == "panic" && errors.As(err, &panicked) && panicked.Value == any(stop):
			case end == "full" && errors.Is(err, state.ErrUnavailable):
			default:
				rt.Fatalf("%s: got %v", end, err)
			}
		},
		"put": func(rt *rapid.T) {
			s := node(rt)
			settle(t, s)
			r := newResponse(pool.Draw(rt, "response"),
				rapid.SampledFrom([]string{"queued", "completed"}).Draw(rt, "status"))
			r.Expires = clock.Now().Add(time.Duration(rapid.IntRange(1, 200).Draw(rt, "ttl")) * time.Second)
			_, there := held[r.ID]
			if err := work.PutResponse(ctx, s, r); (err == nil) == there {
				rt.Fatalf("put: got %v, there %v", err, there)
			}
			if !there {
				held[r.ID] = r.ResponseHeader
			}
		},
		"update": func(rt *rapid.T) {
			s := node(rt)
			settle(t, s)
			id := newResponse(pool.Draw(rt, "response"), "").ID
			h, there := held[id]
			ok := there && !h.Finished() && clock.Now().Before(h.Expires)
			if _, err := work.UpdateResponse(ctx, s, id, me,
				work.ResponseUpdate{Status: "failed"}); (err == nil) != ok {
				rt.Fatalf("update: got %v, want ok %v", err, ok)
			}
			if ok {
				h.Status = "failed"
				held[id] = h
			}
		},
		"delete": func(rt *rapid.T) {
			s := node(rt)
			settle(t, s)
			id := newResponse(pool.Draw(rt, "response"), "").ID
			h, there := held[id]
			ok := there && clock.Now().Before(h.Expires)
			if err := work.DeleteResponse(ctx, s, id, me); (err == nil) != ok {
				rt.Fatalf("delete: got %v, want ok %v", err, ok)
			}
			if ok {
				delete(held, id)
			}
		},
		"sweep": func(rt *rapid.T) {
			clock.Add(time.Duration(rapid.IntRange(0, 100).Draw(rt, "seconds")) * time.Second)
			want := 0
			for id, h := range held {
				if !clock.Now().Before(h.Expires) {
					delete(held, id)
					want++
				}
			}
			s := node(rt)
			settle(t, s)
			if n, err := s.Sweep(ctx, 0); err != nil || n != want {
				rt.Fatalf("sweep: got %d, %v, want %d", n, err, want)
			}
		},
		"": func(rt *rapid.T) {
			s := node(rt)
			settle(t, s)
			listed := identity.ListKeys(s.View(), identity.KeyFilter{})
			if len(listed) != len(keys) {
				rt.Fatalf("keys: got %d, want %d", len(listed), len(keys))
			}
			for _, k := range listed {
				want := keys[k.ID]
				found, ok := identity.AccessOf(s).Key(want.Hash)
				if k.Name != want.Name || !ok || found.ID != k.ID || found.Name != want.Name {
					rt.Fatalf("key %s: got %v and %v, %v, want %v", k.ID, k, found, ok, want)
				}
			}
			live := 0
			for id, want := range held {
				if !clock.Now().Before(want.Expires) {
					continue
				}
				live++
				if got, err := work.ReadResponse(ctx, s, id, me); err != nil || got.Status != want.Status {
					rt.Fatalf("response %s: got %v, %v, want %v", id, got.Status, err, want.Status)
				}
			}
			if n := len(work.ListResponses(s.View(), work.ResponseFilter{})); n != live {
				rt.Fatalf("responses: got %d, want %d", n, live)
			}
			if n := work.StatsOf(s).Responses; n != len(held) {
				rt.Fatalf("kept: got %d, want %d", n, len(held))
			}
		},
	})

}

// TestManyWritersAndReaders is for the race detector.
func TestManyWritersAndReaders(t *testing.T) {
	s := newState(t)
	var writers, readers sync.WaitGroup
	done := make(chan struct{})
	for w := range 4 {
		writers.Go(func() {
			for i := range 50 {
				k := newKey(t, 100*w+i)
				r := newResponse(100*w+i, "in_progress")
				if err := errors.Join(identity.CreateKey(ctx, s, k), work.PutResponse(ctx, s, r)); err != nil {
					t.Error(err)
				}
				_, updateErr := work.UpdateResponse(ctx, s,
					r.ID,
					me,
					work.ResponseUpdate{Status: "completed", Events: []byte("e")},
				)
				if got, ok := identity.AccessOf(s).Key(k.Hash); !ok || got.ID != k.ID || updateErr != nil {
					t.Errorf("own write: got %v, %v", ok, updateErr)
				}
				if i%2 == 0 {
					if err := errors.Join(identity.DeleteKey(ctx, s, k.ID),
						work.DeleteResponse(ctx, s, r.ID, me)); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				case <-identity.AccessOf(s).WatchAccess():
				default:
				}
				for _, k := range identity.ListKeys(s.View(), identity.KeyFilter{Live: true}) {
					identity.AccessOf(s).Key(k.Hash)
				}
				for _, h := range work.ListResponses(s.View(), work.ResponseFilter{}) {
					if _, err := work.ReadResponse(ctx, s, h.ID, me); err != nil && !errors.Is(err, state.ErrNotFound) {
						t.Error(err)
					}
				}
				s.Stats()
			}
		})
	}
	writers.Wait()
	close(done)
	readers.Wait()
	if n := len(identity.ListKeys(s.View(), identity.KeyFilter{})); n != 100 {
		t.Errorf("keys: got %d, want 100", n)
	}
}
