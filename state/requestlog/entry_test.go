package requestlog

import (
	"reflect"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// fill sets each field of a struct to a value of its own, so that a field that Entry forgets is missed.
func fill(v reflect.Value, n *int64) {
	for i := range v.NumField() {
		*n++
		switch f := v.Field(i); f.Interface().(type) {
		case time.Time:
			f.Set(reflect.ValueOf(time.Unix(*n, 123_456_000).UTC()))
		case string:
			f.SetString("a \"<ü>\x01\xff " + string(rune('a'+*n)))
		case bool:
			f.SetBool(true)
		case []Try, []Step:
			f.Set(reflect.MakeSlice(f.Type(), 2, 2))
			fill(f.Index(0), n)
			fill(f.Index(1), n)
		default:
			f.SetInt(*n)
		}
	}
}

func TestAnEntryIsTheJSONOfItsRecord(t *testing.T) {
	var full Record
	n := int64(0)
	fill(reflect.ValueOf(&full).Elem(), &n)
	gaps := full
	gaps.Tries, gaps.Steps = []Try{{Status: 7}}, []Step{{}, {AtUs: 7}}
	for _, r := range []Record{{}, {Status: OK}, full, gaps} {
		want, err := json.Marshal(r, json.OmitZeroStructFields(true), jsontext.AllowInvalidUTF8(true))
		if got := r.Entry(); err != nil || string(got) != string(want) {
			t.Errorf("got\n%s\nwant\n%s, %v", got, want, err)
		}
	}
}
