package auth

import (
	"net"
	"net/http"
	"net/netip"
)

// forwardingHeaders are headers that proxies add to the requests that they pass on.
var forwardingHeaders = []string{"Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto",
	"X-Real-Ip"}

// FromThisMachine reports whether a request comes from a browser or program on this machine that addressed the gateway
// by a loopback address. Pages use it for what only the person at the machine may see.
//
// It returns false for a request that a proxy has passed on, as far as its headers show that, and for a request whose
// Host is another name: a page of a foreign site whose name resolves to 127.0.0.1 sends such requests. A proxy on this
// machine that adds no header and replaces Host cannot be recognised, so nothing that costs money may depend on this
// alone.
func FromThisMachine(r *http.Request) bool {
	if !Remote(r).IsLoopback() {
		return false
	}
	for _, name := range forwardingHeaders {
		if r.Header[name] != nil {
			return false
		}
	}
	return IsLoopbackHost(r.Host)
}

// IsLoopbackHost reports whether a host, with or without a port, is localhost or a loopback address.
func IsLoopbackHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	} else if n := len(host); n > 1 && host[0] == '[' && host[n-1] == ']' {
		host = host[1 : n-1]
	}
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}
