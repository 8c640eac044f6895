package server

import (
	"encoding/json"
	"net/http"
	"strings"

	"stagedoor/http/accesslog"
	"stagedoor/http/web/pages"
)

// Condition is something about the gateway that whoever watches over it should
// know. It is told to anybody, so it names no host, path or cause: those are in
// the log.
type Condition struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Health is how a gateway is.
type Health struct {
	// Blocking keeps it from being ready.
	Blocking []Condition
	// Degraded does not: somewhere else it would not be better, or what is left
	// is worth being sent here.
	Degraded []Condition
}

var draining = Condition{"draining", "the gateway is shutting down"}

// healthPath reports whether a path is asked by those who watch over the
// process. They are answered whatever the load.
func healthPath(path string) bool { return path == "/healthz" || path == "/readyz" }

// operatorPath reports whether a path is asked by those who operate the gateway:
// metrics, administration and the pages they need for it. An overload must not take
// from them what ends it.
func operatorPath(path string) bool {
	for _, p := range [...]string{"/metrics", "/admin", "/flow", "/signin", pages.AssetPrefix} {
		if rest, ok := strings.CutPrefix(path, p); ok && (rest == "" || rest[0] == '/' || strings.HasSuffix(p, "/")) {
			return true
		}
	}
	return false
}

// healthz says that the process serves. A gateway that is overloaded, drains or
// has lost its store does so, too: killing it would make nothing better.
func (s *Server) healthz(w http.ResponseWriter, _ *http.Request) {
	accesslog.Quiet(w)
	w.Header().Set("Content-Type", "application/json")
	w.Write([]byte(`{"status":"ok"}`))
}

// readyz says whether new requests should be sent here, and everything that
// speaks against it.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	accesslog.Quiet(w)
	var h Health
	if s.options.Health != nil {
		h = s.options.Health(r.Context())
	}
	if s.draining.Load() {
		h.Blocking = append([]Condition{draining}, h.Blocking...)
	}
	reply := struct {
		Status   string      `json:"status"`
		Reasons  []Condition `json:"reasons,omitempty"`
		Degraded []Condition `json:"degraded,omitempty"`
	}{"ready", h.Blocking, h.Degraded}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if len(h.Blocking) > 0 {
		reply.Status = "not_ready"
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.NewEncoder(w).Encode(reply) // whoever asked has left
}
