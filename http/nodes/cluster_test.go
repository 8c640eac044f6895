package nodes_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"stagedoor/http/nodes"
	"stagedoor/state"
	"stagedoor/state/journal"
	"stagedoor/state/share"
)

var secret = bytes.Repeat([]byte{1}, 32)

// members are the gateways of a test.
type members struct {
	mu  sync.Mutex
	all []journal.Member
}

func (m *members) list(context.Context) ([]journal.Member, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.all), nil
}

func (m *members) remove(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = slices.DeleteFunc(m.all, func(one journal.Member) bool { return one.Node == name })
}

// join returns a gateway that serves for as long as the test lasts.
func (m *members) join(t *testing.T, name string, secret []byte) *nodes.Cluster {
	t.Helper()
	c, err := nodes.New(nodes.Options{Logger: slog.New(slog.DiscardHandler), Secret: secret,
		Self: state.NodeNamed(name, 1), List: m.list})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m.mu.Lock()
	m.all = append(m.all, journal.Member{Node: name, Epoch: 1, Live: true, Address: l.Addr().String()})
	m.mu.Unlock()
	c.Handle("GET /name", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, name) })
	c.Handle("GET /ids/{id}", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.PathValue("id"))
	})
	c.Handle("GET /lasting", func(w http.ResponseWriter, r *http.Request) {
		leave, ok := c.Relay(w, state.Owner(r.URL.Query().Get("owner")))
		if !ok {
			return
		}
		defer leave()
		_, _ = io.WriteString(w, "begun")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	if name == "c" {
		c.Handle("GET /only-c", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "c") })
	}
	ctx, stop := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() { c.Serve(ctx, l) })
	t.Cleanup(func() { stop(); serving.Wait(); c.Close() })
	return c
}

func (m *members) address(name string) string {
	i := slices.IndexFunc(m.all, func(one journal.Member) bool { return one.Node == name })
	return m.all[i].Address
}

func text(t *testing.T, res *http.Response) string {
	t.Helper()
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Error(err)
	}
	return string(b)
}

