package flow

import (
	"cmp"
	"container/heap"
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"stagedoor/actors/engine"
	"stagedoor/actors/flow"
	"stagedoor/actors/kit"
	"stagedoor/http/nodes"
	"stagedoor/state/work"
)

// Overview describes what this gateway and, after Connect, all gateways do at the moment. Any goroutine may use it.
type Overview struct {
	Flow *flow.Registry
	// Serving returns the providers in force, by name.
	Serving func() []*engine.Provider
	// SetPaused pauses or resumes a provider. It returns state.ErrNotFound if there is no such provider. Pause returns
	// the pause of a provider.
	SetPaused func(ctx context.Context, name string, paused bool) error
	Pause     func(name string) (work.Pause, bool)
	// Tree lists actors and counts them.
	Tree func() ([]kit.ActorStats, kit.Stats)
	Now  func() time.Time
	// KeyName returns the name of the API key of an id, or "" if it has none. Nil names no key.
	KeyName func(id string) string
	// RequestLog has the cost of providers. It may be nil.
	RequestLog RequestLog

	// The other gateways and the name of this one, which Connect sets.
	others *nodes.Cluster
	name   string

	history  history
	sessions sessions
	spent    spent
	// counted is the number of requests in flight on the other gateways.
	counted atomic.Int64
}

// limiterTime is the time in which a limiter must answer, else its queue is left out.
const limiterTime = 200 * time.Millisecond

// Filter chooses requests. Empty fields choose all.
type Filter struct {
	Phase    string `json:"phase"`
	Provider string `json:"provider"`
	Model    string `json:"model"` // a part of it
	Key      string `json:"key"`
	User     string `json:"user"`
	Text     string `json:"text"`   // words, each a part of the user, the key, the model or the provider
	Failed   bool   `json:"failed"` // of those that ended
	// Sort is SortAge, which is also "", or another of the orders below.
	Sort  string `json:"sort"`
	Limit int    `json:"limit"`
}

// The orders of requests under way: the oldest first, the newest first, those with most tokens first, those with fewest
// tokens for each second of their age first, or by user and key, the oldest of each first.
const (
	SortAge    = "age"
	SortNew    = "new"
	SortTokens = "tokens"
	SortSlow   = "slow"
	SortUser   = "user"
)

// Bounds of a filter's limit.
const (
	DefaultLimit = 50
	MaxLimit     = 500
)

// limit returns how many requests are listed.
func (f *Filter) limit() int {
	if f.Limit <= 0 {
		return DefaultLimit
	}
	return min(f.Limit, MaxLimit)
}

// admits reports whether a request in a phase fits the filter. The phase is an argument, because it may change
// between two looks at it.
// The cheap comparisons come first, because the function runs for every request in flight at every
// look.
func (o *Overview) admits(f *Filter, r *flow.Request, phase flow.Phase) bool {
	return (f.Phase == "" || f.Phase == phase.String()) && (f.Provider == "" || f.Provider == r.Provider()) &&
		(f.Model == "" || strings.Contains(r.Model, f.Model)) && (f.Key == "" || f.Key == r.Key) &&
		(f.User == "" || f.User == userOf(r)) && (f.Text == "" || o.hasWords(f.Text, r))
}

// hasWords reports whether each word of a text is a part of one of the names of a request.
func (o *Overview) hasWords(text string, r *flow.Request) bool {
	names := [...]string{userOf(r), r.Key, o.keyName(r.Key), r.Model, r.Provider()}
	for i := range names {
		names[i] = strings.ToLower(names[i])
	}
	for word := range strings.FieldsSeq(strings.ToLower(text)) {
		if !slices.ContainsFunc(names[:], func(name string) bool { return strings.Contains(name, word) }) {
			return false
		}
	}
	return true
}

// rank returns the item of a request, which has its sort key.
func (f *Filter) rank(r *flow.Request, now time.Time) item {
	i := item{rank: r.Began().UnixNano(), request: r}
	switch f.Sort {
	case SortNew:
		i.rank = -i.rank
	case SortTokens:
		i.rank = -r.Output()
	case SortSlow:
		i.rank = speed(r.Output(), now.Sub(r.Began()).Milliseconds())
	case SortUser:
		i.name = sortName(userOf(r), r.Key)
	}
	return i
}

