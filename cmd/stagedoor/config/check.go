package config

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"stagedoor/cmd/stagedoor/cli"
	"stagedoor/providers/shapes/registry"
	"stagedoor/state/identity"
)

// check records the mistakes that the types alone do not show. It checks all sections even if an earlier one has
// mistakes. Only the catalogue is checked last and if there are none, because its rules assume valid providers and
// models.
func (c *Config) check(d *decoder, readList bool) {
	c.checkListen(d)
	if c.TLS != nil && c.TLS.Cert != "" && c.TLS.Key != "" {
		if _, err := tls.LoadX509KeyPair(c.TLS.Cert, c.TLS.Key); err != nil {
			d.at("tls", "expected a certificate and its key: %v", err)
		}
	}
	checkNetworks(d, "trusted_proxies", c.Proxies)
	for i, n := range c.TrustedProxies() {
		if n.Bits() == 0 {
			d.at(fmt.Sprintf("trusted_proxies[%d]", i), "expected networks of your proxies: with all addresses, every "+
				"client could choose its own")
		}
	}
	if c.Data == "" {
		d.at("data", "expected a directory, or memory")
	}
	c.checkKeys(d)
	c.checkState(d)
	c.checkCluster(d)
	c.OAuth.check(d)
	c.SignIn.check(d)
	c.SMTP.check(d)
	c.checkAdmin(d)
	c.checkVideos(d)
	c.checkWebhooks(d)
	c.checkAlerts(d)
	notNegative(d, "limits", []named{{"memory_mib", c.Limits.MemoryMiB}, {"requests", c.Limits.Requests},
		{"body_mib", c.Limits.BodyMiB}, {"watchers", c.Limits.Watchers}, {"content_mib", c.Limits.ContentMiB},
		{"content_files", c.Limits.ContentFiles}, {"failed_keys", c.Limits.FailedKeys},
		{"stored_responses", c.Limits.StoredResponses},
		{"conversations", c.Limits.Conversations}, {"stored_mib", c.Limits.StoredMiB},
		{"replies_mib", c.Limits.RepliesMiB}})
	for _, p := range c.Providers {
		checkProvider(d, "providers."+p.Name, p.Name, &p.Value)
	}
	c.checkModels(d)
	c.checkAliases(d)
	c.checkTelemetry(d)
	if len(d.issues) > 0 {
		return
	}
	// The catalogue has further rules. It is built last, so that no mistake
	// is reported twice.
	built, errs := c.buildCatalog(readList)
	for _, err := range errs {
		path := "models"
		if errors.Is(err, errCatalogFile) {
			path = "catalog.file"
		}
		d.broken[path] = false
		d.at(path, "%v", err)
	}
	if built != nil {
		c.advise(d, built)
	}
}

// The bounds of the authorization service. Both times can be short, because an app redeems its code within a second,
// and the grace is only for a reply that got lost (RFC 6749 4.1.2, RFC 9700 4.14.2).
const (
	maxCodeTTL      = Duration(10 * time.Minute)
	maxRefreshGrace = Duration(5 * time.Minute)
)

// check checks the settings of the authorization service. The issuer must be an origin, because clients compare it
// byte by byte with what they get in metadata and tokens.
func (o *OAuth) check(d *decoder) {
	if u := webAddress(o.Issuer); o.Issuer != "" && (u == nil || o.Issuer != u.Scheme+"://"+u.Host) {
		d.at("oauth.issuer", "expected an address without path and final slash, for example https://auth.example.com")
	}
	if o.CodeTTL < Duration(time.Second) || o.CodeTTL > maxCodeTTL {
		d.at("oauth.code_ttl", "expected 1s to 10m")
	}
	if o.RefreshGrace > maxRefreshGrace {
		d.at("oauth.refresh_grace", "expected 0s to 5m")
	}
	if o.SessionTTL < Duration(time.Minute) {
		d.at("oauth.session_ttl", "expected 1m or more")
	}
	if o.TopUpURL != "" && webAddress(o.TopUpURL) == nil {
		d.at("oauth.topup_url", "expected an address, for example https://pay.example.com/")
	}
}

// minAdminToken keeps the token of administration from being guessed.
const minAdminToken = 24

