package webhook

import (
	"errors"
	"net/netip"
	"syscall"
)

// errForbidden is the failure of a request to where none may go.
var errForbidden = errors.New("the endpoint's address is not a public one")

// closed are the networks that an event must not be sent to although their
// addresses look like any other: whoever names an endpoint could otherwise have
// the gateway knock at doors that only it can reach. The usual private ones are
// asked of net/netip.
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
	var out []netip.Prefix
	for _, n := range networks {
		out = append(out, netip.MustParsePrefix(n))
	}
	return out
}

// guard decides which addresses may be called.
type guard struct{ allow []netip.Prefix }

// permits reports whether a may be called. What the operator allows may be.
func (g guard) permits(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	if contain(g.allow, a) {
		return true
	}
	return a.IsGlobalUnicast() && !a.IsPrivate() && !contain(closed, a)
}

func contain(networks []netip.Prefix, a netip.Addr) bool {
	for _, n := range networks {
		if n.Contains(a) {
			return true
		}
	}
	return false
}

// control refuses a connection when its address is known: a name is resolved once
// and what it resolved to is what is called, so that a name server cannot answer
// differently to the check.
func (g guard) control(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil || !g.permits(at.Addr()) {
		return errForbidden
	}
	return nil
}