// TestOnlyGatewaysOfTheInstallationReachTheListener: one with another secret is refused by both sides, and what has no
// certificate, or does not speak TLS, is not answered at all.
func TestOnlyGatewaysOfTheInstallationReachTheListener(t *testing.T) {
	var m members
	a, _, strange := m.join(t, "a", secret), m.join(t, "b", secret), m.join(t, "strange", bytes.Repeat([]byte{2}, 32))
	ask := func(c *nodes.Cluster, to state.Node) (string, error) {
		p, err := c.Find(t.Context(), to)
		if err != nil {
			return "", err
		}
		res, err := c.Open(t.Context(), p, "/name", nil)
		if err != nil {
			return "", err
		}
		return text(t, res), nil
	}
	if got, err := ask(a, "b/1"); got != "b" || err != nil {
		t.Errorf("a gateway with the secret got %q, %v", got, err)
	}
	if got, err := ask(a, "b/2"); !errors.Is(err, nodes.ErrNoPeer) {
		t.Errorf("an ended process got %q, %v", got, err)
	}
	for _, c := range []struct {
		from *nodes.Cluster
		to   state.Node
	}{{a, "strange/1"}, {strange, "a/1"}} {
		if got, err := ask(c.from, c.to); err == nil {
			t.Errorf("over the border of two installations came %q", got)
		}
	}
	clients := map[string]http.RoundTripper{"http": &http.Transport{},
		"https": &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	for scheme, transport := range clients {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, scheme+"://"+m.address("a")+"/name", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer sd-key")
		r.Header.Set("Stagedoor-Node", "a/1")
		if res, err := transport.RoundTrip(r); err == nil {
			if got := text(t, res); got == "a" || res.StatusCode == http.StatusOK {
				t.Errorf("%s: answered %d %q", scheme, res.StatusCode, got)
			}
		}
	}
}

// TestAnIDReachesAnotherGatewayUnchanged: a client can choose one that means something else in a path.
func TestAnIDReachesAnotherGatewayUnchanged(t *testing.T) {
	var m members
	a, _ := m.join(t, "a", secret), m.join(t, "b", secret)
	for _, id := range []string{"req_1-A", "..", ".", "a/b", "a%2Fb", "../name", "ä ?#"} {
		res, silent, err := a.First(t.Context(), "one", 3*time.Second, "/ids/"+url.PathEscape(id), nil)
		if err != nil || res == nil {
			t.Errorf("%q: %v, without an answer: %v", id, err, silent)
		} else if got := text(t, res); got != id {
			t.Errorf("%q came as %q", id, got)
		}
	}
}

// TestAGatewayRefusesWhatIsMeantForAnother: it has got the address of one that ended.
func TestAGatewayRefusesWhatIsMeantForAnother(t *testing.T) {
	var m members
	a := m.join(t, "a", secret)
	m.join(t, "b", secret)
	p := nodes.Peer{Name: "old", Node: "old/1", Address: m.address("b")}
	var status nodes.StatusError
	if _, err := a.Open(t.Context(), p, "/name", nil); !errors.As(err, &status) ||
		status != http.StatusMisdirectedRequest {
		t.Errorf("got %v", err)
	}
}

// TestTheFirstGatewayThatHasSomethingIsFound, whatever the others do, and those that did not answer are named.
func TestTheFirstGatewayThatHasSomethingIsFound(t *testing.T) {
	var m members
	a := m.join(t, "a", secret)
	m.join(t, "b", secret)
	m.join(t, "c", secret)
	hanging, err := net.Listen("tcp", "127.0.0.1:0") // accepts in the kernel and answers nothing
	if err != nil {
		t.Fatal(err)
	}
	defer hanging.Close()
	m.all = append(m.all, journal.Member{Node: "hangs", Epoch: 1, Address: hanging.Addr().String()},
		journal.Member{Node: "without", Epoch: 1})
	began := time.Now()
	found, _, err := a.First(t.Context(), "one", time.Minute, "/only-c", nil)
	if err != nil || found == nil || text(t, found) != "c" {
		t.Fatalf("found %v, %v", found, err)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("the first one was found after %v", took)
	}
	found, silent, err := a.First(t.Context(), "one", 2*time.Second, "/nothing", nil)
	if err != nil || found != nil || !slices.Equal(silent, []string{"hangs"}) {
		t.Errorf("found %v, silent %q, %v", found, silent, err)
	}
	var alone *nodes.Cluster
	if found, _, err := alone.First(t.Context(), "one", time.Second, "/name", nil); found != nil || err != nil {
		t.Errorf("without other gateways: %v, %v", found, err)
	}
}

// TestCallersDoNotWaitOneAfterTheOtherForTheList: while the database has never answered, one of them asks it.
func TestCallersDoNotWaitOneAfterTheOtherForTheList(t *testing.T) {
	asked, away := 0, errors.New("the database is away")
	c, err := nodes.New(nodes.Options{Logger: slog.New(slog.DiscardHandler), Secret: secret, Self: "a/1",
		List: func(ctx context.Context) ([]journal.Member, error) { asked++; return nil, cmp.Or(ctx.Err(), away) }})
	if err != nil {
		t.Fatal(err)
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	for _, ctx := range []context.Context{gone, t.Context(), t.Context()} {
		if _, err := c.Others(ctx); !errors.Is(err, away) {
			t.Errorf("the others are %v", err)
		}
	}
	if asked != 1 {
		t.Errorf("the database was asked %d times", asked)
	}
}

// TestLastingRepliesLeaveConnectionsForOthersAndForQuestions: whatever is asked for, a gateway sends one owner at most
// half of what others leave, and all of them together fewer than it accepts connections.
func TestLastingRepliesLeaveConnectionsForOthersAndForQuestions(t *testing.T) {
	var m members
	a, b := m.join(t, "a", secret), m.join(t, "b", secret)
	peer, err := a.Find(t.Context(), "b/1")
	if err != nil {
		t.Fatal(err)
	}
	ask := func(owner string) error {
		res, err := a.Open(t.Context(), peer, "/lasting", url.Values{"owner": {owner}})
		if err == nil {
			t.Cleanup(func() { res.Body.Close() })
		}
		return err
	}
	var refused *share.Refused
	for i := range 512 {
		if err := ask("one"); err != nil && (!errors.As(err, &refused) || !refused.Share) {
			t.Fatalf("%d: %v", i, err)
		}
	}
	if got := b.Relays().Held("one"); got != 192 {
		t.Errorf("one owner has %d", got)
	}
	for i := 0; refused.Share; i++ {
		if err := ask(fmt.Sprint("other", i)); err != nil && !errors.As(err, &refused) {
			t.Fatalf("%d: %v", i, err)
		}
	}
	if used := b.Relays().Used(); used != 384 {
		t.Errorf("%d are sent", used)
	}
	if found, silent, err := a.First(t.Context(), "one", 3*time.Second, "/name", nil); err != nil || found == nil {
		t.Errorf("a question beside them: %v, without an answer: %v", err, silent)
	} else {
		found.Body.Close()
	}
}

// TestTheGatewayThatReadsCountsLastingReplies: until they are closed, because its client may be slower than they are.
func TestTheGatewayThatReadsCountsLastingReplies(t *testing.T) {
	var m members
	a := m.join(t, "a", secret)
	m.join(t, "b", secret)
	a.Relays().Resize(2)
	first := func(owner state.Owner) (*http.Response, error) {
		res, _, err := a.First(t.Context(), owner, 3*time.Second, "/name", nil)
		return res, err
	}
	res, err := first("one")
	if err != nil {
		t.Fatal(err)
	}
	var refused *share.Refused
	if _, err := first("one"); !errors.As(err, &refused) || !refused.Share || refused.Pool != share.Relays {
		t.Errorf("beyond the share: %v", err)
	}
	res.Body.Close()
	res.Body.Close() // a place is given back once
	if res, err = first("one"); err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if used := a.Relays().Used(); used != 1 {
		t.Errorf("%d are counted", used)
	}
}

// TestAReplyEndsWhenItsGatewayIsNotListedAnyMore: one that hangs keeps its connections.
func TestAReplyEndsWhenItsGatewayIsNotListedAnyMore(t *testing.T) {
	var m members
	a := m.join(t, "a", secret)
	m.join(t, "b", secret)
	res, _, err := a.First(t.Context(), "one", 3*time.Second, "/lasting", nil)
	if err != nil || res == nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	m.remove("b")
	if got, err := io.ReadAll(res.Body); !errors.Is(err, nodes.ErrNoPeer) || string(got) != "begun" {
		t.Errorf("the reply is %q, %v", got, err)
	}
}
