package telemetry

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"
)

// scrape reads /metrics as Prometheus would, as sets of labels, the name among them.
func (g *gateway) scrape(t *testing.T) []labels.Labels {
	t.Helper()
	r, err := http.Get(g.url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		t.Fatalf("/metrics answers %d", r.StatusCode)
	}
	p := expfmt.NewTextParser(model.LegacyValidation)
	families, err := p.TextToMetricFamilies(r.Body)
	if err != nil {
		t.Fatalf("/metrics is not what Prometheus reads: %v", err)
	}
	var out []labels.Labels
	for name, f := range families {
		for _, m := range f.Metric {
			for _, suffix := range suffixes(f.GetType()) {
				b := labels.NewBuilder(labels.EmptyLabels())
				b.Set("__name__", name+suffix)
				for _, l := range m.Label {
					b.Set(l.GetName(), l.GetValue())
				}
				if suffix == "_bucket" {
					b.Set("le", "1")
				}
				out = append(out, b.Labels())
			}
		}
	}
	return out
}

func suffixes(t dto.MetricType) []string {
	if t == dto.MetricType_HISTOGRAM {
		return []string{"_bucket", "_sum", "_count"}
	}
	return []string{""}
}

// busy makes some of everything happen that is counted.
func busy(t *testing.T, g *gateway, u *upstream) {
	t.Helper()
	g.ask("/v1/chat/completions", chat("priced", true))
	u.will(503)
	g.ask("/v1/chat/completions", chat("priced", true))
	g.ask("/v1/messages", `{"model":"priced","max_tokens":9,"top_k":3,"messages":[{"role":"user","content":"x"}]}`)
	g.ask(
		"/v1/chat/completions",
		`{"model":"plain","messages":[{"role":"user","content":"x"}],"response_format":{"type":"json_schema",`+
			`"json_schema":{"name":"a","schema":{"type":"object","properties":{"a":{"type":"string"}},`+
			`"required":["a"],"additionalProperties":false},"strict":true}}}`,
	)
	g.ask("/v1/images/generations", `{"model":"dreams","prompt":"x"}`)
	u.will(503, 503, 503, 503)
	g.ask("/v1/chat/completions", chat("narrow", false))
	u.will()
}

func TestEveryQueryOfDashboardAndAlertsFindsWhatTheGatewaySays(t *testing.T) {
	t.Parallel()
	c, u := startCollector(t), newUpstream(t)
	g := startOn(
		t,
		t.TempDir(),
		u,
		object{
			"traces":  object{"otlp": object{"endpoint": c.grpc, "insecure": true}},
			"metrics": object{"prometheus": true},
		},
	)
	busy(t, g, u)
	// The state of this one is in a database, which has figures of its own.
	clustered := startOn(t, t.TempDir(), u, object{"metrics": object{"prometheus": true}},
		"STAGEDOOR_CLUSTER_STORE="+startPostgres(t))
	series := append(g.scrape(t), clustered.scrape(t)...)
	queries := append(dashboard(t), alerts(t)...)
	if len(queries) < 30 {
		t.Fatalf("only %d queries were found", len(queries))
	}
	for _, q := range queries {
		expr, err := parser.NewParser(parser.Options{}).ParseExpr(strings.ReplaceAll(q, "$__rate_interval", "5m"))
		if err != nil {
			t.Errorf("%s: %v", q, err)
			continue
		}
		check(t, q, expr, series)
	}
}

// check looks for every selector of a query among the series, and for the labels
// by which it groups.
func check(t *testing.T, query string, expr parser.Expr, series []labels.Labels) {
	t.Helper()
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		switch n := n.(type) {
		case *parser.VectorSelector:
			if len(matching(n, series)) == 0 {
				t.Errorf("%s: nothing is %s", query, n)
			}
		case *parser.AggregateExpr:
			grouped(t, query, n, series)
		}
		return nil
	})
}

func grouped(t *testing.T, query string, n *parser.AggregateExpr, series []labels.Labels) {
	t.Helper()
	parser.Inspect(n.Expr, func(inner parser.Node, _ []parser.Node) error {
		if v, ok := inner.(*parser.VectorSelector); ok {
			for _, name := range n.Grouping {
				if !anyHas(matching(v, series), name) {
					t.Errorf("%s: %s has no label %s", query, v, name)
				}
			}
		}
		return nil
	})
}

func matching(v *parser.VectorSelector, series []labels.Labels) []labels.Labels {
	var out []labels.Labels
next:
	for _, s := range series {
		for _, m := range v.LabelMatchers {
			if !m.Matches(s.Get(m.Name)) {
				continue next
			}
		}
		out = append(out, s)
	}
	return out
}

func anyHas(series []labels.Labels, name string) bool {
	for _, s := range series {
		if s.Has(name) {
			return true
		}
	}
	return false
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func dashboard(t *testing.T) []string {
	t.Helper()
	var d struct {
		Panels []struct {
			Title   string
			Type    string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(read(t, "grafana.json"), &d); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, p := range d.Panels {
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("panel %q shows nothing", p.Title)
		}
		for _, target := range p.Targets {
			out = append(out, target.Expr)
		}
	}
	return out
}

func alerts(t *testing.T) []string {
	t.Helper()
	var a struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr string
				Annotations map[string]string
			}
		}
	}
	if err := yaml.Unmarshal(read(t, "alerts.yaml"), &a); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, g := range a.Groups {
		for _, r := range g.Rules {
			if r.Alert == "" || r.Annotations["summary"] == "" {
				t.Errorf("a rule has no name or no summary: %+v", r)
			}
			out = append(out, r.Expr)
		}
	}
	return out
}

