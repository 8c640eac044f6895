package upstream

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/memory"
	"stagedoor/providers/shapes"
)

// Limits of the memory and time that an upstream can take from the gateway.
const (
	maxBody       = 64 << 20
	maxHeader     = 64 << 10
	maxFields     = 500 // header fields of a reply
	maxExpansion  = 100 // a compressed body may grow by this factor
	dialKeepAlive = 30 * time.Second
	drainWait     = 100 * time.Millisecond
	// reopenWithin and leastReopened bound the search of the transport for a connection that accepts the request. It
	// notices stale connections at once. HTTP/2 connections that keep refusing the stream would make it
	// try for a minute. A few further connections are tried however long the first ones took.
	reopenWithin  = 2 * time.Second
	leastReopened = 3
)

// Timeouts bound one call. Zero values take the defaults.
type Timeouts struct {
	Connect   time.Duration // TCP and TLS, each
	FirstByte time.Duration // until the response headers
	Idle      time.Duration // between two reads of the body
	Total     time.Duration // the whole call
}

// DefaultTimeouts are used for fields of Timeouts that are zero.
var DefaultTimeouts = Timeouts{
	Connect:   5 * time.Second,
	FirstByte: 60 * time.Second,
	Idle:      60 * time.Second,
	Total:     10 * time.Minute,
}

// withDefaults returns t with the defaults in place of zeros.
func (t Timeouts) withDefaults() Timeouts {
	pick := func(v *time.Duration, d time.Duration) {
		if *v == 0 {
			*v = d
		}
	}
	pick(&t.Connect, DefaultTimeouts.Connect)
	pick(&t.FirstByte, DefaultTimeouts.FirstByte)
	pick(&t.Idle, DefaultTimeouts.Idle)
	pick(&t.Total, DefaultTimeouts.Total)
	return t
}

// Client sends requests to one provider. It is safe for concurrent use.
type Client struct {
	base      *url.URL
	timeouts  Timeouts
	headers   map[string]string
	transport http.RoundTripper
	keys      *Keys
	secrets   []string
	memory    memory.Pool
}

// Options configure a Client. Only BaseURL is required.
type Options struct {
	BaseURL  string
	Timeouts Timeouts
	APIKeys  []string
	Headers  map[string]string // sent with every call
	// Transport replaces the network, for tests and for the embedded sandbox.
	Transport http.RoundTripper
	// Memory counts large replies for the owner of their call. Nil counts nothing.
	Memory memory.Pool
}

// New returns a Client, or an error if o.BaseURL is not a URL.
func New(o Options) (*Client, error) {
	base, err := url.Parse(strings.TrimRight(o.BaseURL, "/"))
	if err != nil {
		return nil, err
	}
	c := &Client{
		base:      base,
		timeouts:  o.Timeouts.withDefaults(),
		headers:   o.Headers,
		keys:      NewKeys(o.APIKeys),
		secrets:   secretsOf(&o),
		transport: o.Transport,
		memory:    o.Memory,
	}
	if c.transport == nil {
		c.transport = newTransport(c.timeouts)
	}
	return c, nil
}

// join appends a shape's path to the base address. Some vendors' SDKs expect the version in the address and
// some do not, and users write either. So a last segment of base with which path begins is not repeated.
func join(base, path string) string {
	last := base[strings.LastIndexByte(base, '/')+1:]
	if rest, ok := strings.CutPrefix(path, "/"+last+"/"); ok && last != "" {
		return base + "/" + rest
	}
	return base + path
}

// Keys returns the keys of the provider.
func (c *Client) Keys() *Keys { return c.keys }

// Secrets returns what must not appear in an error that a client reads: the keys of the provider, and the values of the
// headers of the configuration, which may hold further ones.
func (c *Client) Secrets() []string { return c.secrets }

// secretsOf returns the keys and the values of headers, and credentials also without the scheme before them.
func secretsOf(o *Options) []string {
	secrets := slices.Clone(o.APIKeys)
	for _, value := range o.Headers {
		secrets = append(secrets, value)
		if _, credentials, ok := strings.Cut(value, " "); ok {
			secrets = append(secrets, credentials)
		}
	}
	return secrets
}

// Close closes idle connections. Calls in flight are not affected.
func (c *Client) Close() {
	if t, ok := c.transport.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}

