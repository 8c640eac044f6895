package flow_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"stagedoor/actors/flow"
	"stagedoor/actors/throttle"
	httpflow "stagedoor/http/flow"
	"stagedoor/http/nodes"
	"stagedoor/providers/dialogue"
	"stagedoor/state"
	"stagedoor/state/journal"
)

// gateways connects benches that serve together, by their names. Connections to the others in silent are accepted, and
// nothing is answered.
func gateways(t *testing.T, silent []string, names ...string) (all []*bench) {
	t.Helper()
	var members []journal.Member
	listen := func(name string) net.Listener {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		members = append(members, journal.Member{Node: name, Epoch: 1, Live: true, Address: l.Addr().String()})
		return l
	}
	list := func(context.Context) ([]journal.Member, error) { return members, nil }
	for range names {
		all = append(all, newBench(t)) // they look for goroutines left when all gateways have been closed
	}
	for i, name := range names {
		c, err := nodes.New(nodes.Options{Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
			Secret: []byte("0123456789abcdef"), Self: state.NodeNamed(name, 1), List: list})
		if err != nil {
			t.Fatal(err)
		}
		all[i].Connect(name, c)
		l := listen(name)
		ctx, stop := context.WithCancel(context.Background())
		var serving sync.WaitGroup
		serving.Go(func() { c.Serve(ctx, l) })
		all[i].stop = func() { stop(); serving.Wait() }
		t.Cleanup(func() { stop(); serving.Wait(); c.Close() })
	}
	for _, name := range silent {
		listen(name)
	}
	return all
}

// TestTheFlowHasTheRequestsOfAllGateways: sorted and bounded as those of one are, with the gateway of each.
func TestTheFlowHasTheRequestsOfAllGateways(t *testing.T) {
	all := gateways(t, nil, "gw-1", "gw-2")
	a, b := all[0], all[1]
	a.begin(t, "a1", 5)
	b.at = a.at
	b.begin(t, "b2", 50)
	a.at = b.at
	a.begin(t, "a3", 20)
	b.begin(t, "b4", 1).End(flow.Result{})
	for _, c := range []struct {
		filter httpflow.Filter
		want   string
	}{
		{httpflow.Filter{}, "a1 b2 a3"},
		{httpflow.Filter{Limit: 2}, "a1 b2"},
		{httpflow.Filter{Sort: httpflow.SortNew, Limit: 2}, "a3 b2"},
		{httpflow.Filter{Sort: httpflow.SortTokens}, "b2 a3 a1"},
		{httpflow.Filter{Sort: httpflow.SortSlow}, "a1 b2 a3"},
		{httpflow.Filter{Sort: httpflow.SortUser}, "a1 a3 b2"},
		{httpflow.Filter{Key: "key_b"}, "b2"},
	} {
		active, _ := a.All(t.Context(), c.filter)
		if ids(active) != c.want || active.Load.InFlight != 3 || len(active.Load.Providers) != 1 ||
			active.Load.Providers[0].InFlight != 3 {
			t.Errorf("%+v: %s of %+v, want %s", c.filter, ids(active), active.Load, c.want)
		}
	}
	active, recent := a.All(t.Context(), httpflow.Filter{})
	if active.Data[0].Node != "gw-1" || active.Data[1].Node != "gw-2" || len(recent) != 1 || recent[0].Node != "gw-2" ||
		!slices.Equal(active.Load.Nodes, []httpflow.NodeLoad{{"gw-1", true, 2}, {"gw-2", true, 1}}) {
		t.Errorf("the gateways of %+v and %+v", active, recent)
	}
}

// TestAGatewayThatHangsIsNamedAndWaitedForShortly: its requests are missing, and those of the others are there.
func TestAGatewayThatHangsIsNamedAndWaitedForShortly(t *testing.T) {
	all := gateways(t, []string{"hangs"}, "gw-1", "gw-2")
	all[1].begin(t, "b1", 5)
	active, _ := all[0].All(t.Context(), httpflow.Filter{})
	if ids(active) != "b1" || slices.ContainsFunc(active.Load.Nodes, func(n httpflow.NodeLoad) bool {
		return n.Answers == (n.Node == "hangs")
	}) {
		t.Errorf("got %s of %+v", ids(active), active.Load.Nodes)
	}
	if d, err := all[0].Find(t.Context(), "b1", ""); err != nil || d.Node != "gw-2" {
		t.Errorf("found %+v, %v", d, err)
	}
	var silent *httpflow.SilentError
	if _, err := all[0].Find(t.Context(), "x", ""); !errors.As(err, &silent) ||
		strings.Join(silent.Nodes, " ") != "hangs" {
		t.Errorf("a request that may be served by a gateway that hangs: %v", err)
	}
}

