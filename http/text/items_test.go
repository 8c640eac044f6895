package text

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/memory"
	"stagedoor/state"
	"stagedoor/state/journal"
	"stagedoor/state/schema"
	"stagedoor/state/work"
)

func TestOneOwnerCannotPushOutItemsOfOthers(t *testing.T) {
	x := newItemIndex(100)
	add := func(owner state.Owner, n int) {
		x.add(
			owner,
			fmt.Sprint("resp_", owner, n),
			[]json.RawMessage{
				fmt.Appendf(nil, `{"type":"message","id":"msg_%d"}`, n),
				json.RawMessage(`{"type":"message"}`),
			},
		)
	}
	for n := range 10 {
		add("user:small", n)
	}
	for n := range 1000 {
		add("user:large", n)
	}
	for n := range 10 { // the large owner had items of the same ids
		if got, _ := x.Get("user:small", fmt.Sprint("msg_", n)); got != fmt.Sprint("resp_user:small", n) {
			t.Errorf("item %d of the small owner is in %q", n, got)
		}
	}
	if got, _ := x.Get("user:large", "msg_999"); got != "resp_user:large999" {
		t.Errorf("the newest item of the large owner is in %q", got)
	}
	if got, ok := x.Get("user:large", "msg_5"); ok || x.Len() != 100 {
		t.Errorf("an old item of the large owner is in %q, %d are kept", got, x.Len())
	}
	add("user:small", 3) // once more
	if x.Len() != 100 {
		t.Errorf("%d items are kept", x.Len())
	}
}

// TestASearchForItemsReadsABoundedNumberOfBytes: an owner may keep 1 GiB, and the request that names an unknown item
// has a hundred bytes. No record is read twice for one request.
func TestASearchForItemsReadsABoundedNumberOfBytes(t *testing.T) {
	s, err := schema.Open(journal.NewMemory(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const owner, size = state.Owner("user:a"), 1 << 20
	for n := range 4 {
		err := work.PutResponse(t.Context(), s, work.StoredResponse{
			ResponseHeader: work.ResponseHeader{ID: fmt.Sprint("resp_", n), Owner: owner, Status: "completed"},
			Body:           []byte("{}"),
			Input:          fmt.Appendf(nil, `[{"id":"msg_%d","x":%q}]`, n, strings.Repeat("x", size))})
		if err != nil {
			t.Fatal(err)
		}
	}
	hs := New(Options{Store: s, Env: new(dialogue.Env)})
	hs.items.Put(string(owner), "msg_gone", "resp_3", 1) // it was there before
	hs.items.Put(string(owner), "msg_gone_too", "resp_3", 1)
	search := func(left int64, ids ...string) *library {
		claim := memory.NewClaim(nil, "")
		l := &library{ctx: t.Context(), handlers: hs, owner: owner, wanted: make(map[string]bool),
			known: make(map[string]json.RawMessage), seen: make(map[string]bool), left: left, claim: &claim}
		for _, id := range ids {
			l.wanted[id] = true
		}
		l.search(ids)
		return l
	}
	l := search(5*size/2, "msg_gone", "msg_gone_too", "msg_2", "msg_1", "msg_0")
	if l.err != nil || len(l.seen) != 2 || l.left < 0 || l.left > size || l.known["msg_2"] == nil || len(l.known) != 1 {
		t.Errorf("%d items are found in %d responses, %d bytes are left, %v", len(l.known), len(l.seen), l.left, l.err)
	}
	if l := search(maxSearchBytes, "msg_gone", "msg_0"); len(l.seen) != 4 || l.known["msg_0"] == nil {
		t.Errorf("%d items are found in %d responses", len(l.known), len(l.seen))
	}
}

func TestItemsWithLongIDsTakeNoMemory(t *testing.T) {
	x := newItemIndex(100)
	id := strings.Repeat("x", 1<<20)
	x.add("user:a", "resp_a", []json.RawMessage{fmt.Appendf(nil, `{"type":"message","id":"%s"}`, id)})
	if x.Len() != 0 {
		t.Errorf("%d items are kept, want none with an id of 1 MiB", x.Len())
	}
}
