package upstream

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"
)

// guardOf is one of a provider whose name resolves to these addresses.
func guardOf(addresses ...string) *guard {
	return &guard{base: "api.example.com", lookup: func(context.Context, string, string) ([]netip.Addr, error) {
		var out []netip.Addr
		for _, a := range addresses {
			out = append(out, netip.MustParseAddr(a))
		}
		return out, nil
	}}
}

func TestNamedHostsAreNotInside(t *testing.T) {
	theirs := context.WithValue(t.Context(), named{}, true)
	for name, c := range map[string]struct {
		ctx     context.Context
		guard   *guard
		address string
		refused bool
	}{
		"a public one":                          {theirs, guardOf("8.8.8.8"), "1.1.1.1:443", false},
		"a private one":                         {theirs, guardOf("8.8.8.8"), "10.0.0.1:443", true},
		"the metadata of a cloud":               {theirs, guardOf("8.8.8.8"), "169.254.169.254:80", true},
		"this machine, as IPv6":                 {theirs, guardOf("8.8.8.8"), "[::ffff:127.0.0.1]:80", true},
		"no address":                            {theirs, guardOf("8.8.8.8"), "localhost:80", true},
		"a neighbour of a private provider":     {theirs, guardOf("10.0.0.2", "10.0.0.3"), "10.0.0.1:443", false},
		"one inside, of a provider that is not": {theirs, guardOf("10.0.0.2", "8.8.8.8"), "10.0.0.1:443", true},
		"of a provider that nobody knows":       {theirs, guardOf(), "10.0.0.1:443", true},
		"the operator's own":                    {t.Context(), guardOf("8.8.8.8"), "10.0.0.1:443", false},
	} {
		if err := c.guard.control(c.ctx, "tcp", c.address, nil); (err != nil) != c.refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The name of the address says nothing; what is dialled does.
func TestNamesThatResolveInsideAreNotCalled(t *testing.T) {
	called := false
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called = true }))
	defer inside.Close()
	transport := newTransport(Timeouts{Connect: time.Second}, guardOf("8.8.8.8"))
	defer transport.CloseIdleConnections()
	c, err := New(Options{BaseURL: "http://api.example.com/v1", Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Send(t.Context(), Request{Method: http.MethodGet, Location: inside.URL + "/latest"}, nil, "")
	var f *Failure
	if !errors.As(err, &f) || f.Class != NotSent || called {
		t.Errorf("%v, called: %v", err, called)
	}
}
