package telemetry

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"syscall"
	"testing"
	"time"

	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
)

// collector is the collector's receiver with nothing behind it.
type collector struct {
	traces     *consumertest.TracesSink
	metrics    *consumertest.MetricsSink
	grpc, http string // addresses
}

// startCollector starts the receiver on addresses that are free. Another suite may take one
// of them before the receiver listens, and then others are tried.
func startCollector(t *testing.T) *collector {
	t.Helper()
	for {
		c, err := tryCollector(t)
		if err == nil {
			return c
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			t.Fatal(err)
		}
	}
}

func tryCollector(t *testing.T) (*collector, error) {
	c := &collector{
		traces: new(consumertest.TracesSink), metrics: new(consumertest.MetricsSink),
		grpc: freeAddr(t), http: freeAddr(t),
	}
	factory := otlpreceiver.NewFactory()
	cfg := factory.CreateDefaultConfig().(*otlpreceiver.Config)
	g := *cfg.Protocols.GRPC.GetOrInsertDefault()
	g.NetAddr.Endpoint = c.grpc
	cfg.Protocols.GRPC = configoptional.Some(g)
	h := *cfg.Protocols.HTTP.GetOrInsertDefault()
	h.ServerConfig.NetAddr.Endpoint = c.http
	cfg.Protocols.HTTP = configoptional.Some(h)
	settings := receivertest.NewNopSettings(factory.Type())
	traces, err := factory.CreateTraces(context.Background(), settings, cfg, c.traces)
	if err != nil {
		return nil, err
	}
	metrics, err := factory.CreateMetrics(context.Background(), settings, cfg, c.metrics)
	if err != nil {
		return nil, err
	}
	stop := func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_, _ = traces.Shutdown(ctx), metrics.Shutdown(ctx) // they are one receiver
	}
	host := componenttest.NewNopHost()
	if err := errors.Join(traces.Start(context.Background(), host), metrics.Start(context.Background(), host)); err != nil {
		stop()
		return nil, err
	}
	t.Cleanup(stop)
	return c, nil
}

// freeAddr returns a loopback address without a listener. Its port is below those that
// systems give to outgoing connections, so that none of those takes it meanwhile.
func freeAddr(t *testing.T) string {
	t.Helper()
	for {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(22_000)))
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		return l.Addr().String()
	}
}

// spans are all that have come so far.
func (c *collector) spans() []ptrace.Span {
	var out []ptrace.Span
	for _, td := range c.traces.AllTraces() {
		for _, rs := range td.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, s := range ss.Spans().All() {
					out = append(out, s)
				}
			}
		}
	}
	return out
}

// request waits for the SERVER span of a request and returns it with the spans of
// its trace.
func (c *collector) request(t *testing.T, id string) (ptrace.Span, []ptrace.Span) {
	t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for time.Now().Before(deadline) {
		all := c.spans()
		for _, s := range all {
			if text(s, "stagedoor.request.id") == id {
				return s, ofTrace(all, s.TraceID())
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("no span of request %s came within two minutes", id)
	return ptrace.Span{}, nil
}

func ofTrace(all []ptrace.Span, id pcommon.TraceID) []ptrace.Span {
	var out []ptrace.Span
	for _, s := range all {
		if s.TraceID() == id {
			out = append(out, s)
		}
	}
	return out
}

// text is an attribute as text; "" if there is none.
func text(s ptrace.Span, key string) string {
	v, ok := s.Attributes().Get(key)
	if !ok {
		return ""
	}
	return v.AsString()
}
