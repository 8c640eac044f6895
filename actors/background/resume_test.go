package background_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"stagedoor/actors/background"
	"stagedoor/actors/kit"
	"stagedoor/actors/kit/kittest"
	"stagedoor/actors/text"
	"stagedoor/providers/dialogue"
	"stagedoor/state"
	"stagedoor/state/journal"
	"stagedoor/state/work"
)

// anyNode stands for State.Ended in a process that is alone.
func anyNode(state.Node) bool { return true }

// begin starts a response that lasts.
func (s *stage) begin() string {
	s.t.Helper()
	job := s.job()
	job.Kept = []byte(`"kept"`)
	if err := s.registry.Start(context.Background(), job); err != nil {
		s.t.Fatalf("start: %v", err)
	}
	return job.ID
}

// restart puts another process in the place of the one there is: what it ran ends
// as it does at a stop, and the store stays.
func (s *stage) restart(again background.RestoreRequest) (resumed, failed int) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	s.engine.Drain(ctx, 5*time.Second)
	kittest.Pass(time.Second)
	next := kit.NewSystem(kit.Options{Logger: s.sys.Logger(), MaxIdle: -1})
	s.t.Cleanup(func() { _ = next.Stop(context.Background()) })
	s.startRegistry(next)
	var err error
	if resumed, failed, err = s.registry.Resume(context.Background(), anyNode, again); err != nil {
		s.t.Fatal(err)
	}
	return resumed, failed
}

// again makes the request that job makes, for another id.
func (s *stage) again(_ context.Context, id string, request []byte) (*text.Request, error) {
	if string(request) != `"kept"` {
		s.t.Errorf("the request kept is %q", request)
	}
	o := s.job().Request
	o.ReplyID = id
	return o, nil
}

// A response that continues in the next process uses its conversation there and adds its items
// once.
func TestAResponseGoesOnWithItsConversationInTheNextProcess(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.simulate = dribble
		c, err := work.PutConversation(t.Context(), s.store, work.Conversation{ID: "conv_1", Owner: owner},
			[]byte(`{}`), nil)
		if err != nil {
			t.Fatal(err)
		}
		job := s.job()
		job.Kept, job.Input = []byte(`"kept"`), []byte(`[{"type":"message","id":"msg_in"}]`)
		if job.Turn, err = work.BeginTurn(t.Context(), s.store, c.ID, owner); err != nil {
			t.Fatal(err)
		}
		if err := s.registry.Start(context.Background(), job); err != nil {
			t.Fatal(err)
		}
		kittest.Pass(2 * time.Second)
		s.restart(s.again)
		if _, err := work.BeginTurn(t.Context(), s.store, c.ID, owner); !errors.Is(err, work.ErrConversationInUse) {
			t.Errorf("a second turn in the next process: %v", err)
		}
		kittest.Pass(time.Minute)
		if got := s.stored(job.ID); got.Status != "completed" || got.Runs != 2 {
			t.Errorf("kept %+v", got.ResponseHeader)
		}
		turn, err := work.BeginTurn(t.Context(), s.store, c.ID, owner)
		if err != nil {
			t.Fatalf("after its end: %v", err)
		}
		turn.End()
		items, err := work.ReadAllItems(t.Context(), s.store, c.ID, turn.Conversation.Next)
		if err != nil || len(items) != 2 || !strings.Contains(string(items[0]), "msg_in") {
			t.Errorf("items %s, %v", items, err)
		}
	})
}

func TestAResponseGoesOnInTheNextProcess(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.simulate = dribble
		id := s.begin()
		watched := s.watch(id, -1)
		kittest.Pass(2 * time.Second)
		if resumed, failed := s.restart(s.again); resumed != 1 || failed != 0 {
			t.Fatalf("%d resumed, %d failed", resumed, failed)
		}
		cut := <-watched
		if !strings.Contains(cut, `"code":"shutting_down"`) || strings.Contains(cut, "response.failed") ||
			terminals(cut) != 1 {
			t.Errorf("its watcher read %q at the end", cut[max(0, len(cut)-400):])
		}
		seen := sequence(cut)
		rest := <-s.watch(id, seen[len(seen)-1])
		got := s.stored(id)
		if got.Status != "completed" || got.Runs != 2 || got.RequestSize != 0 {
			t.Errorf("kept %+v", got.ResponseHeader)
		}
		if terminals(rest) != 1 || !strings.Contains(rest, "event: response.created\n") ||
			!strings.Contains(rest, "<99>") {
			t.Errorf("resumed with %q", rest)
		}
		last := int64(-1)
		for _, n := range append(seen, sequence(rest)...) {
			if n <= last {
				t.Fatalf("event %d comes behind %d", n, last)
			}
			last = n
		}
		if log := s.log(id); log != rest {
			t.Errorf("the stored stream differs from the sent one")
		}
		if _, err := work.ReadResponseRequest(t.Context(), s.store, id, owner); !errors.Is(err, state.ErrNotFound) {
			t.Errorf("its request is still kept: %v", err)
		}
	})
}