// checkAdmin checks the token and the first administrator. The token must differ from every gateway key, because a
// client with that key would otherwise administer the gateway.
// The length of the password is that of the pages, so that the first administrator can sign in with
// it.
func (c *Config) checkAdmin(d *decoder) {
	if n := len(c.Admin.Password.Reveal()); c.Admin.User != "" && (n < 8 || n > 512) || c.Admin.User == "" && n > 0 {
		d.at("admin.password", "expected 8 to 512 bytes, and a name in admin.user")
	}
	token := c.Admin.Token.Reveal()
	if token == "" {
		return
	}
	if len(token) < minAdminToken || len(token) > 512 || !sendable(token) {
		d.at("admin.token", "expected 24 to 512 printable characters without spaces, for example what openssl rand -hex 32 prints")
	}
	for i, k := range c.Keys {
		if k.Key.Reveal() == token {
			d.at("admin.token", "is the same as keys[%d].key, expected one that is no gateway key", i)
		}
	}
}

// checkListen checks the addresses of listen. Whether they are free is a matter of the start, and of the doctor.
func (c *Config) checkListen(d *decoder) {
	if len(c.Listen) == 0 {
		d.at("listen", "expected an address, for example 127.0.0.1:8080")
	}
	for i, addr := range c.Listen {
		if !Address(addr) {
			d.at(fmt.Sprintf("listen[%d]", i), "expected host:port, for example 127.0.0.1:8080")
		}
	}
}

// Address reports whether s is host:port with a port that can be listened on.
func Address(s string) bool {
	_, port, err := net.SplitHostPort(s)
	if err != nil {
		return false
	}
	n, err := strconv.Atoi(port)
	return err == nil && n >= 0 && n < 1<<16
}

// checkKeys checks the keys of the file, whose names and secrets must differ: a name becomes the id of the key, and a
// request is known by the secret alone.
func (c *Config) checkKeys(d *decoder) {
	names, secrets := make(map[string]bool), make(map[Secret]bool)
	for i, k := range c.Keys {
		path := fmt.Sprintf("keys[%d]", i)
		if names[k.Name] && k.Name != "" {
			d.at(path+".name", "%q is another key's name too, expected one of its own", k.Name)
		}
		if secrets[k.Key] && k.Key != "" {
			d.at(path+".key", "is the same as another key, expected one of its own")
		}
		names[k.Name], secrets[k.Key] = true, true
		checkKey(d, path, &k)
	}
}

// checkKey checks one key at path.
func checkKey(d *decoder, path string, k *Key) {
	if !sendable(k.Key.Reveal()) {
		d.at(path+".key", "expected printable characters without spaces: no client can send it in a header")
	}
	for i, s := range pointed(k.Scopes) {
		if s != "all" && !slices.Contains(registry.Scopes(), s) {
			d.at(fmt.Sprintf("%s.scopes[%d]", path, i), "%q is not known here, expected all or some of %s%s", s,
				strings.Join(registry.Scopes(), ", "), cli.DidYouMean(s, registry.Scopes()))
		}
	}
	for i, s := range pointed(k.Models) {
		if s == "" {
			d.at(fmt.Sprintf("%s.models[%d]", path, i), "is empty, expected a name or a pattern such as gpt-*")
		}
	}
	for i, s := range pointed(k.AllowIP) {
		if _, err := identity.ParseNetworks([]string{s}); err != nil {
			d.at(fmt.Sprintf("%s.allow_ips[%d]", path, i), "expected an address or a network such as 192.0.2.0/24")
		}
	}
	notNegative(d, path+".limits", []named{{"rpm", k.Limits.RPM}, {"tpm", k.Limits.TPM},
		{"concurrency", k.Limits.Concurrency}})
}

// sendable reports whether a secret can be sent in any header.
func sendable(secret string) bool {
	return !strings.ContainsFunc(secret, func(r rune) bool { return r <= ' ' || r > '~' })
}

// pointed returns the strings behind s, or nil if the setting is absent.
func pointed(s *Strings) Strings {
	if s == nil {
		return nil
	}
	return *s
}

// named is a number of a section with its name, for notNegative.
type named struct {
	name  string
	value int
}

