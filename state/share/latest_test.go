package share_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"stagedoor/state/share"
)

// TestLatestGivesUpValuesOfTheOwnerThatHasMost runs generated additions against
// a model.
func TestLatestGivesUpValuesOfTheOwnerThatHasMost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 12).Draw(t, "size")
		l := share.NewLatest[int](size)
		model := make(map[string][]int) // the oldest first
		used := 0
		owner := rapid.SampledFrom([]string{"a", "b", "c", "d"})
		for n := range rapid.IntRange(1, 100).Draw(t, "steps") {
			name := owner.Draw(t, "owner")
			gone, full := l.Add(name, n)
			if full != (used == size) {
				t.Fatalf("%d of %d: full is %v", used, size, full)
			}
			if full {
				most := 0
				for _, values := range model {
					most = max(most, len(values))
				}
				found := false
				for other, values := range model {
					if len(values) > 0 && values[0] == gone {
						found = len(values) == most
						model[other] = values[1:]
					}
				}
				if !found {
					t.Fatalf("%d is gone, which is not the oldest of an owner that has most: %v", gone, model)
				}
				used--
			}
			model[name] = append(model[name], n)
			used++
			var want []int
			for _, values := range model {
				want = append(want, values...)
			}
			got := l.All(nil)
			slices.Sort(want)
			slices.Sort(got)
			if !slices.Equal(got, want) || l.Len() != used {
				t.Fatalf("kept %v, want %v", got, want)
			}
		}
	})
}

func TestOneOwnerCannotPushOutLatestValuesOfOthers(t *testing.T) {
	l := share.NewLatest[string](100)
	for i := range 10 {
		l.Add("small", fmt.Sprint("small-", i))
	}
	for i := range 10_000 {
		if gone, full := l.Add("large", fmt.Sprint("large-", i)); full && gone[:5] != "large" {
			t.Fatalf("%s is gone", gone)
		}
	}
	if got := l.All(nil); len(got) != 100 || !slices.Contains(got, "small-0") || !slices.Contains(got, "large-9999") {
		t.Errorf("%d are kept", len(got))
	}
}

func BenchmarkLatestAdd(b *testing.B) {
	l := share.NewLatest[int](1024)
	owners := make([]string, 100)
	for i := range owners {
		owners[i] = fmt.Sprint("user:", i)
	}
	b.ReportAllocs()
	for i := range b.N {
		l.Add(owners[i%7*13%100], i)
	}
}