func TestAResponseIsStartedAtMostThreeTimes(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		begun := 0
		s.simulate = func(ctx context.Context, say func(string) error) error {
			begun++
			return dribble(ctx, say)
		}
		id := s.begin()
		for range 4 {
			kittest.Pass(time.Second)
			s.restart(s.again)
		}
		if got := s.stored(id); got.Status != "failed" || begun != 3 {
			t.Errorf("%s after %d runs", got.Status, begun)
		}
	})
}

func TestResponsesThatMayNotStartAgainFailWithTheReason(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.simulate = dribble
		id := s.begin()
		kittest.Pass(time.Second)
		resumed, failed := s.restart(func(context.Context, string, []byte) (*text.Request, error) {
			return nil, &dialogue.Error{
				Status:  401,
				Type:    dialogue.TypeAuthentication,
				Code:    "invalid_api_key",
				Message: "the API key does not exist any more",
			}
		})
		if got := s.stored(id); resumed != 0 || failed != 1 || got.Status != "failed" ||
			!strings.Contains(string(got.Body), "does not exist any more") {
			t.Errorf("%d resumed, %d failed: %s", resumed, failed, got.Body)
		}
	})
}

func TestAnInterruptedForegroundResponseFails(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.simulate = dribble
		lasting := s.begin()
		for i := range 100 {
			err := work.PutResponse(t.Context(), s.store,
				work.StoredResponse{Body: []byte(`{"status":"in_progress","output":[]}`),
					ResponseHeader: work.ResponseHeader{
						ID:       fmt.Sprint("resp_read", i),
						Owner:    owner,
						Status:   "in_progress",
						Streamed: true,
					}},
			)
			if err != nil {
				t.Fatal(err)
			}
		}
		kittest.Pass(time.Second)
		if resumed, failed := s.restart(s.again); resumed != 1 || failed != 100 {
			t.Errorf("%d resumed, %d failed", resumed, failed)
		}
		for i := range 100 {
			got := s.stored(fmt.Sprint("resp_read", i))
			if got.Status != "failed" || !strings.Contains(string(got.Body), `"code":"server_error"`) ||
				got.EventSize != 0 {
				t.Errorf("%+v: %s", got.ResponseHeader, got.Body)
			}
		}
		if got := s.stored(lasting); got.Status != "queued" {
			t.Errorf("the background response is %s", got.Status)
		}
	})
}

func TestACancelledResponseStaysCancelled(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.simulate = dribble
		id := s.begin()
		kittest.Pass(time.Second)
		s.registry.Cancel(context.Background(), id, owner)
		if resumed, failed := s.restart(s.again); resumed+failed != 0 {
			t.Errorf("%d resumed, %d failed", resumed, failed)
		}
		if got := s.stored(id); got.Status != "cancelled" {
			t.Errorf("it is %s", got.Status)
		}
	})
}

// TestAResponseOutlivesAFailureOfTheStoreWhileItIsResumed: it stays as it is for the next call, as it does when ctx has
// ended.
func TestAResponseOutlivesAFailureOfTheStoreWhileItIsResumed(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		job := s.job()
		err := work.PutResponse(t.Context(), s.store, work.StoredResponse{Body: job.Queued, Request: []byte(`"kept"`),
			ResponseHeader: work.ResponseHeader{ID: job.ID, Owner: owner, Status: "queued", Background: true, Runs: 1}})
		if err != nil {
			t.Fatal(err)
		}
		s.journal.Before(func([]journal.Batch) error {
			s.journal.Before(nil)
			return journal.ErrReadOnly
		})
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		for name, ctx := range map[string]context.Context{"the store refuses": t.Context(), "ctx has ended": ended} {
			if resumed, failed, err := s.registry.Resume(ctx, anyNode, s.again); resumed+failed != 0 || err == nil {
				t.Errorf("%s: %d resumed, %d failed, %v", name, resumed, failed, err)
			}
			if got := s.stored(job.ID); got.Status != "queued" || got.Runs != 1 {
				t.Errorf("%s: kept %+v", name, got.ResponseHeader)
			}
		}
		if resumed, _, err := s.registry.Resume(t.Context(), anyNode, s.again); resumed != 1 || err != nil {
			t.Errorf("%d resumed later: %v", resumed, err)
		}
		kittest.Pass(time.Minute)
		if got := s.stored(job.ID); got.Status != "completed" || got.Runs != 2 {
			t.Errorf("kept %+v", got.ResponseHeader)
		}
	})
}
