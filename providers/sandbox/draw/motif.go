package draw

import (
	"math"
	"math/rand/v2"
)

// Motifs is how many scenes there are.
const Motifs = 4

// motifs draw one scene each. They take all chance before they look at sizes or
// the phase, so that every frame and every size shows the same scene, and they
// move in whole turns, so that a clip of them can be repeated without a seam.
var motifs = [Motifs]func(c *canvas, r *rand.Rand){hills, orbs, tiles, rings}

// turn is the angle of a whole turn.
const turn = 2 * math.Pi

// hills are ridges before a low sun.
func hills(c *canvas, r *rand.Rand) {
	const ridges = 5
	sunX, sunY, sunR := 0.25+0.5*r.Float64(), 0.25+0.15*r.Float64(), 0.09+0.05*r.Float64()
	var steep, shift [ridges]float64
	var bumps [ridges]int
	for i := range ridges {
		steep[i], shift[i], bumps[i] = 0.5+r.Float64(), r.Float64()*turn, 1+r.IntN(3)
	}
	p, w, h := &c.colours, float64(c.width()), float64(c.height())
	c.wash(p.mid, p.light, p.pale, p.accent)
	x, y := sunX*w, (sunY+0.02*math.Sin(turn*c.phase))*h
	for i := 3; i > 0; i-- {
		c.disc(x, y, c.short()*sunR*(1+0.55*float64(i)), p.pale, 0.22)
	}
	c.disc(x, y, c.short()*sunR, mix(p.pale, p.accent, 0.25), 1)
	line := make([]float64, c.width())
	for i := range ridges {
		depth := float64(i) / (ridges - 1)
		base := (0.48 + 0.42*depth) * h
		high := (0.10 - 0.04*depth) * h * steep[i]
		// The nearer, the faster; all of them whole periods.
		move := turn * c.phase * float64(i/2)
		for x := range line {
			at := turn * float64(x) / w
			line[x] = base - high*math.Sin(float64(bumps[i])*at+shift[i]+move) - 0.4*high*math.Sin(float64(3*bumps[i]+1)*at+2*shift[i]+2*move)
		}
		c.below(line, mix(mix(p.light, p.mid, 0.5), p.deep, depth))
	}
}

// orbs are translucent discs that circle.
func orbs(c *canvas, r *rand.Rand) {
	const n = 12
	type orb struct{ x, y, radius, orbit, start float64 }
	var all [n]orb
	for i := range all {
		all[i] = orb{r.Float64(), r.Float64(), 0.06 + 0.2*r.Float64(), 0.02 + 0.06*r.Float64(), r.Float64() * turn}
	}
	p, w, h := &c.colours, float64(c.width()), float64(c.height())
	c.wash(p.deep, p.dark, p.mid)
	colours := p.all()[2:]
	for i, o := range all {
		angle := turn*c.phase + o.start
		x, y := o.x*w+o.orbit*c.short()*math.Cos(angle), o.y*h+o.orbit*c.short()*math.Sin(angle)
		c.disc(x, y, o.radius*c.short(), colours[i%len(colours)], 0.55)
		c.disc(x-o.radius*c.short()*0.3, y-o.radius*c.short()*0.3, o.radius*c.short()*0.2, p.pale, 0.5)
	}
}

// tiles are a wall of squares with a disc in each.
func tiles(c *canvas, r *rand.Rand) {
	const across = 6 // along the shorter edge
	var pick [64]int
	for i := range pick {
		pick[i] = r.IntN(1 << 16)
	}
	size := max(c.short()/across, 1)
	columns, rows := int(math.Ceil(float64(c.width())/size)), int(math.Ceil(float64(c.height())/size))
	colours := c.colours.all()
	for ty := range rows {
		for tx := range columns {
			die := pick[(tx*7+ty*13)%len(pick)]
			x0, y0 := float64(tx)*size, float64(ty)*size
			x1, y1 := min(int(float64(tx+1)*size), c.width()), min(int(float64(ty+1)*size), c.height())
			for y := int(y0); y < y1; y++ {
				fill(c.row(y), int(x0), x1, colours[die%len(colours)])
			}
			inner := colours[(die+1+die/8%(len(colours)-1))%len(colours)]
			breath := 0.36 + 0.07*math.Sin(turn*(c.phase+float64(die%16)/16))
			c.disc(x0+size/2, y0+size/2, size*breath, inner, 1)
			c.disc(x0+size/2, y0+size/2, size*breath*0.45, colours[(die/64)%len(colours)], 1)
		}
	}
}

// rings spread from a point like waves.
func rings(c *canvas, r *rand.Rand) {
	fx, fy, count := 0.2+0.6*r.Float64(), 0.2+0.6*r.Float64(), 9+r.IntN(6)
	p := &c.colours
	colours := p.all()
	cx, cy := fx*float64(c.width()), fy*float64(c.height())
	width := max(math.Hypot(float64(c.width()), float64(c.height()))/float64(count), 1)
	n := float64(len(colours))
	for y := range c.height() {
		row, dy := c.row(y), float64(y)+0.5-cy
		for x := range c.width() {
			dx := float64(x) + 0.5 - cx
			d := math.Sqrt(dx*dx+dy*dy)/width - c.phase*n + 4*n
			ring := int(d)
			px := row[4*x : 4*x+4]
			own := colours[ring%len(colours)]
			px[0], px[1], px[2], px[3] = own.R, own.G, own.B, 255
			// The last pixel of a ring already belongs to the next one in part.
			if over := (d-float64(ring)-1)*width + 1; over > 0 {
				tint(px, colours[(ring+1)%len(colours)], int(over*256))
			}
		}
	}
}