func TestMetricsTellNoSecrets(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	g := start(t, u, object{"metrics": object{"prometheus": true}})
	busy(t, g, u)
	r, err := http.Get(g.url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{secretPrompt, secretReply, secretKey, key, admin, u.url, strings.TrimPrefix(u.url, "http://"), "anna"} {
		if strings.Contains(string(text), secret) {
			t.Errorf("%q is in /metrics", secret)
		}
	}
}

// An attempt at a model without a known price is counted by its provider, and one at a model with a price is not.
func TestAttemptsAtModelsOfUnknownPriceAreCounted(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	g := start(t, u, object{"metrics": object{"prometheus": true}})
	g.ask("/v1/chat/completions", chat("priced", false))
	g.ask("/v1/chat/completions", chat("sandbox", false))
	for range 2 {
		g.ask("/v1/chat/completions", chat("plain", false))
	}
	r, err := http.Get(g.url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	reply, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	var counted []string
	for line := range strings.Lines(string(reply)) {
		if strings.HasPrefix(line, "stagedoor_unpriced_total{") {
			counted = append(counted, line)
		}
	}
	if len(counted) != 1 || !strings.Contains(counted[0], `"second"`) || !strings.HasSuffix(counted[0], " 2\n") {
		t.Errorf("counted %q", counted)
	}
}

func TestMetricsAreServedToThoseWhoMayReadThemOnly(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	for _, c := range []struct {
		name    string
		metrics object
		want    int
	}{{"off", object{}, 404}, {"on", object{"prometheus": true}, 200},
		{"for others", object{"prometheus": true, "allow": []string{"192.0.2.0/24"}}, 403}} {
		g := start(t, u, object{"metrics": c.metrics})
		r, err := http.Get(g.url + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		if r.StatusCode != c.want {
			t.Errorf("%s: %d, want %d", c.name, r.StatusCode, c.want)
		}
	}
}

func TestMetricsReachACollector(t *testing.T) {
	t.Parallel()
	for protocol, otlp := range map[string]func(*collector) object{
		"grpc": func(c *collector) object { return object{"endpoint": c.grpc, "insecure": true} },
		"http": func(c *collector) object { return object{"endpoint": "http://" + c.http, "protocol": "http"} },
	} {
		t.Run(protocol, func(t *testing.T) {
			c, u := startCollector(t), newUpstream(t)
			g := start(t, u, object{"metrics": object{"otlp": otlp(c), "interval": "1s"}})
			busy(t, g, u)
			for range 2400 {
				if c.hasMetric("gen_ai.client.token.usage") && c.hasMetric("stagedoor.breaker.state") {
					return
				}
				time.Sleep(50 * time.Millisecond)
			}
			t.Error("no metrics came within two minutes")
		})
	}
}

func (c *collector) hasMetric(name string) bool {
	for _, md := range c.metrics.AllMetrics() {
		for _, rm := range md.ResourceMetrics().All() {
			for _, sm := range rm.ScopeMetrics().All() {
				for _, m := range sm.Metrics().All() {
					if m.Name() == name {
						return true
					}
				}
			}
		}
	}
	return false
}

func TestNamesOfClientsBreakNeitherMetricsNorTraces(t *testing.T) {
	t.Parallel()
	c, u := startCollector(t), newUpstream(t)
	g := start(
		t,
		u,
		object{
			"traces":  object{"otlp": object{"endpoint": c.grpc, "insecure": true}},
			"metrics": object{"prometheus": true},
		},
	)
	// Cut in the middle of a character, and bytes that are none.
	for _, model := range []string{strings.Repeat("日", 60), "a" + strings.Repeat("é", 100)} {
		if _, status, reply := g.ask("/v1/chat/completions", chat(model, false)); status != http.StatusOK {
			t.Fatalf("%d %s", status, reply)
		}
	}
	g.ask("/v1beta/models/%ff%fe:generateContent", `{"contents":[{"parts":[{"text":"x"}]}]}`)
	g.ask("/%ff/%e6%97", "")
	g.scrape(t)
	id, _, _ := g.ask("/v1/chat/completions", chat("sandbox", false))
	c.await(t, id, 2)
	for _, s := range c.spans() {
		if text(s, "url.path") == "/\ufffd/\ufffd" {
			return
		}
	}
	t.Error("the request for a path of broken bytes has no span")
}

func TestStreamsThatBreakAreFailuresWhateverIsLogged(t *testing.T) {
	t.Parallel()
	g := start(t, newUpstream(t), object{"metrics": object{"prometheus": true}}, "STAGEDOOR_LOG_LEVEL=error")
	if _, status, reply := g.ask("/v1/chat/completions", chat("sandbox", true), "x-sandbox", "error=2"); status != http.StatusOK {
		t.Fatalf("%d %s", status, reply)
	}
	for range 3000 { // the reply ends a moment before its request
		for _, s := range g.scrape(t) {
			if s.Get("__name__") == "http_server_request_duration_seconds_count" &&
				s.Get("http_response_status_code") == "500" {
				return
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Error("a stream that broke is counted as answered")
}

// durations are seconds in the conventions and in Prometheus.
var unit = regexp.MustCompile(`_(ms|milliseconds|microseconds)(_|$)`)

func TestDurationsAreInSeconds(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	g := start(t, u, object{"metrics": object{"prometheus": true}})
	busy(t, g, u)
	for _, s := range g.scrape(t) {
		if unit.MatchString(s.Get("__name__")) {
			t.Errorf("%s is not in seconds", s.Get("__name__"))
		}
	}
}
