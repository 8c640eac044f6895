package telemetry

import (
	"maps"
	"strconv"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// maxSeries bounds the different sets of attributes of one kind. Where the catalogue has patterns, names of models come
// from clients, and each set is kept for ever, so later names are counted as Overflowed.
const maxSeries = 1000

// Overflowed stands for all names after the first maxSeries.
const Overflowed = "_other"

// key identifies a set of attributes.
type key[K any] interface {
	comparable
	attributes() []attribute.KeyValue
	// overflow returns the key that stands for those beyond the bound.
	overflow() K
}

// cache keeps sets of attributes, so that recording allocates none. Reading takes no lock, and new sets are rare.
type cache[K key[K]] struct {
	sets   atomic.Pointer[map[K]*series]
	adding sync.Mutex
}

// series is one set in the form of each kind of instrument.
type series struct {
	record []metric.RecordOption
	add    []metric.AddOption
}

// get returns the series of a key without a lock, as the map is replaced and never modified.
func (c *cache[K]) get(k K) *series {
	if sets := c.sets.Load(); sets != nil {
		if s, ok := (*sets)[k]; ok {
			return s
		}
	}
	return c.make(k)
}

// make adds a series. Beyond maxSeries, names that come from outside are replaced by a common one,
// so that clients cannot make the gateway keep any number of series.
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

// callKey identifies the series of calls.
type callKey struct{ operation, kind, provider, model, failure, tokens string }

// attributes returns the labels of the series.
func (k callKey) attributes() []attribute.KeyValue {
	attrs := []attribute.KeyValue{
		Operation.String(k.operation), ProviderKind.String(k.kind), Provider.String(k.provider),
		RequestModel.String(k.model),
	}
	if k.failure != "" {
		attrs = append(attrs, ErrorType.String(k.failure))
	}
	if k.tokens != "" {
		attrs = append(attrs, TokenType.String(k.tokens))
	}
	return attrs
}

// overflow replaces the model only, because the other labels have few values.
func (k callKey) overflow() callKey {
	k.model = Overflowed
	return k
}

// namedKey identifies the series of things with a name.
type namedKey struct{ provider, class, loss, reason string }

// attributes returns the labels of the series. Those that are empty for a metric are left out.
func (k namedKey) attributes() []attribute.KeyValue {
	var attrs []attribute.KeyValue
	for _, a := range [...]attribute.KeyValue{Provider.String(k.provider), FailureClass.String(k.class), Loss.String(k.loss), Reason.String(k.reason)} {
		if a.Value.AsString() != "" {
			attrs = append(attrs, a)
		}
	}
	return attrs
}

// overflow returns the key with names that could be any text replaced.
func (k namedKey) overflow() namedKey {
	if k.loss != "" {
		k.loss = Overflowed
	}
	if k.reason != "" {
		k.reason = Overflowed
	}
	return k
}

// requestKey identifies the series of requests. It has the pattern of a route and not the path.
type requestKey struct {
	scheme, method, route string
	status                int
}

// attributes returns the labels of the series, as the conventions for HTTP servers name them.
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

// overflow returns the key without its route.
func (k requestKey) overflow() requestKey {
	k.route = Overflowed
	return k
}
