package server

import (
	"net/http"
	"net/netip"
	"strings"
)

// maxHops bounds how many addresses of X-Forwarded-For are looked at. A longer chain of proxies is a loop.
const maxHops = 32

// believeProxies sets the RemoteAddr of a request that one of the proxies has forwarded to the address of the client,
// so that limits of failed logins, networks of keys, shares of addresses and everything else see the client. A request
// from another address keeps its own, whatever headers it has. The port becomes 0, because no header has it.
func believeProxies(proxies []netip.Prefix, r *http.Request) {
	if len(proxies) == 0 {
		return
	}
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return
	}
	if client := clientOf(proxies, peer.Addr(), r.Header["X-Forwarded-For"]); client != peer.Addr() {
		r.RemoteAddr = netip.AddrPortFrom(client, 0).String()
	}
}

// clientOf returns the address of the client of a request that arrived from peer. Each proxy appends the address that
// it was called from, so the list is read from its end: an entry counts if a trusted proxy wrote it, and the first
// address that is no trusted proxy is the client. Everything before it may be made up. An entry that is no address
// ends the chain, and the proxy that wrote it counts as the client.
func clientOf(proxies []netip.Prefix, peer netip.Addr, forwarded []string) netip.Addr {
	client, hops := peer, 0
	for i := len(forwarded) - 1; i >= 0; i-- {
		for rest, more := forwarded[i], true; more; {
			if hops++; hops > maxHops || !contains(proxies, client.Unmap().WithZone("")) {
				return client
			}
			entry := rest
			n := strings.LastIndexByte(rest, ',')
			if more = n >= 0; more {
				rest, entry = rest[:n], rest[n+1:]
			}
			next, ok := forwardedAddress(strings.Trim(entry, " \t"))
			if !ok {
				return client
			}
			client = next
		}
	}
	return client
}

// forwardedAddress reads an entry of X-Forwarded-For. Some proxies append the port.
func forwardedAddress(entry string) (netip.Addr, bool) {
	const longest = len("[ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255]:65535")
	if len(entry) > longest {
		return netip.Addr{}, false
	}
	a, err := netip.ParseAddr(entry)
	if err != nil {
		var withPort netip.AddrPort
		withPort, err = netip.ParseAddrPort(entry)
		a = withPort.Addr()
	}
	return a.Unmap().WithZone(""), err == nil
}
