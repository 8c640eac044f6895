package draw

import (
	"fmt"
	"image"
	"image/color"
	"sort"
	"strings"
)

// named are the colours a description knows.
var named = []struct {
	name   string
	colour color.NRGBA
}{
	{"black", color.NRGBA{12, 12, 14, 255}}, {"grey", color.NRGBA{128, 128, 128, 255}}, {"white", color.NRGBA{245, 245, 245, 255}},
	{"red", color.NRGBA{210, 50, 45, 255}}, {"dark red", color.NRGBA{105, 25, 30, 255}}, {"orange", color.NRGBA{235, 140, 50, 255}},
	{"brown", color.NRGBA{110, 75, 45, 255}}, {"yellow", color.NRGBA{240, 215, 70, 255}}, {"cream", color.NRGBA{245, 230, 200, 255}},
	{"lime", color.NRGBA{165, 220, 70, 255}}, {"green", color.NRGBA{60, 150, 70, 255}}, {"dark green", color.NRGBA{25, 70, 40, 255}},
	{"turquoise", color.NRGBA{70, 190, 180, 255}}, {"teal", color.NRGBA{25, 95, 100, 255}}, {"sky blue", color.NRGBA{140, 195, 240, 255}},
	{"blue", color.NRGBA{55, 95, 200, 255}}, {"navy", color.NRGBA{22, 28, 75, 255}}, {"violet", color.NRGBA{120, 75, 185, 255}},
	{"lavender", color.NRGBA{200, 180, 240, 255}}, {"magenta", color.NRGBA{200, 65, 165, 255}}, {"pink", color.NRGBA{245, 180, 205, 255}},
	{"plum", color.NRGBA{80, 30, 80, 255}},
}

// grid is how many places along an edge are looked at.
const grid = 48

// Describe says what is seen of a picture: format, colours, light.
func Describe(m *image.NRGBA) string {
	small := sample(m, m.Rect, grid, grid)
	counts := make([]int, len(named))
	var light [2]int // of the upper and of the lower half
	for i := 0; i < len(small.Pix); i += 4 {
		p := small.Pix[i : i+4]
		counts[nearest(p)]++
		light[i*2/len(small.Pix)] += int(p[0]) + int(p[1]) + int(p[2])
	}
	return fmt.Sprintf("A %s picture of %dx%d pixels in %s, %s.",
		proportions(m), m.Rect.Dx(), m.Rect.Dy(), colourList(counts), fall(light[0], light[1]))
}

func proportions(m *image.NRGBA) string {
	switch w, h := m.Rect.Dx(), m.Rect.Dy(); {
	case w > h:
		return "landscape-format"
	case w < h:
		return "portrait-format"
	}
	return "square"
}

// colourList names the most frequent colours, up to three.
func colourList(counts []int) string {
	order := make([]int, len(named))
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(i, j int) bool { return counts[order[i]] > counts[order[j]] })
	var names []string
	for _, i := range order[:3] {
		if counts[i] > grid*grid/50 || len(names) == 0 {
			names = append(names, named[i].name)
		}
	}
	if len(names) == 1 {
		return names[0]
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

func fall(upper, lower int) string {
	switch {
	case upper > lower+lower/5:
		return "lit from above"
	case lower > upper+upper/5:
		return "brighter below than above"
	}
	return "evenly lit"
}

func nearest(p []uint8) int {
	best := 0
	for i := range named {
		if distance(p, named[i].colour) < distance(p, named[best].colour) {
			best = i
		}
	}
	return best
}

func nrgba(p []uint8) color.NRGBA { return color.NRGBA{p[0], p[1], p[2], p[3]} }

func distance(p []uint8, c color.NRGBA) int {
	return apartBy(p[0], c.R) + apartBy(p[1], c.G) + apartBy(p[2], c.B)
}

func apartBy(a, b uint8) int { return max(int(a), int(b)) - min(int(a), int(b)) }

// border is the average colour along the edges.
func border(m *image.NRGBA) color.NRGBA {
	var sum [3]int
	n, w, h := 0, m.Rect.Dx(), m.Rect.Dy()
	add := func(x, y int) {
		p := m.Pix[y*m.Stride+4*x:]
		sum[0], sum[1], sum[2] = sum[0]+int(p[0]), sum[1]+int(p[1]), sum[2]+int(p[2])
		n++
	}
	for x := range w {
		add(x, 0)
		add(x, h-1)
	}
	for y := range h {
		add(0, y)
		add(w-1, y)
	}
	return color.NRGBA{uint8(sum[0] / n), uint8(sum[1] / n), uint8(sum[2] / n), 255}
}
