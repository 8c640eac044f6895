package main

import (
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"

	metricspb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	tracespb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

// receiver takes what a gateway sends by OTLP: the names of its metrics, and its spans by their names with the names of
// their parents. test/telemetry has the receiver of the OpenTelemetry collector in its place, which takes long to
// compile.
type receiver struct {
	mu      sync.Mutex
	metrics map[string]bool
	names   map[string]string // of spans, by their ids
	parents map[string]string // the ids of spans' parents, by the spans' names
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err == nil {
		err = r.take(req.URL.Path, body)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
}

func (r *receiver) take(path string, body []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch path {
	case "/v1/traces":
		var all tracespb.ExportTraceServiceRequest
		if err := proto.Unmarshal(body, &all); err != nil {
			return err
		}
		for _, resource := range all.ResourceSpans {
			for _, scope := range resource.ScopeSpans {
				for _, s := range scope.Spans {
					r.names[hex.EncodeToString(s.SpanId)] = s.Name
					r.parents[s.Name] = hex.EncodeToString(s.ParentSpanId)
				}
			}
		}
		return nil
	case "/v1/metrics":
		var all metricspb.ExportMetricsServiceRequest
		if err := proto.Unmarshal(body, &all); err != nil {
			return err
		}
		for _, resource := range all.ResourceMetrics {
			for _, scope := range resource.ScopeMetrics {
				for _, m := range scope.Metrics {
					r.metrics[m.Name] = true
				}
			}
		}
		return nil
	}
	return fmt.Errorf("nothing is sent to %s", path)
}

// parent returns the name of the parent of the span with a name, if both have come.
func (r *receiver) parent(name string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.names[r.parents[name]]
}

func TestTracesAndMetricsReachAReceiver(t *testing.T) {
	r := &receiver{metrics: map[string]bool{}, names: map[string]string{}, parents: map[string]string{}}
	server := httptest.NewServer(r)
	defer server.Close()
	dir := directory(t)
	write(t, filepath.Join(dir, "secret"), "one\n")
	otlp := fmt.Sprintf("{endpoint: %q, protocol: http}", server.URL)
	file := write(t, filepath.Join(dir, "f.yaml"), serving("a", "p")+
		"telemetry: {traces: {otlp: "+otlp+"}, metrics: {interval: 1s, otlp: "+otlp+"}}\n")
	p := launch(t, dir, "serve", "--config", file)
	if got := p.ask("one", "a"); got != http.StatusOK {
		t.Fatalf("status %d", got)
	}
	const request = "POST /v1/chat/completions"
	p.await("the spans of the request", func() bool { return r.parent("auth") == request })
	p.await("its metrics", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.metrics["gen_ai.client.token.usage"]
	})
	p.stop()
}
