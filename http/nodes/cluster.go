package nodes

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sourcegraph/conc"

	"stagedoor/providers/memory"
	"stagedoor/state"
	"stagedoor/state/journal"
	"stagedoor/state/share"
)

const (
	// maxConnections bounds those that a gateway accepts from all others. Clients that could be served by more get
	// what they can have without a stream.
	maxConnections = 512
	// maxRelays bounds the replies that last as long as a request, those that a gateway sends and those that it reads
	// together. The other connections are left for short questions.
	maxRelays = 384
	// handshakeTime bounds the time until a connection has been made and has sent a request.
	handshakeTime = 3 * time.Second
	// writeTime bounds the wait for a gateway that does not accept what it is sent. Its own client is dropped sooner.
	writeTime = 60 * time.Second
	idleTime  = 30 * time.Second
	maxHeader = 64 << 10
	// maxRefusal bounds the bytes that are read of a refusal.
	maxRefusal = 1 << 10
	// listTime bounds the wait for the database's list of gateways.
	listTime = 300 * time.Millisecond
	// membersFor is the time for which a list of the gateways is used again.
	membersFor = time.Second
)

// targetHeader names the state.Node that a request is meant for.
const targetHeader = "Stagedoor-Node"

// Options configure a Cluster.
type Options struct {
	Logger *slog.Logger
	// Secret is the same for all gateways of the database, and only they have it.
	Secret []byte
	// Self is this process.
	Self state.Node
	// List returns the nodes of the database.
	List func(context.Context) ([]journal.Member, error)
	// Memory counts large events that arrive.
	Memory memory.Pool
}

// Peer is another gateway that serves.
type Peer struct {
	Name    string
	Node    state.Node
	Address string // empty if it has no listener for the others
}

// Cluster asks other gateways and answers them. It is safe for concurrent use.
type Cluster struct {
	options Options
	tls     *tls.Config
	mux     *http.ServeMux
	http    *http.Transport
	relays  *share.Pool
	// writeTime is the constant, except in tests.
	writeTime time.Duration

	mu     sync.Mutex
	peers  []Peer
	listed time.Time // the last time at which the list was asked for
	got    bool
	failed error // if the list was never got
}

// New returns a Cluster that does not serve yet. The keys of all gateways follow from the secret, so no certificate has
// to be given to each of them.
func New(o Options) (*Cluster, error) {
	secure, err := secured(o.Secret)
	if err != nil {
		return nil, fmt.Errorf("make the key of the gateways: %w", err)
	}
	dialer := &net.Dialer{Timeout: handshakeTime}
	relays := share.New(share.Relays, maxRelays, 1)
	return &Cluster{options: o, tls: secure, mux: http.NewServeMux(), relays: relays, writeTime: writeTime,
		http: &http.Transport{
			DialContext: dialer.DialContext, TLSClientConfig: secure, TLSHandshakeTimeout: handshakeTime,
			ResponseHeaderTimeout: handshakeTime, MaxResponseHeaderBytes: maxHeader, DisableCompression: true,
			MaxConnsPerHost: maxConnections, MaxIdleConnsPerHost: 4, IdleConnTimeout: idleTime,
		}}, nil
}

// secured returns the TLS of both sides. Each has a certificate of the key that follows from the secret, and accepts
// only that key. Names and times of certificates do not matter.
func secured(secret []byte) (*tls.Config, error) {
	seed, err := hkdf.Key(sha256.New, secret, nil, "stagedoor gateways", ed25519.SeedSize)
	if err != nil {
		return nil, err
	}
	key := ed25519.NewKeyFromSeed(seed)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().AddDate(100, 0, 0)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: key}},
		ClientAuth:   tls.RequireAnyClientCert, InsecureSkipVerify: true, SessionTicketsDisabled: true,
		VerifyConnection: func(c tls.ConnectionState) error {
			theirs, ok := c.PeerCertificates[0].PublicKey.(ed25519.PublicKey)
			if !ok || !theirs.Equal(key.Public()) {
				return errors.New("the other side is no gateway of this installation")
			}
			return nil
		},
	}, nil
}

// Handle serves requests of other gateways. The pattern is that of http.ServeMux. All calls precede Serve.
func (c *Cluster) Handle(pattern string, h http.HandlerFunc) { c.mux.HandleFunc(pattern, h) }

// Relays returns the pool of the replies that last as long as a request, for metrics.
func (c *Cluster) Relays() *share.Pool { return c.relays }

