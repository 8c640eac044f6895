package config

import "stagedoor/providers/catalog"

// advise warns of what is no mistake of the file and probably not meant.
func (c *Config) advise(d *decoder, built *catalog.Catalog) {
	for _, u := range built.Unpriced() {
		effect := "requests to it are not charged, and their receipts say that the price is unknown"
		if c.Catalog.Unknown == "refuse" {
			effect = "requests are refused there (catalog.unknown)"
		}
		d.warn("models."+u.Model, "no price is known of %q at provider %q: %s; give it a price, which may be "+
			"{input: 0, output: 0}, or say with vendor at the provider whose prices apply", u.Upstream, u.Provider, effect)
	}
}
