package dialogue_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"stagedoor/providers/dialogue"
)

func TestLossesOfHostileNamesStayShort(t *testing.T) {
	for name, want := range map[string]string{
		"stop:truncated":            "stop:truncated",
		"generationConfig.x":        "generationConfig.x",
		"":                          "unknown_field",
		strings.Repeat("a", 64):     strings.Repeat("a", 64),
		strings.Repeat("a", 3000):   "unknown_field",
		"x\r\nSet-Cookie: a=b":      "unknown_field",
		"a,b":                       "unknown_field",
		"a sentence that is secret": "unknown_field",
		"\u2603":                    "unknown_field",
	} {
		var r dialogue.Report
		r.Lose(name)
		if got := r.Header(); got != want {
			t.Errorf("%.40q: got %q, want %q", name, got, want)
		}
	}
}

func TestLossesAreBoundedAndRecordedOnce(t *testing.T) {
	var r dialogue.Report
	r.Lose("seed")
	r.Lose("seed")
	if got := r.Header(); got != "seed" {
		t.Errorf("got %q", got)
	}
	for i := range 100_000 {
		r.Lose(fmt.Sprintf("%s_%d", strings.Repeat("n", 50), i))
	}
	if n := len(r.Losses()); n > 64 {
		t.Errorf("%d losses are kept", n)
	}
	if got := r.Header(); len(got) > 1024 || strings.HasSuffix(got, ",") || !strings.HasPrefix(got, "seed,") {
		t.Errorf("the header has %d bytes: %.80s", len(got), got)
	}
}

func TestSumsOfUsageStayNegativeOnceACountWas(t *testing.T) {
	counts := func(in, out int64) dialogue.Usage {
		u := dialogue.NoUsage
		u.InputTotal, u.OutputTotal = in, out
		return u
	}
	for _, tt := range []struct {
		name    string
		parts   []dialogue.Usage
		want    dialogue.Usage
		largest int64
	}{
		{"positive", []dialogue.Usage{counts(1, 2), counts(3, 4)}, counts(4, 6), 3},
		{"one is unknown", []dialogue.Usage{counts(1, 2), dialogue.NoUsage}, counts(1, 2), 1},
		{"the last is negative", []dialogue.Usage{counts(1, 2), counts(3, dialogue.NegativeCount)},
			counts(4, dialogue.NegativeCount), 3},
		{"the first is negative", []dialogue.Usage{counts(1, -50), counts(3, 4)}, counts(4, dialogue.NegativeCount), 3},
		{"beyond what fits", []dialogue.Usage{counts(math.MaxInt64, 1), counts(3, math.MaxInt64)},
			counts(math.MaxInt64, math.MaxInt64), math.MaxInt64},
	} {
		sum := dialogue.NoUsage
		for _, u := range tt.parts {
			sum.Add(u)
		}
		tt.want.LargestInput = tt.largest
		if sum != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.name, sum, tt.want)
		}
	}
}
