package upstream

import (
	"context"
	"errors"
	"net/netip"
	"syscall"

	"stagedoor/providers/network"
)

// errInside is the error of a call to an address that a provider named and that is not public.
var errInside = errors.New("the provider gave an address of a private network")

// named marks the context of a call to an address that the provider named and the operator did not.
type named struct{}

// control is the ControlContext of the net.Dialer. It keeps calls to addresses that a provider named out of
// private networks. It checks the resolved address at the time of the call, so that a name server cannot
// return a different address to the check.
func control(ctx context.Context, _, address string, _ syscall.RawConn) error {
	if ctx.Value(named{}) == nil {
		return nil
	}
	at, err := netip.ParseAddrPort(address)
	if err != nil || !network.IsPublic(at.Addr()) {
		return errInside
	}
	return nil
}
