package flow_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	api "go.opentelemetry.io/otel/trace"

	"stagedoor/actors/flow"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
)

// clock is a time that the test moves.
type clock struct{ at time.Time }

func (c *clock) now() time.Time        { return c.at }
func (c *clock) pass(ms time.Duration) { c.at = c.at.Add(ms * time.Millisecond) }

func TestARequestHasMarksOfItsPhases(t *testing.T) {
	c := &clock{time.Unix(1000, 0)}
	r := flow.New(c.now)
	_, cancel := context.WithCancelCause(t.Context())
	q := r.Begin(t.Context(), flow.About{ID: "a", Model: "m", Stream: true}, cancel)
	first := &catalog.Candidate{Provider: &catalog.Provider{Name: "one"}, Model: "m-1"}
	second := &catalog.Candidate{Provider: &catalog.Provider{Name: "two"}, Model: "m-2"}
	c.pass(1)
	q.Attempt(first)
	q.Enter(flow.Queued)
	c.pass(10)
	q.Enter(flow.Waiting)
	c.pass(20)
	q.Enter(flow.Resting)
	c.pass(30)
	q.Attempt(second)
	q.Enter(flow.Queued)
	q.Enter(flow.Waiting)
	q.Progress(0) // nothing yet
	c.pass(40)
	q.Progress(3)
	c.pass(1000)
	q.Progress(50)
	v := q.View(c.at)
	if v.Phase != flow.Replying || v.Provider != "two" || v.Upstream != "m-2" || v.Attempts != 2 || v.Output != 50 ||
		v.First != 101*time.Millisecond ||
		v.Age != 1101*time.Millisecond || v.InPhase != time.Second || v.Rate() != 50 ||
		q.Rate(c.at) != 50 ||
		v.Result != nil {
		t.Errorf("under way: %+v, rate %v", v, v.Rate())
	}
	result := flow.Result{Usage: dialogue.Usage{InputTotal: 7, OutputTotal: 48}}
	result.Fail(&dialogue.Error{Status: 502, Code: "upstream_reset"})
	q.End(result)
	c.pass(5000)
	v = q.View(c.at)
	if v.Phase != flow.Ended || v.Age != 1101*time.Millisecond || v.Input != 7 || v.Output != 48 ||
		v.Result.Code != "upstream_reset" {
		t.Errorf("at the end: %+v", v)
	}
	var marks []string
	for _, m := range q.Marks() {
		marks = append(marks, fmt.Sprintf("%s/%d@%d", m.Phase, m.Attempt, m.After.Milliseconds()))
	}
	if got := strings.Join(marks, " "); got != "starting/0@0 queued/1@1 waiting/1@11 resting/1@31 queued/2@61 "+
		"waiting/2@61 replying/2@101 ended/2@1101" {
		t.Error(got)
	}
}

func TestEndlessRetriesKeepTheFirstPhasesAndTheLastOne(t *testing.T) {
	r := flow.New(time.Now)
	q := r.Begin(t.Context(), flow.About{ID: "a"}, func(error) {})
	for range 1000 {
		q.Attempt(&catalog.Candidate{Provider: &catalog.Provider{}})
		q.Enter(flow.Waiting)
		q.Enter(flow.Resting)
	}
	if q.Phase() != flow.Resting {
		t.Errorf("it is %s", q.Phase())
	}
	q.End(flow.Result{})
	if m := q.Marks(); len(m) > 32 || m[0].Phase != flow.Starting || m[len(m)-1].Phase != flow.Ended ||
		q.Phase() != flow.Ended {
		t.Errorf("marks %v", m)
	}
}

func TestCancelReachesTheRequestOnce(t *testing.T) {
	r := flow.New(time.Now)
	ctx, cancel := context.WithCancelCause(t.Context())
	q := r.Begin(ctx, flow.About{ID: "a"}, cancel)
	if err := r.Cancel("b"); !errors.Is(err, flow.ErrUnknown) {
		t.Errorf("an unknown one: %v", err)
	}
	if err := r.Cancel("a"); err != nil || !errors.Is(context.Cause(ctx), flow.Cancelled) {
		t.Errorf("cancel: %v, %v", err, context.Cause(ctx))
	}
	q.End(flow.Result{})
	if err := r.Cancel("a"); !errors.Is(err, flow.ErrOver) {
		t.Errorf("one that has ended: %v", err)
	}
}

