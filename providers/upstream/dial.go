package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// newTransport is one pool of connections per provider. Compression is not
// asked for: replies are small, and a stream that is inflated is a stream that
// is buffered. What comes compressed all the same is inflated by call.body.
func newTransport(t Timeouts) *http.Transport {
	d := dialer{tcp: net.Dialer{Timeout: t.Connect, KeepAlive: dialKeepAlive, ControlContext: control}, handshake: t.Connect}
	return &http.Transport{
		DialContext:            d.plain,
		DialTLSContext:         d.secure,
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           0,
		MaxIdleConnsPerHost:    20000,
		IdleConnTimeout:        90 * time.Second,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxHeader,
		ExpectContinueTimeout:  time.Second,
	}
}

// unreached is why there is no connection to the upstream. The request cannot
// have been sent, whatever it is: a name that does not resolve, a port nobody
// listens on, a certificate that is not the host's, a handshake that stalls.
type unreached struct{ cause error }

func (e *unreached) Error() string { return "not sent: " + e.cause.Error() }
func (e *unreached) Unwrap() error { return e.cause }

// notConnected reports whether err is of connecting, by this package or by a
// transport that stands in for the network.
func notConnected(err error) bool {
	var own *unreached
	var op *net.OpError
	return errors.As(err, &own) || errors.As(err, &op) && op.Op == "dial"
}

func timedOut(err error) bool {
	var slow net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &slow) && slow.Timeout()
}

// dialer opens connections. It shakes hands itself, and not net/http, so that
// what goes wrong there can be told from what goes wrong later.
type dialer struct {
	tcp       net.Dialer
	handshake time.Duration
}

func (d *dialer) plain(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := d.tcp.DialContext(ctx, network, address)
	if err != nil {
		return nil, &unreached{err}
	}
	if tcp, ok := c.(*net.TCPConn); ok {
		return wire{tcp}, nil
	}
	return c, nil
}

func (d *dialer) secure(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, &unreached{err}
	}
	raw, err := d.plain(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c := tls.Client(raw, &tls.Config{ServerName: host, NextProtos: []string{"h2", "http/1.1"}, MinVersion: tls.VersionTLS12})
	ctx, cancel := context.WithTimeout(ctx, d.handshake)
	defer cancel()
	if err := c.HandshakeContext(ctx); err != nil {
		_ = raw.Close() // it is of no use
		return nil, &unreached{fmt.Errorf("shake hands: %w", err)}
	}
	return c, nil
}