// Relay counts a reply that lasts as long as a request against the share of its owner until the handler calls leave.
// Without room it refuses the request, and the other gateway gets a *share.Refused. Call it for what is here only,
// because the other gateway looks no further after a refusal.
func (c *Cluster) Relay(w http.ResponseWriter, owner state.Owner) (leave func(), ok bool) {
	if err := c.relays.Take(string(owner), 1); err != nil {
		status := http.StatusServiceUnavailable
		if refused := (*share.Refused)(nil); errors.As(err, &refused) && refused.Share {
			status = http.StatusTooManyRequests
		}
		http.Error(w, err.Error(), status)
		return nil, false
	}
	w.Header().Set("Connection", "close") // one that is idle would take a place that is not counted
	return func() { c.relays.Give(string(owner), 1) }, true
}

// Serve answers the other gateways on a listener until ctx ends, and closes it.
func (c *Cluster) Serve(ctx context.Context, l net.Listener) {
	srv := &http.Server{ReadTimeout: handshakeTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(c.options.Logger.Handler(), slog.LevelDebug),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			t := timed{w, c.writeTime}
			_ = t.extend() // the connection may have a deadline of an earlier reply
			defer t.extend()
			if r.Header.Get(targetHeader) != string(c.options.Self) {
				http.Error(t, "this is another gateway", http.StatusMisdirectedRequest)
				return
			}
			// Requests have no bodies, and a deadline that passed later would end those that last.
			_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
			c.mux.ServeHTTP(t, r)
		})}
	stop := context.AfterFunc(ctx, func() { srv.Close() })
	defer stop()
	bounded := &bounded{Listener: l, free: make(chan struct{}, maxConnections), closed: make(chan struct{})}
	if err := srv.Serve(tls.NewListener(bounded, c.tls)); !errors.Is(err, http.ErrServerClosed) {
		c.options.Logger.Warn("the listener for other gateways failed", "cause", err)
	}
}

// Close ends the connections that are idle.
func (c *Cluster) Close() {
	if c != nil {
		c.http.CloseIdleConnections()
	}
}

// timed sets a deadline whenever something is sent, so that a gateway that hangs does not keep a connection. A reply
// that was quiet for longer does not meet a deadline that has passed.
type timed struct {
	http.ResponseWriter
	within time.Duration
}

// Unwrap implements the interface that http.ResponseController looks for.
func (t timed) Unwrap() http.ResponseWriter { return t.ResponseWriter }

// extend moves the deadline.
func (t timed) extend() error {
	return http.NewResponseController(t.ResponseWriter).SetWriteDeadline(time.Now().Add(t.within))
}

// Write implements http.ResponseWriter.
func (t timed) Write(p []byte) (int, error) {
	if err := t.extend(); err != nil {
		return 0, err
	}
	return t.ResponseWriter.Write(p)
}

// FlushError implements the interface that http.ResponseController looks for.
func (t timed) FlushError() error {
	if err := t.extend(); err != nil {
		return err
	}
	return http.NewResponseController(t.ResponseWriter).Flush()
}

// bounded is a listener whose connections are at most as many as free has places.
type bounded struct {
	net.Listener
	free   chan struct{}
	closed chan struct{}
	once   sync.Once
}

// Accept implements net.Listener. It waits while there are too many connections.
func (b *bounded) Accept() (net.Conn, error) {
	select {
	case b.free <- struct{}{}:
	case <-b.closed:
		return nil, net.ErrClosed
	}
	c, err := b.Listener.Accept()
	if err != nil {
		<-b.free
		return nil, err
	}
	return &counted{Conn: c, leave: sync.OnceFunc(func() { <-b.free })}, nil
}

// Close implements net.Listener.
func (b *bounded) Close() error {
	b.once.Do(func() { close(b.closed) })
	return b.Listener.Close()
}

// counted is a connection that gives its place back.
type counted struct {
	net.Conn
	leave func()
}

// Close implements net.Conn.
func (c *counted) Close() error {
	c.leave()
	return c.Conn.Close()
}

