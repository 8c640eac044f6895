package background_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"stagedoor/actors/background"
	"stagedoor/actors/engine"
	"stagedoor/actors/kit"
	"stagedoor/actors/kit/kittest"
	"stagedoor/actors/text"
	"stagedoor/actors/throttle"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/dialogue/dialoguetest"
	"stagedoor/providers/shapes"
	"stagedoor/providers/shapes/registry"
	"stagedoor/providers/shapes/responses"
	"stagedoor/state"
	"stagedoor/state/journal"
	"stagedoor/state/schema"
	"stagedoor/state/share"
	"stagedoor/state/statetest"
	"stagedoor/state/work"
)

// owner owns the responses of these tests.
const owner state.Owner = "key:k"

// slow makes a commit take d.
func slow(d time.Duration) statetest.Hook {
	return func([]journal.Batch) error {
		time.Sleep(d)
		return nil
	}
}

// stage is a registry over a provider that does what body tells it.
type stage struct {
	t        *testing.T
	sys      *kit.System
	journal  *statetest.Faulty
	store    *state.State
	engine   *engine.Engine
	service  *text.Service
	registry *background.Registry
	simulate func(ctx context.Context, say func(string) error) error
	env      *dialogue.Env
	limiter  *throttle.Client
}

// play runs body on a stage whose provider says hello, and checks that nothing is left afterwards.
func play(t *testing.T, body func(t *testing.T, s *stage)) {
	t.Helper()
	kittest.Run(t, func(t *testing.T, sys *kit.System) {
		s := &stage{t: t, sys: sys, journal: statetest.NewFaulty(), env: dialoguetest.NewLiveEnv()}
		s.simulate = func(_ context.Context, say func(string) error) error { return say("Hello") }
		var err error
		if s.store, err = schema.Open(statetest.DecideTwice(s.journal), time.Now); err != nil {
			t.Fatal(err)
		}
		defer s.store.Close()
		s.startRegistry(sys)
		body(t, s)
		kittest.Pass(time.Minute)
		if n := s.engine.InFlight(); n != 0 {
			t.Errorf("%d requests in flight at the end", n)
		}
		if n := s.limiter.InFlight(); n != 0 {
			t.Errorf("%d permits out at the end", n)
		}
	})
}

// startRegistry makes an engine with a simulated provider in sys, and the registry over it.
func (s *stage) startRegistry(sys *kit.System) {
	s.t.Helper()
	var err error
	if s.limiter, err = throttle.Spawn(sys, "p/sim", throttle.Config{}); err != nil {
		s.t.Fatal(err)
	}
	provider := &engine.Provider{Spec: &catalog.Provider{Name: "sim", Shape: catalog.Sandbox}, Limiter: s.limiter}
	providers := func(string) *engine.Provider { return provider }
	if s.engine, err = engine.New(engine.Options{System: sys, Now: time.Now, Providers: providers}); err != nil {
		s.t.Fatal(err)
	}
	s.service = text.New(s.engine, s.env, registry.All, s.reply)
	if s.registry, err = background.NewRegistry(sys, s.service, s.store, time.Now); err != nil {
		s.t.Fatal(err)
	}
}

// reply is a provider's: one text part with what simulate says.
func (s *stage) reply(ctx context.Context, _ *dialogue.Request, _ http.Header, emit func(*dialogue.Event) error) error {
	all := func(events ...dialogue.Event) error {
		for i := range events {
			if err := emit(&events[i]); err != nil {
				return err
			}
		}
		return nil
	}
	if err := all(dialogue.Event{Kind: dialogue.EventStart, ID: "x", Model: "m"},
		dialogue.Event{Kind: dialogue.EventOpen, PartKind: dialogue.TextPart}); err != nil {
		return err
	}
	if err := s.simulate(ctx, func(text string) error {
		return emit(&dialogue.Event{Kind: dialogue.EventDelta,
			Text: text})
	}); err != nil {
		return err
	}
	return all(dialogue.Event{Kind: dialogue.EventClose}, dialogue.Event{Kind: dialogue.EventFinish},
		dialogue.Event{Kind: dialogue.EventEnd})
}

