package journal

import (
	"bytes"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestOverlaysKeepTheNewestChange: however changes are spread over commits and two
// overlays, and whenever the indexes grow, each record is as its last change left it.
func TestOverlaysKeepTheNewestChange(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		older, newest := &overlay{}, &overlay{}
		last := map[string][]byte{}
		key := rapid.SliceOfN(rapid.ByteRange('a', 'd'), 1, 2)
		check := func() {
			for k, want := range last {
				sealed, found := newest.get(0, []byte(k))
				if !found {
					sealed, found = older.get(0, []byte(k))
				}
				if !found || (sealed == nil) != (want == nil) || !bytes.Equal(sealed, want) {
					rt.Fatalf("%q is %q (%t), want %q", k, sealed, found, want)
				}
			}
		}
		for i := range rapid.IntRange(0, 8).Draw(rt, "commits") {
			commit, n := &overlay{lsn: uint64(i + 1)}, rapid.IntRange(0, 5).Draw(rt, "changes")
			if rapid.Bool().Draw(rt, "expected") {
				commit.expect(0, n)
			}
			for j := range n {
				c := change{key: key.Draw(rt, "key")}
				if rapid.Bool().Draw(rt, "put") {
					c.sealed = []byte{byte(i), byte(j)}
				}
				commit.put(0, c)
				last[string(c.key)] = c.sealed
				if rapid.IntRange(0, 3).Draw(rt, "read") == 0 {
					commit.get(0, c.key)
				}
			}
			into := newest
			if newest.lsn == 0 && rapid.Bool().Draw(rt, "older") {
				into = older
			}
			into.add(commit)
			if rapid.Bool().Draw(rt, "look") {
				check()
			}
		}
		check()
		from, to := key.Draw(rt, "from"), rapid.OneOf(rapid.Just([]byte(nil)), key).Draw(rt, "to")
		var want []string
		for k := range last {
			if k >= string(from) && (to == nil || k < string(to)) {
				want = append(want, k)
			}
		}
		slices.Sort(want)
		got := collect(0, from, to, newest, older)
		if len(got) != len(want) {
			rt.Fatalf("%d changes of %d records", len(got), len(want))
		}
		for i, c := range got {
			if sealed := last[want[i]]; string(c.key) != want[i] || (c.sealed == nil) != (sealed == nil) || !bytes.Equal(c.sealed, sealed) {
				rt.Fatalf("change %d is of %q: %q, want %q: %q", i, c.key, c.sealed, want[i], sealed)
			}
		}
	})
}
