package intake_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"stagedoor/http/intake"
	"stagedoor/providers/dialogue"
)

func post(body string) *http.Request {
	return httptest.NewRequest(http.MethodPost, "/v1/messages", strings.NewReader(body))
}

// refused fails the test unless err is the refusal.
func refused(t *testing.T, err error) {
	t.Helper()
	var e *dialogue.Error
	if !errors.As(err, &e) || e.Status != 503 || e.RetryAfter < time.Second || e.RetryAfter > 5*time.Second {
		t.Fatalf("got %v, want a 503 with a Retry-After of 1 to 5 s", err)
	}
}

// enter takes r on and makes it what is to be served.
func enter(t *testing.T, i *intake.Intake, r *http.Request) *intake.Share {
	t.Helper()
	counted, s, err := i.Enter(r)
	if err != nil {
		t.Fatal(err)
	}
	*r = *counted
	return s
}

func TestRequestsBeyondTheLimitAreRefusedUntilOneEnds(t *testing.T) {
	i := intake.New(intake.Limits{Requests: 2})
	first := enter(t, i, post("a"))
	enter(t, i, post("b"))
	for range 3 { // a refusal must not take a place
		_, _, err := i.Enter(post("c"))
		refused(t, err)
	}
	first.End()
	enter(t, i, post("c"))
}

func TestOperatorsHaveABoundedReserve(t *testing.T) {
	i := intake.New(intake.Limits{Requests: 1, BodyBytes: 4})
	r := post("1234")
	enter(t, i, r)
	if _, err := io.ReadAll(r.Body); err != nil {
		t.Fatal(err)
	}
	taken := 0
	for range 1000 {
		counted, _, err := i.EnterReserved(post("status=1"))
		if err != nil {
			refused(t, err)
			break
		}
		if got, err := io.ReadAll(counted.Body); err != nil || string(got) != "status=1" {
			t.Fatalf("read %q, %v", got, err)
		}
		taken++
	}
	if taken == 0 || taken == 1000 {
		t.Errorf("%d requests were taken from the reserve", taken)
	}
	_, _, err := i.Enter(post("c"))
	refused(t, err)
}

func TestABodyThatDoesNotFitIsRefusedUnread(t *testing.T) {
	i := intake.New(intake.Limits{BodyBytes: 10})
	r := post("123456")
	s := enter(t, i, r)
	if got, err := io.ReadAll(r.Body); err != nil || string(got) != "123456" {
		t.Fatalf("read %q, %v", got, err)
	}
	_, _, err := i.Enter(post("12345"))
	refused(t, err)
	enter(t, i, post("1234")).End()
	s.End()
	enter(t, i, post("0123456789"))
}

func TestAClaimedLengthHoldsNoRoom(t *testing.T) {
	i := intake.New(intake.Limits{BodyBytes: 10})
	enter(t, i, post("0123456789")) // and says nothing
	enter(t, i, post("0123456789"))
}

func TestABodyOfUnknownLengthEndsWhereTheRoomDoes(t *testing.T) {
	i := intake.New(intake.Limits{BodyBytes: 10})
	other := post("12345")
	held := enter(t, i, other)
	if _, err := io.ReadAll(other.Body); err != nil {
		t.Fatal(err)
	}
	r := endless(10)
	s := enter(t, i, r)
	_, err := io.ReadAll(r.Body)
	refused(t, err)
	s.End()
	held.End()
	again := post("0123456789")
	enter(t, i, again)
	if _, err := io.ReadAll(again.Body); err != nil {
		t.Errorf("what was given back is not there: %v", err)
	}
}

// endless is a request that does not say how long its body is.
func endless(length int) *http.Request {
	r := post("")
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader(strings.Repeat("x", length))), -1
	return r
}

// TestABodyThatNeverFitsIsNotToldToComeBack: its length is the door's to refuse,
// after the key; if the door would take it, the room here is what it exceeds.
func TestABodyThatNeverFitsIsNotToldToComeBack(t *testing.T) {
	i := intake.New(intake.Limits{BodyBytes: 10})
	for name, r := range map[string]*http.Request{"told": post("12345678901"), "not told": endless(11)} {
		s := enter(t, i, r)
		_, err := io.ReadAll(r.Body)
		var e *dialogue.Error
		if !errors.As(err, &e) || e.Status != 413 || e.Code != "request_too_large" || e.RetryAfter != 0 {
			t.Errorf("%s: got %v, want a 413", name, err)
		}
		s.End()
	}
}

func TestLimitsChangeAtOnceAndZeroIsNone(t *testing.T) {
	i := intake.New(intake.Limits{Requests: 1})
	enter(t, i, post("a"))
	i.Set(intake.Limits{})
	for range 100 {
		enter(t, i, post(strings.Repeat("x", 100)))
	}
}
