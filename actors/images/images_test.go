package images_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"stagedoor/actors/engine"
	"stagedoor/actors/images"
	"stagedoor/actors/kit"
	"stagedoor/actors/kit/kittest"
	"stagedoor/actors/throttle"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/picture"
	shape "stagedoor/providers/shapes/images"
)

// stage is a service whose only provider is a simulator that follows the test's script.
type stage struct {
	*images.Service
	engine *engine.Engine
	t      *testing.T
	system *kit.System
	paint  picture.Simulator
	// provider is the only one.
	provider *engine.Provider
	meter    *meter
	number   int // of images that begin asks for; 0 is 1
}

// meter counts its calls and their arguments.
type meter struct {
	mu         sync.Mutex
	began      int
	ended      []images.Outcome
	unwritable bool
}

func (m *meter) Begin(context.Context, *catalog.Candidate) *dialogue.Error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.began++
	return nil
}

func (m *meter) Settle(_ context.Context, o *images.Outcome) *dialogue.Error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ended = append(m.ended, *o)
	if m.unwritable && o.Err == nil {
		return &dialogue.Error{Status: 503, Code: "storage_unavailable"}
	}
	return nil
}

// play runs body in a bubble of its own.
func play(t *testing.T, body func(t *testing.T, s *stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &stage{t: t, system: kit.NewSystem(kit.Options{Logger: kittest.Logger(t)}), meter: &meter{}}
		limiter, err := throttle.Spawn(s.system, "limiter", throttle.Config{MaxInFlight: 4})
		if err != nil {
			t.Fatal(err)
		}
		provider := &engine.Provider{Spec: &catalog.Provider{Name: "p", Shape: catalog.Sandbox, Retries: 2},
			Limiter: limiter}
		s.provider = provider
		s.engine, err = engine.New(
			engine.Options{
				System:    s.system,
				Now:       time.Now,
				Providers: func(string) *engine.Provider { return provider },
			},
		)
		if err != nil {
			t.Fatal(err)
		}
		s.Service = images.New(images.Options{Engine: s.engine, Now: time.Now,
			Simulate: func(ctx context.Context, r *picture.Request, h http.Header,
				emit func(*picture.Event) error) error {
				return s.paint(ctx, r, h, emit)
			}})
		body(t, s)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := s.system.Stop(ctx); err != nil {
			t.Errorf("stop: %v", err)
		}
		time.Sleep(2 * time.Second) // the actor library's last timer
	})
}

func (s *stage) begin(ctx context.Context, stream bool) *images.Reply {
	spec := s.provider.Spec
	return s.Begin(
		ctx,
		&images.Request{
			ID: "r",
			Picture: &picture.Request{
				Inbound:   shape.Name,
				Operation: picture.Generate,
				N:         max(s.number, 1),
				Inline:    true,
				Stream:    stream,
			},
			Plan:  []catalog.Candidate{{Provider: spec, Model: "m"}},
			Meter: s.meter,
			Keep:  func(context.Context, string, io.Reader) (string, error) { return "", errors.New("not here") },
		},
	)
}

func done(images ...picture.Image) *picture.Event {
	return &picture.Event{Done: &picture.Reply{Images: images}}
}

var one = picture.Image{Data: []byte("x")}

// settled waits for the settlement and returns its outcome.
func (s *stage) settled() images.Outcome {
	synctest.Wait()
	s.meter.mu.Lock()
	defer s.meter.mu.Unlock()
	if len(s.meter.ended) == 0 {
		s.t.Fatal("nothing was settled")
	}
	return s.meter.ended[len(s.meter.ended)-1]
}