// Reply is an upstream's response whose headers have been read. The caller must call Close, which ends the
// call in any state. A Reply must not be used by several goroutines at a time.
type Reply struct {
	Status int
	Header http.Header
	body   io.ReadCloser
	src    io.Reader
	sent   upload
	watch  watchdog
	in     watched
	to     url.URL
	length int64
	tail   *time.Timer // set by EndWithin
	memory memory.Claim
	// inflated is set if src has passed decompress already.
	inflated bool
}

// Do sends call and returns the reply as soon as its headers have arrived, whatever its status is. authorize
// writes key into the header that the shape uses. Errors are *Failure.
//
// Do reads a call.Body of more than MaxKept bytes until it fails or the Reply is closed; the caller may reuse
// it then. A smaller body must never be written to again.
func (c *Client) Do(
	ctx context.Context,
	call shapes.Call,
	authorize func(h http.Header, key string),
	key string,
) (*Reply, error) {
	to, err := c.below(call.Path)
	if err != nil {
		return nil, unusable(err)
	}
	r := &Reply{to: to, memory: memory.NewClaim(c.memory, call.Owner)} // one allocation has all parts of a call
	r.watch.start(ctx, c.timeouts)
	r.to.RawQuery = call.Query
	r.sent.body = call.Body
	if f := r.answered(c.transport.RoundTrip(r.request(c.header(&call, authorize, key)))); f != nil {
		r.watch.stop()
		r.sent.revoke()
		return nil, f
	}
	c.recordKeySuccess(key, r)
	return r, nil
}

// header completes the header of call, which becomes that of the request. Headers of the configuration replace those of
// the same name.
func (c *Client) header(call *shapes.Call, authorize func(h http.Header, key string), key string) http.Header {
	h := call.Header
	if h == nil {
		h = make(http.Header, 6)
	}
	h["Content-Type"] = jsonType
	if call.Stream {
		h["Accept"] = streamType
	}
	// The transport sends no header for an empty list. But if the header is there, it silently replaces
	// a connection that turns out to have been closed while idle.
	if _, ok := h["Idempotency-Key"]; !ok {
		h["Idempotency-Key"] = nil
	}
	if h["User-Agent"] == nil {
		h["User-Agent"] = userAgent
	}
	for k, v := range c.headers {
		h.Set(k, v)
	}
	if key != "" {
		authorize(h, key)
	}
	return h
}

// request returns the request of the call. The transport opens the body again when a connection does not accept the
// request, leastReopened times and until reopenWithin is over.
func (r *Reply) request(h http.Header) *http.Request {
	reopened := 0
	return (&http.Request{
		Method: http.MethodPost, URL: &r.to, Host: r.to.Host, Header: h,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Body: r.sent.open(),
		GetBody: func() (io.ReadCloser, error) {
			if reopened++; reopened > leastReopened && time.Since(r.watch.started) > reopenWithin {
				return nil, errNotTaken
			}
			return r.sent.open(), nil
		},
		ContentLength: int64(len(r.sent.body)),
	}).WithContext(r.watch.ctx)
}

// recordKeySuccess records that the provider has accepted key, if the reply shows it. A key that rests because it was
// refused before can then be used again at once.
func (c *Client) recordKeySuccess(key string, r *Reply) {
	if r.Status < http.StatusMultipleChoices {
		c.keys.RecordSuccess(key)
	}
}

// answered takes what the transport has returned. It stores status, headers and body of res, and starts the timeout
// between two reads. It refuses a provider that switches protocols, which no request asks for, because the context of a
// request does not end reads of such a connection, and one that sends too many header fields.
func (r *Reply) answered(res *http.Response, err error) *Failure {
	if err != nil {
		return failed(r.watch.ctx, err, false)
	}
	if fields(res.Header) > maxFields {
		f := failed(r.watch.ctx, errManyFields, false)
		res.Body.Close()
		return f
	}
	if res.StatusCode == http.StatusSwitchingProtocols {
		res.Body.Close()
		return failed(context.Background(), errSwitched, false)
	}
	r.watch.answered()
	r.Status, r.Header, r.body, r.length = res.StatusCode, res.Header, res.Body, res.ContentLength
	r.in = watched{r: res.Body, watch: &r.watch}
	r.src = &r.in
	return nil
}

var (
	jsonType   = []string{"application/json"}
	streamType = []string{"text/event-stream"}
	userAgent  = []string{"stagedoor"}
)

// fields returns the number of header fields and counts repeated ones each time.
func fields(h http.Header) int {
	n := 0
	for _, values := range h {
		n += len(values)
	}
	return n
}

// EndWithin makes reads fail once d has passed. Use it when nothing but the usage of a reply is missing.
func (r *Reply) EndWithin(d time.Duration) {
	if r.tail == nil {
		r.tail = time.AfterFunc(d, func() { r.watch.cancel(ErrIdle) })
	}
}