// notNegative records a mistake for each number below 0. In these settings 0 has a meaning of its own, mostly no
// limit.
func notNegative(d *decoder, path string, all []named) {
	for _, n := range all {
		if n.value < 0 {
			d.at(join(path, n.name), "expected 0 or more")
		}
	}
}

// maxRetries keeps a slip of the finger from becoming a storm.
const maxRetries = 10

// checkProvider checks one provider at path. Its name stands in metrics and in paths of the admin API, so it has no
// spaces and no slashes.
func checkProvider(d *decoder, path, name string, p *Provider) {
	if name == "" || strings.ContainsAny(name, " \t/") {
		d.at(path, "expected a name without spaces and slashes")
	}
	if p.Shape != "sandbox" && p.Shape != "" && !absolute(p.BaseURL) {
		d.at(path+".base_url", "expected the provider's address, for example https://api.example.com/v1")
		// A password in an address would be in logs and on pages, which hide only settings that are secrets.
	} else if u := webAddress(p.BaseURL); u != nil && u.User != nil {
		d.at(path+".base_url", "expected an address without user and password; give them in headers or api_keys")
	}
	notNegative(d, path+".limits", []named{{"rpm", p.Limits.RPM}, {"tpm", p.Limits.TPM},
		{"concurrency", p.Limits.Concurrency}, {"queue", p.Limits.Queue}})
	if p.Retries != nil && (*p.Retries < 0 || *p.Retries > maxRetries) {
		d.at(path+".retries", "expected 0 to %d", maxRetries)
	}
	for i, key := range p.APIKeys {
		switch at := fmt.Sprintf("%s.api_keys[%d]", path, i); {
		case key == "":
			d.at(at, "is empty, expected a key; leave api_keys out if none is needed")
		case !sendable(key.Reveal()):
			d.at(at, "expected printable characters without spaces: it cannot be sent in a header")
		}
	}
	for _, h := range p.Headers {
		if !headerName(h.Name) {
			d.at(path+".headers."+h.Name, "expected the name of a header")
		}
		if strings.ContainsAny(h.Value.Reveal(), "\r\n\x00") {
			d.at(path+".headers."+h.Name, "expected one line")
		}
	}
}

// absolute reports whether an address can be the beginning of a path: it is a web address without query and fragment.
func absolute(address string) bool {
	u := webAddress(address)
	return u != nil && u.RawQuery == "" && u.Fragment == ""
}

// webAddress returns the URL that a text is, or nil if nothing can be reached there over HTTP.
func webAddress(text string) *url.URL {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || !usablePort(u) {
		return nil
	}
	return u
}

// usablePort reports whether the port of an address, which may be absent, can be connected to.
func usablePort(u *url.URL) bool {
	n, err := strconv.Atoi(cmp.Or(u.Port(), "1"))
	return err == nil && n > 0 && n < 1<<16
}

// headerName reports whether s is a token of RFC 9110 section 5.6.2.
func headerName(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
	})
}

// checkModels checks names, aliases, lists and targets of all models. An exact name or alias may exist once. Patterns
// may overlap, because the catalogue chooses the most specific one.
func (c *Config) checkModels(d *decoder) {
	taken := make(map[string]bool)
	for _, m := range c.Models {
		taken[m.Name] = true
	}
	for _, e := range c.Models {
		path, m := "models."+e.Name, &e.Value
		if e.Name == "" || strings.Count(e.Name, "*") > 1 {
			d.at(path, "expected a name, or a pattern with one *")
		}
		if len(m.Targets) == 0 && d.places[path+".targets"] != nil {
			d.at(path+".targets", "is empty, expected at least one target")
		}
		for i, alias := range m.Aliases {
			at := fmt.Sprintf("%s.aliases[%d]", path, i)
			switch {
			case alias == "" || strings.Contains(alias, "*"):
				d.at(at, "expected an exact name")
			case taken[alias]:
				d.at(at, "%q is another model's name, expected a free one", alias)
			}
			// It is taken for the models that follow, so the second of two equal aliases is the one reported.
			taken[alias] = true
		}
		before, after, pattern := strings.Cut(e.Name, "*")
		for i, name := range m.List {
			if at := fmt.Sprintf("%s.list[%d]", path, i); !pattern {
				d.at(at, "is only for patterns, expected none here")
			} else if rest, ok := strings.CutPrefix(name, before); !ok || !strings.HasSuffix(rest, after) ||
				strings.Contains(name, "*") || name == "" {
				d.at(at, "expected an exact name that the pattern matches")
			}
		}
		checkTokens(d, path, m.MaxOutputTokens)
		checkCapabilities(d, path, m.Capabilities)
		c.checkTargets(d, path+".targets", m.Targets)
		c.checkTargets(d, path+".fallback", m.Fallback)
		checkConditions(d, path, m)
		checkHedge(d, path, m)
	}
}