// Others returns the other gateways that serve, by name. The list is up to a second old, and older while the database
// does not answer. The error says that it has never answered, and is up to a second old, too, so that many callers do
// not wait for it one after the other.
func (c *Cluster) Others(ctx context.Context) ([]Peer, error) {
	if c == nil {
		return nil, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.listed.IsZero() && time.Since(c.listed) < membersFor {
		return c.peers, c.failed
	}
	// A caller that leaves does not make the list fail for the others.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), listTime)
	defer cancel()
	all, err := c.options.List(ctx)
	c.listed = time.Now()
	if err != nil {
		if !c.got {
			c.failed = err
		}
		return c.peers, c.failed
	}
	c.peers, c.got, c.failed = nil, true, nil
	for i := range all {
		p := Peer{all[i].Node, state.NodeNamed(all[i].Node, all[i].Epoch), all[i].Address}
		if !all[i].Standby && p.Node != c.options.Self && p.Address != "" {
			c.peers = append(c.peers, p)
		}
	}
	return c.peers, nil
}

// ErrNoPeer says that a process is not among the gateways that can be asked.
var ErrNoPeer = errors.New("the gateway is not among those that can be asked")

// Find returns the gateway that a record names, or ErrNoPeer.
func (c *Cluster) Find(ctx context.Context, node state.Node) (Peer, error) {
	others, err := c.Others(ctx)
	for _, p := range others {
		if p.Node == node {
			return p, nil
		}
	}
	return Peer{}, cmp.Or(err, ErrNoPeer)
}

// StatusError is the error of Open for a reply that is neither one of success nor a refusal of Relay.
type StatusError int

func (e StatusError) Error() string { return fmt.Sprintf("the other gateway answers %d", int(e)) }

// Open sends a GET request to an escaped path and returns the reply once it has begun, whose body the caller closes. It
// lasts as long as ctx and the reply do, and ends when the gateway is not listed any more, because one that hangs ends
// no connection. The error is a *share.Refused if the gateway has what is asked for and no room to send it.
func (c *Cluster) Open(ctx context.Context, p Peer, path string, query url.Values) (*http.Response, error) {
	plain, err := url.PathUnescape(path)
	if err != nil {
		return nil, err
	}
	// A client can choose the id "..", with which http.ServeMux would redirect.
	u := url.URL{Scheme: "https", Host: p.Address, Path: plain, RawPath: strings.ReplaceAll(path, ".", "%2E"),
		RawQuery: query.Encode()}
	ctx, end := context.WithCancelCause(ctx)
	cancel := func() { end(nil) }
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		cancel()
		return nil, err
	}
	res, err := c.RoundTripper(p).RoundTrip(req)
	if err == nil && res.StatusCode != http.StatusOK {
		_, _ = io.CopyN(io.Discard, res.Body, maxRefusal) // the connection is used again after the whole reply
		res.Body.Close()
		err = statusError(res.StatusCode)
	}
	if err != nil {
		cancel()
		return nil, err
	}
	var watching conc.WaitGroup
	watching.Go(func() { c.endUnlisted(ctx, func() { end(ErrNoPeer) }, p.Node) })
	res.Body = &cancelling{&unfinished{res.Body, ctx}, func() { cancel(); watching.Wait() }}
	return res, nil
}

// unfinished is a body that ends with an error if its context ended first. The other gateway notices that and may still
// send the end of the reply, which would make a part of it look whole.
type unfinished struct {
	io.ReadCloser
	ctx context.Context
}

// Read implements io.Reader.
func (u *unfinished) Read(p []byte) (int, error) {
	n, err := u.ReadCloser.Read(p)
	if err != nil && u.ctx.Err() != nil {
		err = context.Cause(u.ctx)
	}
	return n, err
}

// statusError returns the error for a status that is not 200.
func statusError(status int) error {
	switch status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return &share.Refused{Pool: share.Relays, Share: status == http.StatusTooManyRequests}
	}
	return StatusError(status)
}

// endUnlisted calls end once a gateway is not listed any more. It returns then, and when ctx ends.
func (c *Cluster) endUnlisted(ctx context.Context, end func(), node state.Node) {
	tick := time.NewTicker(membersFor)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if _, err := c.Find(ctx, node); errors.Is(err, ErrNoPeer) {
			end()
			return
		}
	}
}

// Answer has the answer of a gateway, or nil and the error for which there is none.
type Answer[T any] struct {
	From  Peer
	Value *T
	Err   error
}

