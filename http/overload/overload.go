// Package overload limits the requests in flight in the whole process and the bytes of their
// bodies. A request beyond a limit is refused before its body is read, so
// that other requests are not slowed down. Both limits are divided among the owners of requests
// by the rule of stagedoor/state/share. The limits of one key or one provider are in
// actors/throttle.
//
// Usage: the server calls Limiter.Enter with each request and serves the request that it returns,
// whose context and body are a Share. The handler calls Claim when it knows the owner. The server
// calls Share.End after the handler has returned.
//
// # Errors
//
// A refusal has a time after which to try again. It is a 503 if the process is full, and a 429 if the owner has used up
// the own share. Both come before the body is read. A body that turns out to be longer than there is room for is
// refused in the middle, by the error of Read.
//
// # Concurrency
//
// A Limiter is shared by all requests. A Share belongs to one request: the server, then the handler, then the server
// again.
package overload

import (
	"context"
	"io"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"

	"stagedoor/http/envelope"
	"stagedoor/providers/dialogue"
	"stagedoor/state"
	"stagedoor/state/share"
)

// Limits configure a Limiter. A field that is zero sets no limit.
type Limits struct {
	Requests  int
	BodyBytes int64
}

// leastBody is the number of bytes that an owner may send while there is room, even if its share is
// smaller. One text request of the largest size fits.
const leastBody = 32 << 20

// Limiter limits requests and bytes of bodies. It is safe for concurrent use.
type Limiter struct {
	requests, bodies *share.Pool
	// Operators have a reserve beyond the limits, so that they can look at an overload
	// and end it. It is bounded, because any client can send requests to their paths.
	reservedRequests, reservedBodies *share.Pool
	// expected is the number of bytes that buffers have for bodies which have not arrived.
	expected atomic.Int64
}

const (
	reserveRequests = 64
	reserveBytes    = 1 << 20
)

// New returns a Limiter.
func New(l Limits) *Limiter {
	return &Limiter{
		requests:         share.New(share.Requests, int64(l.Requests), 1),
		bodies:           share.New(share.Bodies, l.BodyBytes, leastBody),
		reservedRequests: share.New(share.Requests, reserveRequests, 1),
		reservedBodies:   share.New(share.Bodies, reserveBytes, 1),
	}
}

// Set changes the limits. Requests in flight keep what they hold.
func (i *Limiter) Set(l Limits) {
	i.requests.Resize(int64(l.Requests))
	i.bodies.Resize(l.BodyBytes)
}

// Pools returns the pools of requests and of body bytes, for metrics.
func (i *Limiter) Pools() (requests, bodies *share.Pool) { return i.requests, i.bodies }

// Enter admits a request, or returns the error that refuses it. The request counts against the
// client's address until Claim names its owner. The caller serves the request that Enter returns,
// because that counts the body as it arrives instead of trusting the length in the header, and
// calls End on the Share.
func (i *Limiter) Enter(r *http.Request) (counted *http.Request, s *Share, err error) {
	return i.enter(r, i.requests, i.bodies)
}

// enter counts a request as Enter does, in the given pools: those of all requests, or those of the reserve.
func (i *Limiter) enter(r *http.Request, requests, bodies *share.Pool) (*http.Request, *Share, error) {
	s := &Share{Context: r.Context(), limiter: i, owner: address(r), requests: requests, bodies: bodies,
		length: r.ContentLength}
	if requests.Take(s.owner, 1) != nil {
		// The refusal does not blame the address, because many clients may share it.
		return nil, nil, envelope.Overloaded(share.Requests)
	}
	return s.counted(r), s, nil
}

// EnterReserved counts an operator's request as Enter does. It uses the reserve if the limits are reached.
func (i *Limiter) EnterReserved(r *http.Request) (counted *http.Request, s *Share, err error) {
	if counted, s, err = i.Enter(r); err == nil &&
		(r.ContentLength == 0 || i.bodies.Check(s.owner, max(r.ContentLength, 1)) == nil) {
		return counted, s, nil
	}
	if s != nil {
		s.End()
	}
	return i.enter(r, i.reservedRequests, i.reservedBodies)
}

// counted returns a copy of r with s as its context and, if r has a body, as its body. It is a
// copy because net/http looks at the body of its own request when the reply begins, to decide
// whether to read the rest.
func (s *Share) counted(r *http.Request) *http.Request {
	counted := r.WithContext(s)
	if r.ContentLength != 0 {
		s.body = r.Body
		counted.Body = s
	}
	return counted
}

