package upstream

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"stagedoor/providers/shapes"
)

func TestAProviderNamesNoPrivateAddress(t *testing.T) {
	theirs := context.WithValue(t.Context(), named{}, true)
	for name, c := range map[string]struct {
		ctx     context.Context
		address string
		refused bool
	}{
		"a public one":              {theirs, "1.1.1.1:443", false},
		"a private one":             {theirs, "10.0.0.1:443", true},
		"the metadata of a cloud":   {theirs, "169.254.169.254:80", true},
		"this machine":              {theirs, "127.0.0.1:80", true},
		"this machine, as IPv6":     {theirs, "[::ffff:127.0.0.1]:80", true},
		"no address":                {theirs, "localhost:80", true},
		"one that the operator set": {t.Context(), "10.0.0.1:443", false},
	} {
		if err := control(c.ctx, "tcp", c.address, nil); (err != nil) != c.refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A local provider may send the gateway to its own address and to public ones.
func TestALocalProviderNamesNoOtherLocalAddress(t *testing.T) {
	other := httptest.NewServer(
		http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the other server was called") }),
	)
	defer other.Close()
	var own *httptest.Server
	own = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/away":
			http.Redirect(w, r, other.URL+"/latest", http.StatusFound)
		case "/around":
			http.Redirect(w, r, own.URL+"/file", http.StatusFound)
		}
	}))
	defer own.Close()
	c, err := New(Options{BaseURL: own.URL + "/v1"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, port, _ := net.SplitHostPort(own.Listener.Addr().String())
	for location, want := range map[string]bool{
		own.URL + "/file":                          true,
		own.URL + "/around":                        true,
		"/around":                                  true,
		own.URL + "/away":                          false,
		other.URL + "/file":                        false,
		"http://localhost:" + port + "/file":       false, // another name of the same machine
		"http://[::ffff:7f00:1]:" + port + "/file": false,
	} {
		reply, err := c.Send(t.Context(), Request{Method: http.MethodGet, Location: location}, nil, "")
		if (err == nil) != want {
			t.Errorf("%s: %v", location, err)
		}
		if err == nil {
			reply.Close()
		}
	}
}

// The name of the address says nothing; what is dialled does.
func TestNamesThatResolveInsideAreNotCalled(t *testing.T) {
	called := false
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called = true }))
	defer inside.Close()
	transport := newTransport(Timeouts{Connect: time.Second})
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

// TestRepliesWithTooManyHeaderFieldsAreRefused, because a header of small fields takes much more memory than bytes.
func TestRepliesWithTooManyHeaderFieldsAreRefused(t *testing.T) {
	fields := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for range fields {
			w.Header().Add("X", "y")
		}
	}))
	defer server.Close()
	c, err := New(Options{BaseURL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for name, call := range map[string]func() (*Reply, error){
		"Do": func() (*Reply, error) { return c.Do(t.Context(), shapes.Call{Body: []byte("{}")}, nil, "") },
		"Send": func() (*Reply, error) {
			return c.Send(t.Context(), Request{Method: http.MethodGet, Path: "/x"}, nil, "")
		},
	} {
		fields = maxFields - 10 // the server adds a few
		reply, err := call()
		if err != nil {
			t.Errorf("%s with %d fields: %v", name, fields, err)
			continue
		}
		reply.Close()
		fields = maxFields + 1
		var f *Failure
		if _, err := call(); !errors.As(err, &f) || f.Err.Code != "upstream_invalid_response" {
			t.Errorf("%s with %d fields: %v", name, fields, err)
		}
	}
}