// job is a response to be run.
func (s *stage) job() background.Job {
	s.t.Helper()
	const body = `{"model":"m","input":"hi","background":true,"stream":true}`
	in := shapes.Params{Header: http.Header{}}
	inbound := registry.ByName()[dialoguetest.Responses]
	head, err := inbound.Check([]byte(body), in)
	if err != nil {
		s.t.Fatal(err)
	}
	id := "resp_" + s.env.ID()
	return background.Job{
		ID:       id,
		Owner:    owner,
		Streamed: true,
		Queued:   responses.Queued([]byte(body), id, time.Now()),
		Input:    []byte(`[]`),
		Request: &text.Request{
			ID:        "r",
			Inbound:   inbound,
			Mode:      shapes.Stream,
			In:        in,
			Head:      head,
			Body:      []byte(body),
			ReplyID:   id,
			Translate: true,
			Plan: []catalog.Candidate{
				{Provider: &catalog.Provider{Name: "sim", Shape: catalog.Sandbox}, Model: "m"},
			},
			Key:   "k",
			Owner: "key:k",
			Class: throttle.Background,
		},
	}
}

// start starts a job and returns its id.
func (s *stage) start() string {
	s.t.Helper()
	job := s.job()
	if err := s.registry.Start(context.Background(), job); err != nil {
		s.t.Fatalf("start: %v", err)
	}
	return job.ID
}

// stored is the record of a response.
func (s *stage) stored(id string) work.StoredResponse {
	s.t.Helper()
	r, err := work.ReadResponse(context.Background(), s.store, id, owner)
	if err != nil {
		s.t.Fatalf("read %s: %v", id, err)
	}
	if inBody := responses.Status(r.Body); inBody != r.Status {
		s.t.Errorf("the header says %s, the body %s", r.Status, inBody)
	}
	return r
}

// log is the stored event log.
func (s *stage) log(id string) string {
	s.t.Helper()
	var log bytes.Buffer
	if err := work.ReadEvents(context.Background(), s.store, id, owner, -1, func(b []byte) error {
		log.Write(b)
		return nil
	}); err != nil {
		s.t.Fatalf("read the events of %s: %v", id, err)
	}
	return log.String()
}

// watch follows a response and sends the whole of what it got.
func (s *stage) watch(id string, after int64) <-chan string {
	out := make(chan string, 1)
	go func() {
		var got strings.Builder
		live, err := s.registry.Watch(context.Background(), id, owner, after,
			func(ev background.Event) error { got.Write(ev.Raw); return nil })
		if !live || err != nil {
			s.t.Errorf("watch: live %v, %v", live, err)
		}
		out <- got.String()
	}()
	return out
}

// purchases is a meter that counts what is held and settled.
type purchases struct {
	refusal       *dialogue.Error
	held, settled int
}

func (p *purchases) Begin(context.Context, *catalog.Candidate, int) (bool, *dialogue.Error) {
	if p.refusal == nil {
		p.held++
	}
	return false, p.refusal
}

func (p *purchases) Progress(*text.Outcome) bool { return false }

func (p *purchases) Settle(context.Context, *text.Outcome) *dialogue.Error {
	p.settled++
	return nil
}

func (p *purchases) Another() text.Meter { return p }

// TestMoneyIsHeldBeforeAResponseIsAccepted: one without money is refused and not stored, and what is held for one that
// cannot be stored is given back.
func TestMoneyIsHeldBeforeAResponseIsAccepted(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		poor := s.job()
		poor.Request.Meter = &purchases{refusal: dialogue.InsufficientQuota("no money", nil)}
		var refused *dialogue.Error
		err := s.registry.Start(t.Context(), poor)
		if !errors.As(err, &refused) || refused.Code != "insufficient_quota" {
			t.Errorf("without money: %v", err)
		}
		if _, err := work.FindResponse(s.store.View(), poor.ID, owner); !errors.Is(err, state.ErrNotFound) {
			t.Errorf("the refused response is stored: %v", err)
		}
		if n := s.registry.Slots().Used(); n != 0 {
			t.Errorf("%d places are taken", n)
		}
		stored, meter := s.start(), &purchases{}
		again := s.job()
		again.ID, again.Request.Meter = stored, meter
		if err := s.registry.Start(t.Context(), again); !errors.Is(err, state.ErrExists) {
			t.Errorf("a second response with the same id: %v", err)
		}
		if *meter != (purchases{held: 1, settled: 1}) {
			t.Errorf("of the one that cannot be stored: %+v", *meter)
		}
	})
}

// terminals counts the events that end a stream.
func terminals(stream string) int {
	n := 0
	for _, name := range []string{"response.completed", "response.incomplete", "response.failed", "error"} {
		n += strings.Count(stream, "event: "+name+"\n")
	}
	return n
}

