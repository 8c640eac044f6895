package portal

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"stagedoor/actors/tokens"
	"stagedoor/providers/turns"
	"stagedoor/state/requestlog"
)

// heldLog is a log of requests whose searches last until it is released.
type heldLog struct {
	requestlog.Reader
	released chan struct{}
	under    atomic.Int32
}

func (l *heldLog) Store() (requestlog.Reader, error) { return l, nil }
func (l *heldLog) Limits() requestlog.Limits         { return requestlog.Limits{} }

func (l *heldLog) Find(context.Context, *requestlog.Query, func(*requestlog.Record) bool) error {
	l.under.Add(1)
	defer l.under.Add(-1)
	<-l.released
	return nil
}

func TestSearchesOfOneUserDoNotDelayThoseOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &heldLog{released: make(chan struct{})}
		p := &Portal{options: Options{RequestLog: log}, searches: turns.New(searchesAtOnce)}
		var searches sync.WaitGroup
		search := func(user int64) {
			rc := &requestContext{Portal: p, user: tokens.User{ID: user}}
			reader, err := rc.searchedLog()
			if err != nil {
				t.Fatal(err)
			}
			searches.Go(func() {
				if err := reader.Find(t.Context(), nil, nil); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		for range 5 {
			search(1)
		}
		if n := log.under.Load(); n != 1 {
			t.Errorf("%d searches of one user are under way, want 1", n)
		}
		search(2)
		if n := log.under.Load(); n != 2 {
			t.Errorf("%d searches of two users are under way, want 2", n)
		}
		close(log.released)
		searches.Wait()
	})
}
