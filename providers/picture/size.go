package picture

import (
	"strconv"
	"strings"
)

// Size is WIDTHxHEIGHT in pixels; the zero Size is automatic.
type Size struct{ Width, Height int }

// maxDigits bounds an edge, so that no arithmetic on two of them overflows.
const maxDigits = 5

// ParseSize reads "1024x768": plain digits, no leading zero.
func ParseSize(s string) (Size, bool) { return pair(s, maxDigits) }

func (s Size) String() string {
	if s == (Size{}) {
		return "auto"
	}
	return strconv.Itoa(s.Width) + "x" + strconv.Itoa(s.Height)
}

// Pixels is the area.
func (s Size) Pixels() int64 { return int64(s.Width) * int64(s.Height) }

// Aspect is a ratio WIDTH:HEIGHT; the zero Aspect is not given.
type Aspect struct{ Width, Height int }

// ParseAspect reads "16x9".
func ParseAspect(s string) (Aspect, bool) {
	p, ok := pair(s, 2)
	return Aspect(p), ok
}

// Ratio is "16:9".
func (a Aspect) Ratio() string { return strconv.Itoa(a.Width) + ":" + strconv.Itoa(a.Height) }

func pair(s string, digits int) (Size, bool) {
	w, h, ok := strings.Cut(s, "x")
	width, good := edge(w, digits)
	height, too := edge(h, digits)
	return Size{width, height}, ok && good && too
}

func edge(s string, digits int) (int, bool) {
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
