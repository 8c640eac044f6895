package draw

import (
	"image"
	"image/color"
	"strings"
	"sync"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gomedium"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
)

const (
	captionLines = 3
	captionRunes = 240
	// smallest is the shorter edge of pictures that have room for words.
	smallest = 96
)

var typeface = sync.OnceValues(func() (*opentype.Font, error) { return opentype.Parse(gomedium.TTF) })

// caption writes text on a dark strip at the bottom. A picture without it is
// better than none, so a font that cannot be read is nobody's error.
func (c *canvas) caption(text string) {
	text = strings.Join(strings.Fields(firstRunes(text, captionRunes)), " ")
	if text == "" || c.short() < smallest {
		return
	}
	parsed, err := typeface()
	if err != nil {
		return
	}
	size := min(max(c.short()/26, 9), 64)
	face, err := opentype.NewFace(parsed, &opentype.FaceOptions{Size: size, DPI: 72, Hinting: font.HintingFull})
	if err != nil {
		return
	}
	defer face.Close()
	margin, height := int(size), int(size*1.35)
	lines := wrap(face, text, fixed.I(c.width()-2*margin))
	top := c.height() - height*len(lines) - margin
	c.strip(top - margin/2)
	for i, line := range lines {
		c.write(face, line, margin, top+margin/4+height*i+int(size))
	}
}

func firstRunes(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// wrap breaks text into lines of at most width. What does not fit ends in dots.
func wrap(face font.Face, text string, width fixed.Int26_6) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		switch longer := strings.TrimPrefix(line+" "+word, " "); {
		case font.MeasureString(face, longer) <= width:
			line = longer
		case len(lines) == captionLines-1:
			return append(lines, shorten(face, longer, width))
		case line == "":
			line = shorten(face, word, width)
		default:
			lines, line = append(lines, line), shorten(face, word, width)
		}
	}
	return append(lines, line)
}

// shorten cuts the end off a text that is too long.
func shorten(face font.Face, text string, width fixed.Int26_6) string {
	const dots = "..."
	if font.MeasureString(face, text) <= width {
		return text
	}
	width -= font.MeasureString(face, dots)
	var at fixed.Int26_6
	for i, r := range text {
		advance, _ := face.GlyphAdvance(r)
		if at += advance; at > width {
			return text[:i] + dots
		}
	}
	return text
}

// strip darkens everything below y, and makes it solid.
func (c *canvas) strip(y int) {
	night := mix(c.colours.deep, color.NRGBA{0, 0, 0, 255}, 0.5)
	for y := max(y, 0); y < c.height(); y++ {
		row := c.row(y)
		for x := 0; x < len(row); x += 4 {
			tint(row[x:], night, 200)
			row[x+3] = 255
		}
	}
}

// write puts one line with its baseline at y.
func (c *canvas) write(face font.Face, text string, x, y int) {
	ink := color.NRGBA{255, 255, 255, 255}
	dot := fixed.P(x, y)
	for _, r := range text {
		box, mask, at, advance, _ := face.Glyph(dot, r)
		if alpha, ok := mask.(*image.Alpha); ok {
			c.stamp(alpha, box, at, ink)
		}
		dot.X += advance
	}
}

// stamp mixes ink in where a glyph's mask covers box.
func (c *canvas) stamp(mask *image.Alpha, box image.Rectangle, at image.Point, ink color.NRGBA) {
	seen := box.Intersect(c.Rect)
	for y := seen.Min.Y; y < seen.Max.Y; y++ {
		row := c.row(y)
		for x := seen.Min.X; x < seen.Max.X; x++ {
			a := mask.AlphaAt(at.X+x-box.Min.X, at.Y+y-box.Min.Y).A
			tint(row[4*x:], ink, int(a)*256/255)
		}
	}
}
