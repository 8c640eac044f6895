package cli

import "testing"

func TestDollarsAreReadAndWrittenExactly(t *testing.T) {
	for text, want := range map[string]int64{"1": 1_000_000, "0.000001": 1, "12.50": 12_500_000, "-3.1": -3_100_000,
		"999999999": 999_999_999_000_000} {
		var m Amount
		if err := m.Set(text); err != nil || int64(m) != want {
			t.Errorf("%s is %d (%v), want %d", text, m, err, want)
		}
	}
	for _, text := range []string{"", ".", ".5", "1.0000001", "1,5", "+1", "--1", "1 ", "99999999999999999999",
		"NaN", "٣"} {
		var m Amount
		if err := m.Set(text); err == nil {
			t.Errorf("%q is %d", text, m)
		}
	}
	for n, want := range map[int64]string{0: "0.00", 1: "0.000001", 12_500_000: "12.50", -3_100_000: "-3.10",
		1_234_567: "1.234567"} {
		if got := Dollars(n); got != want {
			t.Errorf("%d is written %s, want %s", n, got, want)
		}
	}
}
