package sizes_test

import (
	"testing"

	"stagedoor/providers/shapes"
	"stagedoor/providers/shapes/registry"
	"stagedoor/test/sizes"
)

// most is the largest input of the fuzz targets.
const most = 1 << 20

// FuzzSizesOfRequests holds memory and time of requests against sizes that the fuzzer
// chooses: shape and template, form, bytes and how often the form is repeated.
func FuzzSizesOfRequests(f *testing.F) {
	for shape := range uint8(5) {
		for form := range uint8(len(sizes.Forms)) {
			if !testing.Short() || (shape+form)%4 == 0 {
				f.Add(shape, shape, form, uint32(64<<10), uint8(form%3))
			}
		}
	}
	f.Fuzz(func(t *testing.T, shape, template, form uint8, length uint32, repetition uint8) {
		name := inbound()[int(shape)%len(requests)]
		templates := requests[name]
		input := in(templates[int(template)%len(templates)])(generated(form, length, repetition))
		holdBounds(t, input, counted(input), func(input string) {
			readRequest(registry.ByName()[name], []byte(input))
		})
	})
}

// FuzzShapesOfRequests is the same for values that the fuzzer describes by pattern, depth, width
// and length.
func FuzzShapesOfRequests(f *testing.F) {
	for shape := range uint8(5) {
		for pattern := range uint8(8) {
			if !testing.Short() || (shape+pattern)%4 == 0 {
				f.Add(shape, shape+pattern, pattern*9, uint32(pattern)*30, uint32(1000), uint32(40))
			}
		}
	}
	f.Fuzz(func(t *testing.T, shape, template, pattern uint8, depth, width, length uint32) {
		name := inbound()[int(shape)%len(requests)]
		templates := requests[name]
		described := sizes.Shape{Pattern: pattern, Depth: int(depth), Width: int(width), Length: int(length)}
		value := sizes.Generated(described)
		input := in(templates[int(template)%len(templates)])(value)
		holdBounds(t, input, counted(input), func(input string) {
			readRequest(registry.ByName()[name], []byte(input))
		})
	})
}

// FuzzSizesOfReplies is the same for whole replies, translated and passed through.
func FuzzSizesOfReplies(f *testing.F) {
	for shape := range uint8(5) {
		for form := range uint8(len(sizes.Forms)) {
			if !testing.Short() || (shape+form)%4 == 0 {
				f.Add(shape, shape, form, uint32(64<<10), uint8(form%3))
			}
		}
	}
	f.Fuzz(func(t *testing.T, shape, template, form uint8, length uint32, repetition uint8) {
		name := inbound()[int(shape)%len(requests)]
		templates := replies[name].whole
		input := in(templates[int(template)%len(templates)])(generated(form, length, repetition))
		holdBounds(t, input, 0, func(input string) { parse(registry.ByName()[name], "", input, true) })
		holdBounds(t, input, 0, func(input string) {
			_, _ = registry.ByName()[name].NewTap(shapes.TapOptions{Model: "m"}, newEnv()).Body([]byte(input))
		})
	})
}

// generated is a value of at most about length bytes, alone or as the items of a list.
func generated(form uint8, length uint32, repetition uint8) string {
	n, f := int(length)%most, sizes.Forms[int(form)%len(sizes.Forms)]
	if repetition == 0 {
		return f.JSON(n)
	}
	item := f.JSON(n / (int(repetition) * int(repetition)))
	return sizes.Items("", func(int) string { return item }).JSON(n)
}

// holdBounds fails the test if reading input breaks a bound in three attempts. The program has
// counted so many bytes against its memory before.
func holdBounds(t *testing.T, input string, counted int64, read func(input string)) {
	t.Helper()
	var cost sizes.Cost
	for attempt := range 3 {
		if cost = sizes.Measure(attempt, func() { read(input) }); cost.Within(len(input), counted) {
			return
		}
	}
	t.Errorf("%d bytes %.80q took %d bytes of memory and %v", len(input), input, cost.Peak, cost.CPU)
}