func TestARequestEndsOnce(t *testing.T) {
	refused := &dialogue.Error{
		Status:  400,
		Type:    "image_generation_user_error",
		Code:    "moderation_blocked",
		Message: "no",
	}
	for name, tc := range map[string]struct {
		paint  picture.Simulator
		status int // 0: a reply
	}{
		"good": {func(_ context.Context, _ *picture.Request, _ http.Header, emit func(*picture.Event) error) error {
			return emit(done(one))
		}, 0},
		"refused": {func(context.Context, *picture.Request, http.Header, func(*picture.Event) error) error { return refused }, 400},
		"panics":  {func(context.Context, *picture.Request, http.Header, func(*picture.Event) error) error { panic("brush") }, 500},
		"nothing": {func(context.Context, *picture.Request, http.Header, func(*picture.Event) error) error { return nil }, 502},
		"without content": {func(_ context.Context, _ *picture.Request, _ http.Header, emit func(*picture.Event) error) error {
			return emit(done(picture.Image{}))
		}, 502},
		"twice": {func(_ context.Context, _ *picture.Request, _ http.Header, emit func(*picture.Event) error) error {
			return errors.Join(emit(done(one)), emit(done()))
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				s.paint = tc.paint
				reply := s.begin(t.Context(), false)
				out := reply.Outcome()
				if tc.status == 0 && (out.Err != nil || out.Reply == nil || out.Delivered != 1) ||
					tc.status != 0 && (out.Err == nil || out.Err.Status != tc.status || out.Reply != nil) {
					t.Errorf("%+v", out)
				}
				if out.Err != nil && out.Err.NoRetry != (tc.status >= 500) {
					t.Errorf("SDKs are asked not to repeat it: %v", out.Err.NoRetry)
				}
				if outcome := s.settled(); (outcome.Err == nil) != (tc.status == 0) || len(s.meter.ended) != 1 {
					t.Errorf("settled %d times: %+v", len(s.meter.ended), outcome)
				}
				if s.InFlight() != 0 {
					t.Errorf("%d in flight", s.InFlight())
				}
			})
		})
	}
}

// An upstream that sends more images than requested does not make its client pay for
// them, nor the gateway fetch and keep them.
func TestNobodyPaysForImagesThatWereNotAskedFor(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.paint = func(_ context.Context, _ *picture.Request, _ http.Header, emit func(*picture.Event) error) error {
			ev := done(one, one, one)
			ev.Done.Raw = []byte("{}")
			return emit(ev)
		}
		reply := s.begin(t.Context(), false)
		out := reply.Outcome()
		if out.Err != nil || len(out.Reply.Images) != 1 || out.Delivered != 1 || out.Reply.Raw != nil {
			t.Errorf("%+v %+v", out, out.Reply)
		}
		if outcome := s.settled(); outcome.Delivered != 1 {
			t.Errorf("settled for %d images", outcome.Delivered)
		}
	})
}

func TestAPanicEndsItsRequestOnly(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.paint = func(ctx context.Context, r *picture.Request, _ http.Header, emit func(*picture.Event) error) error {
			if r.Stream {
				panic("brush")
			}
			time.Sleep(time.Second)
			return emit(done(one))
		}
		good, bad := s.begin(t.Context(), false), s.begin(t.Context(), true)
		if bad.Outcome().Err == nil || good.Outcome().Err != nil {
			t.Errorf("%+v, %+v", bad.Outcome(), good.Outcome())
		}
	})
}

// A client that does not read its partial images delays only its own
// upstream, and one that leaves is not waited for.
func TestPartialImagesWaitForTheirClient(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		sent := 0
		s.paint = func(ctx context.Context, _ *picture.Request, _ http.Header, emit func(*picture.Event) error) error {
			for i := range 5 {
				if err := emit(&picture.Event{Partial: &picture.Partial{Index: i, Image: one}}); err != nil {
					return err
				}
				sent++
			}
			return emit(done(one))
		}
		ctx, leave := context.WithCancel(t.Context())
		reply := s.begin(ctx, true)
		synctest.Wait()
		if sent != 2 {
			t.Errorf("%d sent without a reader", sent)
		}
		if p := <-reply.Partials(); p.Image.Index != 0 || p.Meta == nil {
			t.Errorf("%+v", p)
		}
		leave()
		if out := reply.Outcome(); out.Err == nil || out.Err.Status != 499 || s.settled().Err == nil {
			t.Errorf("%+v", out)
		}
	})
}

// waiting is a codec that waits for the turn of a mask.
type waiting struct {
	picture.Codec
	waits chan<- struct{}
}

func (waiting) MaxImages(*picture.Request, string) int { return 1 }

