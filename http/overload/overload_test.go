package overload_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"stagedoor/http/overload"
	"stagedoor/providers/dialogue"
	"stagedoor/state"
)

// post returns a request with a body, from an address if from is not "".
func post(from, body string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/v1/messages", strings.NewReader(body))
	if from != "" {
		r.RemoteAddr = from + ":1"
	}
	return r
}

// refused fails the test unless err has this status and code and a Retry-After of 1 to 5 s.
func refused(t *testing.T, err error, status int, code string) {
	t.Helper()
	var e *dialogue.Error
	if !errors.As(err, &e) || e.Status != status || e.Code != code || e.RetryAfter < time.Second ||
		e.RetryAfter > 5*time.Second {
		t.Fatalf("got %v, want a %d %s with a Retry-After of 1 to 5 s", err, status, code)
	}
}

// enter admits r and returns the request to serve.
func enter(t *testing.T, i *overload.Limiter, r *http.Request) (*http.Request, *overload.Share) {
	t.Helper()
	counted, s, err := i.Enter(r)
	if err != nil {
		t.Fatal(err)
	}
	return counted, s
}

// claimed is enter followed by Claim for an owner.
func claimed(t *testing.T, i *overload.Limiter, owner state.Owner, r *http.Request) (*http.Request, *overload.Share) {
	t.Helper()
	counted, s := enter(t, i, r)
	if err := overload.Claim(counted.Context(), owner); err != nil {
		t.Fatal(err)
	}
	return counted, s
}

func readAll(t *testing.T, r *http.Request, want string) {
	t.Helper()
	if got, err := io.ReadAll(r.Body); err != nil || string(got) != want {
		t.Fatalf("read %q, %v", got, err)
	}
}

func TestRequestsBeyondTheLimitAreRefusedUntilOneEnds(t *testing.T) {
	i := overload.New(overload.Limits{Requests: 3})
	_, first := claimed(t, i, "user:a", post("", "a"))
	claimed(t, i, "user:b", post("", "b"))
	enter(t, i, post("10.0.0.1", "c"))
	for range 3 { // a refusal must not take a place
		_, _, err := i.Enter(post("10.0.0.2", "d"))
		refused(t, err, 503, "overloaded")
	}
	first.End()
	enter(t, i, post("10.0.0.2", "d"))
}

// An owner gets half of the requests that are free, and other owners are served.
func TestOneOwnerCannotTakeAllRequests(t *testing.T) {
	i := overload.New(overload.Limits{Requests: 8})
	var held []*overload.Share
	for range 4 {
		_, s := claimed(t, i, "user:greedy", post("", ""))
		held = append(held, s)
	}
	for range 3 { // a refusal must not take a place
		counted, s := enter(t, i, post("", ""))
		refused(t, overload.Claim(counted.Context(), "user:greedy"), 429, "requests_share_exceeded")
		s.End()
	}
	counted, s := claimed(t, i, "key:other", post("", "1234"))
	readAll(t, counted, "1234")
	if err := overload.Claim(counted.Context(), "key:other"); err != nil {
		t.Errorf("the second claim of one request: %v", err)
	}
	s.End()
	held[0].End()
	claimed(t, i, "user:greedy", post("", ""))
}

// A request without a key counts against its address.
func TestOneAddressCannotTakeAllRequests(t *testing.T) {
	for _, same := range [][2]string{{"10.0.0.1", "10.0.0.1"}, {"[2001:db8::1]", "[2001:db8::ffff]"}} {
		i := overload.New(overload.Limits{Requests: 4})
		enter(t, i, post(same[0], ""))
		enter(t, i, post(same[1], ""))
		_, _, err := i.Enter(post(same[0], ""))
		refused(t, err, 503, "overloaded")
		enter(t, i, post("10.0.0.2", ""))
		enter(t, i, post("[2001:db8:1::1]", ""))
	}
}

func TestOperatorsHaveABoundedReserve(t *testing.T) {
	i := overload.New(overload.Limits{Requests: 1, BodyBytes: 8})
	r, _ := enter(t, i, post("", "1234"))
	readAll(t, r, "1234")
	taken := 0
	for n := range 1000 {
		counted, _, err := i.EnterReserved(post("10.0.0."+string(rune('0'+n%10)), "status=1"))
		if err != nil {
			refused(t, err, 503, "overloaded")
			break
		}
		readAll(t, counted, "status=1")
		taken++
	}
	if taken == 0 || taken == 1000 {
		t.Errorf("%d requests were taken from the reserve", taken)
	}
	_, _, err := i.Enter(post("", "c"))
	refused(t, err, 503, "overloaded")
}