// sequence is the numbers of the events of a stream.
func sequence(stream string) (numbers []int64) {
	for line := range strings.SplitSeq(stream, "\n") {
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			numbers = append(numbers, gjson.Get(data, "sequence_number").Int())
		}
	}
	return numbers
}

func TestAResponseRunsAndIsKept(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.simulate = func(_ context.Context, say func(string) error) error {
			time.Sleep(time.Second)
			if err := say("Hel"); err != nil {
				return err
			}
			time.Sleep(time.Second)
			return say("lo")
		}
		id := s.start()
		if got := s.stored(id); got.Status != "queued" || !got.Background || !got.Streamed {
			t.Errorf("the record is %+v when the id is returned", got.ResponseHeader)
		}
		if got := s.registry.Status(id, owner); got != "queued" {
			t.Errorf("status %q", got)
		}
		watched := s.watch(id, -1)
		kittest.Pass(1500 * time.Millisecond)
		if got := s.registry.Status(id, owner); got != "in_progress" {
			t.Errorf("status %q", got)
		}
		stream := <-watched
		got := s.stored(id)
		if got.Status != "completed" || gjson.GetBytes(got.Body, "id").Str != id ||
			gjson.GetBytes(got.Body, "output.0.content.0.text").Str != "Hello" {
			t.Errorf("kept %s", got.Body)
		}
		if log := s.log(id); log != stream || terminals(stream) != 1 {
			t.Errorf("watched %q, kept %q", stream, log)
		}
		for i, n := range sequence(stream) {
			if n != int64(i) {
				t.Fatalf("the numbers are %v", sequence(stream))
			}
		}
		kittest.Quiesce()
		if got := s.registry.Status(id, owner); got != "" {
			t.Errorf("a response that has ended is %s", got)
		}
		if live, err := s.registry.Watch(context.Background(), id, owner, -1, nil); live || err != nil {
			t.Errorf("a response that has ended can be watched: %v", err)
		}
	})
}

// TestTheEndOfAResponseIsWrittenWhenTheStoreIsThereAgain: no write reaches it for a while.
func TestTheEndOfAResponseIsWrittenWhenTheStoreIsThereAgain(t *testing.T) {
	for _, away := range []error{journal.ErrUnreachable, journal.ErrReadOnly} {
		play(t, func(t *testing.T, s *stage) {
			id := s.start()
			s.journal.Refuse(away)
			kittest.Pass(10 * time.Minute)
			if got := s.stored(id); got.Finished() {
				t.Errorf("%v: the record is %+v", away, got.ResponseHeader)
			}
			s.journal.Refuse(nil)
			kittest.Pass(time.Minute)
			if got := s.stored(id); got.Status != "completed" {
				t.Errorf("%v: the record is %+v at the end", away, got.ResponseHeader)
			}
		})
	}
}

// TestTheEndOfAResponseIsNotAwaitedWhenTheProcessStops, because the next one ends it.
func TestTheEndOfAResponseIsNotAwaitedWhenTheProcessStops(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.start()
		s.journal.Refuse(journal.ErrUnreachable)
		kittest.Pass(time.Minute)
		began := time.Now()
		if err := s.sys.Stop(t.Context()); err != nil || time.Since(began) > time.Second {
			t.Errorf("the stop took %v: %v", time.Since(began), err)
		}
	})
}

func TestTheIdIsSentOnlyOnceItIsDurable(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.journal.Before(slow(time.Second))
		start := time.Now()
		s.start()
		if took := time.Since(start); took < time.Second {
			t.Errorf("the id came after %s", took)
		}
		s.journal.Refuse(errors.New("disk full"))
		if err := s.registry.Start(context.Background(), s.job()); err == nil {
			t.Error("the id came without a record")
		}
	})
}

// A response continues whether or not its client waits for the id.
func TestAClientThatLeavesChangesNothing(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.journal.Before(slow(time.Second))
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		job := s.job()
		if err := s.registry.Start(ctx, job); err != nil {
			t.Errorf("start: %v", err)
		}
		kittest.Pass(10 * time.Second)
		if got := s.stored(job.ID).Status; got != "completed" {
			t.Errorf("ended as %s", got)
		}
	})
}

