package server

import (
	"net/http"
	"net/netip"

	"stagedoor/http/accesslog"
	"stagedoor/http/envelope"
	"stagedoor/providers/dialogue"
)

// Scrape serves the metrics to the addresses in Allow. Metrics contain no secrets, but load and
// revenue are not public.
type Scrape struct {
	Handler http.Handler
	Allow   []netip.Prefix
}

// ServeHTTP implements http.Handler.
func (s *Scrape) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !contains(s.Allow, from.Addr().Unmap()) {
		envelope.Write(
			w,
			envelope.Plain,
			dialogue.Refusal(http.StatusForbidden, "address_not_allowed",
				"metrics are not served to this address; the configuration names those that may read them "+
					"(telemetry.metrics.allow)"),
		)
		return
	}
	accesslog.Quiet(w)
	s.Handler.ServeHTTP(w, r)
}
