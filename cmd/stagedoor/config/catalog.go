package config

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/state"
	"stagedoor/state/identity"
)

// defaultRetries is the number of further attempts at a call where nothing is configured.
const defaultRetries = 2

// CatalogProviders returns the providers of the file as values for the catalogue.
func (c *Config) CatalogProviders() []catalog.Provider {
	var out []catalog.Provider
	for _, e := range c.Providers {
		p := e.Value
		retries := defaultRetries
		if p.Retries != nil {
			retries = *p.Retries
		}
		out = append(out, catalog.Provider{
			Name: e.Name, Shape: dialogue.Shape(p.Shape), Also: shapesOf(p.Also),
			BaseURL: p.BaseURL, Vendor: p.Vendor, APIKeys: reveal(p.APIKeys),
			Limits: catalog.Limits{RPM: p.Limits.RPM, TPM: p.Limits.TPM, Concurrency: p.Limits.Concurrency,
				Queue: p.Limits.Queue, QueueTimeout: time.Duration(p.Limits.QueueTimeout)},
			Timeouts: catalog.Timeouts{Connect: time.Duration(p.Timeouts.Connect),
				FirstByte: time.Duration(p.Timeouts.FirstByte),
				Idle:      time.Duration(p.Timeouts.Idle), Total: time.Duration(p.Timeouts.Total)},
			Retries: retries, Headers: headersOf(p.Headers), Idempotent: p.Idempotent,
			PassUnknownResponses: p.PassUnknownResponses,
		})
	}
	return out
}

// shapesOf returns the names as shapes. They were checked when the file was read.
func shapesOf(names []string) []dialogue.Shape {
	var out []dialogue.Shape
	for _, n := range names {
		out = append(out, dialogue.Shape(n))
	}
	return out
}

// reveal returns the secrets as text, for parts that send them.
func reveal(secrets []Secret) []string {
	var out []string
	for _, s := range secrets {
		out = append(out, s.Reveal())
	}
	return out
}

// headersOf returns headers with their values revealed, or nil if there are none.
func headersOf(m Map[Secret]) map[string]string {
	if len(m) == 0 {
		return nil
	}
	out := make(map[string]string, len(m))
	for _, e := range m {
		out[e.Name] = e.Value.Reveal()
	}
	return out
}

// CatalogModels returns the models of the file as values for the catalogue.
func (c *Config) CatalogModels() []catalog.Model {
	var out []catalog.Model
	for _, e := range c.Models {
		m := e.Value
		out = append(out, catalog.Model{Pattern: e.Name, Aliases: m.Aliases, List: m.List,
			Targets: routes(m.Targets), Fallback: routes(m.Fallback),
			Capabilities: m.Capabilities.overrides(), MaxOutputTokens: int64(m.MaxOutputTokens),
			Price: m.Price.catalog(), OnDisconnect: m.OnDisconnect, Hedge: m.Hedge.catalog(e.Name)})
	}
	return out
}

// routes returns targets as the catalogue takes them. A target without a weight has the weight 1.
func routes(targets []Target) []catalog.Route {
	var out []catalog.Route
	for _, t := range targets {
		weight := 1
		if t.Weight != nil {
			weight = *t.Weight
		}
		out = append(out, catalog.Route{Provider: t.Provider, Model: t.Model, Weight: weight,
			Capabilities: t.Capabilities.overrides(), MaxOutputTokens: int64(t.MaxOutputTokens),
			Price: t.Price.catalog(), On: catalog.ParseConditions(pointed(t.On))})
	}
	return out
}

// catalog returns the hedge of a model as the catalogue takes it. At most one further target takes part if nothing is
// said.
func (h *Hedge) catalog(model string) *catalog.Hedge {
	if h == nil {
		return nil
	}
	return &catalog.Hedge{Model: model, After: time.Duration(h.After), Most: cmp.Or(h.Most, 1)}
}

// overrides returns the capabilities as the catalogue takes them. What the file does not say is nil there and stays
// as the model's name says.
func (c *Capabilities) overrides() *catalog.CapabilityOverrides {
	if c == nil {
		return nil
	}
	return &catalog.CapabilityOverrides{StructuredOutputs: c.StructuredOutputs, ImagesIn: c.ImagesIn,
		FilesIn: c.FilesIn, AudioIn: c.AudioIn, SystemTurns: c.SystemTurns, Sampling: c.Sampling,
		ContextWindow: int64(c.ContextWindow),
		JSONSchema:    c.JSONSchema, Prefill: c.Prefill, Thinking: c.Thinking, OneSampling: c.OneSampling,
		SamplingAtRest: c.SamplingAtRest, NoForcedTools: c.NoForcedTools, AlwaysThinks: c.AlwaysThinks,
		CallSignatures: c.CallSignatures, WebSearch: c.WebSearch, ReasoningContent: c.ReasoningContent,
		NoTools: c.NoTools, NoCacheKey: c.NoCacheKey}
}

