package sandbox

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"stagedoor/providers/jsonw"
)

func appendJSONString(dst []byte, s string) []byte { return jsonw.AppendString(dst, s) }

// number makes a number within the bounds; siblings differ by number. A
// fraction is one that is not an integer, if it fits.
func (v view) number(integer, fraction bool, number int) string {
	low, hasLow := v.least("minimum")
	high, hasHigh := v.most("maximum")
	above, hasAbove := v.least("exclusiveMinimum")
	below, hasBelow := v.most("exclusiveMaximum")
	step := v.get("multipleOf").Num

	lowest, highest := math.Inf(-1), math.Inf(1)
	if hasLow {
		lowest = low.Num
	}
	if hasHigh {
		highest = high.Num
	}
	unit := 1.0
	if !integer {
		unit = gap(max(lowest, orInf(above.Num, hasAbove, -1)), min(highest, orInf(below.Num, hasBelow, 1)))
	}
	if hasAbove {
		lowest = max(lowest, above.Num+unit)
	}
	if hasBelow {
		highest = min(highest, below.Num-unit)
	}
	if integer && step == 0 {
		step = 1
	}
	n := 1 + float64(number)
	if n < lowest || n > highest {
		n = lowest + float64(number)*unit
		if math.IsInf(lowest, 0) {
			n = highest - float64(number)*unit
		}
	}
	if step > 0 {
		n = math.Ceil(n/step) * step
		if n > highest {
			n = math.Floor(highest/step) * step
		}
	}
	if half := n + unit/2; fraction && !integer && step == 0 && half <= highest {
		n = half
	}
	n = min(max(n, lowest), highest)
	if math.IsInf(n, 0) || math.IsNaN(n) {
		return "0"
	}
	// Beyond what a float64 holds exactly the bound's own spelling is the safe one.
	if hasLow && n == low.Num && number == 0 && step <= 1 {
		return low.Raw
	}
	if hasHigh && n == high.Num && number == 0 && step <= 1 {
		return high.Raw
	}
	return strconv.FormatFloat(n, 'f', -1, 64)
}

func orInf(n float64, has bool, sign int) float64 {
	if has {
		return n
	}
	return math.Inf(sign)
}

// gap is a distance that fits between two bounds several times.
func gap(low, high float64) float64 {
	if d := high - low; d > 0 && !math.IsInf(d, 0) {
		return min(1, d/4)
	}
	return 1
}

// formats are one string of each format.
var formats = map[string]string{
	"date-time": "2025-01-02T03:04:05Z", "date": "2025-01-02", "time": "03:04:05Z", "duration": "P1D", "email": "ada@example.com", "idn-email": "ada@example.com",
	"hostname": "example.com", "idn-hostname": "example.com", "uri": "https://example.com/", "uri-reference": "/a", "iri": "https://example.com/",
	"iri-reference": "/a", "url": "https://example.com/", "ipv4": "192.0.2.1", "ipv6": "2001:db8::1", "uuid": "00000000-0000-4000-8000-000000000000",
	"json-pointer": "/a", "relative-json-pointer": "0", "regex": "a", "uri-template": "/{a}",
}

// text makes a string of the right format, pattern and length.
func (v view) text(number int) string {
	low, _ := v.least("minLength")
	high, limited := v.most("maxLength")
	least, most := int(min(low.Num, longest)), longest
	if limited {
		most = int(min(max(high.Num, 0), longest))
	}
	if p := v.get("pattern"); p.Exists() {
		if s, ok := matching(p.Str, least, most); ok {
			return s
		}
	}
	if s, ok := formats[v.get("format").Str]; ok {
		return s
	}
	s := "sandbox"
	if number > 0 {
		s += " " + strconv.Itoa(number)
	}
	if n := utf8.RuneCountInString(s); n < least {
		s += strings.Repeat("x", least-n)
	}
	if len(s) > most {
		s = s[len(s)-most:] // the number is at the end
	}
	return s
}
