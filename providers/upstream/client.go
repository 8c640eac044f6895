package upstream

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/memory"
	"stagedoor/providers/shapes"
)

// Limits on what an upstream may make the gateway hold.
const (
	maxBody       = 64 << 20
	maxErrorBody  = 64 << 10
	maxHeader     = 64 << 10
	maxFields     = 500 // header fields of a reply
	maxExpansion  = 100 // a compressed body may grow by this factor
	dialKeepAlive = 30 * time.Second
	drainWait     = 100 * time.Millisecond
	// reopenWithin is how long the transport may look for a connection that takes
	// the request. Stale ones are found out at once; HTTP/2 streams that are
	// refused again and again would be tried for a minute.
	reopenWithin = 2 * time.Second
)

// Timeouts bound one call. Zero values take the defaults.
type Timeouts struct {
	Connect   time.Duration // TCP and TLS, each
	FirstByte time.Duration // until the response headers
	Idle      time.Duration // between two reads of the body
	Total     time.Duration // the whole call
}

// Defaults of Timeouts.
var DefaultTimeouts = Timeouts{Connect: 5 * time.Second, FirstByte: 60 * time.Second, Idle: 60 * time.Second, Total: 10 * time.Minute}

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

// Client calls one provider. It is safe for concurrent use.
type Client struct {
	base      *url.URL
	timeouts  Timeouts
	headers   map[string]string
	transport http.RoundTripper
	keys      *Keys
	memory    memory.Pool
}

// Options configure a Client.
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

// New makes a Client.
func New(o Options) (*Client, error) {
	base, err := url.Parse(strings.TrimRight(o.BaseURL, "/"))
	if err != nil {
		return nil, err
	}
	c := &Client{base: base, timeouts: o.Timeouts.withDefaults(), headers: o.Headers, keys: NewKeys(o.APIKeys), transport: o.Transport, memory: o.Memory}
	if c.transport == nil {
		c.transport = newTransport(c.timeouts)
	}
	return c, nil
}

// join puts a shape's path below the base address. Whether the version belongs
// to the address is a habit of each vendor's SDKs, and people follow one or the
// other: a last segment that the path begins with is not repeated.
func join(base, path string) string {
	last := base[strings.LastIndexByte(base, '/')+1:]
	if rest, ok := strings.CutPrefix(path, "/"+last+"/"); ok && last != "" {
		return base + "/" + rest
	}
	return base + path
}

// Keys rotates the provider's keys; see Keys.
func (c *Client) Keys() *Keys { return c.keys }

// Close drops idle connections.
func (c *Client) Close() {
	if t, ok := c.transport.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}

// Reply is a provider's answer whose headers have been read. Close must be
// called, and ends the call whatever state it is in.
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
	tail   *time.Timer // of EndWithin
	memory memory.Claim
}

// Do sends call. authorize sets the shape's key header. A nil error means that
// headers arrived; any status is possible. Errors are *Failure. A call.Body of
// more than MaxKept bytes is the caller's again when Do has failed or the Reply
// is closed; a smaller one never is.
func (c *Client) Do(ctx context.Context, call shapes.Call, authorize func(h http.Header, key string), key string) (*Reply, error) {
	to, err := c.below(call.Path)
	if err != nil {
		return nil, unusable(err)
	}
	r := &Reply{to: to, memory: memory.NewClaim(c.memory, call.Owner)} // all that a call needs, in one piece
	watch, up := &r.watch, &r.sent
	watch.begin(ctx, c.timeouts)
	r.to.RawQuery = call.Query
	h := call.Header
	if h == nil {
		h = make(http.Header, 6)
	}
	h["Content-Type"] = jsonType
	if call.Stream {
		h["Accept"] = streamType
	}
	// An empty list sends nothing, but tells the transport that a connection
	// which turns out to have been closed while idle may be replaced silently.
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
	up.body = call.Body
	req := (&http.Request{
		Method: http.MethodPost, URL: &r.to, Host: r.to.Host, Header: h,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Body: up.open(),
		GetBody: func() (io.ReadCloser, error) {
			if time.Since(watch.start) > reopenWithin {
				return nil, errNotTaken
			}
			return up.open(), nil
		},
		ContentLength: int64(len(call.Body)),
	}).WithContext(watch.ctx)
	res, err := c.transport.RoundTrip(req)
	if err != nil {
		f := failed(watch.ctx, err, false)
		watch.stop()
		up.revoke()
		return nil, f
	}
	if fields(res.Header) > maxFields {
		err := failed(watch.ctx, errManyFields, false)
		res.Body.Close()
		watch.stop()
		up.revoke()
		return nil, err
	}
	if f := r.answered(res); f != nil {
		watch.stop()
		up.revoke()
		return nil, f
	}
	return r, nil
}

