package server

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"stagedoor/http/auth"
)

var trusted = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("10.0.0.0/8"),
	netip.MustParsePrefix("2001:db8::/32")}

// TestOnlyTrustedProxiesNameTheClient reads X-Forwarded-For from its end, as far as trusted proxies wrote it.
func TestOnlyTrustedProxiesNameTheClient(t *testing.T) {
	for _, c := range []struct {
		name, peer string
		headers    []string
		client     string
	}{
		{"no header", "127.0.0.1:5", nil, "127.0.0.1"},
		{"one proxy", "127.0.0.1:5", []string{"203.0.113.7"}, "203.0.113.7"},
		{"a stranger's header", "203.0.113.9:5", []string{"198.51.100.1"}, "203.0.113.9"},
		{"a made-up beginning", "127.0.0.1:5", []string{"127.0.0.1, 10.9.9.9, 198.51.100.1, 203.0.113.7"},
			"203.0.113.7"},
		{"two proxies", "127.0.0.1:5", []string{"198.51.100.1, 203.0.113.7, 10.0.0.2"}, "203.0.113.7"},
		{"two header lines", "127.0.0.1:5", []string{"198.51.100.1, 203.0.113.7", "10.0.0.2"}, "203.0.113.7"},
		{"a client inside", "10.0.0.1:5", []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.3"},
		{"IPv6", "[2001:db8::1]:5", []string{"2001:db9::7"}, "2001:db9::7"},
		{"IPv4 in IPv6", "[::ffff:127.0.0.1]:5", []string{"::ffff:203.0.113.7"}, "203.0.113.7"},
		{"with ports", "127.0.0.1:5", []string{"203.0.113.7:4711, [2001:db8::2]:80"}, "203.0.113.7"},
		{"a zone", "127.0.0.1:5", []string{"fe80::1%eth0"}, "fe80::1"},
		{"spaces", "127.0.0.1:5", []string{"\t203.0.113.7 ,10.0.0.2 "}, "203.0.113.7"},
		{"no address", "127.0.0.1:5", []string{"203.0.113.7, unknown"}, "127.0.0.1"},
		{"an empty entry", "127.0.0.1:5", []string{"203.0.113.7, ,10.0.0.2"}, "10.0.0.2"},
		{"an empty header", "127.0.0.1:5", []string{""}, "127.0.0.1"},
		{"too long an entry", "127.0.0.1:5", []string{strings.Repeat("1", 4000)}, "127.0.0.1"},
		{"a loop", "127.0.0.1:5", []string{"203.0.113.7" + strings.Repeat(", 10.0.0.2", 1000)}, "10.0.0.2"},
		{"text", "127.0.0.1:5", []string{"203.0.113.7\r\nX: y, 127.0.0.1;DROP"}, "127.0.0.1"},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = c.peer
		r.Header["X-Forwarded-For"] = c.headers
		believeProxies(trusted, r)
		if got := auth.Remote(r); got != netip.MustParseAddr(c.client) {
			t.Errorf("%s: the client is %s, want %s", c.name, got, c.client)
		}
	}
}

// TestForwardedAddressesAreIgnoredWithoutTrustedProxies keeps the default: no header is believed.
func TestForwardedAddressesAreIgnoredWithoutTrustedProxies(t *testing.T) {
	s, _ := newServer(t, func(o *Options) { o.Scrape = &Scrape{Allow: trusted[:1], Handler: http.NotFoundHandler()} })
	if got := scrape(s, "127.0.0.1:5", "203.0.113.7"); got == http.StatusForbidden {
		t.Error("the header was believed")
	}
	if got := scrape(s, "203.0.113.7:5", "127.0.0.1"); got != http.StatusForbidden {
		t.Errorf("a stranger who says to be local: %d", got)
	}
}

// TestMetricsAreNotServedThroughATrustedProxy: with trusted_proxies, a proxy on this machine does not make its clients
// local.
func TestMetricsAreNotServedThroughATrustedProxy(t *testing.T) {
	s, _ := newServer(t, func(o *Options) {
		o.Scrape, o.Proxies = &Scrape{Allow: trusted[:1], Handler: http.NotFoundHandler()}, trusted
	})
	if got := scrape(s, "127.0.0.1:5", "127.0.0.1, 203.0.113.7"); got != http.StatusForbidden {
		t.Errorf("a client of the proxy: %d", got)
	}
	if got := scrape(s, "127.0.0.1:5", ""); got == http.StatusForbidden {
		t.Error("a local scraper is refused")
	}
}

func scrape(s *Server, peer, forwarded string) int {
	r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	r.RemoteAddr = peer
	if forwarded != "" {
		r.Header.Set("X-Forwarded-For", forwarded)
	}
	return get(s, r).Code
}

// FuzzForwardedFor: whatever the header has, the client is an address that the peer or the header has, and an untrusted
// peer is always its own client.
func FuzzForwardedFor(f *testing.F) {
	f.Add("127.0.0.1:5", "203.0.113.7, 10.0.0.2")
	f.Add("203.0.113.7:5", "127.0.0.1,,[::1]:7, \x00")
	f.Fuzz(func(t *testing.T, peer, header string) {
		from, err := netip.ParseAddrPort(peer)
		if err != nil {
			return
		}
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr, r.Header["X-Forwarded-For"] = peer, []string{header}
		believeProxies(trusted, r)
		client, own := auth.Remote(r), from.Addr().Unmap()
		if client == own {
			return
		}
		if !contains(trusted, own.WithZone("")) {
			t.Errorf("%s is taken for %s", peer, client)
		}
		if !slices.ContainsFunc(strings.Split(header, ","), func(entry string) bool {
			a, ok := forwardedAddress(strings.Trim(entry, " \t"))
			return ok && a == client
		}) {
			t.Errorf("%q has no %s", header, client)
		}
	})
}