// speed returns the tokens in a thousand seconds of a request's age. Without a token it is below 0, and lowest for the
// request that has waited longest.
func speed(tokens, ageMs int64) int64 {
	if tokens == 0 {
		return -1 - ageMs
	}
	return tokens * 1_000_000 / max(ageMs, 1)
}

// sortName returns what SortUser sorts by. Requests without a user come last.
func sortName(user, key string) string {
	user = cmp.Or(user, "\xff")
	return user + "\x00" + key
}

// Load counts the work in flight.
type Load struct {
	InFlight        int            `json:"in_flight" doc:"requests under way"`
	Phases          Phases         `json:"phases"`
	TokensPerSecond int64          `json:"tokens_per_second" doc:"of output, of all streams under way"`
	OutputTokens    int64          `json:"output_tokens" doc:"since the start, those of requests under way included"`
	Ended           int64          `json:"ended" doc:"requests since the start"`
	Failed          int64          `json:"failed" doc:"how many of them failed"`
	Providers       []ProviderLoad `json:"providers"`
	Nodes           []NodeLoad     `json:"nodes" doc:"the gateways that serve over one database; empty: there is one"`
}

// Phases counts the requests under way by what they are doing.
type Phases struct {
	Starting int `json:"starting"`
	Queued   int `json:"queued" doc:"in front of a provider's limiter, or as a job in the provider's own queue"`
	Waiting  int `json:"waiting" doc:"sent, without a piece of answer yet"`
	Replying int `json:"replying"`
	Making   int `json:"in_progress" doc:"jobs that are made"`
	Resting  int `json:"resting" doc:"between two attempts"`
}

// ProviderLoad is a provider's part of it.
type ProviderLoad struct {
	Provider        string `json:"provider"`
	InFlight        int    `json:"in_flight"`
	Queued          int    `json:"queued"`
	TokensPerSecond int64  `json:"tokens_per_second"`
}

// Active lists the requests in flight.
type Active struct {
	Load     Load      `json:"load"`
	Matching int       `json:"matching" doc:"how many requests match; data has those that come first"`
	Data     []Request `json:"data"`
}

// Request is one request.
type Request struct {
	ID              string    `json:"id"`
	Node            string    `json:"node" doc:"name of the gateway that serves it; empty: there is one"`
	Started         time.Time `json:"started"`
	Phase           string    `json:"phase" enum:"starting,queued,waiting,replying,in_progress,resting,ended"`
	PhaseMs         int64     `json:"phase_ms" doc:"how long it has been in its phase"`
	DurationMs      int64     `json:"duration_ms" doc:"so far, or in all"`
	Shape           string    `json:"shape" doc:"of the client"`
	Model           string    `json:"model" doc:"as the client calls it"`
	Provider        string    `json:"provider" doc:"of the current or the last attempt; empty: there was none yet"`
	UpstreamModel   string    `json:"upstream_model"`
	Key             string    `json:"key" doc:"the id of the key"`
	KeyName         string    `json:"key_name" doc:"the name of the key; empty: it has none"`
	User            string    `json:"user" doc:"the user of the key; empty: it has none"`
	Stream          bool      `json:"stream"`
	Background      bool      `json:"background"`
	Progress        *int      `json:"progress" doc:"per cent of a video job that are made; null: it is no job"`
	Attempts        int       `json:"attempts"`
	InputTokens     int64     `json:"input_tokens" doc:"as the upstream reported; 0: not yet"`
	OutputTokens    int64     `json:"output_tokens" doc:"as counted so far, or as the upstream reported"`
	TokensPerSecond int64     `json:"tokens_per_second"`
	FirstMs         *int64    `json:"first_ms" doc:"until the first piece of answer; null: there is none yet"`
	QueuePosition   *int      `json:"queue_position" doc:"from 1, if no other request arrives; null: it does not queue"`
	Trace           string    `json:"trace" doc:"id of its trace; empty: none is recorded"`
	Result          *Result   `json:"result" doc:"null: it is under way"`
}

