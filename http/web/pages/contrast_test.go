package pages

import (
	"math"
	"regexp"
	"strconv"
	"testing"
)

var colourPair = regexp.MustCompile(`--([a-z0-9-]+): light-dark\(#([0-9a-f]{6}), #([0-9a-f]{6})\);`)

// TestColoursContrastInBothThemes holds text to a contrast of 4.5:1 and other marks that mean something to 3:1
// (WCAG 2.2, 1.4.3 and 1.4.11).
func TestColoursContrastInBothThemes(t *testing.T) {
	source, err := assetFiles.ReadFile("assets/stagedoor.css")
	if err != nil {
		t.Fatal(err)
	}
	themes := []map[string]string{{}, {}}
	for _, m := range colourPair.FindAllStringSubmatch(string(source), -1) {
		themes[0][m[1]], themes[1][m[1]] = m[2], m[3]
	}
	for i, colours := range themes {
		theme := []string{"light", "dark"}[i]
		check := func(least float64, over string, names ...string) {
			for _, name := range names {
				if colours[name] == "" || colours[over] == "" {
					t.Errorf("%s: no colour %s or %s", theme, name, over)
				} else if got := contrast(colours[name], colours[over]); got < least {
					t.Errorf("%s: %s on %s is %.2f:1, want %.1f:1", theme, name, over, got, least)
				}
			}
		}
		for _, over := range []string{"page", "card", "sunk", "field", "hover"} {
			check(4.5, over, "text", "quiet", "link")
		}
		check(4.5, "bad-soft", "bad", "text")
		check(4.5, "good-soft", "good")
		check(4.5, "lamp-soft", "lamp-text", "text")
		check(4.5, "card", "bad", "good", "lamp-text")
		check(4.5, "accent", "on-accent")
		check(4.5, "accent-strong", "on-accent")
		check(4.5, "accent-soft", "link")
		check(4.5, "side", "side-text", "side-quiet")
		check(4.5, "side-hover", "side-text", "side-quiet")
		check(4.5, "side-line", "side-quiet")
		check(3, "page", "field-line", "accent")
		for _, over := range []string{"card", "sunk"} {
			check(3, over, "p-queue", "p-wait", "p-reply", "p-retry", "p-fail", "p-own")
		}
		check(3, "card", "field-line", "accent", "c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8")
	}
}

func contrast(a, b string) float64 {
	la, lb := luminance(a), luminance(b)
	return (max(la, lb) + 0.05) / (min(la, lb) + 0.05)
}

func luminance(colour string) float64 {
	sum := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		n, _ := strconv.ParseUint(colour[2*i:2*i+2], 16, 8) // the pattern has digits only
		c := float64(n) / 255
		if c <= 0.04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum
}