// catalog returns a price in micro-dollars, or nil if the file gives none, so that the list of prices applies.
func (p *Price) catalog() *catalog.Price {
	if p == nil {
		return nil
	}
	return &catalog.Price{Input: int64(p.Input), Output: int64(p.Output), CachedInput: int64(p.CachedInput),
		CacheWrite: int64(p.CacheWrite), CacheWrite1h: int64(p.CacheWrite1h), AudioInput: int64(p.AudioInput),
		AudioCachedInput: int64(p.AudioCachedInput), AudioOutput: int64(p.AudioOutput), ImageInput: int64(p.ImageInput),
		ImageOutput: int64(p.ImageOutput), WebSearch: int64(p.WebSearch1k),
		Reasoning: int64(p.Reasoning), PerImage: int64(p.PerImage),
		PerSecond: int64(p.PerSecond), PerPartial: int64(p.PerPartial)}
}

// Catalog says where prices come from that the file does not give.
type Catalog struct {
	File    string `yaml:"file" doc:"file with models that take precedence over the built-in catalogue, as stagedoor catalog update writes it; default: catalog.json in the data directory"`
	Charge  bool   `yaml:"charge" doc:"charge the catalogue's price for models without a price in the file; false: the price is only shown, as an estimate"`
	Unknown string `yaml:"unknown" doc:"models without a price in file and catalogue: serve them with a receipt that says that the price is unknown, or refuse them as unknown models" enum:"serve,refuse"`
}

var errCatalogFile = errors.New("expected a list of models")

// CatalogFile returns the path of the list of models on disk, or "" if there is none because data is kept in memory.
func (c *Config) CatalogFile() string {
	if c.Catalog.File == "" && c.Data != "memory" {
		return filepath.Join(c.Data, "catalog.json")
	}
	return c.Catalog.File
}

// BuildCatalog returns the catalogue of the configuration. Models without a price have that of the list on disk, if
// there is one, else that of the built-in list. A default list that does not exist is no mistake.
func (c *Config) BuildCatalog() (*catalog.Catalog, []error) { return c.buildCatalog(true) }

// buildCatalog does the work of BuildCatalog. Without readList, all prices are those of the built-in list.
func (c *Config) buildCatalog(readList bool) (*catalog.Catalog, []error) {
	pricing := catalog.Pricing{List: catalog.Builtin(), Charge: c.Catalog.Charge,
		RefuseUnknown: c.Catalog.Unknown == "refuse"}
	if file := c.CatalogFile(); file != "" && readList {
		_, list, err := ReadCatalog(file)
		switch {
		case err == nil:
			pricing.List = list
		case c.Catalog.File != "" || !errors.Is(err, fs.ErrNotExist):
			return nil, []error{fmt.Errorf("%w: %w", errCatalogFile, err)}
		}
	}
	return catalog.Build(c.CatalogProviders(), c.CatalogModels(), pricing)
}

// ReadCatalog returns the text of a file and the list of models in it, above the built-in list. At most
// catalog.MaxListBytes and one byte are read, so that a file that is too large is refused by its length and not held
// whole. The error of a list that breaks a rule names the file.
func ReadCatalog(file string) ([]byte, *catalog.List, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, catalog.MaxListBytes+1))
	if err != nil {
		return nil, nil, err
	}
	list, err := catalog.ParseList(text, catalog.Builtin())
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", file, err)
	}
	return text, list, nil
}

// fixedKeyID returns the id of the key with this name in the file.
func fixedKeyID(name string) string { return "cfg_" + name }

// FixedKeys returns the keys of the file as the store would keep them.
func (c *Config) FixedKeys() []identity.Key {
	var out []identity.Key
	for _, k := range c.Keys {
		secret := k.Key.Reveal()
		policy, _ := identity.DisconnectPolicyOf(k.OnDisconnect) // checked when the file was read
		key := identity.Key{ID: fixedKeyID(k.Name), Hash: state.HashSecret(secret), Name: k.Name, User: k.User,
			Enabled: true, OnDisconnect: policy,
			Limits: identity.Limits{RPM: int64(k.Limits.RPM), TPM: int64(k.Limits.TPM),
				Concurrency: int64(k.Limits.Concurrency)}}
		// A nil set allows everything and an empty one allows nothing, so the copy of an empty set must not be nil.
		if k.Scopes != nil && !slices.Contains(*k.Scopes, "all") {
			key.Scopes = append([]string{}, *k.Scopes...)
		}
		if k.Models != nil && !slices.Contains(*k.Models, "*") {
			key.Models = append([]string{}, *k.Models...)
		}
		if k.AllowIP != nil {
			key.AllowIPs, _ = identity.ParseNetworks(*k.AllowIP) // checked when the file was read
		}
		out = append(out, key)
	}
	// The order of the file must not matter to those who compare the keys before and after a change.
	slices.SortFunc(out, func(a, b identity.Key) int { return cmp.Compare(a.ID, b.ID) })
	return out
}
