package sizes

import (
	"fmt"
	"strings"
)

// Shape describes a generated JSON value by numbers that a fuzzer can choose.
type Shape struct {
	// Pattern chooses what the levels and the leaves are: its lowest bits say whether levels
	// are objects, whether items are objects, and whether names and items repeat; the others
	// choose the leaf.
	Pattern uint8
	// Depth is the number of levels around the items.
	Depth int
	// Width is the number of items.
	Width int
	// Length is the length of each leaf.
	Length int
}

// Most is the longest value that Generated returns, about.
const Most = 1 << 20

var leaves = []func(n int) string{
	func(n int) string { return `"` + strings.Repeat("x", n) + `"` },
	func(n int) string { return "1" + strings.Repeat("0", n) },
	func(n int) string { return `"` + strings.Repeat(`\"`, n/2) + `"` },
	func(n int) string { return `"` + strings.Repeat("\u4f60", n/3) + `"` },
	func(n int) string { return strings.Repeat(" ", n) + "null" },
	func(n int) string { return `{"` + strings.Repeat("n", n) + `":0}` },
	func(n int) string { return `"` + strings.Repeat("[", n) + `"` },
	func(n int) string { return `{"type":"text","text":"` + strings.Repeat("x", n) + `"}` },
}

// Generated returns a JSON value of a shape. What would make it longer than Most is cut down.
func Generated(s Shape) string {
	leaf := leaves[int(s.Pattern>>3)%len(leaves)](bounded(s.Length, Most/2))
	width := bounded(s.Width, Most/(len(leaf)+16)) + 1
	items, inObjects, repeat := s.Pattern&2 != 0, s.Pattern&1 != 0, s.Pattern&4 != 0
	var b strings.Builder
	opening, closing := "[", "]"
	if items {
		opening, closing = "{", "}"
	}
	b.WriteString(opening)
	for i := range width {
		if i > 0 {
			b.WriteByte(',')
		}
		switch {
		case items && repeat:
			b.WriteString(`"n":`)
		case items:
			fmt.Fprintf(&b, `"n%d":`, i)
		}
		b.WriteString(leaf)
	}
	value := b.String() + closing
	depth := bounded(s.Depth, Most/8)
	if inObjects {
		return strings.Repeat(`{"a":`, depth) + value + strings.Repeat("}", depth)
	}
	return strings.Repeat("[", depth) + value + strings.Repeat("]", depth)
}

// bounded is n modulo the numbers up to most.
func bounded(n, most int) int { return max(n, 0) % (max(most, 0) + 1) }