func TestARequestOfAnotherGatewayIsEnded(t *testing.T) {
	all := gateways(t, nil, "gw-1", "gw-2")
	a, b := all[0], all[1]
	var cause error
	r := b.Flow.Begin(t.Context(), flow.About{ID: "b1", Model: "m"}, func(err error) { cause = err })
	if err := a.Cancel(t.Context(), "b1", ""); err != nil || !errors.Is(cause, flow.Cancelled) {
		t.Errorf("ended: %v, its client gets %v", err, cause)
	}
	r.End(flow.Result{Status: 499})
	if err := a.Cancel(t.Context(), "b1", ""); !errors.Is(err, flow.ErrOver) {
		t.Errorf("a request that has ended: %v", err)
	}
	if err := a.Cancel(t.Context(), "unknown", ""); !errors.Is(err, flow.ErrUnknown) {
		t.Errorf("an unknown request: %v", err)
	}
}

// TestOfRequestsWithOneIDTheChosenOneIsEnded: a client chooses the id, so a failed try and its repetition can have the
// same one on two gateways, and so can requests of different users.
func TestOfRequestsWithOneIDTheChosenOneIsEnded(t *testing.T) {
	all := gateways(t, nil, "gw-1", "gw-2", "gw-3")
	ended := make([]error, len(all))
	all[0].begin(t, "same", 1).End(flow.Result{Status: 500})
	for i, b := range all[1:] {
		b.Flow.Begin(t.Context(), flow.About{ID: "same", Model: "m"}, func(err error) { ended[i+1] = err })
	}
	if d, err := all[0].Find(t.Context(), "same", ""); err != nil || d.Result != nil {
		t.Errorf("the ended try goes before those in flight: %+v, %v", d, err)
	}
	for _, node := range []string{"gw-1", "gw-2", "gw-3"} {
		if d, err := all[1].Find(t.Context(), "same", node); err != nil || d.Node != node {
			t.Errorf("that of %s: %+v, %v", node, d, err)
		}
	}
	if err := all[0].Cancel(t.Context(), "same", "gw-1"); !errors.Is(err, flow.ErrOver) {
		t.Errorf("the ended try: %v", err)
	}
	if err := all[0].Cancel(t.Context(), "same", "gw-9"); !errors.Is(err, flow.ErrUnknown) {
		t.Errorf("on an unknown gateway: %v", err)
	}
	if err := all[0].Cancel(t.Context(), "same", "gw-3"); err != nil || ended[1] != nil || ended[2] == nil {
		t.Errorf("that of gw-3: %v, the clients got %v", err, ended)
	}
}

// TestARequestIsNotShownAsGoneWhileAGatewayDoesNotAnswer: the page of the request keeps what it shows.
func TestARequestIsNotShownAsGoneWhileAGatewayDoesNotAnswer(t *testing.T) {
	for _, silent := range [][]string{nil, {"hangs"}} {
		w := gateways(t, silent, "gw-1", "gw-2")[0].Watch(t.Context())
		w.Receive([]byte(`{"type":"watch","view":"request","id":"x"}`))
		var sent string
		again, err := w.Next(func(p []byte) error { sent = string(p); return nil })
		if err != nil || again == nil || (sent == "") != (silent != nil) {
			t.Errorf("without an answer of %v: sent %q, %v", silent, sent, err)
		}
	}
}

// TestFiguresAreThoseOfAllGateways: of providers and models, with percentiles of all requests together, the state on
// each gateway, and the name of one that does not answer.
func TestFiguresAreThoseOfAllGateways(t *testing.T) {
	all := gateways(t, []string{"hangs"}, "gw-1", "gw-2")
	a, b := all[0], all[1]
	a.at, b.at = time.Unix(1e9, 0), time.Unix(1e9, 0)
	serve := func(g *bench, n int, took time.Duration, failure string) {
		for range n {
			r := g.Flow.Begin(t.Context(), flow.About{ID: "r", Model: "m"}, func(error) {})
			r.Attempt(up)
			r.Sent(1, g.at)
			if failure != "" {
				r.Failed(1, 500, failure)
			}
			r.Enter(flow.Waiting)
			g.at = g.at.Add(took)
			r.End(flow.Result{Usage: dialogue.NoUsage})
			r.Record()
			g.at = g.at.Add(-took)
		}
	}
	serve(a, 9, time.Second, "")
	serve(b, 3, 8*time.Second, "")
	serve(b, 1, time.Second, "transient")
	b.begin(t, "b1", 5)
	if permit, err := b.limiter.Acquire(t.Context(), throttle.Ask{Owner: "user:ann"}); err != nil {
		t.Fatal(err)
	} else {
		t.Cleanup(func() { permit.Release(throttle.Outcome{}) })
	}
	p, ok := a.Provider(t.Context(), "up")
	if !ok || p.Hour.Requests != 13 || p.Hour.Failed != 1 || p.Hour.Took.P50 > 1100 || p.Hour.Took.P95 < 7400 ||
		p.Granted != 1 || p.InFlight != 1 {
		t.Errorf("the provider is %+v, its hour %+v", p, p.Hour)
	}
	want := []httpflow.Place{{"gw-1", true, "serving", 0}, {"gw-2", true, "serving", 1}, {"hangs", false, "", 0}}
	if !slices.Equal(p.Nodes, want) {
		t.Errorf("its gateways are %+v", p.Nodes)
	}
	for _, name := range []string{"m", ""} {
		models := a.Models(t.Context(), name)
		figures := models.Models["m"]
		if h := figures.Hour(); h.Requests != 13 || !slices.Equal(models.Silent, []string{"hangs"}) {
			t.Errorf("the model has %d requests, without %v", h.Requests, models.Silent)
		}
	}
}

