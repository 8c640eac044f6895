package state_test

import (
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"stagedoor/state"
	"stagedoor/state/journal"
	"stagedoor/state/statetest"
)

func outbox(s *state.State, webhook string) (list []state.Delivery) {
	s.View().Deliveries(webhook, func(d *state.Delivery) bool { list = append(list, *d); return true })
	return list
}

// The end of a job and what is to be told of it are one commit, once.
func TestTheEndOfAVideoIsAnnouncedOnceToWhoWantsIt(t *testing.T) {
	for _, c := range []struct {
		name    string
		webhook state.Webhook
		phase   state.VideoPhase
		want    string
	}{
		{"completed, everything of everybody", state.Webhook{ID: "wh_1"}, state.VideoCompleted, state.EventVideoCompleted},
		{"failed, everything of everybody", state.Webhook{ID: "wh_1"}, state.VideoFailed, state.EventVideoFailed},
		{"the owner's", state.Webhook{ID: "wh_1", Owner: me}, state.VideoFailed, state.EventVideoFailed},
		{"somebody else's", state.Webhook{ID: "wh_1", Owner: other}, state.VideoFailed, ""},
		{"wanted", state.Webhook{ID: "wh_1", Types: []string{state.EventVideoFailed}}, state.VideoFailed, state.EventVideoFailed},
		{"unwanted", state.Webhook{ID: "wh_1", Types: []string{state.EventVideoFailed}}, state.VideoCompleted, ""},
		{"not ended", state.Webhook{ID: "wh_1"}, state.VideoFinalizing, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			store := journal.NewMemory()
			s := open(t, store, newClock().Now)
			s.SetWebhooks([]state.Webhook{c.webhook})
			v := putVideo(t, s, newVideo(1, state.VideoQueued))
			v.Phase = c.phase
			v = putVideo(t, s, v)
			v.Deleted = start.Add(time.Hour)
			if v.Final() {
				putVideo(t, s, v) // changes nothing about the end
			}
			s.Close()
			s = open(t, store, newClock().Now)
			got := outbox(s, "wh_1")
			if c.want == "" {
				if len(got) != 0 {
					t.Errorf("%+v", got)
				}
				return
			}
			if len(got) != 1 || got[0].Type != c.want || got[0].Subject != v.ID || got[0].Tries != 0 {
				t.Errorf("%+v", got)
			}
		})
	}
}

// Whose client was told that there is no job has none to be told of.
func TestARefusedVideoIsNotAnnounced(t *testing.T) {
	s := open(t, journal.NewMemory(), newClock().Now)
	s.SetWebhooks([]state.Webhook{{ID: "wh_1"}})
	v := putVideo(t, s, newVideo(1, state.VideoSubmitting))
	v.Phase, v.Deleted = state.VideoFinalizing, start
	v = putVideo(t, s, v)
	v.Phase = state.VideoFailed
	putVideo(t, s, v)
	if got := outbox(s, "wh_1"); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}

