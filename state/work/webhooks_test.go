package work_test

import (
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"stagedoor/state"
	"stagedoor/state/journal"
	"stagedoor/state/statetest"
	"stagedoor/state/work"
)

func outbox(s *state.State, webhook string) (list []work.Delivery) {
	work.Deliveries(s.View(), webhook, func(d *work.Delivery) bool { list = append(list, *d); return true })
	return list
}

// The end of a job and its deliveries are one commit.
func TestTheEndOfAVideoIsAnnouncedOnceToItsWebhooks(t *testing.T) {
	for _, c := range []struct {
		name    string
		webhook work.Webhook
		phase   work.VideoPhase
		want    string
	}{
		{"completed, all events of all owners", work.Webhook{ID: "wh_1"}, work.VideoCompleted,
			work.EventVideoCompleted},
		{"failed, all events of all owners", work.Webhook{ID: "wh_1"}, work.VideoFailed, work.EventVideoFailed},
		{"the owner's", work.Webhook{ID: "wh_1", Owner: me}, work.VideoFailed, work.EventVideoFailed},
		{"another owner's", work.Webhook{ID: "wh_1", Owner: other}, work.VideoFailed, ""},
		{"wanted", work.Webhook{ID: "wh_1", Types: []string{work.EventVideoFailed}}, work.VideoFailed,
			work.EventVideoFailed},
		{"unwanted", work.Webhook{ID: "wh_1", Types: []string{work.EventVideoFailed}}, work.VideoCompleted, ""},
		{"of alerts", work.Webhook{ID: "wh_1", Alerts: true}, work.VideoFailed, ""},
		{"not ended", work.Webhook{ID: "wh_1"}, work.VideoFinalizing, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			store := journal.NewMemory()
			s := open(t, store, newClock().Now)
			work.SetWebhooks(s, []work.Webhook{c.webhook})
			v := putVideo(t, s, newVideo(1, work.VideoQueued))
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

// The client of a refused job got an error, so there is no event.
func TestARefusedVideoIsNotAnnounced(t *testing.T) {
	s := open(t, journal.NewMemory(), newClock().Now)
	work.SetWebhooks(s, []work.Webhook{{ID: "wh_1"}})
	v := putVideo(t, s, newVideo(1, work.VideoSubmitting))
	v.Phase, v.Deleted = work.VideoFinalizing, start
	v = putVideo(t, s, v)
	v.Phase = work.VideoFailed
	putVideo(t, s, v)
	if got := outbox(s, "wh_1"); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}

func TestDeliveriesAreInTheOrderInWhichTheyAreDue(t *testing.T) {
	clock := newClock()
	s := open(t, journal.NewMemory(), clock.Now)
	work.SetWebhooks(s, []work.Webhook{{ID: "wh_1"}, {ID: "wh_12"}})
	for i := range 3 {
		v := newVideo(i, work.VideoQueued)
		putVideo(t, s, v)
		v.Phase = work.VideoCompleted
		putVideo(t, s, v)
	}
	first := outbox(s, "wh_1")
	if len(first) != 3 || len(outbox(s, "wh_12")) != 3 {
		t.Fatalf("%d and %d deliveries", len(first), len(outbox(s, "wh_12")))
	}
	_, more := work.WatchDeliveries(s)
	if err := work.PostponeDelivery(ctx, s, first[0].ID, first[0].Due.Add(time.Hour)); err != nil {
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
		if err := work.RemoveDelivery(ctx, s, first[0].ID); err != nil {
			t.Error(err)
		}
	}
	if err := work.PostponeDelivery(ctx, s, first[0].ID, start); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	clock.Add(work.DeliveryTTL + 2*time.Hour)
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
		v := newVideo(i, work.VideoCompleted)
		v.Owner = owner
		putVideo(t, s, v)
	}
}

// waitingOf returns the number of waiting deliveries of each owner at an endpoint.
func waitingOf(s *state.State, webhook string) map[state.Owner]int {
	counts := make(map[state.Owner]int)
	for _, d := range outbox(s, webhook) {
		counts[d.Owner]++
	}
	return counts
}

// A single owner has half of the places, and a second one half of the rest. A new delivery beyond
// that replaces the oldest one of its owner, which is reported once the removal is durable.
// Deliveries of other owners stay. All of this is the same after a restart.
func TestDeliveriesThatWaitAreBoundedInAllAndPerOwner(t *testing.T) {
	const places = 16
	store, clock := journal.NewMemory(), newClock()
	restart := func() (*state.State, *[]string) {
		s := open(t, store, clock.Now, work.MaxDeliveries(places))
		work.SetWebhooks(s, []work.Webhook{{ID: "wh_1"}})
		surplus := new([]string)
		work.OnSurplusDelivery(s, func(d *work.Delivery) { *surplus = append(*surplus, d.Subject) })
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
			if held := work.WaitingDeliveries(s).Held(string(owner)); held != int64(n) {
				t.Errorf("the pool has %d of %s, want %d", held, owner, n)
			}
		}
		if used := work.WaitingDeliveries(s).Used(); used != int64(sum) {
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
		if err := work.RemoveDelivery(ctx, s, d.ID); err != nil {
			t.Fatal(err)
		}
	}
	expect(s, map[state.Owner]int{})
}

// A full pool drops the oldest delivery of the owner with most, never one of an owner with few.
func TestAnOwnerWithoutDeliveriesFindsAPlaceInAFullPool(t *testing.T) {
	s := open(t, journal.NewMemory(), newClock().Now, work.MaxDeliveries(4))
	work.SetWebhooks(s, []work.Webhook{{ID: "wh_1"}})
	for i, owner := range []state.Owner{"user:a", "user:b", "user:c", "user:d", "user:e"} {
		endVideos(t, s, owner, 100*i, 3)
	}
	got := waitingOf(s, "wh_1")
	if got["user:e"] != 1 || len(outbox(s, "wh_1")) != 4 {
		t.Errorf("%v wait, want four, one of them of the last owner", got)
	}
	if stats := work.WaitingDeliveries(s).Stats(); stats.Full == 0 || stats.Shares == 0 ||
		stats.Full+stats.Shares != 11 {
		t.Errorf("%d deliveries were given up in a full pool and %d beyond a share, want 11", stats.Full, stats.Shares)
	}
}

// A failed commit gives the place back, keeps the delivery that it would have replaced, and reports
// nothing.
func TestADeliveryThatIsNotDurableTakesNoPlace(t *testing.T) {
	store := statetest.NewFaulty()
	s := open(t, store, newClock().Now, work.MaxDeliveries(4))
	work.SetWebhooks(s, []work.Webhook{{ID: "wh_1"}})
	work.OnSurplusDelivery(s, func(d *work.Delivery) { t.Errorf("%s is reported as given up", d.ID) })
	for waiting := range int64(3) { // the third one would replace a delivery
		store.Before(func([]journal.Batch) error { return fmt.Errorf("%w: no space", journal.ErrReadOnly) })
		v := newVideo(int(9+waiting), work.VideoCompleted)
		v.Owner = me
		_, err := state.Do(ctx, s, func(tx *state.Tx) (work.Video, error) { return work.PutVideo(tx, v) })
		if err == nil {
			t.Fatal("the commit did not fail")
		}
		if held := work.WaitingDeliveries(s).Held(string(me)); held != waiting ||
			len(outbox(s, "wh_1")) != int(waiting) {
			t.Errorf("%d places are in use and %d deliveries wait, want %d", held, len(outbox(s, "wh_1")), waiting)
		}
		if store.Before(nil); waiting < 2 {
			endVideos(t, s, me, int(waiting), 1)
		}
	}
}
