package videojob_test

import (
	"testing"
	"testing/synctest"
	"time"

	"stagedoor/state/journal"
	"stagedoor/state/work"
)

// A client that got "shutting down" sends the request again, so its first job must not be made as
// well.
func TestAJobThatCouldNotStartIsNotMadeLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, v := journal.NewMemory(), newVendor()
		p := start(t, store, v, nil)
		if err := p.sys.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		o := newRequest("a cat")
		o.Video.Account = "" // the ledger would refuse it before
		if made, _, err := p.svc.Create(t.Context(), o); err == nil {
			t.Errorf("made %+v", made)
		}
		p.state.Close()
		time.Sleep(5 * time.Second) // the actor library's last timer
		p = start(t, store, v, nil)
		time.Sleep(time.Minute)
		if list, _ := work.ListVideos(p.state.View(), owner, work.VideoPage{Limit: 10}); len(list) != 0 ||
			v.made() != 0 {
			t.Errorf("%d made, listed %+v", v.made(), list)
		}
		if left := work.ListUnfinishedVideos(p.state.View()); len(left) != 0 {
			t.Errorf("unfinished: %+v", left)
		}
		p.end()
		time.Sleep(5 * time.Second)
	})
}