func TestARequestWhoseClientLeftIsNotCountedAsFailed(t *testing.T) {
	r := flow.New(time.Now)
	for _, status := range []int{0, dialogue.StatusClientClosed, 502} {
		r.Begin(t.Context(), flow.About{ID: fmt.Sprint(status)}, func(error) {}).End(flow.Result{Status: status})
	}
	if got := r.Totals(); got.Ended != 3 || got.Failed != 1 {
		t.Errorf("got %+v, want 3 that ended and 1 that failed", got)
	}
}

// Failures are rare and wanted: a flood of good requests must not push them out.
func TestFailuresOutliveAFlood(t *testing.T) {
	r := flow.New(time.Now)
	end := func(id string, status int) {
		r.Begin(t.Context(), flow.About{ID: id}, func(error) {}).End(flow.Result{Status: status})
	}
	end("bad", 502)
	end("good", 0)
	for i := range 5000 {
		end(fmt.Sprint(i), 0)
	}
	if r.Find("bad") == nil || r.Find("good") != nil || r.Find("4999") == nil {
		t.Error("the wrong ones are remembered")
	}
	all := r.Recent()
	if len(all) > 2000 || all[len(all)-1].ID != "bad" || all[0].ID != "4999" {
		t.Errorf("%d are remembered, from %s to %s", len(all), all[0].ID, all[len(all)-1].ID)
	}
	if got := r.Totals(); got.Ended != 5002 || got.Failed != 1 {
		t.Errorf("totals %+v", got)
	}
}

// Receipts of requests that cost nothing come from here, so one owner must not push out
// those of others.
func TestOneOwnerCannotPushOutEndedRequestsOfOthers(t *testing.T) {
	r := flow.New(time.Now)
	end := func(owner, id string, status int) {
		r.Begin(t.Context(), flow.About{ID: id, Owner: owner}, func(error) {}).End(flow.Result{Status: status})
	}
	for i := range 100 {
		end("user:small", fmt.Sprint("small-good-", i), 0)
		end("user:small", fmt.Sprint("small-bad-", i), 502)
	}
	for i := range 5000 {
		end("user:large", fmt.Sprint("large-good-", i), 0)
		end("user:large", fmt.Sprint("large-bad-", i), 502)
	}
	for i := range 100 {
		for _, kind := range []string{"good", "bad"} {
			if id := fmt.Sprint("small-", kind, "-", i); r.Find(id) == nil {
				t.Errorf("%s is gone", id)
			}
		}
	}
	if r.Find("large-good-4999") == nil || r.Find("large-bad-4999") == nil || r.Find("large-good-0") != nil {
		t.Error("the wrong requests of the large owner are remembered")
	}
}

func TestANilRegistryKeepsNothing(t *testing.T) {
	var r *flow.Registry
	q := r.Begin(t.Context(), flow.About{ID: "a"}, nil)
	q.Attempt(nil)
	q.Enter(flow.Queued)
	q.Progress(1)
	q.End(flow.Result{})
	if q != nil || r.Find("a") != nil || r.Active(nil) != nil || r.Recent() != nil || r.Totals() != (flow.Totals{}) {
		t.Error("a registry that is none remembers something")
	}
}

