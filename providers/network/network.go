// Package network tells the addresses of the public internet from those that only
// a machine and its neighbours can reach. It is for whoever calls an address that
// somebody else has named; it resolves nothing and calls nobody.
package network

import "net/netip"

// closed are the networks that must not be called for others although their
// addresses look like any other: whoever names one could otherwise have the
// gateway knock at doors that only it can reach. The usual private ones are asked
// of net/netip.
var closed = parse(
	"0.0.0.0/8",       // this host
	"100.64.0.0/10",   // carriers' own, and what some clouds keep metadata in
	"192.0.0.0/24",    // protocol assignments
	"192.0.2.0/24",    // documentation
	"192.88.99.0/24",  // 6to4 relays
	"198.18.0.0/15",   // benchmarks
	"198.51.100.0/24", // documentation
	"203.0.113.0/24",  // documentation
	"240.0.0.0/4",     // reserved, and broadcast
	"::/96",           // IPv4 in IPv6, of old
	"::ffff:0:0:0/96", // IPv4 translated
	"64:ff9b::/96",    // IPv4 behind a translator
	"64:ff9b:1::/48",  // the same, of one's own
	"100::/64",        // discarded
	"2001::/23",       // protocol assignments, Teredo with IPv4 in it
	"2001:db8::/32",   // documentation
	"2002::/16",       // 6to4, with IPv4 in it
	"3fff::/20",       // documentation
	"5f00::/16",       // segment routing
	"fec0::/10",       // site-local, of old
)

func parse(networks ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(networks))
	for i, n := range networks {
		out[i] = netip.MustParsePrefix(n)
	}
	return out
}

// IsPublic reports whether a is an address of the public internet, however it is
// written.
func IsPublic(a netip.Addr) bool {
	a = Normalize(a)
	return a.IsGlobalUnicast() && !a.IsPrivate() && !IsWithin(a, closed)
}

// Normalize is a without its zone, and as IPv4 if it is one in an IPv6 address.
func Normalize(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }

// IsWithin reports whether a lies in one of the networks.
func IsWithin(a netip.Addr, networks []netip.Prefix) bool {
	for _, n := range networks {
		if n.Contains(a) {
			return true
		}
	}
	return false
}
