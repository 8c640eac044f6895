package faults

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"stagedoor/test/cases"
	"stagedoor/test/faults/faultd"
	"stagedoor/test/harness"
)

// newAuthority makes an authority that the gateways of a test trust.
func newAuthority(t *testing.T) *faultd.Authority {
	t.Helper()
	authority, err := faultd.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "authority.pem")
	if err := os.WriteFile(file, authority.PEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SSL_CERT_FILE", file)
	return authority
}

// issue makes a server's configuration with a certificate of the authority.
func issue(t *testing.T, a *faultd.Authority, until time.Time, hosts ...string) *tls.Config {
	t.Helper()
	cert, err := a.Issue(until, hosts...)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{cert}}
}

func newServer(t *testing.T) *faultd.Server {
	t.Helper()
	server, err := faultd.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return server
}

// A hatch is an address below which something goes wrong before HTTP begins.
type hatch struct {
	id, title string
	base      string // scheme and address
	want      outcome
}

// connectRows are the faults of connecting.
func connectRows(t *testing.T, server *faultd.Server) []hatch {
	t.Helper()
	authority := newAuthority(t)
	stranger, err := faultd.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	soon := time.Now().Add(time.Hour)
	old := issue(t, authority, soon)
	old.MinVersion, old.MaxVersion = tls.VersionTLS10, tls.VersionTLS10
	secure := func(config *tls.Config) string {
		addr, err := server.Secure(config)
		if err != nil {
			t.Fatal(err)
		}
		return "https://" + addr
	}
	// raw answers every connection with bytes that are not TLS.
	raw := func(say func(net.Conn)) string {
		addr, err := server.Listen(say)
		if err != nil {
			t.Fatal(err)
		}
		return "https://" + addr
	}
	hole, err := faultd.NewBlackhole()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := hole.Close(); err != nil {
			t.Error(err)
		}
	})
	good := secure(issue(t, authority, soon))
	return []hatch{
		{"u2b", "one of two addresses is dead", "http://localhost:" + port(server.Addr()), answered},
		{"u3a", "no answer to the handshake", "http://" + hole.Addr(), refused(504)},
		{"u3b", "no answer to the handshake, over TLS", "https://" + hole.Addr(), refused(504)},
		{"u4-good", "a certificate of a trusted authority", good, answered},
		{
			"u4-expired",
			"the certificate is expired",
			secure(issue(t, authority, time.Now().Add(-time.Hour))),
			refused(502),
		},
		{
			"u4-host",
			"the certificate is another host's",
			secure(issue(t, authority, soon, "other.example")),
			refused(502),
		},
		{"u4-authority", "an unknown authority", secure(issue(t, stranger, soon)), refused(502)},
		{"u4-old", "TLS 1.0 only", secure(old), refused(502)},
		{
			"u4-garbage",
			"garbage in place of a handshake",
			raw(func(c net.Conn) { _, _ = io.WriteString(c, strings.Repeat("\x00garbage", 9)) }),
			refused(502),
		},
		{"u4-closed", "closed in the handshake", raw(func(net.Conn) {}), refused(502)},
		{"u4-stall", "silence in the handshake", raw(func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }), refused(504)},
		{"u4-plain", "plain HTTP on the TLS port", "https://" + server.Addr(), refused(502)},
		{"u4-tls", "TLS on the plain port", strings.Replace(good, "https", "http", 1), refused(502)},
	}
}

func port(addr string) string { return addr[strings.LastIndexByte(addr, ':')+1:] }

// connecting returns timeouts that end a silent connection soon, and leave a busy machine time for every other one.
func connecting(r hatch) harness.Timeouts {
	t := harness.Timeouts{Connect: "10s", FirstByte: "10s", Idle: "10s", Total: "20s"}
	if slices.Contains(r.want.refused, http.StatusGatewayTimeout) {
		t.Connect = "500ms"
	}
	return t
}

// TestUnreachableUpstreams: a failure before the request could be sent is reported as
// such, and never avoided by accepting an untrusted certificate.
func TestUnreachableUpstreams(t *testing.T) {
	server := newServer(t)
	rows := connectRows(t, server)
	var cells []cell
	for _, r := range rows {
		for _, w := range ways() {
			name := r.id + "-" + w.String()
			cells = append(cells, cell{name: name, upstream: cases.Chat, baseURL: r.base + "/" + name + "/v1",
				timeouts: connecting(r)})
			server.Handle(name, func(c *faultd.Conn) { good(c, faultd.Wires[cases.Chat], wantsStream(c)) })
		}
	}
	b := newBench(t, cells)
	secrets := []string{"127.0.0.1", "localhost", "other.example", "x509", upstreamKey}
	for _, r := range rows {
		for _, w := range ways() {
			name := r.id + "-" + w.String()
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				reply := w.ask(t, b.gateway, name)
				for _, bad := range r.want.judge(reply, w, cases.Chat, false, secrets) {
					t.Errorf("%s: %s", r.title, bad)
				}
				calls := 0
				if r.want.answer {
					calls = 1
				} else if reply.Status != http.StatusOK && !strings.Contains(string(reply.Body), `reached`) && r.id != "u4-tls" {
					t.Errorf("%s: the error does not say that the provider cannot be reached: %s", r.title, reply.Body)
				}
				if got := server.Calls(name); got != calls {
					t.Errorf("%s: the upstream was called %d times, want %d", r.title, got, calls)
				}
			})
		}
	}
}

// What was not sent may be sent elsewhere: a black hole and a bad certificate cost
// time, and no request.
func TestUnreachableTargetsAreStoodInFor(t *testing.T) {
	server := newServer(t)
	rows := connectRows(t, server)
	config := harness.Config{Providers: map[string]harness.Provider{}, Models: map[string]harness.Model{}}
	server.Handle("spare", func(c *faultd.Conn) { good(c, faultd.Wires[cases.Chat], wantsStream(c)) })
	spare := connecting(hatch{})
	config.Providers["spare"] = harness.Provider{Shape: "chat", BaseURL: "http://" + server.Addr() + "/spare/v1",
		Timeouts: &spare}
	var names []string
	for _, r := range rows {
		if r.want.answer {
			continue
		}
		names = append(names, r.id)
		quick := connecting(r)
		config.Providers[r.id] = harness.Provider{Shape: "chat", BaseURL: r.base + "/x/v1", Timeouts: &quick}
		config.Models[r.id] = harness.Model{
			Targets: []harness.Target{{Provider: r.id, Model: "m"}, {Provider: "spare", Model: "m"}},
		}
	}
	g := harness.Start(t, config)
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, w := range []way{{cases.Chat, false}, {cases.Messages, true}, {cases.Responses, true}} {
				// Which target is first is drawn by lot: of four times it is once the bad one
				// nearly always.
				for range 4 {
					for _, bad := range answered.judge(w.ask(t, g, name), w, cases.Chat, false, nil) {
						t.Errorf("%s: %s", w, bad)
					}
				}
			}
		})
	}
}