// address returns the owner of a request before its key is known: the client's IPv4 address, or
// its IPv6 /64 network, which one customer has.
func address(r *http.Request) string {
	host := r.RemoteAddr
	if n := strings.LastIndexByte(host, ':'); n >= 0 {
		host = host[:n]
	}
	if !strings.HasPrefix(host, "[") {
		return host
	}
	a, err := netip.ParseAddr(strings.Trim(host, "[]"))
	if err != nil || a.Unmap().Is4() {
		return host
	}
	network, _ := a.WithZone("").Prefix(64)
	return network.String()
}

// Share holds the room that one request takes of a Limiter. It is also the context and the body
// of the request, and only the goroutine that reads the body may use it.
type Share struct {
	context.Context
	limiter          *Limiter
	owner            string
	requests, bodies *share.Pool
	body             io.ReadCloser
	length           int64 // of the body as its header claims, or -1
	held             int64
	read             bool  // the body was read to its end
	expected         int64 // bytes of the body that Limiter.expected counts
}

type key struct{}

// Value implements context.Context.
func (s *Share) Value(of any) any {
	if of == (key{}) {
		return s
	}
	return s.Context.Value(of)
}

// Claim counts a request against its owner from now on. It returns the error that refuses the
// request if the owner's share is used up or there is no room for the body. Claim does nothing
// for a request that did not pass through a Limiter.
func Claim(ctx context.Context, owner state.Owner) error {
	s, ok := ctx.Value(key{}).(*Share)
	if !ok || s.owner == string(owner) {
		return nil
	}
	if err := s.requests.Move(s.owner, string(owner), 1); err != nil {
		return envelope.From(err)
	}
	s.bodies.Give(s.owner, s.held)
	s.owner = string(owner)
	s.bodies.Adopt(s.owner, s.held)
	// A body that can never fit gets an error of its own when it is read.
	if most := s.bodies.Most(); s.length > 0 && (most == 0 || s.length <= most) {
		if err := s.bodies.Check(s.owner, s.length-s.held); err != nil {
			return envelope.From(err)
		}
	}
	return nil
}

// AllowBuffer reports whether the reader of a body may allocate a buffer for its whole length before the
// body has arrived. Otherwise the buffer must grow with what arrives, which costs copies but never holds
// much more memory than the client has sent. All bodies together may have a quarter of the bytes of the
// limit in such buffers, because a header costs its client nothing. The answer holds until Read has
// returned the last of the body or an error.
func AllowBuffer(ctx context.Context, length int64) bool {
	s, ok := ctx.Value(key{}).(*Share)
	if !ok || s.expected > 0 {
		return false
	}
	most := s.bodies.Most()
	if most > 0 && length > most {
		return false // it will be refused
	}
	if i := s.limiter; i.expected.Add(length) > most/2 && most > 0 {
		i.expected.Add(-length)
		return false
	}
	s.expected = length
	return true
}

// arrived ends what AllowBuffer has allowed.
func (s *Share) arrived() {
	s.limiter.expected.Add(-s.expected)
	s.expected = 0
}

// Read implements io.Reader. It returns a *dialogue.Error if there is no room for more.
func (s *Share) Read(p []byte) (int, error) {
	n, err := s.body.Read(p)
	if err != nil {
		s.arrived()
		s.read = err == io.EOF
	}
	refused := s.bodies.Take(s.owner, int64(n))
	if refused == nil {
		s.held += int64(n)
		return n, err
	}
	if most := s.bodies.Most(); s.held+int64(n) > most {
		return 0, tooLarge(most)
	}
	return 0, envelope.From(refused)
}

// BodyRead reports whether the body was read to its end, or there was none. Call it after the handler.
func (s *Share) BodyRead() bool { return s.body == nil || s.read }

// Close implements io.Closer.
func (s *Share) Close() error { return s.body.Close() }

// End releases the room that the request holds. The body must not be read afterwards.
func (s *Share) End() {
	s.arrived()
	s.requests.Give(s.owner, 1)
	s.bodies.Give(s.owner, s.held)
	s.held = 0
}

// tooLarge returns the error for a body that is larger than any share can be.
func tooLarge(most int64) *dialogue.Error {
	return dialogue.Refusal(http.StatusRequestEntityTooLarge, "request_too_large",
		"the request body is larger than "+size(most)+", the most that the gateway accepts from one client at a time")
}

// size formats a number of bytes for a message.
func size(n int64) string {
	if n >= 1<<20 {
		return strconv.FormatInt(n>>20, 10) + " MiB"
	}
	return strconv.FormatInt(n, 10) + " bytes"
}