func (w waiting) Encode(ctx context.Context, _ *picture.Request, _ string, _ *dialogue.Report) (*picture.Call, error) {
	w.waits <- struct{}{}
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

// A mask may wait for those of other owners.
func TestAClientThatLeavesEndsTheWaitForItsMask(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		waits := make(chan struct{})
		s.Service = images.New(images.Options{Engine: s.engine, Now: time.Now,
			Shapes: []*picture.Shape{{Name: shape.Name, Codec: waiting{waits: waits}}}})
		s.provider.Spec.Shape = shape.Name
		ctx, leave := context.WithCancel(t.Context())
		reply := s.begin(ctx, false)
		<-waits
		leave()
		if out := reply.Outcome(); out.Err == nil || out.Err.Status != 499 || s.settled().Err == nil {
			t.Errorf("%+v", out)
		}
	})
}

func TestWhatIsNotSettledIsNotShown(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.paint = func(_ context.Context, _ *picture.Request, _ http.Header, emit func(*picture.Event) error) error {
			return emit(done(one))
		}
		s.meter.unwritable = true
		reply := s.begin(t.Context(), false)
		if out := reply.Outcome(); out.Err == nil || out.Err.Code != "storage_unavailable" || out.Reply != nil {
			t.Errorf("%+v", out)
		}
	})
}

func TestADrainEndsWhatIsLeft(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.paint = func(ctx context.Context, _ *picture.Request, _ http.Header, _ func(*picture.Event) error) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}
		reply := s.begin(t.Context(), false)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if cut := s.engine.Drain(ctx, time.Second); cut != 1 {
			t.Errorf("cut %d", cut)
		}
		if out := reply.Outcome(); out.Err == nil || out.Err.Code != "shutting_down" {
			t.Errorf("%+v", out)
		}
		late := s.begin(t.Context(), false)
		if out := late.Outcome(); out.Err == nil || out.Err.Code != "shutting_down" {
			t.Errorf("%+v", out)
		}
	})
}

// overloaded is the refusal of an upstream that does not say when to come again, so the limiter lets others through.
var overloaded = &dialogue.Error{Status: 529, Type: dialogue.TypeOverloaded, Code: "overloaded"}

func TestRetriesOfImagesCountAgainstTheSharedBudget(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		var tries atomic.Int32
		s.paint = func(_ context.Context, _ *picture.Request, _ http.Header, emit func(*picture.Event) error) error {
			if tries.Add(1) <= 4 {
				return overloaded
			}
			return emit(done(one))
		}
		failed := 0
		var replies []*images.Reply
		for range 4 {
			replies = append(replies, s.begin(t.Context(), false))
		}
		for _, r := range replies {
			if r.Outcome().Err != nil {
				failed++
			}
		}
		if failed != 1 || tries.Load() != 7 {
			t.Errorf("%d of 4 failed after %d attempts, want one: three may retry at the same time", failed,
				tries.Load())
		}
	})
}

func TestTheDeadlineOfImagesStartsAtTheSecondAttempt(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		var bounded []bool
		s.paint = func(ctx context.Context, _ *picture.Request, _ http.Header, emit func(*picture.Event) error) error {
			_, ok := ctx.Deadline()
			if bounded = append(bounded, ok); len(bounded) == 1 {
				return overloaded
			}
			return emit(done(one))
		}
		if out := s.begin(t.Context(), false).Outcome(); out.Err != nil || !slices.Equal(bounded, []bool{false, true}) {
			t.Errorf("deadlines %v, %v", bounded, out.Err)
		}
	})
}

func TestAWithheldImageIsRefusedWhereTheShapeHasNoWordForIt(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.paint = func(_ context.Context, _ *picture.Request, _ http.Header, emit func(*picture.Event) error) error {
			return emit(done(picture.Image{Unsafe: true}))
		}
		out := s.begin(t.Context(), false).Outcome()
		if out.Err == nil || out.Err.Status != 400 || out.Err.Code != "moderation_blocked" || out.Reply != nil {
			t.Errorf("%+v", out)
		}
	})
}

func TestAWithheldImageIsLeftOutBesideAnother(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.paint = func(_ context.Context, _ *picture.Request, _ http.Header, emit func(*picture.Event) error) error {
			return emit(done(picture.Image{Unsafe: true}, one))
		}
		s.number = 2
		out := s.begin(t.Context(), false).Outcome()
		if out.Err != nil || len(out.Reply.Images) != 1 || !out.Reply.Images[0].HasContent() {
			t.Errorf("%+v", out)
		}
	})
}
