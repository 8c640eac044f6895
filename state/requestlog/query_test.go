package requestlog

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestASearchThatMakesNoSenseSaysWhy(t *testing.T) {
	for text, want := range map[string]string{
		"is:green": "is: must be one of", "status:9": "status: must be", "status:abc": "status: must be",
		"cost:>x": "cost: must be a number",
		"took:-1": "took: must be a number", "colour:red": "colour: is no field",
		"cost:>1e300":            "cost: must be a number",
		strings.Repeat("a ", 17): "more than 16", strings.Repeat("a", 501): "longer than 500", "\xff": "UTF-8",
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %v, want %s", text, err, want)
		}
	}
}

func TestASearchIsReadAsTyped(t *testing.T) {
	for text, want := range map[string][]Term{
		"  ":              nil,
		"a  b":            {{Text: "a"}, {Text: "b"}},
		`user:"a b" "c d`: {{Field: "user", Text: "a b"}, {Text: "c d"}},
		"COST:>=$0.10":    {{Field: "cost", Operator: ">=", Number: 100_000}},
		"took:<1.5s":      {{Field: "took", Operator: "<", Number: 1_500_000}},
		"in:7":            {{Field: "in", Operator: "=", Number: 7}},
		"status:5XX":      {{Field: "status", Text: "5xx"}},
		"status:+0429":    {{Field: "status", Text: "429"}},
		"12:30":           {{Text: "12:30"}},
		"user: - ()":      {{Text: "user:"}},
	} {
		if got, err := Parse(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}

// Whatever is typed, the condition has balanced quotes with nothing but words in them.
func FuzzASearchCannotChangeTheStatement(f *testing.F) {
	for _, seed := range []string{`a" OR b`, "user:x*", "cost:>0.1 -marks", "NEAR(a b)", "key:'; DROP TABLE requests"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		terms, err := Parse(text)
		if err != nil {
			return
		}
		q := Query{Owner: "user:bob", Terms: terms}
		conditions := q.KindConditions()
		if conditions[0] != (KindCondition{Match: "marks : (owner757365723a626f62)"}) {
			t.Fatalf("%q: the owner is not asked for in %+v", text, conditions[0])
		}
		for _, c := range conditions {
			parts := strings.Split(c.Match, `"`)
			for i := 0; i < len(parts); i += 2 {
				if len(parts)%2 != 1 || strings.Trim(parts[i], "abcdefghijklmnopqrstuvwxyz0123456789 :()*-OR") != "" {
					t.Errorf("%q: %q is no syntax of ours", text, c.Match)
				}
			}
		}
		for i, part := range strings.Split(q.TSQuery(), "'") {
			if i%2 == 0 && strings.Trim(part, " ()&|<->:*") != "" || i%2 == 1 && strings.ContainsAny(part, ` \'`) {
				t.Errorf("%q: %q is no lexeme and no syntax of ours", text, part)
			}
		}
	})
}

func TestAMagnitudeGrowsWithItsNumber(t *testing.T) {
	last := -1
	for n := int64(0); n < 1<<62; n += 1 + n/7 {
		m := magnitude(n)
		if m < last || m > largest {
			t.Fatalf("%d has %d after %d", n, m, last)
		}
		last = m
	}
	for range 1000 { // every number that satisfies a comparison has one of its marks
		n, x := rand.Int64N(1<<40), rand.Int64N(1<<40)
		for _, operator := range []string{">", ">=", "<", "<=", "="} {
			term := Term{Field: "cost", Operator: operator, Number: x}
			if term.Holds(n) && !slices.Contains(term.magnitudes(), "cost"+strconv.Itoa(magnitude(n))) {
				t.Errorf("%d %s %d", n, operator, x)
			}
		}
	}
}

func TestARequestWhoseClientLeftIsNotAFailure(t *testing.T) {
	for status, want := range map[int]bool{OK: false, ClientLeft: false, 429: true, 502: true} {
		if r := (Record{Status: status}); r.Failed() != want {
			t.Errorf("%d: failed is %t", status, r.Failed())
		}
	}
}
