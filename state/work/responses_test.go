package work_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"stagedoor/state"
	"stagedoor/state/journal"
	"stagedoor/state/work"
)

func put(t testing.TB, s *state.State, r work.StoredResponse) work.StoredResponse {
	t.Helper()
	if err := work.PutResponse(ctx, s, r); err != nil {
		t.Fatal(err)
	}
	return r
}

// lateStore closes committed when a commit is on disk, and returns from it when mayReturn is closed.
type lateStore struct {
	journal.Store
	once                 sync.Once
	committed, mayReturn chan struct{}
}

func (l *lateStore) Commit(ctx context.Context, batches []journal.Batch) (journal.LSN, error) {
	lsn, err := l.Store.Commit(ctx, batches)
	if l.committed != nil {
		l.once.Do(func() { close(l.committed) })
		<-l.mayReturn
	}
	return lsn, err
}

func TestTheEndOfAResponseIsNotReadBeforeItsHeaderShowsIt(t *testing.T) {
	store := &lateStore{Store: journal.NewMemory()}
	s := open(t, store, newClock().Now)
	r := put(t, s, newResponse(1, "in_progress"))
	store.committed, store.mayReturn = make(chan struct{}), make(chan struct{})
	updated := make(chan error)
	go func() {
		_, err := work.UpdateResponse(ctx, s, r.ID, me,
			work.ResponseUpdate{Status: "completed", Body: []byte(`{"status":"completed"}`)})
		updated <- err
	}()
	<-store.committed
	read := make(chan work.StoredResponse)
	go func() {
		got, err := work.ReadResponse(ctx, s, r.ID, me)
		if err != nil {
			t.Error(err)
		}
		read <- got
	}()
	var got work.StoredResponse
	select {
	case got = <-read: // before the change is visible
		close(store.mayReturn)
	case <-time.After(50 * time.Millisecond):
		close(store.mayReturn)
		got = <-read
	}
	if string(got.Body) != `{"status":"completed"}` || !got.Finished() {
		t.Errorf("read %s with a header that says %s", got.Body, got.Status)
	}
	if err := <-updated; err != nil {
		t.Error(err)
	}
}

func TestResponseLife(t *testing.T) {
	store := journal.NewMemory()
	s := open(t, store, newClock().Now)
	r := newResponse(1, "in_progress")
	r.Background, r.Streamed, r.Provider, r.LastEvent = true, true, "p", 77
	put(t, s, r)
	got, err := work.ReadResponse(ctx, s, r.ID, me)
	if err != nil || string(got.Body) != string(r.Body) || string(got.Input) != string(r.Input) {
		t.Fatalf("got %+v, %v", got, err)
	}
	want := r.ResponseHeader
	want.Created, want.Expires = start, start.Add(30*24*time.Hour)
	want.BodySize, want.InputSize, want.LastEvent = int64(len(r.Body)), int64(len(r.Input)), 0
	if got.ResponseHeader != want {
		t.Errorf("header: got %+v, want %+v", got.ResponseHeader, want)
	}
	sameAfterReload(t, s, store)

	h, err := work.UpdateResponse(ctx, s,
		r.ID,
		me,
		work.ResponseUpdate{Status: "completed", Provider: "q", Body: []byte(`{"x":1}`)},
	)
	if err != nil || !h.Finished() || h.Provider != "q" || h.Model != "m" || h.BodySize != 7 {
		t.Fatalf("UpdateResponse: got %+v, %v", h, err)
	}
	if got, _ := work.ReadResponse(ctx, s, r.ID, me); string(got.Body) != `{"x":1}` ||
		string(got.Input) != string(r.Input) {
		t.Errorf("after UpdateResponse: got %s", got.Body)
	}
	sameAfterReload(t, s, store)
	if err := work.DeleteResponse(ctx, s, r.ID, me); err != nil {
		t.Fatal(err)
	}
	if _, err := work.ReadResponse(ctx, s, r.ID, me); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("after DeleteResponse: got %v", err)
	}
	empty(t, store)
}

