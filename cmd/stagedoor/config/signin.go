package config

import (
	"cmp"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"stagedoor/http/web/idp"
	"stagedoor/http/web/places"
)

// SignIn says how people sign in.
type SignIn struct {
	SecondFactor string `yaml:"second_factor" doc:"users that need a second factor" enum:"none,administrators,everyone"`

	Providers Map[SignInProvider] `yaml:"providers" doc:"OpenID providers by name (lower-case letters, digits and -)"`
	Places    string              `yaml:"places" doc:"file in the MMDB format with the places of IP addresses, for lists of sessions"`
}

// SignInProvider is an OpenID provider.
type SignInProvider struct {
	Issuer   string `yaml:"issuer" doc:"issuer of the provider, exactly as in its discovery document, https" required:"true"`
	ClientID string `yaml:"client_id" doc:"client id of the gateway at the provider" required:"true"`
	Secret   Secret `yaml:"client_secret" doc:"client secret of the gateway at the provider; none: public client"`
	Label    string `yaml:"label" doc:"text of the button, Sign in with ...; default: the name of the provider"`

	Scopes Strings `yaml:"scopes" doc:"scopes that are requested beside openid; default: profile, email"`
	// A provider that lets people choose must not count as two factors.
	Strong bool `yaml:"strong" doc:"the provider requires two factors, so the gateway asks for none of its own"`
	Create bool `yaml:"create" doc:"create an account at a person's first sign-in"`

	Domains Strings `yaml:"domains" doc:"domains of verified e-mail addresses that may sign in; default: all"`
	Claim   string  `yaml:"groups_claim" doc:"claim with the groups of a person; default: groups"`

	Groups Map[string] `yaml:"groups" doc:"groups of the provider and the matching groups of the gateway; the first match counts"`
	Admins Strings     `yaml:"administrators" doc:"groups of the provider whose members are administrators, and no other person of this provider"`
}

var providerName = regexp.MustCompile(`^[a-z0-9-]{1,32}$`)

// maxSignInProviders bounds the buttons on the sign-in page.
const maxSignInProviders = 20

// check checks the OpenID providers. Two with one issuer are refused, because people are known by issuer and subject,
// and the rules of either provider could apply to them.
func (s *SignIn) check(d *decoder) {
	if _, err := places.Open(s.Places); s.Places != "" && err != nil {
		d.at("sign_in.places", "expected a file with cities or countries, for example GeoLite2-City.mmdb")
	}
	if len(s.Providers) > maxSignInProviders {
		d.at("sign_in.providers", "expected at most %d", maxSignInProviders)
	}
	for i, e := range s.Providers {
		path, p := "sign_in.providers."+e.Name, &e.Value
		if !providerName.MatchString(e.Name) {
			d.at(path, "expected a name of 1 to 32 small letters, digits and -")
		}
		if p.Issuer != "" && !issuesSafely(p.Issuer) {
			d.at(path+".issuer", "expected an https address without query, for example https://login.example.com")
		}
		for _, other := range s.Providers[:i] {
			if other.Value.Issuer == p.Issuer && p.Issuer != "" {
				d.at(path+".issuer", "is that of %q too, expected another one: people are known by it", other.Name)
			}
		}
		if slices.Contains(p.Admins, "") || slices.Contains(p.Groups.names(), "") {
			d.at(path, "expected names of groups")
		}
		for _, g := range p.Groups {
			if g.Value == "" {
				d.at(path+".groups."+g.Name, "expected the name of a group of this gateway")
			}
		}
		for _, domain := range p.Domains {
			if strings.ContainsAny(domain, "@ /") || domain == "" {
				d.at(path+".domains", "expected domains such as example.com")
			}
		}
		if p.Create && len(p.Domains) == 0 && openToAll(p.Issuer) {
			d.warn(path+".create", "all people with an account there get one here, expected domains")
		}
	}
}

// issuesSafely reports whether an address can be an issuer's: https, or http on this machine.
func issuesSafely(issuer string) bool {
	u := webAddress(issuer)
	if u == nil || u.User != nil || u.RawQuery != "" || strings.ContainsAny(issuer, "?#") {
		return false
	}
	return u.Scheme == "https" || isLoopback(u)
}

// isLoopback reports whether an address is on this machine, where http is safe enough for tests.
func isLoopback(u *url.URL) bool {
	ip, err := netip.ParseAddr(u.Hostname())
	return err == nil && ip.IsLoopback() || strings.EqualFold(u.Hostname(), "localhost")
}

// openToAll reports whether anyone can have an account of an issuer.
func openToAll(issuer string) bool {
	u := webAddress(issuer)
	return u != nil && slices.Contains([]string{"accounts.google.com", "gitlab.com", "login.microsoftonline.com",
		"appleid.apple.com"}, u.Hostname())
}

// Clients returns the OpenID providers of the file as values for package idp.
func (s *SignIn) Clients() []idp.Provider {
	var all []idp.Provider
	for _, e := range s.Providers {
		p := e.Value
		made := idp.Provider{Name: e.Name, Label: cmp.Or(p.Label, e.Name), Issuer: p.Issuer, ClientID: p.ClientID,
			ClientSecret: p.Secret.Reveal(), Scopes: p.Scopes, Strong: p.Strong, Create: p.Create,
			Domains: p.Domains, GroupsClaim: cmp.Or(p.Claim, "groups"), Administrators: p.Admins}
		if p.Scopes == nil {
			made.Scopes = []string{"profile", "email"}
		}
		for _, g := range p.Groups {
			made.Groups = append(made.Groups, idp.Mapping{From: g.Name, To: g.Value})
		}
		all = append(all, made)
	}
	return all
}
