package upstream_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"stagedoor/providers/upstream"
)

func bearer(h http.Header, key string) { h.Set("Authorization", "Bearer "+key) }

func client(t *testing.T, base string) *upstream.Client {
	t.Helper()
	c, err := upstream.New(upstream.Options{BaseURL: base, Headers: map[string]string{"X-Org": "o"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func text(t *testing.T, r *upstream.Reply) string {
	t.Helper()
	defer r.Close()
	body, err := r.Body()
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestSendCarriesMethodBodyHeadersAndKey(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		io.WriteString(
			w,
			strings.Join(
				[]string{r.Method, r.URL.RequestURI(), r.Header.Get("Content-Type"), r.Header.Get("Authorization"),
					r.Header.Get("X-Org"), string(b)},
				"|",
			),
		)
	}))
	defer srv.Close()
	c := client(t, srv.URL+"/v1")
	r, err := c.Send(
		context.Background(),
		upstream.Request{
			Method: "PUT",
			Path:   "/v1/files",
			Query:  "a=b",
			Header: http.Header{"Content-Type": {"text/x"}},
			Body:   func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("hello")), nil },
			Length: 5,
		},
		bearer,
		"k",
	)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := text(t, r), "PUT|/v1/files?a=b|text/x|Bearer k|o|hello"; got != want {
		t.Errorf("the upstream saw %q, want %q", got, want)
	}
	r, err = c.Send(context.Background(), upstream.Request{Method: "GET", Path: "/v1/videos/v"}, bearer, "k")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := text(t, r), "GET|/v1/videos/v||Bearer k|o|"; got != want {
		t.Errorf("the upstream saw %q, want %q", got, want)
	}
}

func TestSendFollowsDownloadsWithoutTheKeyToOtherHosts(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "film"+r.Header.Get("Authorization")+r.Header.Get("X-Org"))
	}))
	defer other.Close()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/loop" {
			http.Redirect(w, r, "/loop", http.StatusFound)
			return
		}
		http.Redirect(w, r, "http://files.test/x", http.StatusFound)
	}))
	defer srv.Close()
	// A transport of its own stands for a public network.
	public := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		if address == "files.test:80" {
			address = other.Listener.Addr().String()
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}}
	c, err := upstream.New(
		upstream.Options{BaseURL: srv.URL, Headers: map[string]string{"X-Org": "o"}, Transport: public},
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	r, err := c.Send(context.Background(), upstream.Request{Method: "GET", Location: srv.URL + "/file"}, bearer, "k")
	if err != nil {
		t.Fatal(err)
	}
	if got := text(t, r); got != "film" {
		t.Errorf("got %q: another host saw what is not for it", got)
	}
	for _, location := range []string{srv.URL + "/loop", "file:///etc/passwd", "http://u:p@127.0.0.1/", "gopher://x/"} {
		var f *upstream.Failure
		r, err := c.Send(context.Background(), upstream.Request{Method: "GET", Location: location}, bearer, "k")
		if !errors.As(err, &f) {
			t.Errorf("%s: got %v, %v, want a failure", location, r, err)
		}
	}
	r, err = c.Send(context.Background(), upstream.Request{Method: "GET", Path: "/plain"}, bearer, "k")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if r.Status != http.StatusFound {
		t.Errorf("a call that is no download got status %d, want the redirect itself", r.Status)
	}
}