// empty checks that no record of a response is left on disk.
func empty(t testing.TB, store journal.Store) {
	t.Helper()
	tables := []journal.Table{journal.Response, journal.Body, journal.Event}
	_, err := store.Load(ctx, tables, func(table journal.Table, r journal.Record) error {
		t.Errorf("left behind: %s/%s", table, r.Key)
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestResponsesOfOthersDoNotExist(t *testing.T) {
	s := newState(t)
	r := put(t, s, newResponse(1, "in_progress"))
	_, readErr := work.ReadResponse(ctx, s, r.ID, other)
	_, headErr := work.FindResponse(s.View(), r.ID, other)
	_, updateErr := work.UpdateResponse(ctx, s, r.ID, other, work.ResponseUpdate{Status: "cancelled"})
	_, chainErr := work.ReadChain(ctx, s, r.ID, other)
	eventsErr := work.ReadEvents(ctx, s, r.ID, other, -1, nil)
	for name, err := range map[string]error{"read": readErr, "header": headErr, "update": updateErr,
		"chain": chainErr, "events": eventsErr, "delete": work.DeleteResponse(ctx, s, r.ID, other)} {
		if !errors.Is(err, state.ErrNotFound) {
			t.Errorf("%s: got %v, want ErrNotFound", name, err)
		}
	}
	if h, err := work.FindResponse(s.View(), r.ID, me); err != nil || h.Status != "in_progress" {
		t.Errorf("its owner: got %+v, %v", h, err)
	}
	stolen := newResponse(2, "completed")
	stolen.Owner, stolen.Previous = other, r.ID
	put(t, s, stolen)
	if items, err := work.ReadChain(ctx, s, stolen.ID, other); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("a chain into the response of another owner: got %s, %v", items, err)
	}
	if state.OwnerOf("k", "") == state.OwnerOf("", "k") || state.OwnerOf("k1", "u") != state.OwnerOf("k2", "u") {
		t.Error("owners are confused")
	}
}

func TestResponseRefusals(t *testing.T) {
	s := newState(t)
	r := put(t, s, newResponse(1, "completed"))
	bad := func(f func(*work.StoredResponse)) error {
		r := newResponse(2, "completed")
		f(&r)
		return work.PutResponse(ctx, s, r)
	}
	big := json.RawMessage(`{"a":"` + strings.Repeat("x", work.MaxResponseBytes) + `"}`)
	for name, c := range map[string]struct{ got, want error }{
		"twice":        {work.PutResponse(ctx, s, r), state.ErrExists},
		"odd id":       {bad(func(r *work.StoredResponse) { r.ID = "resp/1" }), state.ErrInvalid},
		"long id":      {bad(func(r *work.StoredResponse) { r.ID = strings.Repeat("a", 129) }), state.ErrInvalid},
		"no owner":     {bad(func(r *work.StoredResponse) { r.Owner = "" }), state.ErrInvalid},
		"body":         {bad(func(r *work.StoredResponse) { r.Body = []byte(`{"a":`) }), state.ErrInvalid},
		"no body":      {bad(func(r *work.StoredResponse) { r.Body = nil }), state.ErrInvalid},
		"input":        {bad(func(r *work.StoredResponse) { r.Input = []byte(`"text"`) }), state.ErrInvalid},
		"broken input": {bad(func(r *work.StoredResponse) { r.Input = []byte(`[1,`) }), state.ErrInvalid},
		"size":         {bad(func(r *work.StoredResponse) { r.Body = big }), state.ErrTooLarge},
	} {
		if !errors.Is(c.got, c.want) {
			t.Errorf("%s: got %v, want %v", name, c.got, c.want)
		}
	}
	running := put(t, s, newResponse(3, "in_progress"))
	for name, c := range map[string]struct {
		u    work.ResponseUpdate
		want error
	}{
		"body":   {work.ResponseUpdate{Body: []byte(`[]`)}, state.ErrInvalid},
		"size":   {work.ResponseUpdate{Body: big[: len(big)-8 : len(big)-8], Status: "x"}, state.ErrInvalid},
		"event":  {work.ResponseUpdate{Events: []byte("e"), LastEvent: -1}, state.ErrInvalid},
		"events": {work.ResponseUpdate{Events: make([]byte, work.MaxEventBytes+1)}, state.ErrTooLarge},
	} {
		if _, err := work.UpdateResponse(ctx, s, running.ID, me, c.u); !errors.Is(err, c.want) {
			t.Errorf("update %s: got %v, want %v", name, err, c.want)
		}
	}
	if h, err := work.FindResponse(s.View(), running.ID, me); err != nil || h.Status != "in_progress" ||
		h.EventSize != 0 {
		t.Errorf("after refused updates: got %+v, %v", h, err)
	}
}

func TestFirstEndOfAResponseCounts(t *testing.T) {
	s := newState(t)
	r := put(t, s, newResponse(1, "in_progress"))
	var wg sync.WaitGroup
	ends := []string{"completed", "cancelled", "failed", "incomplete"}
	heads, errs := make([]work.ResponseHeader, len(ends)), make([]error, len(ends))
	for i, status := range ends {
		wg.Go(func() {
			body := []byte(fmt.Sprintf(`{"status":%q}`, status))
			heads[i], errs[i] = work.UpdateResponse(ctx, s,
				r.ID,
				me,
				work.ResponseUpdate{Status: status, Body: body, Events: []byte(status), LastEvent: 5},
			)
		})
	}
	wg.Wait()
	won := 0
	got, err := work.ReadResponse(ctx, s, r.ID, me)
	if err != nil {
		t.Fatal(err)
	}
	for i := range ends {
		if errs[i] == nil {
			won++
		} else if !errors.Is(errs[i], state.ErrFinished) {
			t.Errorf("%s: got %v", ends[i], errs[i])
		}
		if heads[i].Status != got.Status {
			t.Errorf("%s returned %s, stored is %s", ends[i], heads[i].Status, got.Status)
		}
	}
	if won != 1 || string(got.Body) != fmt.Sprintf(`{"status":%q}`, got.Status) {
		t.Errorf("%d ends counted; stored %s", won, got.Body)
	}
}

func TestEventsAreResumedAfterANumber(t *testing.T) {
	store := journal.NewMemory()
	s := open(t, store, newClock().Now)
	neighbour := put(t, s, newResponse(2, "in_progress"))
	r := put(t, s, newResponse(1, "in_progress"))
	appendTo := func(id string, last int64, log string) error {
		_, err := work.UpdateResponse(ctx, s, id, me, work.ResponseUpdate{Events: []byte(log), LastEvent: last})
		return err
	}
	for _, c := range []struct {
		last int64
		log  string
	}{{0, "0;"}, {3, "1;2;3;"}, {300, "4..300;"}} {
		if err := errors.Join(appendTo(r.ID, c.last, c.log), appendTo(neighbour.ID, c.last, "x")); err != nil {
			t.Fatal(err)
		}
	}
	if err := appendTo(r.ID, 300, "again"); !errors.Is(err, state.ErrInvalid) {
		t.Errorf("an old number: got %v, want ErrInvalid", err)
	}
	for _, c := range []struct {
		after int64
		want  string
	}{{-1, "0;1;2;3;4..300;"}, {-9, "0;1;2;3;4..300;"}, {0, "1;2;3;4..300;"}, {2, "1;2;3;4..300;"}, {3, "4..300;"},
		{299, "4..300;"}, {300, ""}, {1<<63 - 1, ""}} {
		var got strings.Builder
		err := work.ReadEvents(ctx, s, r.ID, me, c.after, func(log []byte) error { got.Write(log); return nil })
		if err != nil || got.String() != c.want {
			t.Errorf("after %d: got %q, %v, want %q", c.after, got.String(), err, c.want)
		}
	}
	if h, _ := work.FindResponse(s.View(), r.ID, me); h.LastEvent != 300 || h.EventSize != 15 {
		t.Errorf("header: got %+v", h)
	}
	for _, id := range []string{r.ID, neighbour.ID} {
		if err := work.DeleteResponse(ctx, s, id, me); err != nil {
			t.Fatal(err)
		}
	}
	empty(t, store)
}

// TestReadingEventsHoldsUpNoCommit: a client may take its time for the events. A read that lasted as long would keep
// the file of the store from growing, and no commit would end before the client does.
func TestReadingEventsHoldsUpNoCommit(t *testing.T) {
	store, err := journal.OpenBolt(t.TempDir(), journal.Options{LowWater: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	s := open(t, store, newClock().Now)
	defer s.Close()
	r := put(t, s, newResponse(1, "in_progress"))
	const chunks = 3
	var want strings.Builder
	for n := range chunks {
		log := strings.Repeat(fmt.Sprint(n), 300<<10)
		want.WriteString(log)
		update := work.ResponseUpdate{Events: []byte(log), LastEvent: int64(n)}
		if _, err := work.UpdateResponse(ctx, s, r.ID, me, update); err != nil {
			t.Fatal(err)
		}
	}
	var got strings.Builder
	calls := 0
	err = work.ReadEvents(ctx, s, r.ID, me, -1, func(log []byte) error {
		got.Write(log)
		for ; calls < 3; calls++ { // each takes more than the redo log holds before it is copied into the file
			large := newResponse(100+calls, "completed")
			large.Input = []byte(`["` + strings.Repeat("x", 6<<20) + `"]`)
			committed := make(chan error, 1)
			go func() { committed <- work.PutResponse(ctx, s, large) }()
			select {
			case err := <-committed:
				if err != nil {
					return err
				}
			case <-time.After(20 * time.Second):
				return errors.New("a commit waits for the client")
			}
		}
		return nil
	})
	if err != nil || got.String() != want.String() {
		t.Errorf("%d bytes are read of %d, and after %d commits: %v", got.Len(), want.Len(), calls, err)
	}
}

func TestChainIsTheConversationInOrder(t *testing.T) {
	clock := newClock()
	s := open(t, journal.NewMemory(), clock.Now)
	previous := ""
	var ids []string
	for i := range 4 {
		r := newResponse(i, "completed")
		r.Previous = previous
		switch i {
		case 1:
			r.Input = json.RawMessage(`[{"a": 1.50}, {"b":[12345678901234567890]}]`)
		case 2:
			r.Input, r.Body = nil, json.RawMessage(`{"no":"output"}`)
		case 3:
			r.Expires = start.Add(time.Hour)
		}
		put(t, s, r)
		previous = r.ID
		ids = append(ids, r.ID)
	}
	items, err := work.ReadChain(ctx, s, ids[3], me)
	want := `{"in":0} {"out":0} {"a": 1.50} {"b":[12345678901234567890]} {"out":1} {"in":3} {"out":3}`
	if got := join(items); err != nil || got != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	if items, err := work.ReadChain(ctx, s, ids[0], me); err != nil || join(items) != `{"in":0} {"out":0}` {
		t.Errorf("the first: got %s, %v", join(items), err)
	}
	if _, err := work.ReadChain(ctx, s, "resp_x", me); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("unknown: got %v, want ErrNotFound", err)
	}
	clock.Add(time.Hour)
	if _, err := work.ReadChain(ctx, s, ids[3], me); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("expired: got %v, want ErrNotFound", err)
	}
	if err := work.DeleteResponse(ctx, s, ids[1], me); err != nil {
		t.Fatal(err)
	}
	if _, err := work.ReadChain(ctx, s, ids[2], me); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("a gap: got %v, want ErrNotFound", err)
	}
}

func join(items []json.RawMessage) string {
	var s []string
	for _, i := range items {
		s = append(s, string(i))
	}
	return strings.Join(s, " ")
}

func TestChainIsBounded(t *testing.T) {
	s := newState(t)
	previous := ""
	for i := range work.MaxChain + 1 {
		r := newResponse(i, "completed")
		r.Previous = previous
		put(t, s, r)
		if i >= work.MaxChain-1 {
			_, err := work.ReadChain(ctx, s, r.ID, me)
			if long := i == work.MaxChain; errors.Is(err, work.ErrChainTooLong) != long || (err == nil) == long {
				t.Errorf("%d responses: got %v", i+1, err)
			}
		}
		previous = r.ID
	}
	big := newResponse(5000, "completed")
	big.Input = json.RawMessage(`["` + strings.Repeat("x", work.MaxChainBytes/2) + `"]`)
	put(t, s, big)
	bigger := newResponse(5001, "completed")
	bigger.Input, bigger.Previous = big.Input, big.ID
	put(t, s, bigger)
	if _, err := work.ReadChain(ctx, s, bigger.ID, me); !errors.Is(err, work.ErrChainTooLong) {
		t.Errorf("a chain of %d bytes: got %v, want ErrChainTooLong", work.MaxChainBytes, err)
	}
	self := newResponse(5002, "completed")
	self.Previous = self.ID
	put(t, s, self)
	if _, err := work.ReadChain(ctx, s, self.ID, me); !errors.Is(err, work.ErrChainTooLong) {
		t.Errorf("a response that continues itself: got %v, want ErrChainTooLong", err)
	}
}

func TestExpiredIsNotFoundAndThenSwept(t *testing.T) {
	clock, store := newClock(), journal.NewMemory()
	s := open(t, store, clock.Now)
	const n = 25
	for i := range n {
		r := newResponse(i, "completed")
		r.Expires = start.Add(time.Duration(i+1) * 20 * time.Second)
		put(t, s, r)
	}
	clock.Add(200 * time.Second) // ten have expired, the last one just now
	if got := len(work.ListResponses(s.View(), work.ResponseFilter{})); got != n-10 {
		t.Errorf("listed: got %d, want %d", got, n-10)
	}
	if _, err := work.ReadResponse(ctx, s, newResponse(9, "").ID, me); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("expired just now: got %v, want ErrNotFound", err)
	}
	if _, err := work.ReadResponse(ctx, s, newResponse(10, "").ID, me); err != nil {
		t.Errorf("not expired: got %v", err)
	}
	for _, want := range []int{4, 4, 2, 0} {
		if got, err := s.Sweep(ctx, 4); err != nil || got != want {
			t.Errorf("Sweep: got %d, %v, want %d", got, err, want)
		}
	}
	sameAfterReload(t, s, store)
	if got := work.StatsOf(s).Responses; got != n-10 {
		t.Errorf("kept: got %d, want %d", got, n-10)
	}
	clock.Add(24 * time.Hour)
	if got, err := s.Sweep(ctx, 0); err != nil || got != n-10 {
		t.Errorf("Sweep: got %d, %v, want %d", got, err, n-10)
	}
	empty(t, store)
}

