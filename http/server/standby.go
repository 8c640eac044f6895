package server

import (
	"context"
	"net"
	"net/http"
	"time"

	"stagedoor/http/envelope"
	"stagedoor/providers/dialogue"
)

// standbyConnections bounds the connections of StandBy. Only health checks have a reason to come.
const standbyConnections = 256

// StandBy answers on listeners until ctx ends, and leaves them open for Serve. It is for a gateway that waits until
// another one ends: /healthz succeeds, /readyz reports what Options.Health does, and every other request gets a 503.
// Requests that are under way when ctx ends are cut off. Of the options it uses Logger, Health and the certificate.
func StandBy(ctx context.Context, listeners []net.Listener, o Options) error {
	s := &Server{options: o, slots: newSlots(standbyConnections)}
	s.http = &http.Server{
		Handler:           http.HandlerFunc(s.standBy),
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       headerTimeout,
		MaxHeaderBytes:    maxHeader,
		ConnState:         s.slots.observe,
		ErrorLog:          debugLog(o.Logger),
	}
	s.http.SetKeepAlivesEnabled(false) // so that the next request meets the server that is there then
	var lent []net.Listener
	for _, l := range listeners {
		lent = append(lent, lentListener{l})
	}
	defer context.AfterFunc(ctx, func() { s.Close() })()
	err := s.Serve(lent)
	for _, l := range listeners {
		setDeadline(l, time.Time{})
	}
	return err
}

// standBy answers health checks and refuses everything else, while another gateway is live.
func (s *Server) standBy(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/healthz":
		s.healthz(w, r)
	case "/readyz":
		s.readyz(w, r)
	default:
		envelope.Write(w, envelope.Plain, dialogue.StandingBy())
	}
}

// lentListener is a listener that Close does not close, but only keeps from accepting.
type lentListener struct{ net.Listener }

// Close implements net.Listener.
func (l lentListener) Close() error {
	setDeadline(l.Listener, time.Unix(1, 0))
	return nil
}

// setDeadline ends an Accept that waits.
func setDeadline(l net.Listener, t time.Time) {
	if d, ok := l.(interface{ SetDeadline(time.Time) error }); ok { // as all listeners of sockets have
		_ = d.SetDeadline(t) // fails only on a closed listener, which accepts nothing either
	}
}