// Result describes the end of a request.
type Result struct {
	Status    int    `json:"status" doc:"of the failure that the client received; 0: there was none"`
	Code      string `json:"code" doc:"of that failure"`
	Reason    string `json:"reason" doc:"why the reply ended"`
	QueuedMs  int64  `json:"queued_ms"`
	Untouched bool   `json:"untouched" doc:"the reply passed as its upstream wrote it"`
	Degraded  string `json:"degraded"`
	Losses    string `json:"losses"`
}

// buffers hold lists of all requests under way, for as long as one look takes.
// Watchers look again and again, and each look needs a list of all requests.
var buffers = sync.Pool{New: func() any { return new([]*flow.Request) }}

// Active returns the requests in flight on this gateway that the filter selects, with the sums over all of them. It
// goes through all requests once and describes only those that are selected. It also has the spans of new requests
// collected for a while (flow.Spans.Enable), because an administrator looks at them.
func (o *Overview) Active(ctx context.Context, f Filter) Active {
	now := o.Now()
	o.Flow.Spans().Enable(now)
	buffer := buffers.Get().(*[]*flow.Request)
	all := o.Flow.Active((*buffer)[:0])
	defer func() {
		clear(all) // so that the pool keeps no request alive
		*buffer = all[:0]
		buffers.Put(buffer)
	}()
	sum := newSum()
	first := window{most: f.limit()}
	out := Active{Data: []Request{}}
	for _, r := range all {
		phase := r.Phase()
		if phase == flow.Ended {
			continue // it ended while we looked
		}
		sum.add(r, phase, now)
		if o.admits(&f, r, phase) {
			out.Matching++
			first.offer(f.rank(r, now))
		}
	}
	out.Load = sum.load(o.Flow.Totals())
	chosen := first.sorted()
	places := o.places(ctx, chosen)
	for _, r := range chosen {
		view := o.describe(r, now)
		if at, queued := places[r.ID]; queued && view.Phase == flow.Queued.String() {
			view.QueuePosition = &at
		}
		out.Data = append(out.Data, view)
	}
	return out
}

// sum adds requests up.
type sum struct {
	counts [flow.Ended]int
	output int64
	rate   float64
	by     map[string]*part
}

// part adds up the requests to one provider.
type part struct {
	inFlight, queued int
	rate             float64
}

// newSum returns an empty sum.
func newSum() *sum { return &sum{by: make(map[string]*part)} }

// add counts a request. Only a request that is replying has a rate.
func (s *sum) add(r *flow.Request, phase flow.Phase, now time.Time) {
	s.counts[phase]++
	s.output += r.Output()
	rate := 0.0
	if phase == flow.Replying {
		rate = r.Rate(now)
	}
	s.rate += rate
	name := r.Provider()
	if name == "" {
		return
	}
	p := s.by[name]
	if p == nil {
		p = new(part)
		s.by[name] = p
	}
	p.rate += rate
	if p.inFlight++; phase == flow.Queued {
		p.queued++
	}
}

// load returns the sum as the API shows it, with the providers by name.
func (s *sum) load(t flow.Totals) Load {
	l := Load{TokensPerSecond: int64(s.rate + 0.5), OutputTokens: t.Output + s.output, Ended: t.Ended, Failed: t.Failed,
		Providers: []ProviderLoad{}, Nodes: []NodeLoad{},
		Phases: Phases{Starting: s.counts[flow.Starting], Queued: s.counts[flow.Queued],
			Waiting:  s.counts[flow.Waiting],
			Replying: s.counts[flow.Replying], Making: s.counts[flow.Making], Resting: s.counts[flow.Resting]}}
	for _, n := range s.counts {
		l.InFlight += n
	}
	for name, p := range s.by {
		l.Providers = append(l.Providers, ProviderLoad{name, p.inFlight, p.queued, int64(p.rate + 0.5)})
	}
	slices.SortFunc(l.Providers, func(a, b ProviderLoad) int { return strings.Compare(a.Provider, b.Provider) })
	return l
}

// window keeps the requests that come first.
type window struct {
	most  int
	items ranked
}

// item is a request with what it is sorted by: a name, which is empty in most orders, and then a number. Lower ones go
// first.
type item struct {
	name    string
	rank    int64
	request *flow.Request
}

