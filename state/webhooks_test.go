package state_test

import (
	"errors"
	"testing"
	"time"

	"stagedoor/state"
	"stagedoor/state/journal"
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
