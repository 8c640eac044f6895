// Package network distinguishes addresses of the public internet from those that only a
// machine and its neighbours can reach. Use it before the gateway connects to an address that
// a client or a provider named. It resolves no names and opens no connections.
//
// # Usage
//
// Resolve a name first and check each of its addresses, and connect to the address that was checked: a second look at
// the name may give another one (DNS rebinding). IsPublic refuses the special-purpose ranges of the IANA registries
// (RFC 6890) beside those that net/netip knows as private, because cloud providers serve credentials of machines in
// some of them.
package network

import (
	"net/netip"
	"slices"
)

// reserved lists networks whose addresses look public and are not. A client that names one
// could otherwise make the gateway connect to services that only the gateway can reach. The
// private networks and loopback are not listed, because net/netip knows them.
var reserved = parsePrefixes(
	"0.0.0.0/8",       // this host
	"100.64.0.0/10",   // used by carriers, and for metadata by some clouds
	"192.0.0.0/24",    // protocol assignments
	"192.0.2.0/24",    // documentation
	"192.88.99.0/24",  // 6to4 relays
	"198.18.0.0/15",   // benchmarks
	"198.51.100.0/24", // documentation
	"203.0.113.0/24",  // documentation
	"240.0.0.0/4",     // reserved, and broadcast
	"::/96",           // IPv4 in IPv6, deprecated
	"::ffff:0:0:0/96", // IPv4 translated
	"64:ff9b::/96",    // IPv4 behind a translator
	"64:ff9b:1::/48",  // the same, for local use
	"100::/64",        // discarded
	"2001::/23",       // protocol assignments, Teredo with IPv4 in it
	"2001:db8::/32",   // documentation
	"2002::/16",       // 6to4, with IPv4 in it
	"3fff::/20",       // documentation
	"5f00::/16",       // segment routing
	"fec0::/10",       // site-local, deprecated
)

// parsePrefixes returns networks that are written in this package.
func parsePrefixes(networks ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(networks))
	for i, n := range networks {
		out[i] = netip.MustParsePrefix(n)
	}
	return out
}

// IsPublic reports whether a is an address of the public internet, also if it is an IPv4
// address written as IPv6.
func IsPublic(a netip.Addr) bool {
	a = Normalize(a)
	return a.IsGlobalUnicast() && !a.IsPrivate() && !IsWithin(a, reserved)
}

// Normalize returns a without its zone, and as IPv4 if it is an IPv4 address written as IPv6.
func Normalize(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }

// IsWithin reports whether one of the networks contains a, which must be normalized.
func IsWithin(a netip.Addr, networks []netip.Prefix) bool {
	return slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Contains(a) })
}
