package draw

import (
	"image/color"
	"math"
	"math/rand/v2"
)

// palette is a set of colours that go together.
type palette struct {
	deep, dark, mid, light, pale color.NRGBA // one hue's neighbourhood, by lightness
	accent, second               color.NRGBA // what stands out from it
}

// newPalette walks around a hue and puts its complement against it.
func newPalette(r *rand.Rand) palette {
	hue := r.Float64() * 360
	drift := 18 + 30*r.Float64()
	if r.IntN(2) == 0 {
		drift = -drift
	}
	return palette{
		deep:   hsl(hue, 0.55, 0.14),
		dark:   hsl(hue+drift*0.3, 0.55, 0.27),
		mid:    hsl(hue+drift*0.7, 0.50, 0.45),
		light:  hsl(hue+drift, 0.60, 0.66),
		pale:   hsl(hue+drift*1.4, 0.70, 0.86),
		accent: hsl(hue+180+drift*0.5, 0.80, 0.60),
		second: hsl(hue+120, 0.65, 0.58),
	}
}

// ramp lists the colours from the deepest to the palest.
func (p *palette) ramp() []color.NRGBA {
	return []color.NRGBA{p.deep, p.dark, p.mid, p.light, p.pale}
}

// all lists every colour.
func (p *palette) all() []color.NRGBA { return append(p.ramp(), p.accent, p.second) }

// hsl converts hue in degrees, saturation and lightness.
func hsl(h, s, l float64) color.NRGBA {
	h = math.Mod(math.Mod(h, 360)+360, 360) / 60
	c := (1 - math.Abs(2*l-1)) * s
	x := c * (1 - math.Abs(math.Mod(h, 2)-1))
	var r, g, b float64
	switch int(h) {
	case 0:
		r, g = c, x
	case 1:
		r, g = x, c
	case 2:
		g, b = c, x
	case 3:
		g, b = x, c
	case 4:
		r, b = x, c
	default:
		r, b = c, x
	}
	m := l - c/2
	to := func(v float64) uint8 { return uint8(math.Round((v + m) * 255)) }
	return color.NRGBA{to(r), to(g), to(b), 255}
}

// mix goes from a (t = 0) to b (t = 1).
func mix(a, b color.NRGBA, t float64) color.NRGBA {
	w := int(math.Round(min(max(t, 0), 1) * 256))
	return color.NRGBA{blend(a.R, b.R, w), blend(a.G, b.G, w), blend(a.B, b.B, w), blend(a.A, b.A, w)}
}

// blend goes from a (w = 0) to b (w = 256).
func blend(a, b uint8, w int) uint8 { return uint8((int(a)*(256-w) + int(b)*w + 128) >> 8) }
