package text

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"stagedoor/state"
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

func TestItemsWithLongIDsTakeNoMemory(t *testing.T) {
	x := newItemIndex(100)
	id := strings.Repeat("x", 1<<20)
	x.add("user:a", "resp_a", []json.RawMessage{fmt.Appendf(nil, `{"type":"message","id":"%s"}`, id)})
	if x.Len() != 0 {
		t.Errorf("%d items are kept, want none with an id of 1 MiB", x.Len())
	}
}
