package dialogue_test

import (
	"slices"
	"strings"
	"testing"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/dialogue/dialoguetest"
)

// The same history always gets the same ids, because they depend on nothing but the position, name,
// arguments and id of each call. Ids that are fit stay as they are.
func TestIDsOfCallsAreAFunctionOfTheHistory(t *testing.T) {
	long := strings.Repeat("x", 41)
	history := []dialogue.Call{
		{ID: "a", Name: "f"}, {ID: "a", Name: "f"}, {Name: "f"}, {Name: "f"}, {Name: "f", Args: "{}"}, {ID: long},
		{ID: "a.b"}, {ID: long}, {ID: "toolu_01"},
	}
	all := func(limit int) (out []string) {
		ids := dialogue.NewCallIDs(limit)
		for i := range history {
			out = append(out, ids.Of(&history[i]))
		}
		return out
	}
	first, seen := all(dialogue.MaxCallID), map[string]bool{}
	for i, id := range first {
		if seen[id] || len(id) > dialogue.MaxCallID || strings.Trim(id, "_") == "" || strings.Contains(id, ".") {
			t.Errorf("call %d: %q", i, id)
		}
		seen[id] = true
	}
	if first[0] != "a" || first[8] != "toolu_01" || all(64)[5] != long {
		t.Errorf("ids that are fit changed: %q", first)
	}
	for i, id := range all(dialogue.MaxCallID) {
		if id != first[i] {
			t.Errorf("call %d: %q, then %q", i, first[i], id)
		}
	}
	history[2].Args = `{"other":1}`
	if changed := all(dialogue.MaxCallID); changed[2] == first[2] || changed[3] != first[3] {
		t.Errorf("got %q, then %q", first, changed)
	}
}

// Clients get no id that another upstream would refuse when the client sends it back.
func TestClientsGetIDsThatEveryUpstreamTakes(t *testing.T) {
	env := dialoguetest.NewEnv(0, strings.Repeat("i", 48))
	for _, id := range []string{env.CallID(), env.ClientCallID(""), env.ClientCallID(strings.Repeat("x", 64)),
		env.ClientCallID("a b"), env.ClientCallID("toolu_1")} {
		if len(id) > dialogue.MaxCallID || strings.Contains(id, " ") || id == "" {
			t.Errorf("%q", id)
		}
	}
	if first, second := env.CallID(), env.CallID(); first == second {
		t.Error("a new id repeats")
	}
}

// Upstreams that count their calls give the same ids in every conversation. What is remembered for a call of one
// conversation must not be found in another.
func TestCallsThatAnUpstreamCountsGetIDsOfTheirOwn(t *testing.T) {
	env := dialoguetest.NewLiveEnv()
	env.Signatures = dialoguetest.SignatureMap{}
	first, second := env.ClientCallID("functions.search:0"), env.ClientCallID("functions.search:0")
	env.RememberThoughts(first, []dialogue.Thinking{{Text: "a"}, {Text: "b"}})
	env.RememberThoughts(second, []dialogue.Thinking{{Text: "c"}})
	recall := env.NewThoughtRecall(nil)
	one, two := recall.Before(first), recall.Before(second)
	if len(one) != 2 || one[0].Text != "a" || one[1].Text != "b" || len(two) != 1 || two[0].Text != "c" {
		t.Errorf("got %+v and %+v", one, two)
	}
	env.RememberThoughts(first, []dialogue.Thinking{{Text: "d"}})
	recall = env.NewThoughtRecall(nil)
	if again := recall.Before(first); len(again) != 1 || again[0].Text != "d" {
		t.Errorf("later thoughts are mixed with earlier ones: %+v", again)
	}
}

// A request may repeat the id of a call thousands of times, or name every call that its owner has made.
func TestARequestRecallsTheThoughtsOfACallOnceAndABoundedAmount(t *testing.T) {
	env := dialoguetest.NewEnv(0, "i")
	env.RememberThoughts("a", []dialogue.Thinking{{Text: "why"}})
	large := strings.Repeat("x", 300<<10) // two of them fit into what the smallest request may recall
	for _, id := range []string{"b", "c", "d"} {
		env.RememberThoughts(id, []dialogue.Thinking{{Text: large}})
	}
	recalled := func(body string, ids ...string) (counts []int) {
		recall := env.NewThoughtRecall([]byte(body))
		for _, id := range ids {
			counts = append(counts, len(recall.Before(id)))
		}
		return counts
	}
	if got := recalled("{}", "a", "a", "none", "a"); !slices.Equal(got, []int{1, 0, 0, 0}) {
		t.Errorf("of one id: %v", got)
	}
	if got := recalled("{}", "b", "c", "d", "a"); !slices.Equal(got, []int{1, 1, 0, 1}) {
		t.Errorf("by a small request: %v", got)
	}
	if got := recalled(large+large, "b", "c", "d", "a"); !slices.Equal(got, []int{1, 1, 1, 1}) {
		t.Errorf("by a large request: %v", got)
	}
}
