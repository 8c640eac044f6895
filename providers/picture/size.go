package picture

import (
	"strconv"
	"strings"
)

// Size is a width and a height in pixels. The zero Size means that the model chooses.
type Size struct{ Width, Height int }

// maxDigits bounds an edge, so that the product of two edges does not overflow.
const maxDigits = 5

// ParseSize reads a size such as "1024x768". It takes digits without a leading zero only.
func ParseSize(s string) (Size, bool) { return parsePair(s, maxDigits) }

// String returns the size as WIDTHxHEIGHT, or auto.
func (s Size) String() string {
	if s == (Size{}) {
		return "auto"
	}
	return strconv.Itoa(s.Width) + "x" + strconv.Itoa(s.Height)
}

// Pixels returns the width times the height.
func (s Size) Pixels() int64 { return int64(s.Width) * int64(s.Height) }

// Aspect is the ratio of width to height. The zero Aspect means that none was given.
type Aspect struct{ Width, Height int }

// ParseAspect reads a ratio such as "16x9".
func ParseAspect(s string) (Aspect, bool) {
	p, ok := parsePair(s, 2)
	return Aspect(p), ok
}

// Ratio returns the ratio as in "16:9".
func (a Aspect) Ratio() string { return strconv.Itoa(a.Width) + ":" + strconv.Itoa(a.Height) }

// parsePair reads a size such as 1024x768. Each of its numbers has at most this number of digits.
func parsePair(s string, digits int) (Size, bool) {
	w, h, ok := strings.Cut(s, "x")
	width, okWidth := parseEdge(w, digits)
	height, okHeight := parseEdge(h, digits)
	return Size{width, height}, ok && okWidth && okHeight
}

// parseEdge reads one number of a size. strconv.Atoi would also take signs and leading zeros.
func parseEdge(s string, digits int) (int, bool) {
	if s == "" || len(s) > digits || s[0] == '0' {
		return 0, false
	}
	n := 0
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, true
}
