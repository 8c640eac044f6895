package responses

import (
	"encoding/json"
	"testing"

	"github.com/tidwall/gjson"
)

// FuzzUnwrap cuts a wrapper anywhere and expects what came in.
func FuzzUnwrap(f *testing.F) {
	f.Add("*** Begin\n+\"x\"\\ 🚀", 3)
	f.Add("", 1)
	f.Add("plain", 100)
	f.Fuzz(func(t *testing.T, input string, size int) {
		wrapped, err := json.Marshal(map[string]string{"in\"put": input})
		if err != nil {
			return
		}
		wanted := gjson.GetBytes(wrapped, `in"put`).Str
		var u unwrapper
		var got []byte
		for rest := string(wrapped); rest != ""; {
			n := min(max(size, 1), len(rest))
			got = u.feed(got, rest[:n])
			rest = rest[n:]
		}
		if got = u.rest(got); string(got) != wanted {
			t.Errorf("got %q, want %q", got, wanted)
		}
	})
}

func TestWhatIsNoWrapperIsTheInput(t *testing.T) {
	for _, s := range []string{`plain`, `{"input":{"a":1}}`, `[1]`, `{"input"`, `{input: "x"}`, `""`} {
		var u unwrapper
		got := u.rest(u.feed(nil, s))
		if string(got) != s {
			t.Errorf("got %q, want %q", got, s)
		}
	}
}
