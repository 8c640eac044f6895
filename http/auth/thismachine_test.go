package auth_test

import (
	"net/http/httptest"
	"testing"

	"stagedoor/http/auth"
)

func TestOnlyUnforwardedLoopbackRequestsComeFromThisMachine(t *testing.T) {
	for _, c := range []struct {
		remote, host, header string
		want                 bool
	}{
		{"127.0.0.1:4000", "127.0.0.1:8080", "", true},
		{"127.0.0.1:4000", "localhost", "", true},
		{"[::1]:4000", "[::1]:8080", "", true},
		{"[::1]:4000", "[::1]", "", true},
		{"[::ffff:127.0.0.1]:4000", "localhost:8080", "", true},
		{"192.0.2.7:4000", "127.0.0.1:8080", "", false},
		{"127.0.0.1:4000", "gateway.example.com", "", false},
		{"127.0.0.1:4000", "localhost.evil.example:8080", "", false},
		{"127.0.0.1:4000", "", "", false},
		{"127.0.0.1:4000", "localhost:8080", "X-Forwarded-For", false},
		{"127.0.0.1:4000", "localhost:8080", "X-Forwarded-Proto", false},
		{"127.0.0.1:4000", "localhost:8080", "X-Real-IP", false},
		{"127.0.0.1:4000", "localhost:8080", "Forwarded", false},
		{"127.0.0.1:4000", "localhost:8080", "Via", false},
		{"", "localhost:8080", "", false},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr, r.Host = c.remote, c.host
		if c.header != "" {
			r.Header.Set(c.header, "")
		}
		if got := auth.FromThisMachine(r); got != c.want {
			t.Errorf("%+v: got %v", c, got)
		}
	}
}