func TestSweepKeepsTheNewest(t *testing.T) {
	s := open(t, journal.NewMemory(), newClock().Now, work.MaxResponses(5))
	for i := range 10 {
		status := "completed"
		if i == 1 {
			status = "in_progress"
		}
		put(t, s, newResponse(i, status))
	}
	for _, want := range []int{3, 2, 0} {
		if got, err := s.Sweep(ctx, 3); err != nil || got != want {
			t.Errorf("Sweep: got %d, %v, want %d", got, err, want)
		}
	}
	var kept []string
	for _, h := range work.ListResponses(s.View(), work.ResponseFilter{}) {
		for i := range 10 {
			if h.ID == newResponse(i, "").ID {
				kept = append(kept, fmt.Sprint(i))
			}
		}
	}
	if got := strings.Join(kept, " "); got != "1 6 7 8 9" {
		t.Errorf("kept %s, want the newest and the unfinished: 1 6 7 8 9", got)
	}
}

func TestUnfinishedResponsesAreFoundAgain(t *testing.T) {
	store := journal.NewMemory()
	s := open(t, store, newClock().Now)
	for i, status := range []string{"queued", "completed", "in_progress", "failed", "cancelled", "incomplete"} {
		r := newResponse(i, status)
		if i == 2 {
			r.Owner = other
		}
		put(t, s, r)
	}
	s.Close()
	s = open(t, store, newClock().Now)
	got := work.ListResponses(s.View(), work.ResponseFilter{Unfinished: true})
	if len(got) != 2 || got[0].Status != "queued" || got[1].Status != "in_progress" {
		t.Errorf("got %+v", got)
	}
	mine := work.LatestResponses(s.View(), me, -1)
	if len(mine) != 5 || mine[0].ID != newResponse(5, "").ID || mine[4].ID != newResponse(0, "").ID {
		t.Errorf("mine: got %+v, want all but the one of another owner, the newest first", mine)
	}
	if two := work.LatestResponses(s.View(), me, 2); len(two) != 2 || two[1].ID != newResponse(4, "").ID {
		t.Errorf("two of mine: got %+v", two)
	}
}

func TestBrokenStoreReadsAreUnavailable(t *testing.T) {
	store := journal.NewMemory()
	s := open(t, store, newClock().Now)
	r := put(t, s, newResponse(1, "completed"))
	store.Close()
	if _, err := work.ReadResponse(ctx, s, r.ID, me); !errors.Is(err, state.ErrUnavailable) {
		t.Errorf("Response: got %v, want ErrUnavailable", err)
	}
	if err := work.ReadEvents(ctx, s, r.ID, me, -1, nil); !errors.Is(err, state.ErrUnavailable) {
		t.Errorf("Events: got %v, want ErrUnavailable", err)
	}
	if _, err := work.FindResponse(s.View(), r.ID, me); err != nil {
		t.Errorf("ResponseHeader: got %v, memory goes on", err)
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if err := work.PutResponse(cancelled, s, newResponse(2, "queued")); !errors.Is(err, context.Canceled) {
		t.Errorf("PutResponse: got %v, want context.Canceled", err)
	}
}
