package flow

import (
	"math/bits"
	"sync"
	"time"
)

const (
	// HourMinutes is the number of minutes that Hour reaches back.
	HourMinutes = 60
	// The percentiles are of hourSpans spans of spanMinutes, the present one included: of the last 50 to 60 minutes.
	hourSpans   = 6
	spanMinutes = HourMinutes / hourSpans
	// maxMeasured bounds the providers that are measured, and the models, of 12 KiB each. Names of providers are those
	// of the configuration. A model is measured from its first whole reply on, so that names which clients invent and
	// no provider serves take no place.
	maxMeasured = 512
)

// Hour has the figures of a provider or a model in the last hour. It counts attempts that got a permit of the
// provider's limiter, and not the requests that the gateway refused itself.
type Hour struct {
	Requests, Failed int64
	// First is the time from the permit to the first token, and Took that to the end of the reply. Only attempts whose
	// client got a whole reply count, because a failure at once would make a provider look fast.
	First, Took Quantiles
	// Rate is the output tokens per second of streams after their first token, or 0 if there were none.
	Rate float64
	// Minutes are the last 60 minutes, the present one last.
	Minutes [HourMinutes]Minute
}

// Quantiles are a median and a 95th percentile with an error of at most 7 %. They are 0 without a value.
type Quantiles struct{ P50, P95 time.Duration }

// Minute has the figures of one minute. First is the mean time to the first token, or 0 if there was none.
type Minute struct {
	Requests, Failed int64
	First            time.Duration
	Rate             float64 // as Hour.Rate
}

// measured has the figures of a provider, in rings whose entries are used again.
type measured struct {
	mu      sync.Mutex
	minutes [HourMinutes]minute
	spans   [hourSpans]span
	last    int64 // the minute of the latest attempt
}

// minute counts the requests of one minute. A slot is used again after an hour, and at says which
// minute it has.
type minute struct {
	at int64 // minutes since 1970
	MinuteSums
}

// MinuteSums has what can be added of one minute.
type MinuteSums struct {
	Requests  int64 `json:"requests,omitzero"`
	Failed    int64 `json:"failed,omitzero"`
	Firsts    int64 `json:"firsts,omitzero"`
	FirstNs   int64 `json:"first_ns,omitzero"`   // of all firsts together
	Output    int64 `json:"output,omitzero"`     // tokens of streams
	WritingNs int64 `json:"writing_ns,omitzero"` // of all streams together, from the first token to the end
}

// Figures are the sums that an Hour is made from. Those of several gateways can be added, unlike percentiles.
type Figures struct {
	Minutes [HourMinutes]MinuteSums `json:"minutes"` // the present one last
	First   Histogram               `json:"first"`
	Took    Histogram               `json:"took"`
}

// Add adds the figures of another gateway, which has looked at the same time.
func (f *Figures) Add(other *Figures) {
	for i := range f.Minutes {
		f.Minutes[i].add(&other.Minutes[i])
	}
	f.First.Add(&other.First)
	f.Took.Add(&other.Took)
}

func (m *MinuteSums) add(o *MinuteSums) {
	m.Requests, m.Failed, m.Firsts = m.Requests+o.Requests, m.Failed+o.Failed, m.Firsts+o.Firsts
	m.FirstNs, m.Output, m.WritingNs = m.FirstNs+o.FirstNs, m.Output+o.Output, m.WritingNs+o.WritingNs
}

// Hour returns the figures as readers see them.
func (f *Figures) Hour() (h Hour) {
	var all MinuteSums
	for i := range f.Minutes {
		m := &f.Minutes[i]
		all.add(m)
		h.Minutes[i] = Minute{Requests: m.Requests, Failed: m.Failed, Rate: m.rate()}
		if m.Firsts > 0 {
			h.Minutes[i].First = time.Duration(m.FirstNs / m.Firsts)
		}
	}
	h.Requests, h.Failed, h.Rate = all.Requests, all.Failed, all.rate()
	h.First, h.Took = f.First.Quantiles(), f.Took.Quantiles()
	return h
}

// rate returns the output tokens per second of streams.
func (m *MinuteSums) rate() float64 {
	if m.WritingNs <= 0 {
		return 0
	}
	return float64(m.Output) / time.Duration(m.WritingNs).Seconds()
}

// span has the distribution of durations over several minutes. Minutes have none of their own,
// because a histogram takes much more memory than the counters.
type span struct {
	at          int64 // spans since 1970
	first, took Histogram
}

// Histogram counts durations in eighths of octaves, from 1 ms to more than an hour.
type Histogram [8 * 23]uint32

// Count counts a duration.
func (h *Histogram) Count(d time.Duration) { h[place(d)]++ }

// Add adds the counts of another histogram.
func (h *Histogram) Add(other *Histogram) {
	for i, n := range other {
		h[i] += n
	}
}

// place returns the counter of a duration.
func place(d time.Duration) int {
	us := uint64(max(d.Microseconds(), 1<<10))
	n := bits.Len64(us)
	return min(8*(n-11)+int(us>>(n-4)&7), len(Histogram{})-1)
}

// durationAt returns the middle of the durations that a counter counts.
func durationAt(place int) time.Duration {
	octave, eighth := place/8, place%8
	return time.Duration(17+2*eighth) << octave * (1 << 10) * time.Microsecond / 16
}

// attempt has the figures of an attempt. first and took are 0 if they do not count, and output is 0 if the rate of
// the reply is not known.
type attempt struct {
	failed      bool
	first, took time.Duration
	output      int64
}

