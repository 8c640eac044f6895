package money

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"
)

// encoding/json reads the records that jsonObject writes.
func TestHandWrittenRecordsAreRead(t *testing.T) {
	at := time.Date(2026, 3, 31, 12, 0, 0, 123456789, time.UTC)
	for _, c := range []struct {
		written []byte
		want    any
	}{
		{(&Account{ID: "a\"b", Credits: 5, Spent: 4, Held: 1, Last: 9, Changed: at}).encode(),
			&Account{ID: "a\"b", Credits: 5, Spent: 4, Held: 1, Last: 9, Changed: at}},
		{(&Account{ID: "a"}).encode(), &Account{ID: "a"}},
		{(&KeySpend{Key: "k", Account: "a", Requests: 2, Total: 7, OfDay: 3, OfMonth: 5, Day: "2026-03-31"}).encode(),
			&KeySpend{Key: "k", Account: "a", Requests: 2, Total: 7, OfDay: 3, OfMonth: 5, Day: "2026-03-31"}},
		{(&UsageRow{Day: "2026-03-31", Account: "a", Key: "k", Model: "m", Requests: 1, InputTokens: 2, CachedTokens: 3,
			OutputTokens: 4, Images: 5, Seconds: 6, Amount: 7}).encode(),
			&UsageRow{Day: "2026-03-31", Account: "a", Key: "k", Model: "m", Requests: 1, InputTokens: 2,
				CachedTokens: 3, OutputTokens: 4, Images: 5, Seconds: 6, Amount: 7}},
	} {
		got := reflect.New(reflect.TypeOf(c.want).Elem()).Interface()
		if err := json.Unmarshal(c.written, got); err != nil {
			t.Fatalf("%s: %v", c.written, err)
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s is read as %+v, want %+v", c.written, got, c.want)
		}
	}
}
