package idp

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"stagedoor/providers/network"
)

const (
	// callWithin bounds one conversation with a provider, which a person waits for.
	callWithin = 10 * time.Second
	// maxReply bounds each reply of a provider. Documents, key sets and tokens have a few kilobytes.
	maxReply = 256 << 10
	// discoveredFor is the time after which a provider's document is read again, so that it can move its endpoints.
	discoveredFor = time.Hour
	// failedFor is the time for which a provider that failed is not asked again, so that clicks do not add up there.
	failedFor = 2 * time.Second
)

// connection is a provider with its HTTP client and the document that it publishes.
type connection struct {
	Provider
	http *http.Client
	now  func() time.Time

	reading sync.Mutex // held while the document is read, so that one request reads it for all that wait
	known   *discovered
	failed  error
	checked time.Time // when known or failed was set
}

// discovered holds the document that a provider publishes about itself.
type discovered struct {
	provider    *oidc.Provider
	verifier    *oidc.IDTokenVerifier
	endpoint    oauth2.Endpoint
	namesIssuer bool   // every answer has the parameter iss
	endSession  string // where people sign out there; "": nowhere
}

// newConnection returns a connection to a provider. The address of the issuer was written by the operator and may be
// private. All others come from documents of the provider and must not lead into the private network.
func newConnection(p Provider, now func() time.Time) *connection {
	own := ""
	if u, err := url.Parse(p.Issuer); err == nil {
		own = hostPort(u)
	}
	plain := &net.Dialer{Timeout: callWithin}
	guarded := &net.Dialer{Timeout: callWithin, Control: refusePrivate}
	transport := &http.Transport{
		// No proxy is used whatever the environment says, because the guard would check the proxy's address.
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			if address == own { // the operator has named it
				return plain.DialContext(ctx, network, address)
			}
			return guarded.DialContext(ctx, network, address)
		},
		TLSHandshakeTimeout: callWithin, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 2,
		IdleConnTimeout: 30 * time.Second, MaxResponseHeaderBytes: 16 << 10, ResponseHeaderTimeout: callWithin,
	}
	return &connection{Provider: p, now: now, http: &http.Client{Transport: bounded{transport, p.Issuer},
		Timeout: callWithin, CheckRedirect: noRedirect}}
}

// hostPort returns the address that is dialled for a URL.
func hostPort(u *url.URL) string {
	port := u.Port()
	port = cmp.Or(port, map[string]string{"https": "443", "http": "80"}[u.Scheme])
	return net.JoinHostPort(u.Hostname(), port)
}

// refusePrivate returns an error for an address that is not public. The dialer calls it just before it connects, with
// the address to which the name has resolved.
func refusePrivate(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil || !network.IsPublic(at.Addr()) {
		return errors.New("the provider names a host that has no public address")
	}
	return nil
}

// bounded limits the replies of a provider, and sends nothing without encryption unless the issuer itself has none.
type bounded struct {
	next   http.RoundTripper
	issuer string
}

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	if !encrypted(r.URL.String()) && encrypted(b.issuer) {
		return nil, errors.New("the provider names an address without encryption")
	}
	reply, err := b.next.RoundTrip(r)
	if err == nil {
		reply.Body = &limited{ReadCloser: reply.Body, left: maxReply}
	}
	return reply, err
}

// encrypted reports whether an address is one of https.
func encrypted(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Scheme == "https" && u.Host != ""
}

// limited is a body that fails when it is too long, so that no part of it is taken for the whole.
type limited struct {
	io.ReadCloser
	left int
}

// Read implements io.Reader.
func (l *limited) Read(p []byte) (int, error) {
	if l.left < 0 {
		return 0, errors.New("the reply of the provider is too large")
	}
	n, err := l.ReadCloser.Read(p[:min(len(p), l.left+1)])
	if l.left -= n; l.left < 0 {
		return n, errors.New("the reply of the provider is too large")
	}
	return n, err
}

// discover returns the provider's document, which it reads if it does not know one. It returns ErrUnavailable.
func (c *connection) discover(ctx context.Context) (*discovered, error) {
	c.reading.Lock()
	defer c.reading.Unlock()
	age := c.now().Sub(c.checked)
	switch {
	case c.known != nil && age < discoveredFor:
		return c.known, nil
	case c.known == nil && c.failed != nil && age < failedFor:
		return nil, c.failed
	}
	d, err := c.read(ctx)
	if ctx.Err() != nil {
		return nil, unavailable(ctx.Err()) // the person has left, which says nothing about the provider
	}
	c.checked = c.now()
	if err != nil {
		// An old document serves on, because a provider that moves announces it.
		if c.failed = unavailable(err); c.known != nil {
			return c.known, nil
		}
		return nil, c.failed
	}
	c.known, c.failed = d, nil
	return d, nil
}

// signatures are the algorithms that ID tokens may be signed with. None and those with a shared secret are not in it.
var signatures = []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256,
	oidc.PS384, oidc.PS512, oidc.EdDSA}

// read reads what the provider publishes of itself and prepares the check of its tokens.
func (c *connection) read(ctx context.Context) (*discovered, error) {
	ctx, cancel := context.WithTimeout(oidc.ClientContext(ctx, c.http), callWithin)
	defer cancel()
	p, err := oidc.NewProvider(ctx, c.Issuer)
	if err != nil {
		return nil, err
	}
	var published struct {
		Methods     []string `json:"token_endpoint_auth_methods_supported"`
		NamesIssuer bool     `json:"authorization_response_iss_parameter_supported"`
		KeySet      string   `json:"jwks_uri"`
		EndSession  string   `json:"end_session_endpoint"`
	}
	if err := p.Claims(&published); err != nil {
		return nil, err
	}
	endpoint := p.Endpoint()
	for _, address := range []string{endpoint.AuthURL, endpoint.TokenURL, published.KeySet} {
		if !encrypted(address) && encrypted(c.Issuer) || address == "" {
			return nil, errors.New("its document lacks an endpoint with https")
		}
	}
	if !encrypted(published.EndSession) && encrypted(c.Issuer) {
		published.EndSession = ""
	}
	// The library would try both ways with one code, which strict providers take for a code that is used twice.
	endpoint.AuthStyle = oauth2.AuthStyleInHeader
	basic := len(published.Methods) == 0 || slices.Contains(published.Methods, "client_secret_basic")
	if c.ClientSecret == "" || !basic {
		endpoint.AuthStyle = oauth2.AuthStyleInParams
	}
	verifier := p.VerifierContext(oidc.ClientContext(context.Background(), c.http),
		&oidc.Config{ClientID: c.ClientID, SupportedSigningAlgs: signatures, Now: c.now})
	return &discovered{provider: p, verifier: verifier, endpoint: endpoint, namesIssuer: published.NamesIssuer,
		endSession: published.EndSession}, nil
}
