package dialogue

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
	"pgregory.net/rapid"
)

// visited returns the members of an object as eachMember and as gjson find them.
func visited(object string) (got, want []string) {
	eachMember(object, func(name, text string) { got = append(got, name, strings.TrimSpace(text)) })
	gjson.Parse(object).ForEach(func(name, v gjson.Result) bool {
		want = append(want, name.Str, v.Raw)
		return true
	})
	return got, want
}

func TestEachMemberFindsWhatGjsonFinds(t *testing.T) {
	for _, object := range []string{`{}`, ` { } `, `{"a":1}`, `{"a":"\\","b\"":"\"","\u0063":[{"x":"}"},[]] , "d" : true
		, "e":{"f":{}}, "":null}`} {
		if got, want := visited(object); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", object, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		text, err := json.MarshalIndent(rapid.MapOf(rapid.String(), rapid.SliceOf(rapid.OneOf(rapid.String().AsAny(),
			rapid.MapOf(rapid.String(), rapid.StringMatching(`["\\a{}\[\],:]*`)).AsAny()))).Draw(t, "o"), "", " ")
		if err != nil {
			t.Fatal(err)
		}
		if got, want := visited(string(text)); !slices.Equal(got, want) {
			t.Fatalf("%s: %q, want %q", text, got, want)
		}
	})
}

func TestEachMemberEndsOnAnyText(t *testing.T) {
	const whole = `{"a":["x\"",{"b":1}],"c":"\ud83d\ude00"}`
	for i := range whole {
		for _, text := range []string{whole[:i], whole[:i] + "}" + whole[i:], whole[:i] + whole[i+1:]} {
			eachMember(text, func(string, string) {})
		}
	}
}