// dribble says a hundred pieces, ten a second.
func dribble(ctx context.Context, say func(string) error) error {
	for i := range 100 {
		if err := say(fmt.Sprintf("<%d>", i)); err != nil {
			return err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func TestAWatcherCanResumeFromAnyEvent(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.simulate = dribble
		id := s.start()
		all := s.watch(id, -1)
		kittest.Pass(3 * time.Second)
		resumed := make(map[int64]<-chan string)
		for after := int64(-1); after < 140; after += 7 { // some behind, some ahead of it
			resumed[after] = s.watch(id, after)
		}
		whole := <-all
		for after, got := range resumed {
			got := <-got
			if !strings.HasSuffix(whole, got) {
				t.Fatalf("after %d it is another stream", after)
			}
			numbers := sequence(got)
			last := int64(len(sequence(whole)) - 1)
			if after >= last && len(numbers) != 0 || after < last && (len(numbers) == 0 || numbers[0] != after+1) {
				t.Errorf("after %d came %v", after, numbers)
			}
		}
	})
}

func TestAWatcherMayLeave(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.simulate = dribble
		id := s.start()
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		if live, err := s.registry.Watch(ctx, id, owner, -1, func(background.Event) error { return nil }); !live ||
			!errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("live %v, %v", live, err)
		}
		gone := errors.New("gone")
		live, err := s.registry.Watch(context.Background(), id, owner, -1, func(background.Event) error { return gone })
		if !live || !errors.Is(err, gone) {
			t.Errorf("live %v, %v", live, err)
		}
		kittest.Pass(time.Minute)
		if got := s.stored(id).Status; got != "completed" {
			t.Errorf("its watchers left, and it ended as %s", got)
		}
	})
}

func TestAResponseIsFoundOnlyByItsOwner(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.simulate = dribble
		id := s.start()
		kittest.Pass(time.Second)
		if s.registry.Status(id, "key:other") != "" || s.registry.Cancel(context.Background(), id, "key:other") {
			t.Error("the response of another owner exists")
		}
		if live, _ := s.registry.Watch(context.Background(), id, "key:other", -1, nil); live {
			t.Error("the response of another owner can be watched")
		}
	})
}

// If a cancellation and the last event race, the first one counts, and record and stream agree on
// which it was.
func TestCancelAgainstTheEnd(t *testing.T) {
	for at := time.Duration(0); at <= 3*time.Second; at += 250 * time.Millisecond {
		t.Run(at.String(), func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				s.journal.Before(slow(300 * time.Millisecond))
				s.simulate = func(ctx context.Context, say func(string) error) error {
					if err := say("Hello"); err != nil {
						return err
					}
					select {
					case <-time.After(time.Second):
					case <-ctx.Done():
						return ctx.Err()
					}
					return nil
				}
				id := s.start()
				watched := s.watch(id, -1)
				kittest.Pass(at)
				under := s.registry.Status(id, owner) != ""
				if got := s.registry.Cancel(context.Background(), id, owner); got != under {
					t.Errorf("cancelled: %v, in flight: %v", got, under)
				}
				got := s.stored(id) // durable when Cancel returns
				stream := <-watched
				if terminals(stream) != 1 {
					t.Errorf("%d terminal events in %q", terminals(stream), stream)
				}
				completed := strings.Contains(stream, "event: response.completed\n")
				want := "cancelled"
				if completed {
					want = "completed"
				}
				if got.Status != want || !strings.Contains(stream, `"status":"`+want+`"`) {
					t.Errorf("kept %s, streamed %q", got.Status, stream)
				}
				if at < time.Second != (want == "cancelled") {
					t.Errorf("cancelled after %s, it ended as %s", at, want)
				}
				if log := s.log(id); log != stream {
					t.Errorf("watched %q, kept %q", stream, log)
				}
			})
		})
	}
}

func TestAFailureIsTheLastEvent(t *testing.T) {
	for name, simulate := range map[string]func(context.Context, func(string) error) error{
		"before any piece": func(context.Context, func(string) error) error { return errors.New("cut") },
		"after a piece": func(_ context.Context, say func(string) error) error {
			return errors.Join(say("x"),
				errors.New("cut"))
		},
		"panic at once": func(context.Context, func(string) error) error { panic("x") },
		"panic in the middle": func(_ context.Context, say func(string) error) error {
			_ = say(strings.Repeat("x", 1000))
			panic("x")
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				s.simulate = simulate
				id := s.start()
				kittest.Pass(time.Minute)
				got := s.stored(id)
				log := s.log(id)
				if got.Status != "failed" || gjson.GetBytes(got.Body, "error.message").Str == "" ||
					terminals(log) != 1 ||
					!strings.Contains(log, "event: response.failed\n") {
					t.Errorf("kept %s and %q", got.Body, log)
				}
			})
		})
	}
}

