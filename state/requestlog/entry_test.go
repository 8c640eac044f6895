package requestlog

import (
	"fmt"
	"reflect"
	"slices"
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

// What a record has for itself is all that is neither in its kind nor in a row of a store.
func TestReadOwnReadsWhatAppendOwnWrites(t *testing.T) {
	var full Record
	n := int64(0)
	fill(reflect.ValueOf(&full).Elem(), &n)
	full.Steps = append(full.Steps, Step{Phase: "waiting", Attempt: 3, AtUs: 1 << 40}, Step{Phase: "ended", AtUs: -1})
	for _, r := range []Record{{}, full} {
		own := r.AppendOwn(nil)
		got := Record{At: 7}
		got.ReadOwn(own)
		want := Record{At: 7, Trace: r.Trace, Cached: r.Cached, Reasoning: r.Reasoning, Images: r.Images,
			Steps: r.Steps}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got\n%+v\nwant\n%+v", got, want)
		}
		for n := range own {
			var got Record
			if got.ReadOwn(own[:n]); got.Code != Unreadable {
				t.Errorf("%d of %d bytes can be read: %+v", n, len(own), got)
			}
		}
		got = Record{}
		if got.ReadOwn(append(own, 0)); got.Code != Unreadable {
			t.Error("more than a record can be read")
		}
	}
	old := Record{}
	old.ReadOwn([]byte(`{"trace":"t","cached_tokens":3,"steps":[{"phase":"waiting","attempt":1,"at_us":7}]}`))
	if want := (Record{Trace: "t", Cached: 3, Steps: []Step{{"waiting", 1, 7}}}); !reflect.DeepEqual(old, want) {
		t.Errorf("of an earlier version: %+v", old)
	}
	if old.ReadOwn([]byte(`{"steps":7}`)); old.Code != Unreadable {
		t.Errorf("broken JSON can be read: %+v", old)
	}
}

func FuzzReadOwn(f *testing.F) {
	f.Add([]byte(`{}`))
	steps := []Step{{Phase: "waiting", Attempt: 1, AtUs: 7}, {Phase: "other"}}
	f.Add((&Record{Trace: "t", Steps: steps}).AppendOwn(nil))
	f.Fuzz(func(t *testing.T, own []byte) {
		var r Record
		if r.ReadOwn(own); len(r.Steps) > len(own) {
			t.Errorf("%d steps in %d bytes", len(r.Steps), len(own))
		}
	})
}

// Records have the same Kind exactly if a store may give them one entry: the same owner, AppendKind and Slow.
func TestTheKindHasAllOfAnEntryOfKinds(t *testing.T) {
	entry := func(r *Record) string {
		return fmt.Sprint(r.Owner, "\x00", r.Slow(), string(r.AppendKind(nil)))
	}
	var full Record
	n := int64(0)
	fill(reflect.ValueOf(&full).Elem(), &n)
	for i := range reflect.TypeFor[Record]().NumField() {
		other := full
		other.Tries = slices.Clone(full.Tries)
		switch f := reflect.ValueOf(&other).Elem().Field(i); f.Interface().(type) {
		case []Try:
			other.Tries[1].Failure = "another"
		case time.Time, []Step:
			f.SetZero()
		case bool:
			f.SetBool(false)
		case string:
			f.SetString("another")
		default:
			f.SetInt(int64(time.Hour))
		}
		if same := other.Kind() == full.Kind(); same != (entry(&other) == entry(&full)) {
			t.Errorf("%s: the same kind: %v", reflect.TypeFor[Record]().Field(i).Name, same)
		}
		if other.Kind().Clone() != other.Kind() {
			t.Errorf("%s: a clone differs", reflect.TypeFor[Record]().Field(i).Name)
		}
	}
	one := full
	for _, change := range []func(*Try){func(t *Try) { t.Provider = "p" }, func(t *Try) { t.Model = "m" },
		func(t *Try) { t.Status++ }, func(t *Try) { t.Failure = "f" }} {
		one.Tries = slices.Clone(full.Tries)
		if change(&one.Tries[0]); one.Kind() == full.Kind() {
			t.Errorf("the first attempt is not in the kind: %+v", one.Tries)
		}
	}
	if one.Tries = full.Tries[:1]; one.Kind() == full.Kind() {
		t.Error("the number of attempts is not in the kind")
	}
}
