package pages

import (
	"math"
	"slices"
	"strconv"
)

// ModelMap places models by their speed and their price. All coordinates are in per cent of the plot.
type ModelMap struct {
	Dots   []ModelDot
	Top    string // the largest speed, in tokens per second
	Middle string
	Prices []MapPrice
}

// ModelDot is a model. Its label stands beside the dot, at the end of the text if Left is set, or is left out because
// others are in its place.
type ModelDot struct {
	Name, Path, Class, Text string
	X, Y, Radius            string
	LabelX, LabelY, Anchor  string
	Labelled                bool
}

// MapPrice is a mark of the axis of prices.
type MapPrice struct{ X, Text string }

// Of the plot, models without a price are at mapFree, and prices begin at mapFrom and end at mapTo.
const (
	mapFree, mapFrom, mapTo = 5.0, 16.0, 88.0
	// A label takes about so much of the plot.
	mapLetter, mapLine = 1.25, 10.0
)

// Map returns the map of the models, or nil if fewer than two have a speed and a price. For
// administrators the dots of models with more requests are larger.
func (m *Models) Map() *ModelMap {
	var rows []*ModelRow
	fastest, dearest, cheapest, busiest := 0.0, int64(0), int64(math.MaxInt64), int64(1)
	for i := range m.Models {
		r := &m.Models[i]
		if r.Speed.Rate == 0 || !r.Price.Known || r.kind() != "text" {
			continue
		}
		rows = append(rows, r)
		fastest = max(fastest, r.Speed.Rate)
		busiest = max(busiest, r.Speed.Requests)
		if r.Price.Output > 0 {
			dearest, cheapest = max(dearest, r.Price.Output), min(cheapest, r.Price.Output)
		}
	}
	if len(rows) < 2 {
		return nil
	}
	top := math.Ceil(fastest/10) * 10
	all := &ModelMap{Top: strconv.FormatFloat(top, 'f', 0, 64), Middle: strconv.FormatFloat(top/2, 'f', 0, 64)}
	at := func(price int64) float64 {
		switch {
		case price == 0:
			return mapFree
		case dearest == cheapest:
			return (mapFrom + mapTo) / 2
		}
		part := math.Log(float64(price)/float64(cheapest)) / math.Log(float64(dearest)/float64(cheapest))
		return mapFrom + part*(mapTo-mapFrom)
	}
	if slices.ContainsFunc(rows, func(r *ModelRow) bool { return r.Price.Output == 0 }) {
		all.Prices = append(all.Prices, MapPrice{coordinate(mapFree), "free"})
	}
	if dearest > 0 {
		all.Prices = append(all.Prices, MapPrice{coordinate(at(cheapest)), formatMoney(cheapest)})
		if dearest > cheapest {
			all.Prices = append(all.Prices, MapPrice{coordinate(mapTo), formatMoney(dearest) + " per 1M output tokens"})
		}
	}
	var taken [][4]float64 // x, y, x and y of labels and dots
	for _, r := range rows {
		x, y := at(r.Price.Output), 100-r.Speed.Rate*100/top
		taken = append(taken, [4]float64{x - 1, y - 4, x + 1, y + 4})
	}
	for i, r := range rows {
		x, y := at(r.Price.Output), 100-r.Speed.Rate*100/top
		d := ModelDot{Name: r.Name, Path: r.Path(), Class: r.Class(), X: coordinate(x), Y: coordinate(y), Radius: "7",
			Text: r.Name + ": " + r.Speed.RateText() + " tokens per second, " + r.PriceText()}
		if m.Admin { // how much others use a model is not for all
			d.Radius = coordinate(5 + 8*math.Sqrt(float64(r.Speed.Requests)/float64(busiest)))
		}
		d.place(x, y, i, &taken)
		all.Dots = append(all.Dots, d)
	}
	return all
}

// place finds room for the label of the dot of a number, near the dot.
func (d *ModelDot) place(x, y float64, number int, taken *[][4]float64) {
	width := float64(len(d.Name)) * mapLetter
	for _, shift := range []float64{0, -mapLine, mapLine} {
		for _, left := range []bool{x+width > 96, x+width <= 96} {
			from, anchor, start := x+2.2, "start", x+2.2
			if left {
				from, anchor, start = x-2.2-width, "end", x-2.2
			}
			box := [4]float64{from, y + shift - mapLine/2, from + width, y + shift + mapLine/2}
			if from < 0 || from+width > 100 || slices.ContainsFunc(*taken, func(t [4]float64) bool {
				return t != (*taken)[number] && box[0] < t[2] && t[0] < box[2] && box[1] < t[3] && t[1] < box[3]
			}) {
				continue
			}
			*taken = append(*taken, box)
			d.Labelled, d.Anchor, d.LabelX, d.LabelY = true, anchor, coordinate(start), coordinate(y+shift)
			return
		}
	}
}