// TestLanesAndCurvesAreThoseOfAllGateways: bars have their gateway and numbers of their own, only changes are sent, and
// the picture begins again when a gateway does not answer.
func TestLanesAndCurvesAreThoseOfAllGateways(t *testing.T) {
	all := gateways(t, nil, "gw-1", "gw-2")
	a, b := all[0], all[1]
	a.begin(t, "a1", 5)
	b.at = a.at.Add(-time.Minute) // its clock is a minute behind
	other := b.Flow.Begin(t.Context(), flow.About{ID: "b1", Stream: true}, func(error) {})
	other.Attempt(up)
	other.Enter(flow.Queued)
	for range 2 {
		a.Sample()
		b.Sample()
	}
	a.Sample() // before b was there
	w := a.Watch(t.Context())
	w.Receive([]byte(`{"type":"watch","view":"requests","lanes":true}`))
	got := lanesOf(t, w)
	own, theirs := got.Get(`bars.#(id=="a1")`), got.Get(`bars.#(id=="b1")`)
	if own.Get("node").Str != "gw-1" || theirs.Get("node").Str != "gw-2" ||
		own.Get("n").Int() == theirs.Get("n").Int() {
		t.Errorf("the bars are %s", got.Get("bars").Raw)
	}
	if began := theirs.Get("began_ms").Int(); began != a.at.UnixMilli() {
		t.Errorf("by the clock of the gateway that shows it, a request began at %d", began)
	}
	if l := got.Get("lanes.0"); l.Get("in_flight").Int() != 2 || l.Get("queued").Int() != 1 || l.Get("on").Str != "" {
		t.Errorf("the lane is %s", l.Raw)
	}
	if s := got.Get("samples"); s.Get("2.in_flight").Int() != 2 || s.Get("0.in_flight").Int() != 1 ||
		s.Get("2.firsts").Exists() {
		t.Errorf("the samples are %s", s.Raw)
	}
	if got = lanesOf(t, w); got.Get("whole").Bool() || got.Get("bars.#").Int() != 0 {
		t.Errorf("without a change the message is %s", got.Raw)
	}
	other.Enter(flow.Waiting)
	b.limiter.Pause()
	got = lanesOf(t, w)
	if got.Get("bars.#").Int() != 1 || got.Get("bars.0.n").Int() != theirs.Get("n").Int() ||
		got.Get("bars.0.phases.2").Str != "waiting" || got.Get("lanes.0.state").Str != "paused" ||
		got.Get("lanes.0.on").Str != "gw-2" {
		t.Errorf("after a change the message is %s", got.Raw)
	}
	b.stop()
	if got = lanesOf(t, w); !got.Get("whole").Bool() || got.Get("bars.#").Int() != 1 ||
		got.Get("bars.0.id").Str != "a1" {
		t.Errorf("without the other gateway the message is %s", got.Raw)
	}
	if got = lanesOf(t, w); got.Get("whole").Bool() {
		t.Error("the picture begins again for as long as a gateway does not answer")
	}
}

// TestTheFirstTokenOfAllGatewaysIsAPercentileOfAllRequests: of 30 fast replies and one slow one, the slow one does not
// count, although it is all that one gateway has.
func TestTheFirstTokenOfAllGatewaysIsAPercentileOfAllRequests(t *testing.T) {
	all := gateways(t, nil, "gw-1", "gw-2")
	for i, n := range []int{30, 1} {
		g := all[i]
		g.at = time.Unix(1e9, 0)
		for range n {
			r := g.Flow.Begin(t.Context(), flow.About{ID: "r", Stream: true}, func(error) {})
			r.Attempt(up)
			r.Enter(flow.Waiting)
			g.at = g.at.Add([]time.Duration{100 * time.Millisecond, 9 * time.Second}[i])
			r.Progress(1)
			r.End(flow.Result{Usage: dialogue.NoUsage})
		}
		g.Sample()
	}
	w := all[0].Watch(t.Context())
	w.Receive([]byte(`{"type":"watch","view":"requests","lanes":true}`))
	if first := lanesOf(t, w).Get("samples.0.first_ms").Int(); first < 90 || first > 115 {
		t.Errorf("the 95th percentile is %d ms", first)
	}
}

// TestWatchersOfOtherGatewaysAreBounded: a gateway that gets too many names of watchers sends no lanes to further ones.
func TestWatchersOfOtherGatewaysAreBounded(t *testing.T) {
	all := gateways(t, nil, "gw-1", "gw-2")
	all[1].begin(t, "b1", 5)
	served := int64(0)
	for range 70 {
		w := all[0].Watch(t.Context())
		w.Receive([]byte(`{"type":"watch","view":"requests","lanes":true,"filter":{"limit":1}}`))
		served += lanesOf(t, w).Get("bars.#").Int()
	}
	if served != 64 {
		t.Errorf("%d of 70 watchers have the bar of the other gateway", served)
	}
}
