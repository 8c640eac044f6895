package config

import (
	"cmp"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"stagedoor/cmd/stagedoor/cli"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/shapes/registry"
)

// leastKey is the number of characters below which a gateway key is too easy to guess. Keys that the gateway makes have
// 256 random bits.
const leastKey = 20

// advise warns of what is no mistake of the file and probably not meant.
func (c *Config) advise(d *decoder, built *catalog.Catalog) {
	if len(c.Models) == 0 {
		d.warn("models", "there are no models, so every request is answered 404; see stagedoor config example")
	}
	for i, k := range c.Keys {
		if len(k.Key) < leastKey {
			d.warn(fmt.Sprintf("keys[%d].key", i),
				"has fewer than %d characters and could be guessed; openssl rand -hex 32 makes one", leastKey)
		}
		// A key for a model that no pattern serves is refused for every request, which looks like a fault of the key.
		for j, name := range pointed(k.Models) {
			if _, ok := built.Resolve(name); !ok && !strings.Contains(name, "*") {
				d.warn(fmt.Sprintf("keys[%d].models[%d]", i, j), "%q is no model of this file%s", name,
					cli.DidYouMean(name, c.Models.names()))
			}
		}
	}
	for i, w := range c.Webhooks {
		if strings.HasPrefix(w.URL.Reveal(), "http:") {
			d.warn(fmt.Sprintf("webhooks[%d].url", i), "events are sent without encryption, expected https")
		}
	}
	if strings.HasPrefix(c.OAuth.Issuer, "http:") && !issuesSafely(c.OAuth.Issuer) {
		d.warn("oauth.issuer", "passwords, codes and tokens are sent without encryption, expected https")
	}
	if strings.HasPrefix(c.Alerts.URL.Reveal(), "http:") {
		d.warn("alerts.url", "alerts are sent without encryption, expected https")
	}
	// Without a known vendor a provider's models have no price in the catalogue, so a typing mistake would serve for
	// free.
	vendors := vendorsOf(built.Pricing().List)
	for _, p := range c.Providers {
		if v := p.Value.Vendor; v != "" && v != "*" && !slices.Contains(vendors, v) {
			d.warn("providers."+p.Name+".vendor", "%q is no vendor of the catalogue%s", v, cli.DidYouMean(v, vendors))
		}
		adviseAddress(d, "providers."+p.Name+".base_url", &p.Value)
		adviseKeys(d, "providers."+p.Name, &p.Value, built.Pricing().List)
	}
	// Unpriced models are served by default, because a new model is on offer before the list of prices has it.
	for _, u := range built.Unpriced() {
		effect := "requests to it are not charged, and their receipts say that the price is unknown"
		if c.Catalog.Unknown == "refuse" {
			effect = "requests are refused there (catalog.unknown)"
		}
		d.warn("models."+u.Model, "no price is known of %q at provider %q: %s; give it a price, which may be "+
			"{input: 0, output: 0}, or say with vendor at the provider whose prices apply", u.Upstream,
			u.Provider, effect)
	}
}

// vendorsOf returns the vendors whose prices a list has, by name.
func vendorsOf(list *catalog.List) (names []string) {
	for _, m := range list.Models() {
		names = append(names, m.Vendor)
	}
	return slices.Compact(names)
}

var (
	versionSegment = regexp.MustCompile(`^v\d+(alpha|beta)?\d*$`)
	versionedPath  = regexp.MustCompile(`^/(v\d+(?:alpha|beta)?\d*)/`)
	// endpoints are the last segments of paths to which the gateway sends requests.
	endpoints = regexp.MustCompile(`/(chat/completions|completions|responses|messages|embeddings|` +
		`images/(generations|edits)|videos|models(/[^/]+)?)$`)
)

// adviseAddress warns of a base URL that leads to other paths than the vendor's.
func adviseAddress(d *decoder, path string, p *Provider) {
	if problem, _ := judgeAddress(registry.Describe(dialogue.Shape(p.Shape)), p.Shape, p.BaseURL); problem != "" {
		d.warn(path, "%s", problem)
	}
}

// keyForms says by which beginning vendors' keys are known. A longer one comes first.
var keyForms = []struct{ prefix, vendor string }{{"sk-ant-", "anthropic"}, {"sk-proj-", "openai"}, {"AIza", "google"},
	{"gsk_", "groq"}, {"xai-", "xai"}, {"sk-or-", "openrouter"}, {"hf_", "huggingface"}, {"pplx-", "perplexity"},
	{"r8_", "replicate"}, {"nvapi-", "nvidia"}}

// adviseKeys warns of keys that look like those of another vendor than the provider's, without showing them.
func adviseKeys(d *decoder, path string, p *Provider, list *catalog.List) {
	u, err := url.Parse(p.BaseURL)
	if err != nil {
		return
	}
	vendor := cmp.Or(p.Vendor, list.Vendor(u.Hostname()))
	for i, key := range p.APIKeys {
		for _, form := range keyForms {
			if strings.HasPrefix(key.Reveal(), form.prefix) && vendor != "" && vendor != "*" && vendor != form.vendor {
				d.warn(fmt.Sprintf("%s.api_keys[%d]", path, i), "looks like a key of %s, and the address is one of %s",
					form.vendor, vendor)
			}
		}
		if strings.HasPrefix(key.Reveal(), "sd-") && vendor != "" {
			d.warn(fmt.Sprintf("%s.api_keys[%d]", path, i),
				"looks like a key of this gateway, expected one of %s", vendor)
		}
	}
}
