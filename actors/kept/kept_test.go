package kept_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"stagedoor/actors/kept"
	"stagedoor/state"
	"stagedoor/state/share"
)

// registry is a Registry with a clock.
type registry struct {
	*kept.Registry
	t   *testing.T
	now time.Time
}

func open(t *testing.T, room int64) *registry {
	r := &registry{t: t, now: time.Unix(1_800_000_000, 0)}
	r.Registry = kept.New(share.New(share.Kept, room, 1), func() time.Time { return r.now })
	return r
}

func nothingStored() bool { return false }

// begin begins a record that must be new.
func (g *registry) begin(q kept.Request) *kept.Record {
	g.t.Helper()
	r, begun, err := g.Begin(q, nothingStored)
	if err != nil || !begun {
		g.t.Fatalf("%+v: begun %v, %v", q, begun, err)
	}
	return r
}

// read reads a record from an offset as far as it goes.
func read(r *kept.Record, offset int64) (string, kept.Part) {
	var b strings.Builder
	for {
		p := r.Read(offset)
		if len(p.Bytes) == 0 {
			return b.String(), p
		}
		b.Write(p.Bytes)
		offset += int64(len(p.Bytes))
	}
}

// A message over a WebSocket is made of each piece that a client reads.
func TestAPieceIsReadWhole(t *testing.T) {
	g := open(t, 0)
	r := g.begin(kept.Request{ID: "a", Owner: "o"})
	r.Start(200, http.Header{})
	piece := []byte(strings.Repeat("x", 298) + "\n\n")
	var offset int64
	for i := range 500 {
		r.Append(piece, []int{len(piece)})
		p := r.Read(offset)
		if len(p.Bytes) != len(piece) {
			t.Fatalf("%d bytes are read of piece %d, which has %d", len(p.Bytes), i, len(piece))
		}
		offset += int64(len(p.Bytes))
	}
	for offset = 0; offset < 500*int64(len(piece)); {
		p := r.Read(offset)
		if len(p.Bytes)%len(piece) != 0 {
			t.Fatalf("%d bytes are read at once", len(p.Bytes))
		}
		offset += int64(len(p.Bytes))
	}
}

// TestAReplyIsReadWhileItIsMade: readers at any place get the same bytes.
func TestAReplyIsReadWhileItIsMade(t *testing.T) {
	g := open(t, 0)
	r := g.begin(kept.Request{ID: "a", Owner: "o"})
	var want bytes.Buffer
	for i := range 3000 {
		fmt.Fprintf(&want, "data: %d\n\n", i)
	}
	var readers sync.WaitGroup
	for n := range 4 {
		readers.Go(func() {
			var got bytes.Buffer
			offset := int64(n)
			for {
				p := r.Read(offset)
				got.Write(p.Bytes)
				offset += int64(len(p.Bytes))
				switch {
				case p.Changed != nil:
					<-p.Changed
				case p.Ended:
					if p.Status != 200 || !bytes.Equal(got.Bytes(), want.Bytes()[n:]) {
						t.Errorf("reader %d: %d bytes", n, got.Len())
					}
					return
				}
			}
		})
	}
	r.Start(200, http.Header{})
	ends := 0
	for line := range bytes.SplitAfterSeq(want.Bytes(), []byte("\n\n")) {
		if len(line) > 0 {
			r.Append(line, []int{len(line)})
			ends++
		}
	}
	r.Close(false)
	readers.Wait()
	for _, n := range []int64{0, 1, 1500, int64(ends)} {
		offset, place := r.After(n)
		rest, _ := read(r, offset)
		if place != kept.At || n < int64(ends) && !strings.HasPrefix(rest, fmt.Sprintf("data: %d\n", n)) {
			t.Errorf("after event %d: %d, %q", n, place, rest[:min(len(rest), 20)])
		}
	}
	if _, place := r.After(int64(ends) + 1); place != kept.Ahead {
		t.Errorf("after the end: %d", place)
	}
	if _, _, body, ok := r.Whole(); !ok || !bytes.Equal(body, want.Bytes()) {
		t.Errorf("%d bytes, %v", len(body), ok)
	}
}

