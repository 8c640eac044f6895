package server

import (
	"encoding/json"
	"net/http"
	"strings"

	"stagedoor/http/accesslog"
	"stagedoor/http/web/pages"
)

// Condition is a problem of the gateway that /readyz reports. Any client can read it, so it names no
// host, path or cause. Those are in the log.
type Condition struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Health lists the problems of a gateway.
type Health struct {
	// Blocking lists problems that make the gateway not ready.
	Blocking []Condition
	// Degraded lists problems that do not. Another gateway would have them too, or the
	// requests that still work are worth sending here.
	Degraded []Condition
}

var draining = Condition{"draining", "the gateway is shutting down"}

// healthPath reports whether a path is a health check. Health checks are answered under any load.
func healthPath(path string) bool { return path == "/healthz" || path == "/readyz" }

// operatorPath reports whether operators need a path to end an overload: metrics, administration and
// the pages for it. Such requests have a reserve (overload.Limiter.EnterReserved).
func operatorPath(path string) bool {
	for _, p := range [...]string{"/metrics", "/admin", "/flow", "/signin", pages.AssetPrefix} {
		if rest, ok := strings.CutPrefix(path, p); ok && (rest == "" || rest[0] == '/' || strings.HasSuffix(p, "/")) {
			return true
		}
	}
	return false
}

// healthz reports that the process is alive. It succeeds also while the gateway is overloaded, drains
// or has lost its store, because a restart would not help then.
func (s *Server) healthz(w http.ResponseWriter, _ *http.Request) {
	accesslog.Quiet(w)
	w.Header().Set("Content-Type", "application/json")
	w.Write([]byte(`{"status":"ok"}`))
}

// readyz reports whether new requests should be sent to this gateway, and all known problems.
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
	_ = json.NewEncoder(w).Encode(reply) // fails only if the client has left
}
