// Package intake bounds what the whole process takes on at once: requests under way and
// bytes of their bodies (faults.md 1.6 and 3). A request beyond that is refused before
// its body is read, so that an overload costs only those who are refused. Both are
// divided among the owners of requests by the rule of stagedoor/state/share. Limits of
// one key or one provider are in actors/throttle.
package overload

import (
	"context"
	"io"
	"net/http"
	"net/netip"
	"strconv"
	"strings"

	"stagedoor/http/envelope"
	"stagedoor/providers/dialogue"
	"stagedoor/state"
	"stagedoor/state/share"
)

// Limits are what an Limiter takes on. Zero values: any amount.
type Limits struct {
	Requests  int
	BodyBytes int64
}

// leastBody is how much of a body an owner may send while that is free, even where
// its share is smaller: one text request of the largest size.
const leastBody = 32 << 20

// Limiter counts. It is safe for concurrent use.
type Limiter struct {
	requests, bodies *share.Pool
	// Operators have a reserve beyond the limits, so that they can look at an overload
	// and end it. It is bounded, because anybody may ask for their paths.
	reservedRequests, reservedBodies *share.Pool
}

const (
	reserveRequests = 64
	reserveBytes    = 1 << 20
)

// New makes an Limiter.
func New(l Limits) *Limiter {
	return &Limiter{
		requests:         share.New(share.Requests, int64(l.Requests), 1),
		bodies:           share.New(share.Bodies, l.BodyBytes, leastBody),
		reservedRequests: share.New(share.Requests, reserveRequests, 1),
		reservedBodies:   share.New(share.Bodies, reserveBytes, 1),
	}
}

// Set changes the limits at once. What is under way stays.
func (i *Limiter) Set(l Limits) {
	i.requests.Resize(int64(l.Requests))
	i.bodies.Resize(l.BodyBytes)
}

// Pools returns the pools of requests and of bytes of bodies, for metrics.
func (i *Limiter) Pools() (requests, bodies *share.Pool) { return i.requests, i.bodies }

// Enter takes a request on, or returns the error that refuses it. The request counts
// for its client's address until Claim names its owner. It must be served as Enter
// returns it, because its body is counted as it arrives: the length in its header is
// only a claim. The caller ends the Share.
func (i *Limiter) Enter(r *http.Request) (counted *http.Request, s *Share, err error) {
	s = &Share{Context: r.Context(), owner: address(r), requests: i.requests, bodies: i.bodies, length: r.ContentLength}
	if i.requests.Take(s.owner, 1) != nil {
		// An address is not an owner whose fault it is: many clients may have it.
		return nil, nil, envelope.Overloaded(share.Requests)
	}
	return s.counted(r), s, nil
}

// EnterReserved is Enter for an operator's request, for which there is the reserve.
func (i *Limiter) EnterReserved(r *http.Request) (counted *http.Request, s *Share, err error) {
	if counted, s, err = i.Enter(r); err == nil && (r.ContentLength == 0 || i.bodies.Check(s.owner, max(r.ContentLength, 1)) == nil) {
		return counted, s, nil
	}
	if s != nil {
		s.End()
	}
	s = &Share{Context: r.Context(), owner: address(r), requests: i.reservedRequests, bodies: i.reservedBodies, length: r.ContentLength}
	if s.requests.Take(s.owner, 1) != nil {
		return nil, nil, envelope.Overloaded(share.Requests)
	}
	return s.counted(r), s, nil
}

// counted is r as it is served: with the Share as its context and, if it has one, as
// its body. It is a copy, because net/http looks at its own request's body when the
// reply begins, to see whether what is left of it is worth reading.
func (s *Share) counted(r *http.Request) *http.Request {
	counted := r.WithContext(s)
	if r.ContentLength != 0 {
		s.body = r.Body
		counted.Body = s
	}
	return counted
}

// address is the owner of a request whose key is not known: its client's address, or
// the network of one customer.
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

// Share is what one request holds of an Limiter. It is the request's context and body,
// too, and belongs to the handler that reads that.
type Share struct {
	context.Context
	owner            string
	requests, bodies *share.Pool
	body             io.ReadCloser
	length           int64 // of the body, as its header claims; -1: not known
	held             int64
}

type key struct{}

// Value implements context.Context.
func (s *Share) Value(of any) any {
	if of == (key{}) {
		return s
	}
	return s.Context.Value(of)
}

// Claim counts a request for its owner from now on, or returns the error that refuses
// it, because the owner's share is used up or there is no room for its body. A request
// that came without an Limiter is not counted.
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
	// A body that can never fit is refused with its own error when it is read.
	if most := s.bodies.Most(); s.length > 0 && (most == 0 || s.length <= most) {
		if err := s.bodies.Check(s.owner, s.length-s.held); err != nil {
			return envelope.From(err)
		}
	}
	return nil
}

// Read implements io.Reader. Its error is a *dialogue.Error if there is no room
// for more.
func (s *Share) Read(p []byte) (int, error) {
	n, err := s.body.Read(p)
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

// Close implements io.Closer.
func (s *Share) Close() error { return s.body.Close() }

// End gives back what the request held. Nothing may be read afterwards.
func (s *Share) End() {
	s.requests.Give(s.owner, 1)
	s.bodies.Give(s.owner, s.held)
	s.held = 0
}

// tooLarge is about a body for which there will never be room.
func tooLarge(most int64) *dialogue.Error {
	return &dialogue.Error{Status: http.StatusRequestEntityTooLarge, Type: dialogue.TypeTooLarge, Code: "request_too_large",
		Message: "the request body is larger than " + size(most) + ", the most that the gateway takes of one client at a time"}
}

// size is a number of bytes as a message has it.
func size(n int64) string {
	if n >= 1<<20 {
		return strconv.FormatInt(n>>20, 10) + " MiB"
	}
	return strconv.FormatInt(n, 10) + " bytes"
}