// Close ends the call. The connection can be used again if the body was read to its end.
func (r *Reply) Close() {
	if r.tail != nil {
		r.tail.Stop()
	}
	r.body.Close()
	r.watch.stop()
	r.sent.revoke()
	r.memory.End()
}

// Drain reads the last few bytes of a reply, so that its connection can be used again. It waits at most
// drainWait for an upstream that withholds them, because the client of the reply waits as well.
func (r *Reply) Drain() {
	enough := time.AfterFunc(drainWait, func() { r.watch.cancel(context.Canceled) })
	defer enough.Stop()
	var buf [512]byte
	for range 8 {
		if _, err := r.src.Read(buf[:]); err != nil {
			return
		}
	}
}

// IsStream reports whether the reply consists of server-sent events. The vendors' SDKs read events whatever the content
// type is, and some servers send them as text/plain, so the first bytes decide if the type is neither that of events
// nor that of JSON. IsStream waits for these bytes and may be called again.
func (r *Reply) IsStream() bool {
	switch {
	case r.is("text/event-stream"):
		return true
	case r.IsJSON(), r.inflated, r.Header.Get("Content-Encoding") != "":
		return false
	}
	begin := make([]byte, len("event:"))
	n, _ := io.ReadFull(r.src, begin) // an error is met again by the next read
	r.src = io.MultiReader(bytes.NewReader(begin[:n]), r.src)
	return eventField.Match(begin[:n])
}

// eventField matches the beginning of a stream of server-sent events.
var eventField = regexp.MustCompile(`^(?:data|event|id|retry)?:`)

// IsJSON reports whether the content type of the reply is JSON.
func (r *Reply) IsJSON() bool { return r.is("application/json") }

// is reports whether the reply has this content type, whatever its parameters are.
func (r *Reply) is(want string) bool {
	have, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	return strings.EqualFold(strings.TrimSpace(have), want)
}

// Events returns a reader of the reply's server-sent events.
func (r *Reply) Events() (*EventReader, error) {
	if err := r.decompress(); err != nil {
		return nil, r.Failed(err)
	}
	events := NewEventReader(r.src)
	events.grown = r.grown
	return events, nil
}

// ReadAll reads the whole body into buf, which may be nil, and returns it. A body over the limit (64 MiB, or
// 64 KiB of an error status) is a *Failure.
func (r *Reply) ReadAll(buf []byte) ([]byte, error) {
	limit := maxBody
	if r.Status >= 400 {
		limit = dialogue.MaxErrorBody
	}
	if err := r.decompress(); err != nil {
		return nil, r.Failed(err)
	}
	if n := int(min(r.length, int64(limit))) + 1; cap(buf) < n && r.length >= 0 {
		if err := r.grown(0, n); err != nil {
			return nil, err
		}
		buf = make([]byte, 0, n)
	}
	b, err := readAll(r.src, buf[:0], limit, r.grown)
	if err != nil {
		return b, r.Failed(err)
	}
	return bytes.TrimPrefix(b, byteOrderMark), nil
}

// byteOrderMark stands before the JSON of some servers. RFC 8259 allows to ignore it, and not every client does.
var byteOrderMark = []byte("\uFEFF")

const (
	// largeReply is the size up to which replies and events are not counted as memory.
	largeReply = 256 << 10
	// replyFactor is the number of copies of a reply that exist at once while it is read and translated.
	replyFactor = 4
)

// grown counts the memory of a buffer that grows, and fails if the owner may have no more. The upstream has
// done its work by then, so the failure is of a class that is not repeated.
func (r *Reply) grown(from, to int) error {
	if to <= largeReply {
		return nil
	}
	if from <= largeReply {
		from = 0
	}
	switch err := r.memory.Grow(replyFactor * int64(to-from)); {
	case errors.Is(err, memory.ErrTooLarge):
		return &Failure{Class: CallerFault, Err: dialogue.BadUpstream(fmt.Sprintf("%v: a reply of %d bytes", err, to))}
	case err != nil:
		return &Failure{Class: CallerFault, Err: dialogue.NoMemory(err)}
	}
	return nil
}

// Failed returns the *Failure for an error of reading the body.
func (r *Reply) Failed(err error) *Failure {
	var f *Failure
	if errors.As(err, &f) {
		return f
	}
	return failed(r.watch.ctx, err, true)
}