// add adds an attempt to the figures of the minute now.
func (m *measured) add(now time.Time, a *attempt) {
	at := now.Unix() / 60
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last = at
	slot := &m.minutes[at%HourMinutes]
	if slot.at != at {
		*slot = minute{at: at}
	}
	slot.Requests++
	if a.failed {
		slot.Failed++
	}
	if a.first > 0 {
		slot.Firsts++
		slot.FirstNs += int64(a.first)
	}
	if a.output > 0 {
		slot.Output += a.output
		slot.WritingNs += int64(a.took - a.first)
	}
	if a.took <= 0 {
		return
	}
	s := &m.spans[at/spanMinutes%hourSpans]
	if s.at != at/spanMinutes {
		*s = span{at: at / spanMinutes}
	}
	s.took.Count(a.took)
	if a.first > 0 {
		s.first.Count(a.first)
	}
}

// figures returns those of the last hour. Slots of an earlier hour, which nothing has overwritten, are skipped.
func (m *measured) figures(now time.Time) (f Figures) {
	end := now.Unix() / 60
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range f.Minutes {
		at := end - HourMinutes + 1 + int64(i)
		if slot := &m.minutes[at%HourMinutes]; slot.at == at {
			f.Minutes[i] = slot.MinuteSums
		}
	}
	for i := range m.spans {
		if s := &m.spans[i]; end/spanMinutes-s.at < hourSpans {
			f.First.Add(&s.first)
			f.Took.Add(&s.took)
		}
	}
	return f
}

// Quantiles returns the durations that half and 95 percent of the requests did not exceed, as
// exactly as the histogram has them.
func (h *Histogram) Quantiles() (q Quantiles) {
	var all, below uint64
	for _, n := range h {
		all += uint64(n)
	}
	for i, n := range h {
		if below += uint64(n); n == 0 {
			continue
		}
		if q.P50 == 0 && below*2 >= all {
			q.P50 = durationAt(i)
		}
		if below*100 >= all*95 {
			q.P95 = durationAt(i)
			break
		}
	}
	return q
}

// failures are the outcomes of attempts that are the provider's fault, by their names in throttle.Kind. The others are
// those that the client caused.
var failures = map[string]bool{"rate_limited": true, "overloaded": true, "transient": true, "not_sent": true,
	"credential": true}

// ProviderFigures returns what is known of a provider.
func (r *Registry) ProviderFigures(provider string) Figures {
	if r == nil {
		return Figures{}
	}
	return r.providers.figures(provider, r.now())
}

// ModelFigures returns what is known of a model by the name that clients use, at all of its providers, or of each model
// that had requests if model is "".
func (r *Registry) ModelFigures(model string) map[string]Figures {
	all := make(map[string]Figures)
	add := func(name string) {
		if f := r.models.figures(name, r.now()); f != (Figures{}) {
			all[name] = f
		}
	}
	switch {
	case r == nil:
	case model != "":
		add(shown(model))
	default:
		r.models.all.Range(func(name, _ any) bool {
			add(name.(string))
			return true
		})
	}
	return all
}

// measure adds the attempts of a request that has ended to the figures of their providers and of the model.
func (r *Registry) measure(q *Request) {
	for i := range q.tries {
		t := &q.tries[i]
		if t.Sent == 0 && !q.Job || t.Provider == "" {
			continue // it got no permit
		}
		a := attempt{failed: failures[t.Failure]}
		shown := i+1 == min(int(q.attempts.Load()), maxMarks)
		if shown && t.Failure == "" && q.result.Status == 0 {
			a.took = q.result.Took - t.Sent
			if at := q.First(); at > t.Sent {
				a.first = at - t.Sent
			}
			if q.Stream && a.first > 0 && a.took-a.first >= time.Millisecond {
				a.output = q.Output()
			}
		}
		if m := r.providers.of(t.Provider, r.now()); m != nil {
			m.add(q.over(), &a)
		}
		m := r.models.known(q.Model)
		if m == nil && a.took > 0 {
			m = r.models.of(q.Model, r.now())
		}
		if m != nil {
			m.add(q.over(), &a)
		}
	}
}

// meters has the figures of at most maxMeasured names.
type meters struct {
	all   sync.Map   // a *measured for each name
	mu    sync.Mutex // guards additions
	count int
}

// figures returns the figures of a name.
func (m *meters) figures(name string, now time.Time) (f Figures) {
	if one := m.known(name); one != nil {
		f = one.figures(now)
	}
	return f
}

// known returns the figures of a name, or nil if it has none.
func (m *meters) known(name string) *measured {
	one, ok := m.all.Load(name)
	if !ok {
		return nil
	}
	return one.(*measured)
}

// of returns the figures of a name, which it begins if the name has none. If there are maxMeasured names, it first
// removes those without an attempt in the last hour, and returns nil if there is still no place.
func (m *meters) of(name string, now time.Time) *measured {
	if one := m.known(name); one != nil {
		return one
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.count >= maxMeasured {
		m.all.Range(func(name, one any) bool {
			if now.Unix()/60-one.(*measured).lastMinute() >= HourMinutes {
				m.all.Delete(name)
				m.count--
			}
			return true
		})
	}
	if m.count >= maxMeasured {
		return nil
	}
	one, known := m.all.LoadOrStore(name, new(measured))
	if !known {
		m.count++
	}
	return one.(*measured)
}

func (m *measured) lastMinute() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last
}