// answered takes what a provider's headers say. A provider that switches
// protocols, which no request asks for, is refused: the context of a request
// does not end reads of such a connection.
func (r *Reply) answered(res *http.Response) *Failure {
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

// fields counts header fields, repeated ones each time.
func fields(h http.Header) int {
	n := 0
	for _, values := range h {
		n += len(values)
	}
	return n
}

// EndWithin bounds what is left of the call: reads fail once d has passed. It is
// meant for an answer that is whole but for its usage.
func (r *Reply) EndWithin(d time.Duration) {
	if r.tail == nil {
		r.tail = time.AfterFunc(d, func() { r.watch.cancel(ErrIdle) })
	}
}

// Close ends the call. The connection is kept if the body was read to its end.
func (r *Reply) Close() {
	if r.tail != nil {
		r.tail.Stop()
	}
	r.body.Close()
	r.watch.stop()
	r.sent.revoke()
	r.memory.End()
}

// Drain reads a little more, so that a connection whose reply is complete but
// for its last bytes can be used again. It does not wait for an upstream that
// keeps them back: the reply's client would wait with it.
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

// IsStream reports whether the reply is server-sent events.
func (r *Reply) IsStream() bool {
	return r.is("text/event-stream")
}

// IsJSON reports whether the reply says it is JSON.
func (r *Reply) IsJSON() bool { return r.is("application/json") }

func (r *Reply) is(want string) bool {
	have, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	return strings.EqualFold(strings.TrimSpace(have), want)
}

// Events reads the reply as a stream.
func (r *Reply) Events() (*EventReader, error) {
	if err := r.decompress(); err != nil {
		return nil, r.Failed(err)
	}
	events := NewEventReader(r.src)
	events.grown = r.grown
	return events, nil
}

// ReadAll reads the whole body into buf, which may be nil.
func (r *Reply) ReadAll(buf []byte) ([]byte, error) {
	limit := maxBody
	if r.Status >= 400 {
		limit = maxErrorBody
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
	return b, nil
}

const (
	// largeReply is the size from which on a reply, or an event, is counted.
	largeReply = 256 << 10
	// replyFactor is how often the bytes of a reply are held at once while it is read
	// and translated.
	replyFactor = 4
)

// grown counts a buffer that grows from one size to another, or refuses that. The
// upstream has done its work by then, so the call is not made again.
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

// Failed classifies an error met while reading the body.
func (r *Reply) Failed(err error) *Failure {
	var f *Failure
	if errors.As(err, &f) {
		return f
	}
	return failed(r.watch.ctx, err, true)
}

func (r *Reply) decompress() error {
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

// bounded stops a decompression bomb.
type bounded struct {
	src io.Reader
	in  *watched
	out int64
}

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

// watched notes that the upstream is alive.
type watched struct {
	r     io.Reader
	watch *watchdog
	n     int64
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	w.n += int64(n)
	w.watch.alive()
	return n, err
}

// watchdog cancels a call that is too slow. One timer serves the three clocks:
// being alive only stores a time, and the timer looks at it when it fires.
//
// The runtime keeps a stopped timer, and all that its function refers to, for as
// long as it likes. So the function of the timer reaches the watchdog through guarded,
// which stop empties: a call that has ended leaves a few bytes and not its reply.
type watchdog struct {
	ctx     context.Context
	cancel  context.CancelCauseFunc
	timer   *time.Timer
	guarded *atomic.Pointer[watchdog]
	t       Timeouts
	start   time.Time
	last    atomic.Int64 // nanoseconds since start; 0: no headers yet

	mu      sync.Mutex
	stopped bool
}

func (w *watchdog) begin(parent context.Context, t Timeouts) {
	w.ctx, w.cancel = context.WithCancelCause(parent)
	w.t, w.start = t, time.Now()
	guarded := new(atomic.Pointer[watchdog])
	guarded.Store(w)
	w.guarded = guarded
	w.timer = time.AfterFunc(min(t.FirstByte, t.Total), func() {
		if w := guarded.Load(); w != nil {
			w.look()
		}
	})
}

// answered starts the clock between two reads, which may be the shorter one.
func (w *watchdog) answered() {
	w.alive()
	w.timer.Reset(min(w.t.Idle, w.t.Total-time.Since(w.start)))
}

func (w *watchdog) alive() { w.last.Store(max(1, int64(time.Since(w.start)))) }

func (w *watchdog) look() {
	now := time.Since(w.start)
	last := time.Duration(w.last.Load())
	switch {
	case now >= w.t.Total:
		w.cancel(ErrTotal)
	case last == 0:
		if now >= w.t.FirstByte {
			w.cancel(ErrFirstByte)
			return
		}
		w.lookAgain(min(w.t.FirstByte, w.t.Total) - now)
	case now-last >= w.t.Idle:
		w.cancel(ErrIdle)
	default:
		w.lookAgain(min(w.t.Idle-(now-last), w.t.Total-now))
	}
}

// lookAgain arms the timer, unless the call has ended while it fired.
func (w *watchdog) lookAgain(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.stopped {
		w.timer.Reset(d)
	}
}

// stop ends the call's context and its timer. It may be called more than once.
func (w *watchdog) stop() {
	w.mu.Lock()
	w.stopped = true
	w.timer.Stop()
	w.mu.Unlock()
	w.guarded.Store(nil)
	w.cancel(context.Canceled)
}