// decompress makes r.src inflate the body if it is compressed. The gateway does not ask for
// compression, but some proxies compress all the same. Only gzip is known, which every such proxy
// has.
func (r *Reply) decompress() error {
	if r.inflated {
		return nil
	}
	switch enc := r.Header.Get("Content-Encoding"); enc {
	case "", "identity":
		return nil
	case "gzip":
		z, err := gzip.NewReader(r.src)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrBody, err)
		}
		r.src = &bounded{src: z, in: r.src.(*watched)}
		r.length = -1
		return nil
	default:
		return fmt.Errorf("%w: content encoding %q", ErrBody, enc)
	}
}

// Watch makes the body of the reply pass through a reader that wrap returns, inflated if it was compressed. It is
// called before the body is read.
func (r *Reply) Watch(wrap func(io.Reader) io.Reader) error {
	if err := r.decompress(); err != nil {
		return r.Failed(err)
	}
	r.src, r.inflated = wrap(r.src), true
	return nil
}

// bounded fails reads of a compressed body that grows too much (a decompression bomb).
type bounded struct {
	src io.Reader
	in  *watched
	out int64
}

// Read refuses a body that decompresses to far more than arrived, because a few kilobytes could otherwise fill the
// memory.
func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.src.Read(p)
	b.out += int64(n)
	if b.out > 1<<20 && b.out > maxExpansion*b.in.n {
		return 0, fmt.Errorf("%w: grows more than %d-fold", ErrBody, maxExpansion)
	}
	if err != nil && err != io.EOF {
		err = fmt.Errorf("%w: %w", ErrBody, err)
	}
	return n, err
}

// watched counts the bytes that are read and tells the watchdog that the upstream still sends.
type watched struct {
	r     io.Reader
	watch *watchdog
	n     int64
}

// Read tells the watch that the upstream is alive.
func (w *watched) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	w.n += int64(n)
	w.watch.alive()
	return n, err
}

// watchdog cancels a call that is too slow. One timer serves all three timeouts. Each read only stores its
// time, and the timer compares it when it fires.
//
// The Go runtime keeps a stopped timer and everything that its function refers to for an unbounded time.
// Therefore the function reaches the watchdog through guarded, which stop empties, so that a call that has
// ended leaves a few bytes and not its reply.
type watchdog struct {
	ctx     context.Context
	cancel  context.CancelCauseFunc
	timer   *time.Timer
	guarded *atomic.Pointer[watchdog]
	t       Timeouts
	started time.Time
	last    atomic.Int64 // nanoseconds since start, or 0 before the headers have arrived

	mu      sync.Mutex
	stopped bool
}

// start begins the timeouts of a call. The context of the call is w.ctx from then on.
func (w *watchdog) start(parent context.Context, t Timeouts) {
	w.ctx, w.cancel = context.WithCancelCause(parent)
	w.t, w.started = t, time.Now()
	guarded := new(atomic.Pointer[watchdog])
	guarded.Store(w)
	w.guarded = guarded
	w.timer = time.AfterFunc(min(t.FirstByte, t.Total), func() {
		if w := guarded.Load(); w != nil {
			w.check()
		}
	})
}

// answered starts the timeout between two reads, which may be shorter than the one for the headers.
func (w *watchdog) answered() {
	w.alive()
	w.timer.Reset(min(w.t.Idle, w.t.Total-time.Since(w.started)))
}

// alive stores the time of the last sign of life.
func (w *watchdog) alive() { w.last.Store(max(1, int64(time.Since(w.started)))) }

// check cancels the call if a timeout has passed, else sets the timer again.
func (w *watchdog) check() {
	now := time.Since(w.started)
	last := time.Duration(w.last.Load())
	switch {
	case now >= w.t.Total:
		w.cancel(ErrTotal)
	case last == 0:
		if now >= w.t.FirstByte {
			w.cancel(ErrFirstByte)
			return
		}
		w.rearm(min(w.t.FirstByte, w.t.Total) - now)
	case now-last >= w.t.Idle:
		w.cancel(ErrIdle)
	default:
		w.rearm(min(w.t.Idle-(now-last), w.t.Total-now))
	}
}

// rearm sets the timer again, unless the call ended while the timer fired.
func (w *watchdog) rearm(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.stopped {
		w.timer.Reset(d)
	}
}

// stop ends the call's context and its timer. Further calls do nothing.
func (w *watchdog) stop() {
	w.mu.Lock()
	w.stopped = true
	w.timer.Stop()
	w.mu.Unlock()
	w.guarded.Store(nil)
	w.cancel(context.Canceled)
}
