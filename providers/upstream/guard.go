package upstream

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"syscall"

	"stagedoor/providers/network"
)

// errInside is why an address that a provider named is not called.
var errInside = errors.New("the provider gave an address of a private network")

// named marks calls to a host that the provider named and not the operator.
type named struct{}

// guard keeps such calls out of the networks that only this machine can reach. It
// looks at what a name has resolved to, when that is called, so that a name server
// cannot answer differently to the check. A provider of a private network may
// name its neighbours.
type guard struct {
	base   string // the provider's host
	lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)
}

func newGuard(base string) *guard {
	return &guard{base: base, lookup: net.DefaultResolver.LookupNetIP}
}

// control is a net.Dialer's.
func (g *guard) control(ctx context.Context, _, address string, _ syscall.RawConn) error {
	if ctx.Value(named{}) == nil {
		return nil
	}
	at, err := netip.ParseAddrPort(address)
	if err != nil || !network.Public(at.Addr()) && !g.inside(ctx) {
		return errInside
	}
	return nil
}

// inside reports whether the provider itself is in a private network: all of its
// addresses are.
func (g *guard) inside(ctx context.Context) bool {
	own, err := g.lookup(ctx, "ip", g.base)
	for _, a := range own {
		if network.Public(a) {
			return false
		}
	}
	return err == nil && len(own) > 0
}
