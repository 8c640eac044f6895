package cli

import (
	"strings"
	"testing"
	"time"
)

func TestAmountsAreAlignedAtTheirDecimalPoints(t *testing.T) {
	var out strings.Builder
	next := "b"
	err := Table(&out, "NAME SPENT COUNT NOTE", &next, func(line func(...any)) {
		line("anna", Amount(1_500_000), 5, "")
		line("b\x1b", Amount(-12_000_001), int64(1200), "x")
	})
	const want = "NAME       SPENT  COUNT  NOTE\n" +
		"anna    1.50          5  -\n" +
		"b?    -12.000001   1200  x\n" +
		"\nThere is more: --after b\n"
	if got := out.String(); err != nil || got != want {
		t.Errorf("%v\n%s\nwant\n%s", err, got, want)
	}
}

func TestDurationsMayBeInDays(t *testing.T) {
	for text, want := range map[string]time.Duration{"30d": 720 * time.Hour, "1d12h": 36 * time.Hour, "0": 0,
		"90s": 90 * time.Second,
		"0d":  0, "-5s": -5 * time.Second} {
		var d Duration
		if err := d.Set(text); err != nil || time.Duration(d) != want {
			t.Errorf("%s is %s, %v", text, &d, err)
		}
	}
	for _, text := range []string{"", "d", "1.5d", "-1d", "1d-2h", "100001d", "1d2", "2d1d", "soon", "1w"} {
		var d Duration
		if err := d.Set(text); err == nil {
			t.Errorf("%q is %s", text, &d)
		}
	}
}

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