// TestALongReplyDropsItsBeginning: the rest can be resumed, what was dropped is reported, and no more is held than the
// bound.
func TestALongReplyDropsItsBeginning(t *testing.T) {
	g := open(t, 0)
	r := g.begin(kept.Request{ID: "a", Owner: "o", Key: "k"})
	r.Start(200, http.Header{})
	event := append(bytes.Repeat([]byte("x"), 100<<10), "\n\n"...)
	n := int64(2 * kept.MaxReply / len(event))
	for range n {
		r.Append(event, []int{len(event)})
	}
	if held := g.Pool().Held("o"); held > kept.MaxReply+kept.MaxReply/16 { // blocks are whole pages
		t.Errorf("%d bytes are held", held)
	}
	if p := r.Read(0); !p.Dropped {
		t.Error("the beginning is there")
	}
	if _, place := r.After(1); place != kept.Gone {
		t.Errorf("after the first event: %d", place)
	}
	offset, place := r.After(n - 3)
	if rest, _ := read(r, offset); place != kept.At || len(rest) != 3*len(event) {
		t.Errorf("the last three events: %d, %d bytes", place, len(rest))
	}
	r.Append(make([]byte, kept.MaxReply+1), nil)
	if _, place := r.After(n); place != kept.Gone || !r.Read(offset).Dropped {
		t.Errorf("after a piece beyond the bound: %d", place)
	}
	r.Append(event, []int{len(event)})
	if _, place := r.After(n + 1); place != kept.At {
		t.Errorf("after the next event: %d", place)
	}
	r.Close(false)
	if _, _, _, ok := r.Whole(); ok {
		t.Error("it is whole")
	}
	r.Release(true)
	g.now = g.now.Add(kept.Keep)
	if g.Sweep(); g.Pool().Used() != 0 || g.Find("o", "a") != nil {
		t.Errorf("%d bytes are held after its time", g.Pool().Used())
	}
}

// TestRecordsThatEndedMakeRoom: the owner's own if its share is used up, and an owner never takes more than its share
// from another one that is at work.
func TestRecordsThatEndedMakeRoom(t *testing.T) {
	g := open(t, 100<<10)
	piece := make([]byte, 10<<10)
	record := func(owner, id string) *kept.Record {
		r := g.begin(kept.Request{ID: id, Owner: state.Owner(owner)})
		r.Start(200, http.Header{})
		r.Append(piece, nil)
		r.Close(false)
		r.Release(false)
		return r
	}
	record("b", "b")
	for i := range 20 {
		record("a", fmt.Sprint(i))
	}
	find := func(owner state.Owner, id string) bool {
		r := g.Find(owner, id)
		if r != nil {
			r.Leave()
		}
		return r != nil
	}
	if find("a", "0") || !find("a", "19") || !find("b", "b") {
		t.Error("the wrong records are left")
	}
	if a := g.Pool().Held("a"); a > 50<<10 {
		t.Errorf("a holds %d bytes", a)
	}
	var full *share.Refused
	for i := 0; ; i++ {
		_, _, err := g.Begin(kept.Request{ID: fmt.Sprint("run", i), Owner: "a"}, nothingStored)
		if errors.As(err, &full) {
			break
		}
	}
	if !full.Share {
		t.Errorf("refused by %v", full)
	}
	g.begin(kept.Request{ID: "late", Owner: "c"})
}

// TestKeysOfRequestsInFlight: one request at a time makes the reply of a key, a different request is refused, and a
// request that failed or was left is made anew.
func TestKeysOfRequestsInFlight(t *testing.T) {
	g := open(t, 0)
	cancelled := 0
	ask := kept.Request{ID: "a", Owner: "o", Key: "k", Asked: state.HashSecret("x"), Cancel: func() { cancelled++ }}
	first := g.begin(ask)
	second, begun, err := g.Begin(ask, nothingStored)
	if second != first || begun || err != nil {
		t.Fatalf("got %p, %v, %v", second, begun, err)
	}
	differs := ask
	differs.Asked = state.HashSecret("y")
	if _, _, err := g.Begin(differs, nothingStored); !errors.Is(err, kept.ErrReused) {
		t.Errorf("another request: %v", err)
	}
	first.Leave()
	if cancelled != 0 {
		t.Error("cancelled with a client left")
	}
	second.Leave()
	if cancelled != 1 {
		t.Error("not cancelled without a client")
	}
	third := g.begin(differs)
	third.Close(false)
	if again, begun, _ := g.Begin(differs, nothingStored); again != third || begun {
		t.Error("the key is free before the reply is stored")
	}
	third.Release(false)
	fourth := g.begin(differs)
	fourth.Close(false)
	fourth.Release(true)
	if again, begun, _ := g.Begin(differs, nothingStored); again != fourth || begun {
		t.Error("the good reply is not repeated")
	}
	g.now = g.now.Add(kept.Keep)
	g.Sweep()
	if r, begun, err := g.Begin(differs, func() bool { return true }); r != nil || begun || err != nil {
		t.Errorf("stored elsewhere: %v, %v, %v", r, begun, err)
	}
}
