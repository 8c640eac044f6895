package portal

import "testing"

func TestDollarsAreReadExactly(t *testing.T) {
	for text, want := range map[string]int64{"": 0, "0": 0, "1": 1_000_000, "12.50": 12_500_000, ".5": 500_000,
		"5.": 5_000_000, "0.000001": 1, "-2.5": -2_500_000, "1000000000": 1_000_000_000_000_000} {
		if got, ok := parseDollars(text); !ok || got != want {
			t.Errorf("%q: %d %t", text, got, ok)
		}
	}
	for _, text := range []string{".", "-", "-.", "1.0000001", "1,5", "1e3", "+1", "--1", "1.-5", "1.+5", "1000000001",
		"99999999999999999999999999", "٣", " 1", "0x1", "1_0"} {
		if got, ok := parseDollars(text); ok {
			t.Errorf("%q: %d", text, got)
		}
	}
}

func FuzzParseDollars(f *testing.F) {
	for _, s := range []string{"12.50", "-1", ".", "1.234567"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if n, ok := parseDollars(text); ok && (n > 1_000_000_000_000_000 || n < -1_000_000_000_000_000) {
			t.Errorf("%q: %d", text, n)
		}
	})
}
