package webhook

import (
	"errors"
	"net/netip"
	"syscall"

	"stagedoor/providers/network"
)

// errForbidden is the failure of a request to where none may go.
var errForbidden = errors.New("the endpoint's address is not a public one")

// guard decides which addresses may be called.
type guard struct{ allow []netip.Prefix }

// permits reports whether a may be called. What the operator allows may be.
func (g guard) permits(a netip.Addr) bool {
	return network.IsWithin(network.Normalize(a), g.allow) || network.IsPublic(a)
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
