package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"stagedoor/state"
	"stagedoor/state/journal"
	"stagedoor/state/schema"
	"stagedoor/state/work"
)

// TestResponsesThatLeaveByAgeOrNumberAreDeletedAtTheirProviders follows deletions through refusals and a restart.
func TestResponsesThatLeaveByAgeOrNumberAreDeletedAtTheirProviders(t *testing.T) {
	var mu sync.Mutex
	now := time.Now()
	clock := func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	pass := func(d time.Duration) { mu.Lock(); defer mu.Unlock(); now = now.Add(d) }
	store := journal.NewMemory()
	s, err := schema.Open(store, clock)
	if err != nil {
		t.Fatal(err)
	}
	put := func(id, provider string, owner state.Owner) {
		t.Helper()
		err := work.PutResponse(t.Context(), s, work.StoredResponse{ResponseHeader: work.ResponseHeader{
			ID: id, Owner: owner, Status: "completed", Provider: provider}, Body: []byte(`{}`)})
		if err != nil {
			t.Fatal(err)
		}
	}
	for n := range 200 {
		put(fmt.Sprintf("resp_%03d", n), "vendor", "user:many")
	}
	put("resp_few", "vendor", "user:few")
	put("resp_here", "", "user:few") // no provider has it
	put("resp_deleted", "vendor", "user:few")
	if err := work.DeleteResponse(t.Context(), s, "resp_deleted", "user:few"); err != nil {
		t.Fatal(err)
	}
	asked, order := map[string]int{}, []string{}
	broken := errors.New("the provider cannot be reached")
	round := func(answer error) {
		t.Helper()
		remove := func(_ context.Context, d work.UpstreamDeletion) error {
			mu.Lock()
			defer mu.Unlock()
			if d.Provider != "vendor" {
				t.Errorf("%s was asked for %s", d.Provider, d.Response)
			}
			asked[d.Response]++
			order = append(order, d.Response)
			return answer
		}
		deleteUpstream(t.Context(), s, remove, slog.New(slog.NewTextHandler(t.Output(), nil)))
	}
	sweep := func() {
		t.Helper()
		if _, err := s.Sweep(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
	}
	sweep()
	if round(nil); len(asked) != 0 {
		t.Errorf("deleted before their time: %v", asked)
	}
	pass(work.ResponseTTL)
	sweep()
	round(broken)
	if len(asked) != 201 || asked["resp_few"] != 1 || asked["resp_here"]+asked["resp_deleted"] != 0 {
		t.Errorf("%d responses were asked for, resp_few %d times", len(asked), asked["resp_few"])
	}
	if early := order[:deletionsBatch]; !slices.Contains(early, "resp_few") {
		t.Error("an owner with one response waits behind one with 200")
	}
	if round(nil); len(order) != 201 {
		t.Errorf("%d attempts without a wait", len(order)-201)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = schema.Open(store, clock); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	pass(time.Minute)
	if round(nil); len(order) != 402 {
		t.Errorf("%d attempts in all after the restart, want 402", len(order))
	}
	pass(time.Hour)
	if round(nil); len(order) != 402 || !work.KnowsResponse(s.View(), "resp_few") {
		t.Errorf("%d attempts in all after the last one succeeded, want 402", len(order))
	}
}

// TestResponsesThatLeaveByNumberAreDeletedAtTheirProviders evicts responses long before their time.
func TestResponsesThatLeaveByNumberAreDeletedAtTheirProviders(t *testing.T) {
	s, err := schema.Open(journal.NewMemory(), time.Now, work.MaxResponses(3))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for n := range 5 {
		err := work.PutResponse(t.Context(), s, work.StoredResponse{ResponseHeader: work.ResponseHeader{
			ID: fmt.Sprint("resp_", n), Owner: "user:1", Status: "completed", Provider: "vendor"}, Body: []byte(`{}`)})
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Sweep(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	want := []work.UpstreamDeletion{
		{Response: "resp_0", Provider: "vendor", Owner: "user:1"},
		{Response: "resp_1", Provider: "vendor", Owner: "user:1"},
	}
	if got := work.ListUpstreamDeletions(s.View(), 9); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestDeletionsThatFailAreGivenUp: the attempts become rarer and end with the memory of the id.
func TestDeletionsThatFailAreGivenUp(t *testing.T) {
	now := time.Now()
	s, err := schema.Open(journal.NewMemory(), func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	err = work.PutResponse(t.Context(), s, work.StoredResponse{ResponseHeader: work.ResponseHeader{
		ID: "resp_1", Owner: "user:1", Status: "completed", Provider: "vendor"}, Body: []byte(`{}`)})
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(work.ResponseTTL)
	if _, err := s.Sweep(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	attempts, givenUp := 0, false
	for range 2 * 30 * 24 * 60 {
		for _, d := range work.ListUpstreamDeletions(s.View(), 9) {
			attempts++
			if givenUp, err = work.EndUpstreamDeletion(t.Context(), s, d, true); err != nil {
				t.Fatal(err)
			}
		}
		now = now.Add(time.Minute)
	}
	if attempts < 30 || attempts > 50 || !givenUp {
		t.Errorf("%d attempts, given up: %v", attempts, givenUp)
	}
	if n := work.StatsOf(s).DeletionsGivenUp; n != 1 {
		t.Errorf("%d deletions are counted as given up, want 1", n)
	}
}

// TestVideosOfAnErasedUserAreDeletedAtTheirProviders also when the provider refuses at first and the gateway restarts.
func TestVideosOfAnErasedUserAreDeletedAtTheirProviders(t *testing.T) {
	now, store := time.Now(), journal.NewMemory()
	clock := func() time.Time { return now }
	s, err := schema.Open(store, clock)
	if err != nil {
		t.Fatal(err)
	}
	for n, upstream := range []string{"up_0", "up_1", ""} { // the provider does not have the last one
		owner := state.Owner("user:gone")
		if n == 1 {
			owner = "user:other"
		}
		v := work.Video{ID: fmt.Sprint("video_", n), Owner: owner, Prompt: "a cat", Provider: "vendor",
			UpstreamID: upstream, Phase: work.VideoCompleted, Created: now, Until: now.Add(time.Hour)}
		if _, err := state.Do(t.Context(), s, func(tx *state.Tx) (work.Video, error) {
			return work.PutVideo(tx, v)
		}); err != nil {
			t.Fatal(err)
		}
	}
	var asked []string
	round := func(answer error) {
		remove := func(_ context.Context, v *work.Video) error {
			if v.Provider != "vendor" || v.Owner != "user:gone" {
				t.Errorf("%s of %s was asked for", v.ID, v.Owner)
			}
			asked = append(asked, v.UpstreamID)
			return answer
		}
		deleteVideos(t.Context(), s, remove, slog.New(slog.NewTextHandler(t.Output(), nil)))
	}
	if round(nil); asked != nil {
		t.Errorf("deleted before the erasure: %v", asked)
	}
	if _, err := work.EraseOwner(t.Context(), s, "user:gone"); err != nil {
		t.Fatal(err)
	}
	round(errors.New("the provider cannot be reached"))
	now = now.Add(time.Hour)
	s.Close()
	if s, err = schema.Open(store, clock); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Sweep(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if v, ok := work.FindAnyVideo(s.View(), "video_0"); !ok || v.Prompt != "" {
		t.Errorf("got %+v, %t, want the record without its prompt", v, ok)
	}
	round(nil)
	round(nil)
	if !slices.Equal(asked, []string{"up_0", "up_0"}) {
		t.Errorf("asked for %v", asked)
	}
	now = now.Add(time.Second)
	if _, err := s.Sweep(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if v, ok := work.FindAnyVideo(s.View(), "video_0"); ok {
		t.Errorf("the record stays after the deletion: %+v", v)
	}
}

// TestAProviderThatHangsDelaysOneKindOfDeletionsOnly lets one round wait for ever.
func TestAProviderThatHangsDelaysOneKindOfDeletionsOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		rounds := 0
		time.AfterFunc(10*deletionsEvery+time.Second, cancel)
		repeatApart(ctx, deletionsEvery, func() { <-ctx.Done() }, func() { rounds++ })
		if rounds != 10 {
			t.Errorf("%d rounds beside one that hangs, want 10", rounds)
		}
	})
}

// TestAVideoIsNeverForgottenWithoutAnAttempt follows a gateway that was off for longer than the attempts last.
func TestAVideoIsNeverForgottenWithoutAnAttempt(t *testing.T) {
	now := time.Now()
	s, err := schema.Open(journal.NewMemory(), func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	v := work.Video{ID: "video_1", Owner: "user:gone", Provider: "vendor", UpstreamID: "up_1",
		Phase: work.VideoCompleted, Created: now, Completed: now, Until: now.Add(time.Hour)}
	if _, err := state.Do(t.Context(), s, func(tx *state.Tx) (work.Video, error) {
		return work.PutVideo(tx, v)
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := work.EraseOwner(t.Context(), s, "user:gone"); err != nil {
		t.Fatal(err)
	}
	now = now.AddDate(0, 0, 30)
	sweep := func() {
		t.Helper()
		if _, err := s.Sweep(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
	}
	sweep()
	var log strings.Builder
	attempts := 0
	for range 2 {
		deleteVideos(t.Context(), s, func(context.Context, *work.Video) error {
			attempts++
			return errors.New("the provider cannot be reached")
		}, slog.New(slog.NewTextHandler(&log, nil)))
	}
	if attempts != 1 || work.StatsOf(s).VideosGivenUp != 1 || !strings.Contains(log.String(), "upstream_id=up_1") {
		t.Errorf("%d attempts, %d counted as given up, log %q", attempts, work.StatsOf(s).VideosGivenUp, log.String())
	}
	sweep()
	if v, ok := work.FindAnyVideo(s.View(), "video_1"); ok {
		t.Errorf("the record stays after the last attempt: %+v", v)
	}
}
