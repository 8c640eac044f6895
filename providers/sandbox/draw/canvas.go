package draw

import (
	"image"
	"image/color"
	"math"
)

// canvas is a picture being drawn. Its shapes have soft edges.
type canvas struct {
	*image.NRGBA
	colours palette
	phase   float64
}

func (c *canvas) width() int  { return c.Rect.Dx() }
func (c *canvas) height() int { return c.Rect.Dy() }

// short is the shorter edge, which shapes are measured by.
func (c *canvas) short() float64 { return float64(min(c.width(), c.height())) }

func (c *canvas) row(y int) []uint8 { return c.Pix[y*c.Stride : y*c.Stride+4*c.width()] }

// fill colours the pixels from x0 up to x1 of a row.
func fill(row []uint8, x0, x1 int, p color.NRGBA) {
	if x0 >= x1 {
		return
	}
	span := row[4*x0 : 4*x1]
	span[0], span[1], span[2], span[3] = p.R, p.G, p.B, p.A
	for done := 4; done < len(span); done *= 2 {
		copy(span[done:], span[:done])
	}
}

// tint mixes w/256 of a colour into a pixel.
func tint(pix []uint8, p color.NRGBA, w int) {
	_ = pix[2]
	pix[0], pix[1], pix[2] = blend(pix[0], p.R, w), blend(pix[1], p.G, w), blend(pix[2], p.B, w)
}

// wash fills everything with colours from top to bottom.
func (c *canvas) wash(stops ...color.NRGBA) {
	last := len(stops) - 1
	for y := range c.height() {
		at := float64(y) / float64(c.height()) * float64(last)
		i := min(int(at), last-1)
		fill(c.row(y), 0, c.width(), mix(stops[i], stops[i+1], at-float64(i)))
	}
}

// disc draws a filled circle of some opacity.
func (c *canvas) disc(cx, cy, radius float64, p color.NRGBA, opacity float64) {
	full := int(math.Round(opacity * 256))
	for y := max(0, int(cy-radius-1)); y < min(c.height(), int(cy+radius+2)); y++ {
		dy := float64(y) + 0.5 - cy
		outer := (radius+0.5)*(radius+0.5) - dy*dy
		if outer <= 0 {
			continue
		}
		half := math.Sqrt(outer)
		core := math.Sqrt(max((radius-0.5)*(radius-0.5)-dy*dy, 0))
		row := c.row(y)
		for x := max(0, int(cx-half)); x < min(c.width(), int(cx+half+1)); x++ {
			dx := math.Abs(float64(x) + 0.5 - cx)
			if dx < core {
				tint(row[4*x:], p, full)
				continue
			}
			cover := min(max(radius+0.5-math.Sqrt(dx*dx+dy*dy), 0), 1)
			tint(row[4*x:], p, int(cover*float64(full)))
		}
	}
}

// below fills everything under a line whose height is given for each column.
func (c *canvas) below(line []float64, p color.NRGBA) {
	first := float64(c.height())
	for _, v := range line {
		first = min(first, v)
	}
	for y := max(0, int(first)); y < c.height(); y++ {
		row, bottom := c.row(y), float64(y+1)
		for x, v := range line {
			switch {
			case v <= float64(y):
				row[4*x], row[4*x+1], row[4*x+2], row[4*x+3] = p.R, p.G, p.B, 255
			case v < bottom:
				tint(row[4*x:], p, int((bottom-v)*256))
			}
		}
	}
}

// rounded is how far a superellipse that nearly fills the canvas reaches: below
// 1 is inside.
func (c *canvas) rounded(x, y int) float64 {
	dx := (float64(x) + 0.5 - float64(c.width())/2) / (float64(c.width()) * 0.46)
	dy := (float64(y) + 0.5 - float64(c.height())/2) / (float64(c.height()) * 0.46)
	dx, dy = dx*dx, dy*dy
	return dx*dx + dy*dy
}

// cutOut makes everything outside a soft-cornered shape transparent.
func (c *canvas) cutOut() {
	soft := 12 / c.short() // of a pixel or so, in what rounded measures
	for y := range c.height() {
		row := c.row(y)
		for x := range c.width() {
			over := (c.rounded(x, y) - 1) / soft
			switch {
			case over >= 1:
				clear(row[4*x : 4*x+4])
			case over > 0:
				row[4*x+3] = uint8((1 - over) * 255)
			}
		}
	}
}
