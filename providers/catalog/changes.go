package catalog

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// Change is a difference between two lists in one model, or in the vendor of one host.
type Change struct {
	// Name has the vendor and the id of a model, as openai/gpt-5, or the host, as "host api.openai.com".
	Name string
	// What is "added", "removed" or "changed".
	What string
	// Details has one sentence for each figure that differs.
	Details []string
	// Steep is set if a price becomes more than ten times as high, or less than a tenth, or appears or goes. Such a
	// change is often a figure in another unit.
	Steep bool
}

// Changes returns what differs between two lists as they are in effect: the vendors of hosts, and then the
// models by vendor and id. Dates, sources and notes do not count. It is for the command that shows an
// operator what a new list would change.
func Changes(before, after *List) (all []Change) {
	was, is := before.allHosts(), after.allHosts()
	for _, host := range slices.Sorted(maps.Keys(is)) {
		if was[host] == "" {
			all = append(all, Change{Name: "host " + host, What: "added", Details: []string{"vendor " + is[host]}})
		} else if was[host] != is[host] {
			all = append(all, Change{Name: "host " + host, What: "changed", Steep: true,
				Details: []string{"vendor " + is[host] + ", was " + was[host]}})
		}
	}
	for _, host := range slices.Sorted(maps.Keys(was)) {
		if is[host] == "" {
			all = append(all, Change{Name: "host " + host, What: "removed", Steep: true})
		}
	}
	old := make(map[string]*Listed)
	for _, m := range before.Models() {
		old[m.fullName()] = m
	}
	for _, m := range after.Models() {
		c := Change{Name: m.fullName(), What: "changed"}
		was := old[c.Name]
		delete(old, c.Name)
		if was == nil {
			c.What = "added"
			for _, name := range append([]string{m.ID}, m.Aliases...) {
				c.compareName(name, before, after, m.Vendor)
			}
		} else {
			c.compare(was, m)
			for _, alias := range unique(was.Aliases, m.Aliases) {
				c.compareName(alias, before, after, m.Vendor)
			}
		}
		if was == nil || len(c.Details) > 0 {
			all = append(all, c)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(old)) {
		all = append(all, Change{Name: name, What: "removed", Steep: old[name].tariff != nil})
	}
	return all
}

// allHosts returns the vendors of the hosts of the list and of those below it.
func (l *List) allHosts() map[string]string {
	all := make(map[string]string)
	for ; l != nil; l = l.below {
		for host, vendor := range l.hosts {
			if all[host] == "" {
				all[host] = vendor
			}
		}
	}
	return all
}

// compareName compares the prices of a name that leads to another model than before.
func (c *Change) compareName(name string, before, after *List, vendor string) {
	was, _ := before.Find(vendor, name)
	is, _ := after.Find(vendor, name)
	if was == nil || is == nil || was.fullName() == is.fullName() {
		return
	}
	a, b := was.prices(), is.prices()
	if len(a) == 0 != (len(b) == 0) {
		c.Details, c.Steep = append(c.Details, name+" was "+was.fullName()), true
	} else if len(a) > 0 {
		c.comparePrices(name+" was "+was.fullName()+":", a[0].price, b[0].price)
	}
}

// unique returns the names that only one of two models has.
func unique(a, b []string) (names []string) {
	for _, name := range slices.Concat(a, b) {
		if slices.Contains(a, name) != slices.Contains(b, name) {
			names = append(names, name)
		}
	}
	return names
}

func (m *Listed) fullName() string { return m.Vendor + "/" + m.ID }

// compare notes what differs between two versions of a model. Prices are compared place by place. A
// new place is compared with the first price, and a place that has gone with the price that now
// holds instead of it, so that a steep change is found also if it comes with a new date or window.
func (c *Change) compare(was, is *Listed) {
	limit := func(name string, before, after int64) {
		if before != after {
			c.Details = append(c.Details, fmt.Sprintf("%s %d, was %d", name, after, before))
		}
	}
	limit("context", was.Context, is.Context)
	limit("max_input", was.MaxInput, is.MaxInput)
	limit("max_output", was.MaxOutput, is.MaxOutput)
	for _, alias := range is.Aliases {
		if !slices.Contains(was.Aliases, alias) {
			c.Details = append(c.Details, "alias "+alias+": new")
		}
	}
	for _, alias := range was.Aliases {
		if !slices.Contains(is.Aliases, alias) {
			c.Details = append(c.Details, "alias "+alias+": no longer")
		}
	}
	before, after := was.prices(), is.prices()
	for i, p := range after {
		if i >= len(before) {
			c.Details = append(c.Details, p.place+": new")
			if i > 0 && len(before) > 0 { // it replaces the first price at its times
				c.comparePrices(p.place, before[0].price, p.price)
			}
			continue
		}
		if before[i].place != p.place {
			c.Details, c.Steep = append(c.Details, p.place+", was "+before[i].place), true
		}
		c.comparePrices(p.place, before[i].price, p.price)
	}
	for _, p := range before[min(len(after), len(before)):] {
		c.Details = append(c.Details, p.place+": no longer")
		if len(after) > 0 {
			c.comparePrices(p.place, p.price, after[0].price)
		}
	}
	c.Steep = c.Steep || len(before) == 0 != (len(after) == 0)
	if len(before) > 0 && len(after) > 0 {
		c.compareTiers(before[0].price.ServiceTiers, after[0].price.ServiceTiers)
	}
}

// compareTiers notes the service tiers that have another factor. A tier that one of the lists does
// not have counts with the factor 1, because calls at an unknown tier are charged the plain price.
func (c *Change) compareTiers(was, is map[string]int64) {
	both := maps.Clone(was)
	maps.Copy(both, is)
	for _, name := range slices.Sorted(maps.Keys(both)) {
		before, after := orElse(was[name], million), orElse(is[name], million)
		if before != after {
			c.Details = append(c.Details,
				fmt.Sprintf("service tier %s %s times the price, was %s", name, inDollars(after), inDollars(before)))
			c.Steep = c.Steep || before > after*steep || after > before*steep
		}
	}
}

// steep is the factor from which on a new price is taken for a mistake.
const steep = 10

// comparePrices compares what is charged, so a price that was absent is compared with the one that stood for it.
func (c *Change) comparePrices(place string, was, is *Price) {
	stated, now := was.amounts(), is.amounts()
	wholeWas, wholeIs := was.whole(), is.whole()
	before, after := wholeWas.amounts(), wholeIs.amounts()
	for i := range after {
		a, b := *before[i], *after[i]
		if *stated[i] == *now[i] || a == b {
			continue
		}
		change := "new"
		if a > 0 {
			change = fmt.Sprintf("%+.1f %%", float64(b-a)/float64(a)*100)
		}
		c.Details = append(c.Details,
			fmt.Sprintf("%s %s %s, was %s (%s)", place, amountNames[i], inDollars(b), inDollars(a), change))
		c.Steep = c.Steep || a == 0 || b < (a+steep-1)/steep || b > a*steep
	}
}

var amountNames = [...]string{"input", "output", "cache_read", "cache_write", "cache_write_1h", "reasoning",
	"audio_input", "audio_cache_read", "audio_output", "image_input", "image_output",
	"web_search_1k", "image", "second", "partial"}

// inDollars writes micro-dollars as dollars, without zeros at the end.
func inDollars(micros int64) string {
	whole, rest := micros/million, micros%million
	if rest == 0 {
		return fmt.Sprint(whole)
	}
	text := fmt.Sprintf("%d.%06d", whole, rest)
	for text[len(text)-1] == '0' {
		text = text[:len(text)-1]
	}
	return text
}

// placedPrice is one of the prices of a model, with the words for when it applies.
type placedPrice struct {
	place string
	price *Price
}

// prices returns all prices of a model with the place where each holds: the price itself and those
// from a date on, above a length of the prompt, and at hours of the day.
func (m *Listed) prices() (all []placedPrice) {
	if m.tariff == nil {
		return nil
	}
	for i := range m.tariff.periods {
		p := &m.tariff.periods[i]
		place := "price"
		if i > 0 {
			place = "from " + p.since.Format(time.DateOnly)
		}
		all = append(all, placedPrice{place, &p.price})
		if above := p.price.Above; above != nil {
			all = append(all, placedPrice{fmt.Sprintf("above %d tokens", above.Tokens), &above.Price})
		}
		for j := range p.windows {
			w := &p.windows[j]
			hours := fmt.Sprintf("%02d:%02d-%02d:%02d UTC", w.from/60, w.from%60, w.to/60, w.to%60)
			all = append(all, placedPrice{hours, &w.price})
		}
	}
	return all
}