func TestRequestsOnManyGoroutinesAreCounted(t *testing.T) {
	r := flow.New(time.Now)
	var wg sync.WaitGroup
	stop := make(chan struct{})
	looker := sync.WaitGroup{}
	looker.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			for _, q := range r.Active(nil) {
				v := q.View(time.Now())
				if v.Result != nil && v.Phase != flow.Ended {
					t.Errorf("%+v", v)
				}
			}
			for _, q := range r.Recent() {
				if q.View(time.Now()).Result == nil {
					t.Error("one that is remembered has no result")
				}
			}
		}
	})
	for i := range 8 {
		wg.Go(func() {
			for n := range 100 {
				id := fmt.Sprint(i, "-", n)
				q := r.Begin(t.Context(), flow.About{ID: id}, func(error) {})
				q.Enter(flow.Waiting)
				q.Progress(int64(n))
				if n%7 == 0 {
					_ = r.Cancel(id)
				}
				q.End(flow.Result{Status: n % 2})
			}
		})
	}
	wg.Wait()
	close(stop)
	looker.Wait()
	if left := r.Active(nil); len(left) != 0 {
		t.Errorf("%d are left", len(left))
	}
}

func TestSpansAreKeptAsLongAsTheirRequest(t *testing.T) {
	r := flow.New(time.Now)
	provider := sdk.NewTracerProvider(sdk.WithSpanProcessor(r.Spans()))
	tracer := provider.Tracer("test")
	work := func(id string, status int) *flow.Request {
		ctx, root := tracer.Start(t.Context(), "POST /x", api.WithSpanKind(api.SpanKindServer))
		_, auth := tracer.Start(ctx, "auth")
		auth.End()
		q := r.Begin(ctx, flow.About{ID: id}, func(error) {})
		_, call := tracer.Start(ctx, "chat m", api.WithSpanKind(api.SpanKindClient))
		call.AddEvent("gen_ai.first_token")
		call.End()
		q.End(flow.Result{Status: status})
		_, late := tracer.Start(ctx, "ledger.settle")
		root.End()
		late.End() // after its parent, as settlements may
		return q
	}
	q := work("a", 502)
	spans := q.Spans()
	if len(spans) != 4 || spans[0].Name != "auth" || spans[2].Name != "POST /x" || spans[2].Parent != "" ||
		spans[0].Parent != spans[2].ID ||
		spans[1].Kind != "client" ||
		len(spans[1].Events) != 1 ||
		spans[3].Name != "ledger.settle" {
		t.Fatalf("spans %+v", spans)
	}
	for i := range 3000 { // requests that are for no model, and more than are remembered
		ctx, root := tracer.Start(t.Context(), "GET /x", api.WithSpanKind(api.SpanKindServer))
		_, auth := tracer.Start(ctx, "auth")
		auth.End()
		root.End()
		work(fmt.Sprint(i), 0)
	}
	if got := r.Spans().Kept(); got > 1600 {
		t.Errorf("%d traces are kept", got)
	}
	if len(q.Spans()) != 4 || len(r.Find("2999").Spans()) != 4 {
		t.Error("spans of a request that is remembered are gone")
	}
}

func TestSpansAreWantedForAWhileAfterALook(t *testing.T) {
	s := flow.New(time.Now).Spans()
	now := time.Unix(1000, 0)
	if s.Enabled(now) {
		t.Error("wanted without a reader")
	}
	s.Enable(now)
	if !s.Enabled(now.Add(time.Minute)) || s.Enabled(now.Add(time.Hour)) {
		t.Error("a look is remembered for too short or too long")
	}
}

// BenchmarkRequest is all that one request costs, with a hundred pieces of reply.
func BenchmarkRequest(b *testing.B) {
	r := flow.New(time.Now)
	c := &catalog.Candidate{Provider: &catalog.Provider{Name: "one"}}
	b.ReportAllocs()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			q := r.Begin(b.Context(), flow.About{ID: "a", Model: "m", Stream: true}, func(error) {})
			q.Attempt(c)
			q.Enter(flow.Queued)
			q.Enter(flow.Waiting)
			for n := range int64(100) {
				q.Progress(n + 1)
			}
			q.End(flow.Result{})
		}
	})
}

// BenchmarkPiece measures the cost of each piece of a reply.
func BenchmarkPiece(b *testing.B) {
	q := flow.New(time.Now).Begin(b.Context(), flow.About{ID: "a"}, func(error) {})
	for n := range int64(b.N) {
		q.Progress(n)
	}
}
