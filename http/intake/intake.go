// Package intake bounds what the whole process takes on at once: requests under
// way and bytes of their bodies (faults.md 1.6 and 3). What is beyond is refused
// at the door, before its body is read, so that an overload costs those who are
// turned away and nobody else. Limits of one key or one provider are the
// throttles' business.
package intake

import (
	"io"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"

	"stagedoor/providers/dialogue"
)

// Limits are what an Intake takes on. Zero values: any amount.
type Limits struct {
	Requests  int
	BodyBytes int64
}

// Intake counts. It is safe for concurrent use.
type Intake struct {
	limits   atomic.Pointer[Limits]
	requests atomic.Int64
	bytes    atomic.Int64
}

// New makes an Intake.
func New(l Limits) *Intake {
	i := new(Intake)
	i.Set(l)
	return i
}

// Set changes the limits at once. What is under way stays.
func (i *Intake) Set(l Limits) { i.limits.Store(&l) }

// Reserve is what those who operate the gateway may take beyond the limits: who
// cannot look cannot help. It is bounded, because anybody may ask for their paths.
const (
	reserveRequests = 64
	reserveBytes    = 1 << 20
)

// Enter takes a request on, or says why not. It is to be served as counted
// returns it: its body is counted as it arrives, for a length is only somebody's
// word until then. The caller ends the Share.
func (i *Intake) Enter(r *http.Request) (counted *http.Request, s *Share, err error) {
	return i.enter(r, 0, 0)
}

// EnterReserved is Enter for an operator's request, for which there is the reserve.
func (i *Intake) EnterReserved(r *http.Request) (counted *http.Request, s *Share, err error) {
	return i.enter(r, reserveRequests, reserveBytes)
}

func (i *Intake) enter(r *http.Request, requests, bytes int64) (counted *http.Request, s *Share, err error) {
	l := i.limits.Load()
	if n := i.requests.Add(1); l.Requests > 0 && n > int64(l.Requests)+requests {
		i.requests.Add(-1)
		return nil, nil, overloaded()
	}
	// What can never fit is the door's to refuse: it says so, where this would say
	// to try again.
	if r.ContentLength > 0 && r.ContentLength <= l.BodyBytes && i.bytes.Load()+r.ContentLength > l.BodyBytes+bytes {
		i.requests.Add(-1)
		return nil, nil, overloaded()
	}
	s = &Share{intake: i, reserve: bytes}
	if r.ContentLength == 0 {
		return r, s, nil
	}
	// A copy: net/http looks at its own request's body when the reply begins, to
	// see whether what is left of it is worth reading.
	s.request, s.body = *r, r.Body
	s.request.Body = s
	return &s.request, s, nil
}

// Share is what one request holds of an Intake. It is the request's body, too,
// and belongs to whoever reads that.
type Share struct {
	intake  *Intake
	request http.Request // as it is served
	body    io.ReadCloser
	held    int64
	reserve int64 // bytes beyond the limit
}

// Read implements io.Reader. Its error is a *dialogue.Error if there is no room
// for more.
func (s *Share) Read(p []byte) (int, error) {
	n, err := s.body.Read(p)
	s.held += int64(n)
	most := s.intake.limits.Load().BodyBytes
	switch taken := s.intake.bytes.Add(int64(n)); {
	case most == 0 || taken <= most+s.reserve:
		return n, err
	case s.held > most:
		return 0, tooLarge()
	}
	return 0, overloaded()
}

// Close implements io.Closer.
func (s *Share) Close() error { return s.body.Close() }

// End gives back what the request held. Nothing may be read afterwards.
func (s *Share) End() {
	s.intake.requests.Add(-1)
	s.intake.bytes.Add(-s.held)
	s.held = 0
}

// Those who are refused together should not come back together.
const (
	soonest = time.Second
	spread  = 4 * time.Second
)

// tooLarge is about a body for which there will never be room.
func tooLarge() *dialogue.Error {
	return &dialogue.Error{Status: http.StatusRequestEntityTooLarge, Type: dialogue.TypeTooLarge, Code: "request_too_large",
		Message: "the request body is larger than all that the gateway takes at a time"}
}

func overloaded() *dialogue.Error {
	return &dialogue.Error{Status: http.StatusServiceUnavailable, Type: dialogue.TypeOverloaded, Code: "overloaded",
		Message: "the gateway has all the requests it can take, try again", RetryAfter: soonest + rand.N(spread)}
}
