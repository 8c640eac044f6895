package identity

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"stagedoor/state"
	"stagedoor/state/budget"
)

// Errors of Key.Permits. For the first three the key is treated as invalid (401), for the others
// as valid but not permitted (403).
var (
	ErrKeyRevoked       = errors.New("the key was revoked")
	ErrKeyExpired       = errors.New("the key has expired")
	ErrKeyDisabled      = errors.New("the key is disabled")
	ErrAddressForbidden = errors.New("the key may not be used from this address")
	ErrScopeForbidden   = errors.New("the key lacks the scope")
	ErrModelForbidden   = errors.New("the key may not use the model")
)

// Permits returns nil if the key may be used at now from ip for scope and model, and otherwise the
// first reason why not. An empty scope or model is not checked.
func (k *Key) Permits(scope, model string, ip netip.Addr, now time.Time) error {
	switch {
	case !k.Revoked.IsZero():
		return ErrKeyRevoked
	case k.expired(now):
		return ErrKeyExpired
	case !k.Enabled:
		return ErrKeyDisabled
	case !k.allows(ip):
		return ErrAddressForbidden
	case !permitsScope(k.Scopes, scope):
		return ErrScopeForbidden
	case !permitsModel(k.Models, model):
		return ErrModelForbidden
	}
	return nil
}

// expired reports whether the key's time is over. A key without one does not expire.
func (k *Key) expired(now time.Time) bool { return !k.Expires.IsZero() && !now.Before(k.Expires) }

// allows reports whether the key may be used from ip. It compares addresses and not their spelling,
// because a socket that listens on IPv4 and IPv6 reports an IPv4 client as ::ffff:192.0.2.1.
func (k *Key) allows(ip netip.Addr) bool {
	if len(k.AllowIPs) == 0 {
		return true
	}
	ip = ip.Unmap().WithZone("")
	return slices.ContainsFunc(k.AllowIPs, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// ParseNetworks parses a list of addresses and CIDR networks. An address is a network of itself. An IPv4 address in the
// form of IPv6 becomes an IPv4 address, because requests over IPv4 are compared in that form. Text that is neither, an
// address with a zone, and a network that mixes both families are state.ErrInvalid.
func ParseNetworks(list []string) ([]netip.Prefix, error) {
	var found []netip.Prefix
	for _, s := range list {
		p, err := netip.ParsePrefix(s)
		if err != nil {
			ip, ipErr := netip.ParseAddr(s)
			if ipErr != nil || ip.Zone() != "" {
				return nil, fmt.Errorf("%w: %q is neither an address nor a network", state.ErrInvalid, s)
			}
			p = netip.PrefixFrom(ip, ip.BitLen())
		}
		if ip := p.Addr(); ip.Is4In6() {
			if p.Bits() < 96 {
				return nil, fmt.Errorf("%w: %q covers more than IPv4", state.ErrInvalid, s)
			}
			p = netip.PrefixFrom(ip.Unmap(), p.Bits()-96)
		}
		found = append(found, p.Masked())
	}
	return found, nil
}

// MatchModel reports whether a model id matches a glob. * matches any run of characters and ?
// matches one. Unlike path.Match, * also matches slashes, which model ids contain. The time is at
// most proportional to the product of the lengths, so a hostile glob costs little.
func MatchModel(glob, model string) bool {
	g, m := 0, 0
	star, from := -1, 0 // the last * and where it was tried to end
	for m < len(model) {
		switch {
		case g < len(glob) && glob[g] == '*':
			star, from = g, m
			g++
		case g < len(glob) && (glob[g] == '?' || glob[g] == model[m]):
			g++
			m++
		case star >= 0:
			from++
			g, m = star+1, from
		default:
			return false
		}
	}
	for g < len(glob) && glob[g] == '*' {
		g++
	}
	return g == len(glob)
}

// State returns "active", "disabled", "expired" or "revoked".
func (k *Key) State(now time.Time) string {
	switch {
	case !k.Revoked.IsZero():
		return "revoked"
	case k.expired(now):
		return "expired"
	case !k.Enabled:
		return "disabled"
	}
	return "active"
}

// Limit returns the key's budget.
func (k *Key) Limit() budget.Budget { return budget.Budget{Amount: k.Budget, Window: k.Window} }

// AccountOf returns the account that holds the receipts of a key: its user's account, or the key's
// own if it has no user.
func AccountOf(k *Key) string {
	if k.User != "" {
		return k.User
	}
	return state.KeyAccount(k.ID)
}

// Charged returns the account that the key's requests are charged to. It is empty for a key that
// has neither a user nor a budget: nothing limits the spending of such a key, so no money is held.
func (k *Key) Charged() string {
	if k.User == "" && k.Budget == 0 {
		return ""
	}
	return AccountOf(k)
}