// compare orders items. Requests of the same rank are ordered by id, so that a list does not change its order while
// it is read again.
func (a item) compare(b item) int {
	return cmp.Or(strings.Compare(a.name, b.name), cmp.Compare(a.rank, b.rank),
		strings.Compare(a.request.ID, b.request.ID))
}

// offer adds a request if it is among the first w.most. A heap keeps that many, so a list of 100 does not sort all of
// 20,000 requests.
func (w *window) offer(next item) {
	if len(w.items) < w.most {
		heap.Push(&w.items, next)
		return
	}
	if next.compare(w.items[0]) < 0 {
		w.items[0] = next
		heap.Fix(&w.items, 0)
	}
}

// sorted returns the requests in their order and ends the use of the window.
func (w *window) sorted() []*flow.Request {
	slices.SortFunc(w.items, item.compare)
	all := make([]*flow.Request, len(w.items))
	for i := range w.items {
		all[i] = w.items[i].request
	}
	return all
}

// ranked is a heap with the last one on top.
type ranked []item

func (h ranked) Len() int           { return len(h) }
func (h ranked) Less(i, j int) bool { return h[i].compare(h[j]) > 0 }
func (h ranked) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *ranked) Push(x any)        { *h = append(*h, x.(item)) }

func (h *ranked) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// places returns the positions of requests in the queues of their providers' limiters.
// Only the limiters of providers whose requests are shown are asked, and all of them share one time
// limit, since a look must not wait for a limiter that restarts.
func (o *Overview) places(ctx context.Context, chosen []*flow.Request) map[string]int {
	names := make(map[string]bool)
	for _, r := range chosen {
		if r.Phase() == flow.Queued {
			names[r.Provider()] = true
		}
	}
	if len(names) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, limiterTime)
	defer cancel()
	places := make(map[string]int)
	for _, p := range o.Serving() {
		if !names[p.Spec.Name] {
			continue
		}
		waiters, err := p.Limiter.Queue(ctx)
		if err != nil {
			continue // it restarts: positions come with the next look
		}
		for _, w := range waiters {
			places[w.ID] = w.Position
		}
	}
	return places
}

// Recent returns requests that ended lately, the last one first. They come from memory. The log of requests has older
// ones.
func (o *Overview) Recent(f Filter) []Request {
	now := o.Now()
	o.Flow.Spans().Enable(now)
	out := []Request{}
	for _, r := range o.Flow.Recent() {
		if len(out) == f.limit() {
			break
		}
		if !o.admits(&f, r, flow.Ended) {
			continue
		}
		view := o.describe(r, now)
		if f.Failed && view.Result.Status == 0 {
			continue
		}
		out = append(out, view)
	}
	return out
}

// describe returns a request as the API shows it.
func (o *Overview) describe(r *flow.Request, now time.Time) Request {
	v := r.View(now)
	out := Request{ID: v.ID, Node: o.name,
		Started: v.Began.UTC(), Phase: v.Phase.String(), PhaseMs: v.InPhase.Milliseconds(),
		DurationMs: v.Age.Milliseconds(), Shape: v.Shape, Model: v.Model, Provider: v.Provider,
		UpstreamModel: v.Upstream, Key: v.Key, KeyName: o.keyName(v.Key), User: userOf(r), Stream: v.Stream,
		Background: v.Work, Attempts: v.Attempts, InputTokens: v.Input, OutputTokens: v.Output,
		TokensPerSecond: int64(v.Rate() + 0.5), Trace: v.Trace}
	if v.Job {
		out.Progress = &v.Progress
	}
	if v.First > 0 {
		out.FirstMs = new(v.First.Milliseconds())
	}
	if res := v.Result; res != nil {
		out.Result = &Result{Status: res.Status, Code: res.Code, Reason: res.Reason,
			QueuedMs:  res.Queued.Milliseconds(),
			Untouched: res.Untouched, Degraded: res.Degraded, Losses: res.Losses}
	}
	return out
}

// userOf returns the user whose key a request has, or "" if the key has none.
func userOf(r *flow.Request) string {
	user, ok := strings.CutPrefix(r.Owner, "user:")
	if !ok {
		return ""
	}
	return user
}

// keyName returns the name of a key, or "" if names are not known.
func (o *Overview) keyName(id string) string {
	if o.KeyName == nil {
		return ""
	}
	return o.KeyName(id)
}