func TestDeliveriesAreInTheOrderInWhichTheyAreDue(t *testing.T) {
	clock := newClock()
	s := open(t, journal.NewMemory(), clock.Now)
	s.SetWebhooks([]state.Webhook{{ID: "wh_1"}, {ID: "wh_12"}})
	for i := range 3 {
		v := newVideo(i, state.VideoQueued)
		putVideo(t, s, v)
		v.Phase = state.VideoCompleted
		putVideo(t, s, v)
	}
	first := outbox(s, "wh_1")
	if len(first) != 3 || len(outbox(s, "wh_12")) != 3 {
		t.Fatalf("%d and %d deliveries", len(first), len(outbox(s, "wh_12")))
	}
	_, more := s.WatchDeliveries()
	if err := s.PostponeDelivery(ctx, first[0].ID, first[0].Due.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	select {
	case <-more:
	default:
		t.Error("watchers were not woken")
	}
	if got := outbox(s, "wh_1"); got[2].ID != first[0].ID || got[2].Tries != 1 {
		t.Errorf("%+v", got)
	}
	for range 2 {
		if err := s.RemoveDelivery(ctx, first[0].ID); err != nil {
			t.Error(err)
		}
	}
	if err := s.PostponeDelivery(ctx, first[0].ID, start); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	clock.Add(state.DeliveryTTL + 2*time.Hour)
	if _, err := s.Sweep(ctx, 0); err != nil {
		t.Fatal(err)
	}
	if got := outbox(s, "wh_1"); len(got) != 0 {
		t.Errorf("left after their time: %+v", got)
	}
}

// endVideos ends jobs of an owner, numbered from first.
func endVideos(t *testing.T, s *state.State, owner state.Owner, first, n int) {
	t.Helper()
	for i := first; i < first+n; i++ {
		v := newVideo(i, state.VideoCompleted)
		v.Owner = owner
		putVideo(t, s, v)
	}
}

// waitingOf returns how many deliveries of each owner wait at an endpoint.
func waitingOf(s *state.State, webhook string) map[state.Owner]int {
	counts := make(map[state.Owner]int)
	for _, d := range outbox(s, webhook) {
		counts[d.Owner]++
	}
	return counts
}

// TestDeliveriesThatWaitAreBoundedInAllAndPerOwner: an owner alone has half of the places, a
// second one half of the rest. A new delivery beyond that replaces the oldest one of its owner,
// which is reported once that is durable. The deliveries of other owners stay, and all of it is
// as before after a restart.
func TestDeliveriesThatWaitAreBoundedInAllAndPerOwner(t *testing.T) {
	const places = 16
	store, clock := journal.NewMemory(), newClock()
	restart := func() (*state.State, *[]string) {
		s := open(t, store, clock.Now, state.MaxDeliveries(places))
		s.SetWebhooks([]state.Webhook{{ID: "wh_1"}})
		surplus := new([]string)
		s.OnSurplusDelivery(func(d *state.Delivery) { *surplus = append(*surplus, d.Subject) })
		return s, surplus
	}
	expect := func(s *state.State, want map[state.Owner]int) {
		t.Helper()
		if got := waitingOf(s, "wh_1"); !maps.Equal(got, want) {
			t.Errorf("%v wait, want %v", got, want)
		}
		sum := 0
		for owner, n := range want {
			sum += n
			if held := s.WaitingDeliveries().Held(string(owner)); held != int64(n) {
				t.Errorf("the pool has %d of %s, want %d", held, owner, n)
			}
		}
		if used := s.WaitingDeliveries().Used(); used != int64(sum) {
			t.Errorf("%d places are in use, want %d", used, sum)
		}
	}
	s, surplus := restart()
	endVideos(t, s, "user:small", 0, 1)
	endVideos(t, s, "user:large", 100, 30)
	expect(s, map[state.Owner]int{"user:small": 1, "user:large": 7})
	if len(*surplus) != 23 || (*surplus)[0] != newVideo(100, "").ID || (*surplus)[22] != newVideo(122, "").ID {
		t.Errorf("%v were reported, want the oldest 23 of the large owner", *surplus)
	}
	s.Close()
	s, surplus = restart()
	expect(s, map[state.Owner]int{"user:small": 1, "user:large": 7})
	endVideos(t, s, "user:large", 200, 1)
	endVideos(t, s, "user:small", 300, 2)
	expect(s, map[state.Owner]int{"user:small": 3, "user:large": 7})
	if len(*surplus) != 1 {
		t.Errorf("%v were reported after the restart, want one of the large owner", *surplus)
	}
	for _, d := range outbox(s, "wh_1") {
		if err := s.RemoveDelivery(ctx, d.ID); err != nil {
			t.Fatal(err)
		}
	}
	expect(s, map[state.Owner]int{})
}

// TestAnOwnerWithoutDeliveriesFindsAPlaceInAFullPool: a full pool gives up the oldest delivery of
// the owner with most, never one of an owner with few.
func TestAnOwnerWithoutDeliveriesFindsAPlaceInAFullPool(t *testing.T) {
	s := open(t, journal.NewMemory(), newClock().Now, state.MaxDeliveries(4))
	s.SetWebhooks([]state.Webhook{{ID: "wh_1"}})
	for i, owner := range []state.Owner{"user:a", "user:b", "user:c", "user:d", "user:e"} {
		endVideos(t, s, owner, 100*i, 3)
	}
	got := waitingOf(s, "wh_1")
	if got["user:e"] != 1 || len(outbox(s, "wh_1")) != 4 {
		t.Errorf("%v wait, want four, one of them of the last owner", got)
	}
	if stats := s.WaitingDeliveries().Stats(); stats.Full == 0 || stats.Shares == 0 || stats.Full+stats.Shares != 11 {
		t.Errorf("%d deliveries were given up in a full pool and %d beyond a share, want 11", stats.Full, stats.Shares)
	}
}

// TestADeliveryThatIsNotDurableTakesNoPlace: a commit that fails gives the place back, keeps what
// it would have replaced and reports nothing.
func TestADeliveryThatIsNotDurableTakesNoPlace(t *testing.T) {
	store := statetest.NewFaulty()
	s := open(t, store, newClock().Now, state.MaxDeliveries(4))
	s.SetWebhooks([]state.Webhook{{ID: "wh_1"}})
	s.OnSurplusDelivery(func(d *state.Delivery) { t.Errorf("%s is reported as given up", d.ID) })
	for waiting := range int64(3) { // the third one would replace a delivery
		store.Before(func([]journal.Batch) error { return fmt.Errorf("%w: no space", journal.ErrReadOnly) })
		v := newVideo(int(9+waiting), state.VideoCompleted)
		v.Owner = me
		_, err := state.Do(ctx, s, func(tx *state.Tx) (state.Video, error) { return tx.PutVideo(v) })
		if err == nil {
			t.Fatal("the commit did not fail")
		}
		if held := s.WaitingDeliveries().Held(string(me)); held != waiting || len(outbox(s, "wh_1")) != int(waiting) {
			t.Errorf("%d places are in use and %d deliveries wait, want %d", held, len(outbox(s, "wh_1")), waiting)
		}
		if store.Before(nil); waiting < 2 {
			endVideos(t, s, me, int(waiting), 1)
		}
	}
}