func TestAResponseThatGrowsWithoutEndIsEnded(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.simulate = func(_ context.Context, say func(string) error) error {
			for {
				if err := say(strings.Repeat("x", 1<<20)); err != nil {
					return err
				}
				time.Sleep(time.Millisecond)
			}
		}
		id := s.start()
		kittest.Pass(time.Minute)
		got := s.stored(id)
		if got.Status != "failed" || got.EventSize > 48<<20 || terminals(s.log(id)) != 1 {
			t.Errorf("kept %s and %d bytes of events", got.Status, got.EventSize)
		}
		if message := gjson.GetBytes(got.Body, "error.message").Str; !strings.Contains(message, "larger") {
			t.Errorf("it says %q", message)
		}
	})
}

func TestResponsesThatCannotStartAgainFail(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		job := s.job()
		for i, status := range []string{"queued", "in_progress", "completed"} {
			body := bytes.Replace(job.Queued, []byte(`"queued"`), []byte(`"`+status+`"`), 1)
			err := work.PutResponse(t.Context(), s.store, work.StoredResponse{Body: body,
				ResponseHeader: work.ResponseHeader{
					ID:         fmt.Sprint("resp_", i),
					Owner:      owner,
					Status:     status,
					Background: true,
					Streamed:   true,
				}})
			if err != nil {
				t.Fatal(err)
			}
		}
		if resumed, failed, err := s.registry.Resume(context.Background(), anyNode, nil); err != nil || resumed != 0 ||
			failed != 2 {
			t.Fatalf("%d resumed, %d failed, %v", resumed, failed, err)
		}
		for i, want := range []string{"failed", "failed", "completed"} {
			id := fmt.Sprint("resp_", i)
			if got := s.stored(id); got.Status != want {
				t.Errorf("%s is %s, want %s", id, got.Status, want)
			}
			if want == "failed" {
				// A client that has read some events resumes after them.
				n := 0
				err := work.ReadEvents(context.Background(), s.store,
					id,
					owner,
					1<<20,
					func(b []byte) error { n += terminals(string(b)); return nil },
				)
				if err != nil || n != 1 {
					t.Errorf("%s: %d terminal events to resume at: %v", id, n, err)
				}
			}
		}
	})
}

func TestADrainCutsAResponseAndKeepsThat(t *testing.T) {
	for name, stop := range map[string]func(s *stage){
		"drain": func(s *stage) {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			s.engine.Drain(ctx, 5*time.Second)
		},
		"stop": func(s *stage) {
			if err := s.sys.Stop(context.Background()); err != nil {
				s.t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				s.simulate = dribble
				id := s.start()
				watched := s.watch(id, -1)
				kittest.Pass(time.Second)
				stop(s)
				kittest.Pass(time.Second)
				got := s.stored(id)
				stream := <-watched
				if got.Status != "failed" || terminals(stream) != 1 || !strings.Contains(stream, "shutting down") {
					t.Errorf("kept %s, streamed %q", got.Status, stream)
				}
				err := s.registry.Start(context.Background(), s.job())
				if name == "stop" && err == nil {
					t.Error("a response was started after the end")
				}
				kittest.Pass(time.Second)
				if left := work.ListResponses(s.store.View(), work.ResponseFilter{Unfinished: true}); len(left) != 0 {
					t.Errorf("%d records are left unfinished", len(left))
				}
			})
		})
	}
}

// One owner may have half of the responses in flight, and others find room.
func TestOneOwnerCannotTakeAllBackgroundResponses(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.simulate = dribble
		start := func(of state.Owner) error {
			job := s.job()
			job.Owner, job.Streamed = of, false
			return s.registry.Start(context.Background(), job)
		}
		fill := func(of state.Owner) (started int) {
			for {
				err := start(of)
				var refused *share.Refused
				switch {
				case err == nil:
					started++
					continue
				case !errors.As(err, &refused) || !refused.Share || refused.Pool != share.Background:
					t.Fatalf("refused with %v", err)
				}
				return started
			}
		}
		if n := fill(owner); n != 256 {
			t.Errorf("one owner started %d of 512", n)
		}
		if n := fill("key:other"); n != 128 {
			t.Errorf("a second owner started %d", n)
		}
		kittest.Pass(time.Minute)
		if used := s.registry.Slots().Used(); used != 0 {
			t.Errorf("%d slots are taken when all have ended", used)
		}
		s.start() // there is room again
	})
}
