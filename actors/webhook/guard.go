package webhook

import (
	"errors"
	"net/netip"
	"syscall"

	"stagedoor/providers/network"
)

// errForbidden is the failure of a request to an address that may not be called.
var errForbidden = errors.New("the endpoint's address is not a public one")

// guard decides which addresses may be called.
type guard struct{ allow []netip.Prefix }

// permits reports whether a may be called, because it is public or the operator allows it.
func (g guard) permits(a netip.Addr) bool {
	return network.IsWithin(network.Normalize(a), g.allow) || network.IsPublic(a)
}

// control returns errForbidden for an address that must not be called. The dialer calls it just before it connects,
// with the address to which the name has resolved, so that a name server cannot answer this check differently.
func (g guard) control(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil || !g.permits(at.Addr()) {
		return errForbidden
	}
	return nil
}