// Ask asks the other gateway of a name, or all of them at the same time if that is empty, until ctx ends, and reads
// their answers. There is none if no other gateway that serves has the name. The error says that they are unknown.
func Ask[T any](ctx context.Context, c *Cluster, name, path string, query url.Values,
	read func(io.Reader) (T, error)) ([]Answer[T], error) {
	others, err := c.Others(ctx)
	if name != "" {
		i := slices.IndexFunc(others, func(p Peer) bool { return p.Name == name })
		others = others[max(i, 0) : i+1]
	}
	all := make([]Answer[T], len(others))
	var wg conc.WaitGroup
	for i, p := range others {
		all[i].From = p
		wg.Go(func() {
			res, err := c.Open(ctx, p, path, query)
			if err != nil {
				all[i].Err = err
				return
			}
			defer res.Body.Close()
			value, err := read(res.Body)
			if all[i].Err = err; err == nil {
				all[i].Value = &value
			}
		})
	}
	wg.Wait()
	return all, err
}

// First asks all other gateways at the same time and returns the first reply of success, whose body the caller closes,
// or nil. The reply counts against the share of its owner until then. The error is a *share.Refused if the first
// gateway that has it, or this one, has no room for it, and else says that the gateways are unknown. silent are those
// that have neither answered within a time nor denied to have what is asked for, in the case that none has it.
func (c *Cluster) First(ctx context.Context, owner state.Owner, within time.Duration, path string, query url.Values) (
	found *http.Response, silent []string, err error) {
	others, err := c.Others(ctx)
	if err != nil {
		return nil, nil, err
	}
	found, silent, err = c.race(ctx, others, within, path, query)
	if err != nil || found == nil {
		return nil, silent, err
	}
	if err := c.relays.Take(string(owner), 1); err != nil {
		found.Body.Close()
		return nil, nil, err
	}
	found.Body = &cancelling{found.Body, sync.OnceFunc(func() { c.relays.Give(string(owner), 1) })}
	return found, nil, nil
}

// race asks others at the same time and cancels all calls but that of the first reply of success, which it returns. The
// body of that reply cancels its call when it is closed. The results are those of First.
func (c *Cluster) race(ctx context.Context, others []Peer, within time.Duration, path string, query url.Values) (
	found *http.Response, silent []string, err error) {
	type answer struct {
		from int
		res  *http.Response
		err  error
	}
	answers, cancels := make(chan answer, len(others)), make([]context.CancelFunc, len(others))
	var wg conc.WaitGroup
	for i, p := range others {
		var one context.Context
		one, cancels[i] = context.WithCancel(ctx)
		silent = append(silent, p.Name)
		wg.Go(func() {
			res, err := c.Open(one, p, path, query)
			answers <- answer{i, res, err}
		})
	}
	late := time.NewTimer(within)
	defer late.Stop()
	var refused *share.Refused
	for waiting := len(others); waiting > 0 && found == nil && refused == nil; waiting-- {
		select {
		case a := <-answers:
			if a.err == nil {
				found = a.res
				found.Body = &cancelling{found.Body, cancels[a.from]}
				cancels[a.from] = nil
			} else if !errors.As(a.err, &refused) && errors.Is(a.err, StatusError(http.StatusNotFound)) {
				silent = slices.DeleteFunc(silent, func(name string) bool { return name == others[a.from].Name })
			}
		case <-late.C:
			waiting = 0
		}
	}
	for _, cancel := range cancels {
		if cancel != nil {
			cancel()
		}
	}
	// A call that has succeeded meanwhile has a body that is not needed any more.
	wg.Wait()
	close(answers)
	for a := range answers {
		if a.res != nil {
			a.res.Body.Close()
		}
	}
	switch {
	case refused != nil:
		return nil, nil, refused
	case found == nil:
		return nil, silent, nil
	}
	return found, nil, nil
}

// cancelling is a body that calls cancel each time it is closed.
type cancelling struct {
	io.ReadCloser
	cancel func()
}

// Close implements io.Closer.
func (c *cancelling) Close() error {
	defer c.cancel()
	return c.ReadCloser.Close()
}

// RoundTripper returns a transport for requests to another gateway, whatever host they name.
func (c *Cluster) RoundTripper(p Peer) http.RoundTripper { return peerTransport{c, p} }

type peerTransport struct {
	cluster *Cluster
	peer    Peer
}

// RoundTrip implements http.RoundTripper.
func (t peerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Scheme, r.URL.Host, r.Host = "https", t.peer.Address, ""
	r.Header.Set(targetHeader, string(t.peer.Node))
	return t.cluster.http.RoundTrip(r)
}
