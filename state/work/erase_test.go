package work_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"stagedoor/state"
	"stagedoor/state/journal"
	"stagedoor/state/work"
)

func TestErasingAnOwnerLeavesNothingButWhatIsAtWork(t *testing.T) {
	store, clock := journal.NewMemory(), newClock()
	s := open(t, store, clock.Now)
	for n := range 150 { // more than one commit erases
		r := newResponse(n, "completed")
		if n == 149 {
			r.Status = "in_progress"
		}
		if err := work.PutResponse(ctx, s, r); err != nil {
			t.Fatal(err)
		}
	}
	foreign := newResponse(200, "completed")
	foreign.Owner = other
	if err := work.PutResponse(ctx, s, foreign); err != nil {
		t.Fatal(err)
	}
	conversation(t, s, "item_1", "item_2")
	putReply(t, s, replyOf(me, "mine"), []byte("a reply"))
	putReply(t, s, replyOf(other, "theirs"), []byte("a reply"))
	done, busy := newVideo(1, work.VideoFailed), newVideo(2, work.VideoAccepted)
	putVideo(t, s, done)
	putVideo(t, s, busy)

	for range 2 { // again changes nothing
		if left, err := work.EraseOwner(ctx, s, me); err != nil || left != 2 {
			t.Errorf("left %d, %v", left, err)
		}
	}
	running := newResponse(149, "in_progress")
	if _, err := work.FindResponse(s.View(), running.ID, me); err != nil {
		t.Errorf("the response at work: %v", err)
	}
	for n := range 149 {
		id := newResponse(n, "completed").ID
		if _, err := work.FindResponse(s.View(), id, me); !errors.Is(err, state.ErrNotFound) {
			t.Fatalf("response %d: %v", n, err)
		}
	}
	if _, err := work.FindResponse(s.View(), foreign.ID, other); err != nil {
		t.Errorf("another owner's response: %v", err)
	}
	if all := work.LatestConversations(s.View(), me, "", work.Place{}, -1); len(all) != 0 {
		t.Errorf("conversations %v", all)
	}
	_, mine := work.FindReply(s.View(), me, "mine")
	_, theirs := work.FindReply(s.View(), other, "theirs")
	if mine || !theirs {
		t.Errorf("replies: mine %v, theirs %v", mine, theirs)
	}
	if list, _ := work.ListVideos(s.View(), me, work.VideoPage{Limit: -1}); len(list) != 1 || list[0].ID != busy.ID {
		t.Errorf("videos %v", list)
	}
	clock.Add(time.Second)
	for {
		n, err := s.Sweep(ctx, 0)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			break
		}
	}
	var text strings.Builder
	if _, err := journal.Export(ctx, store, &text); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(text.String(), `"prompt":"a cat"`); got != 1 {
		t.Errorf("%d prompts are left, want that of the job at work", got)
	}
	if kept := work.KeptResponses(s, me); kept.Responses != 1 {
		t.Errorf("kept %+v, want the response at work", kept)
	}
	sound(t, store, "after an erasure")
}
