package work_test

import (
	"errors"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"stagedoor/state"
	"stagedoor/state/journal"
	"stagedoor/state/schema"
	"stagedoor/state/statetest"
	"stagedoor/state/work"
)

// The counts equal the stored responses through generated changes and a restart, and no response
// exceeds the quota.
func TestStoredResponsesStayWithinTheQuotaOfTheirOwner(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		clock, store := newClock(), journal.NewMemory()
		s, err := schema.Open(statetest.DecideTwice(store), clock.Now)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { s.Close() }()
		quota := work.Quota{
			Responses: rapid.IntRange(0, 4).Draw(t, "responses"),
			Bytes:     rapid.Int64Range(0, 200).Draw(t, "bytes"),
		}
		work.SetResponseQuota(s, quota)
		var all []work.StoredResponse
		for n := range rapid.IntRange(1, 25).Draw(t, "steps") {
			switch step := rapid.SampledFrom([]string{"put", "put", "grow", "delete", "restart"}).Draw(t, "step"); {
			case step == "put":
				r := newResponse(n+1, "in_progress")
				r.Owner = rapid.SampledFrom([]state.Owner{me, other}).Draw(t, "owner")
				before := work.KeptResponses(s, r.Owner)
				size := int64(len(r.Body) + len(r.Input))
				fits := (quota.Responses == 0 || before.Responses < quota.Responses) &&
					(quota.Bytes == 0 || before.Bytes+size <= quota.Bytes)
				err := work.PutResponse(ctx, s, r)
				var over *work.QuotaError
				if fits != (err == nil) ||
					err != nil && (!errors.As(err, &over) || over.Kept != before || over.Quota != quota) {
					t.Fatalf("%d bytes beside %+v of %+v: %v", size, before, quota, err)
				}
				if err == nil {
					all = append(all, r)
				}
			case step == "restart":
				s.Close()
				if s, err = schema.Open(statetest.DecideTwice(store), clock.Now); err != nil {
					t.Fatal(err)
				}
				work.SetResponseQuota(s, quota)
			case len(all) == 0:
			case step == "grow":
				r := rapid.SampledFrom(all).Draw(t, "grown")
				_, err := work.UpdateResponse(ctx, s,
					r.ID,
					r.Owner,
					work.ResponseUpdate{
						Body:      []byte(`{"longer":"than it was before it grew by that much"}`),
						Events:    []byte("x"),
						LastEvent: int64(n + 1),
					},
				)
				if err != nil && !errors.Is(err, state.ErrNotFound) {
					t.Fatal(err)
				}
			case step == "delete":
				r := rapid.SampledFrom(all).Draw(t, "deleted")
				if err := work.DeleteResponse(ctx, s, r.ID, r.Owner); err != nil && !errors.Is(err, state.ErrNotFound) {
					t.Fatal(err)
				}
			}
			for _, owner := range []state.Owner{me, other} {
				var want work.Kept
				for _, h := range work.LatestResponses(s.View(), owner, -1) {
					want.Responses++
					want.Bytes += h.BodySize + h.InputSize + h.RequestSize + h.EventSize
				}
				if got := work.KeptResponses(s, owner); got != want {
					t.Fatalf("%s keeps %+v, want %+v", owner, got, want)
				}
			}
		}
	})
}

// Responses that are committed together are counted one by one.
func TestQuotaHoldsForResponsesThatComeAtOnce(t *testing.T) {
	s := open(t, journal.NewMemory(), newClock().Now)
	work.SetResponseQuota(s, work.Quota{Responses: 5})
	var wg sync.WaitGroup
	for n := range 64 {
		wg.Go(func() {
			var over *work.QuotaError
			if err := work.PutResponse(ctx, s, newResponse(n+1, "completed")); err != nil && !errors.As(err, &over) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := work.KeptResponses(s, me).Responses; got != 5 {
		t.Errorf("%d are kept", got)
	}
	if stats := work.StatsOf(s); stats.ResponsesRefused != 59 || stats.ResponseBytes == 0 {
		t.Errorf("stats %+v", stats)
	}
}