// Claim refuses a request whose body does not fit, because the owner's share is used up or there
// is no room, before the body is read.
func TestABodyThatDoesNotFitIsRefusedUnread(t *testing.T) {
	i := overload.New(overload.Limits{BodyBytes: 20})
	r, s := claimed(t, i, "user:a", post("", "123456"))
	readAll(t, r, "123456")
	unread := strings.NewReader("12345")
	counted, again := enter(t, i, httptest.NewRequest(http.MethodPost, "/v1/messages", unread))
	refused(t, overload.Claim(counted.Context(), "user:a"), 429, "bodies_share_exceeded")
	again.End()
	other, late := claimed(t, i, "user:b", post("", "0123456789"))
	readAll(t, other, "0123456789")
	if unread.Len() != 5 {
		t.Errorf("%d bytes of a refused body are left", unread.Len())
	}
	counted, third := enter(t, i, post("", "12345"))
	refused(t, overload.Claim(counted.Context(), "user:c"), 503, "overloaded")
	third.End()
	late.End()
	s.End()
	claimed(t, i, "user:a", post("", "0123456789"))
}

func TestAClaimedLengthHoldsNoRoom(t *testing.T) {
	i := overload.New(overload.Limits{BodyBytes: 20})
	claimed(t, i, "user:a", post("", "0123456789")) // and sends nothing
	claimed(t, i, "user:a", post("", "0123456789"))
}

func TestABodyOfUnknownLengthEndsWhereTheRoomDoes(t *testing.T) {
	i := overload.New(overload.Limits{BodyBytes: 20})
	other, held := claimed(t, i, "user:a", post("", "12345"))
	readAll(t, other, "12345")
	r, s := claimed(t, i, "user:a", endless(10))
	_, err := io.ReadAll(r.Body)
	refused(t, err, 429, "bodies_share_exceeded")
	s.End()
	held.End()
	again, _ := claimed(t, i, "user:a", post("", "0123456789"))
	readAll(t, again, "0123456789")
}

// endless returns a request without a Content-Length.
func endless(length int) *http.Request {
	r := post("", "")
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader(strings.Repeat("x", length))), -1
	return r
}

func TestABodyThatNeverFitsGetsNoRetryAfter(t *testing.T) {
	i := overload.New(overload.Limits{BodyBytes: 20})
	for name, r := range map[string]*http.Request{"known length": post("", "12345678901"),
		"unknown length": endless(11)} {
		counted, s := claimed(t, i, "user:a", r)
		_, err := io.ReadAll(counted.Body)
		var e *dialogue.Error
		if !errors.As(err, &e) || e.Status != 413 || e.Code != "request_too_large" || e.RetryAfter != 0 {
			t.Errorf("%s: got %v, want a 413", name, err)
		}
		s.End()
	}
}

func TestLimitsChangeAtOnceAndZeroIsNone(t *testing.T) {
	i := overload.New(overload.Limits{Requests: 1})
	enter(t, i, post("", "a"))
	i.Set(overload.Limits{})
	for range 100 {
		r, _ := enter(t, i, post("", strings.Repeat("x", 100)))
		readAll(t, r, strings.Repeat("x", 100))
	}
}

// A quarter of the bytes of the limit may be in buffers for bodies that have not arrived, because a header with
// a length costs its client nothing.
func TestBuffersForBodiesThatHaveNotArrivedAreBounded(t *testing.T) {
	const length = 1 << 20
	i := overload.New(overload.Limits{Requests: 100, BodyBytes: 8 * length})
	big := func() (*http.Request, *overload.Share) {
		return claimed(t, i, "user:a", post("", strings.Repeat("x", length)))
	}
	first, firstShare := big()
	second, secondShare := big()
	third, _ := big()
	if !overload.AllowBuffer(first.Context(), length) || !overload.AllowBuffer(second.Context(), length) {
		t.Fatal("a buffer was not allowed although there is room")
	}
	if overload.AllowBuffer(third.Context(), length) {
		t.Fatal("a third buffer was allowed, which is more than a quarter of the limit")
	}
	if overload.AllowBuffer(first.Context(), 1) {
		t.Fatal("a second buffer was allowed for one body")
	}
	if _, err := io.Copy(io.Discard, first.Body); err != nil {
		t.Fatal(err)
	}
	if !overload.AllowBuffer(third.Context(), length) {
		t.Fatal("the room of a body that has arrived was not given back")
	}
	fourth, _ := big()
	secondShare.End()
	if !overload.AllowBuffer(fourth.Context(), length) {
		t.Fatal("the room of a request that has ended was not given back")
	}
	firstShare.End()
	fifth, _ := big()
	if overload.AllowBuffer(fifth.Context(), length) {
		t.Fatal("the room of a body that has arrived was given back twice")
	}
	if overload.AllowBuffer(fifth.Context(), 5*length) {
		t.Fatal("a buffer was allowed for a body that no owner may send")
	}
	if overload.AllowBuffer(t.Context(), 1) {
		t.Fatal("a buffer was allowed for a request that is not counted")
	}
}
