package telemetry

import (
	"maps"
	"strconv"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// maxSeries bounds how many different sets of attributes there are of one kind.
// Names of models come from clients where the catalogue has patterns, and each
// set is kept for ever: past the bound they are Overflowed.
const maxSeries = 1000

// Overflowed stands for the names that came after maxSeries others.
const Overflowed = "_other"

// key is what a set of attributes is made of and found by.
type key[K any] interface {
	comparable
	attributes() []attribute.KeyValue
	// overflow is the key that stands for those beyond the bound.
	overflow() K
}

// cache keeps sets of attributes, so that recording makes none. Reading costs no
// lock; there is something new rarely.
type cache[K key[K]] struct {
	sets   atomic.Pointer[map[K]*series]
	adding sync.Mutex
}

// series is one set as both kinds of instruments take it.
type series struct {
	record []metric.RecordOption
	add    []metric.AddOption
}

func (c *cache[K]) get(k K) *series {
	if sets := c.sets.Load(); sets != nil {
		if s, ok := (*sets)[k]; ok {
			return s
		}
	}
	return c.make(k)
}

func (c *cache[K]) make(k K) *series {
	c.adding.Lock()
	defer c.adding.Unlock()
	sets := make(map[K]*series)
	if before := c.sets.Load(); before != nil {
		if len(*before) >= maxSeries {
			k = k.overflow()
		}
		if s, ok := (*before)[k]; ok {
			return s
		}
		sets = maps.Clone(*before)
	}
	set := metric.WithAttributeSet(attribute.NewSet(k.attributes()...))
	s := &series{record: []metric.RecordOption{set}, add: []metric.AddOption{set}}
	sets[k] = s
	c.sets.Store(&sets)
	return s
}

// callKey is what series of calls are kept by.
type callKey struct{ operation, kind, provider, model, failure, tokens string }

func (k callKey) attributes() []attribute.KeyValue {
	attrs := []attribute.KeyValue{Operation.String(k.operation), ProviderKind.String(k.kind), Provider.String(k.provider), RequestModel.String(k.model)}
	if k.failure != "" {
		attrs = append(attrs, ErrorType.String(k.failure))
	}
	if k.tokens != "" {
		attrs = append(attrs, TokenType.String(k.tokens))
	}
	return attrs
}

// overflow keeps all but the model: the others are few.
func (k callKey) overflow() callKey {
	k.model = Overflowed
	return k
}

// namedKey is what series of things with a name are kept by.
type namedKey struct{ provider, class, loss, reason string }

func (k namedKey) attributes() []attribute.KeyValue {
	var attrs []attribute.KeyValue
	for _, a := range [...]attribute.KeyValue{Provider.String(k.provider), FailureClass.String(k.class), Loss.String(k.loss), Reason.String(k.reason)} {
		if a.Value.AsString() != "" {
			attrs = append(attrs, a)
		}
	}
	return attrs
}

func (k namedKey) overflow() namedKey {
	if k.loss != "" {
		k.loss = Overflowed
	}
	if k.reason != "" {
		k.reason = Overflowed
	}
	return k
}

// requestKey is what series of requests are kept by: patterns, not paths.
type requestKey struct {
	scheme, method, route string
	status                int
}

func (k requestKey) attributes() []attribute.KeyValue {
	attrs := []attribute.KeyValue{URLScheme.String(k.scheme), HTTPMethod.String(k.method), HTTPStatus.Int(k.status)}
	if k.status >= 500 {
		attrs = append(attrs, ErrorType.String(strconv.Itoa(k.status)))
	}
	if k.route != "" {
		attrs = append(attrs, HTTPRoute.String(k.route))
	}
	return attrs
}

func (k requestKey) overflow() requestKey {
	k.route = Overflowed
	return k
}
