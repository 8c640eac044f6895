package catalog

import (
	"net/url"
	"slices"
	"time"
)

// Pricing says what models cost that the configuration gives no price.
type Pricing struct {
	// List has the published limits and prices. Build takes the built-in list in place of nil.
	List *List
	// Charge makes their price in the list the price that accounts are charged. Otherwise it is only an estimate.
	Charge bool
	// RefuseUnknown leaves out models whose price neither the configuration nor the list has.
	RefuseUnknown bool
}

// vendorOf returns the vendor whose models a provider serves, "*" for several, "" if that is not known. The simulator
// has none: it is free.
func (p *Pricing) vendorOf(provider *Provider) string {
	if provider.Vendor != "" {
		return provider.Vendor
	}
	if u, err := url.Parse(provider.BaseURL); err == nil {
		return p.List.Vendor(u.Hostname())
	}
	return ""
}

// Pricing returns the rules by which the catalogue was built.
func (c *Catalog) Pricing() Pricing { return c.pricing }

// lookUp finds the model in the list.
func (c *Candidate) lookUp() {
	if c.pricing != nil && c.Provider.Shape != Sandbox {
		c.listed, c.ppm = c.pricing.List.Find(c.vendor, c.Model)
	}
}

// Rates returns the price that an account is charged at a time, or nil if nothing is charged: the price of the
// configuration, or that of the list if the configuration says so.
func (c *Candidate) Rates(now time.Time) *Price { return c.RatesOf("", now) }

// RatesOf returns the price of a reply that names its model. A provider that chose another model than it was asked for
// is charged by its choice, unless the configuration has a price.
func (c *Candidate) RatesOf(model string, now time.Time) *Price {
	if !c.PricedByReply() {
		return c.Price
	}
	return c.estimate(model, now)
}

// PricedByReply reports whether RatesOf depends on the model that a reply names.
func (c *Candidate) PricedByReply() bool {
	return c.Price == nil && c.vendor != "" && c.pricing != nil && c.pricing.Charge
}

// Estimate returns the price by which the cost of a reply is shown: what is charged, or else what the list says. It is
// nil if no price is known.
func (c *Candidate) Estimate(model string, now time.Time) *Price {
	if c.Price != nil {
		return c.Price
	}
	return c.estimate(model, now)
}

// estimate returns the list's price of the model that a reply names, if that may take the place of the model that was
// asked for: the name is text of the provider. A free model, one of another kind or one of another vendor cannot.
func (c *Candidate) estimate(model string, now time.Time) *Price {
	if c.vendor == "" || c.pricing == nil {
		return nil
	}
	if model != "" && model != c.Model {
		m, ppm := c.pricing.List.Find(c.vendor, model)
		replaces := m != nil && m != c.listed && (c.listed == nil || m.Kind == c.listed.Kind && m.Vendor == c.listed.Vendor)
		if p := m.Price(now, ppm); replaces && !p.Zero() {
			return p
		}
	}
	return c.listed.Price(now, c.ppm)
}

// PriceUnknown reports whether neither the configuration nor the list has a price of the model. The simulator is free.
func (c *Candidate) PriceUnknown() bool {
	priced := c.Price != nil || c.pricing == nil || c.Provider.Shape == Sandbox
	return !priced && (c.vendor == "" || c.listed == nil || c.listed.tariff == nil)
}

// MayCharge reports whether a request to the model may cost its account something. If its price is not known, that is
// so where the list is charged, because the reply may name a model that has a price.
func (c *Candidate) MayCharge(now time.Time) bool {
	return !c.Rates(now).Zero() || c.PricedByReply() && c.PriceUnknown()
}

// Unpriced is a model whose price neither the configuration nor the list has.
type Unpriced struct {
	Model              string // the name or the pattern in the configuration
	Provider, Upstream string
}

// Unpriced returns the models of unknown price in the order of the configuration. A pattern whose names are priced one
// by one is not among them.
func (c *Catalog) Unpriced() (all []Unpriced) {
	for _, e := range c.entries {
		for _, t := range slices.Concat(e.targets, e.rest) {
			later := t.targets == nil && t.vendor != ""
			if t.PriceUnknown() && !later {
				all = append(all, Unpriced{e.name, t.Provider.Name, t.Model})
			}
		}
	}
	return all
}

// Listed returns what the list says of the model, or nil.
func (c *Candidate) Listed() *Listed { return c.listed }

// Kind returns what the model makes, as the list names it: text, image, embedding and others. The unit of a price that
// the operator set decides for images and for video, which is the kind of models that are charged by the second. It is
// "" if neither says it.
func (c *Candidate) Kind() string {
	switch {
	case c.Price != nil && c.Price.PerSecond > 0:
		return "video"
	case c.Price != nil && c.Price.PerImage > 0:
		return "image"
	case c.listed != nil:
		return c.listed.Kind
	}
	return ""
}

// ExampleOf returns the name of a model of a kind that Kind returns, for pages and examples where the catalogue lists
// none because a pattern serves every name. It is "" for other kinds than image and video.
func ExampleOf(kind string) string {
	return map[string]string{"image": "gen-image-1", "video": "video-2"}[kind]
}

// OutputLimit returns the most output tokens that the model gives, by the list, or 0 if that is not known.
func (c *Candidate) OutputLimit() int64 {
	if c.listed == nil {
		return 0
	}
	return c.listed.MaxOutput
}
