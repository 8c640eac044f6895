package responses_test

import (
	"strings"
	"testing"

	"stagedoor/providers/shapes/responses"
	"stagedoor/test/sizes"
)

// TestALongListOfItemsIsRefusedAtItsLimit: without a place for each of millions of items.
func TestALongListOfItemsIsRefusedAtItsLimit(t *testing.T) {
	const most = 20
	items := func(n int) []byte { return []byte(`{"items":[` + strings.Repeat("1,", n-1) + `1]}`) }
	body := items(4 << 20)
	cost := sizes.Measure(0, func() {
		if _, err := responses.ReadConversation(body, most); err == nil || err.Param != "items" {
			t.Errorf("got %v", err)
		}
	})
	if cost.Peak > 1<<20 {
		t.Errorf("%d bytes of memory for a list of %d bytes", cost.Peak, len(body))
	}
	for n, want := range map[int]string{most: "items[0]", most + 1: "items"} {
		if _, err := responses.ReadConversation(items(n), most); err == nil || err.Param != want {
			t.Errorf("%d items: got %v, want an error about %s", n, err, want)
		}
	}
}
