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

// writeBuffer holds the header of a request and a small body, which are then written at once. A larger body is written
// past it. Each stream keeps the buffer of its connection until it ends.
const writeBuffer = 2 << 10

// newTransport returns the pool of connections to one provider. It does not ask for compression, because
// replies are small and a stream that is inflated must be buffered. Reply.decompress inflates what is
// compressed anyway.
func newTransport(t Timeouts) *http.Transport {
	d := dialer{
		tcp:       net.Dialer{Timeout: t.Connect, KeepAlive: dialKeepAlive, ControlContext: control},
		handshake: t.Connect,
	}
	return &http.Transport{
		DialContext:            d.plain,
		DialTLSContext:         d.secure,
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           0,
		MaxIdleConnsPerHost:    20000,
		IdleConnTimeout:        90 * time.Second,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxHeader,
		WriteBufferSize:        writeBuffer,
		ExpectContinueTimeout:  time.Second,
	}
}

// unreached is the error of a connection that could not be made, for example because a name does not
// resolve, a port is closed, a certificate is wrong or a TLS handshake stalls. The request was not sent.
type unreached struct{ cause error }

// Error implements error.
func (e *unreached) Error() string { return "not sent: " + e.cause.Error() }

// Unwrap returns the cause.
func (e *unreached) Unwrap() error { return e.cause }

// notConnected reports whether err arose before a connection existed, in this package or in a transport that
// replaces the network.
func notConnected(err error) bool {
	var own *unreached
	var op *net.OpError
	return errors.As(err, &own) || errors.As(err, &op) && op.Op == "dial"
}

// timedOut reports whether a connection could not be made in time.
func timedOut(err error) bool {
	var slow net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &slow) && slow.Timeout()
}

// dialer opens connections. It makes the TLS handshake instead of net/http, so that an error of the handshake
// can be distinguished from an error after the request was sent.
type dialer struct {
	tcp       net.Dialer
	handshake time.Duration
}

// plain opens a connection without TLS.
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

// secure opens a connection and makes the TLS handshake, each within the connect timeout.
func (d *dialer) secure(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, &unreached{err}
	}
	raw, err := d.plain(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c := tls.Client(raw,
		&tls.Config{ServerName: host, NextProtos: []string{"h2", "http/1.1"}, MinVersion: tls.VersionTLS12})
	ctx, cancel := context.WithTimeout(ctx, d.handshake)
	defer cancel()
	if err := c.HandshakeContext(ctx); err != nil {
		_ = raw.Close() // the error of the handshake is the one to report
		return nil, &unreached{fmt.Errorf("TLS handshake: %w", err)}
	}
	return c, nil
}