// checkAliases checks further names of paths.
func (c *Config) checkAliases(d *decoder) {
	for _, a := range c.Aliases {
		if !prefix(a.Name) || !prefix(a.Value) {
			d.at("aliases."+a.Name, "expected paths that begin with a slash and end without one, for example /vendor: /imagegen")
		}
	}
}

// prefix reports whether s is the beginning of a path, of whole segments.
func prefix(s string) bool {
	return len(s) > 1 && s[0] == '/' && path.Clean(s) == s && !strings.ContainsAny(s, "?#% ")
}

// checkTokens checks a number of output tokens.
func checkTokens(d *decoder, path string, n int) {
	if n < 0 {
		d.at(path+".max_output_tokens", "expected 1 or more; 0 is the default")
	}
}

// checkConditions checks where conditions stand. Targets share the load, so they cannot have any.
func checkConditions(d *decoder, path string, m *Model) {
	for i, t := range m.Targets {
		if t.On != nil {
			d.at(fmt.Sprintf("%s.targets[%d].on", path, i), "is only for entries of fallback, expected none here")
		}
	}
	for i, t := range m.Fallback {
		if t.On != nil && len(*t.On) == 0 {
			d.at(fmt.Sprintf("%s.fallback[%d].on", path, i), "is empty, expected at least one condition; "+
				"leave on out if the entry is for every failure")
		}
	}
}

// maxHedges bounds what one slow request may cost.
const maxHedges = 3

// checkHedge checks a hedge, which needs two targets that every request may use.
func checkHedge(d *decoder, path string, m *Model) {
	if m.Hedge == nil {
		return
	}
	if m.Hedge.Most < 0 || m.Hedge.Most > maxHedges {
		d.at(path+".hedge.most", "expected 1 to %d", maxHedges)
	}
	always := len(m.Targets)
	for _, t := range m.Fallback {
		// A fallback with conditions waits for a failure, so it cannot take part while the first target is only slow.
		if t.On == nil {
			always++
		}
	}
	if always < 2 {
		d.at(path+".hedge", "expected a second target, or a fallback without on")
	}
}

// checkCapabilities checks the numbers among capabilities. The words are checked by their enum.
func checkCapabilities(d *decoder, path string, caps *Capabilities) {
	if caps != nil && caps.ContextWindow < 0 {
		d.at(path+".capabilities.context_window", "expected 1 or more; 0 is what the model's name says")
	}
}

// checkTargets checks the targets or fallbacks at path. d.places keeps a missing provider from being reported a
// second time as an unknown one.
func (c *Config) checkTargets(d *decoder, path string, targets []Target) {
	for i, t := range targets {
		at := fmt.Sprintf("%s[%d]", path, i)
		if _, ok := c.Providers.Get(t.Provider); !ok && d.places[at+".provider"] != nil {
			names := c.Providers.names()
			d.at(at+".provider", "%q is no provider of this file, expected one of %s%s", t.Provider,
				cmp.Or(strings.Join(names, ", "), "those under providers, where there are none"),
				cli.DidYouMean(t.Provider, names))
		}
		if strings.Count(t.Model, "*") > 1 {
			d.at(at+".model", "expected a name with one * at most")
		}
		if t.Weight != nil && *t.Weight < 1 {
			d.at(at+".weight", "expected 1 or more")
		}
		checkTokens(d, at, t.MaxOutputTokens)
		checkCapabilities(d, at, t.Capabilities)
	}
}
