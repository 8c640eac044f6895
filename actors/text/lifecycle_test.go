package text_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"stagedoor/actors/kit/kittest"
	"stagedoor/actors/text"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/dialogue/dialoguetest"
	"stagedoor/providers/shapes"
	"stagedoor/providers/shapes/registry"
)

// brittle is a shape whose emitter and tap panic at an event.
type brittle struct {
	shapes.Inbound
	shapes.Passthrough
	at  int
	all bool // and at every event after it
}

type brittleEmitter struct {
	shapes.Emitter
	b *brittle
	n int
}

// breaking returns a copy of a shape that is brittle.
func breaking(s *shapes.Shape, at int, all bool) *shapes.Shape {
	broken, b := *s, &brittle{s.Inbound, s.Passthrough, at, all}
	broken.Inbound, broken.Passthrough = b, b
	return &broken
}

func (b *brittle) NewEmitter(r *dialogue.Request, m shapes.Mode, e *dialogue.Env) shapes.Emitter {
	return &brittleEmitter{Emitter: b.Inbound.NewEmitter(r, m, e), b: b}
}

func (e *brittleEmitter) Emit(dst []byte, ev *dialogue.Event) []byte {
	if e.n++; e.n == e.b.at || e.b.all && e.n > e.b.at {
		panic("brittle")
	}
	return e.Emitter.Emit(dst, ev)
}

type brittleTap struct {
	shapes.Watcher
	b *brittle
	n int
}

func (b *brittle) NewTap(o shapes.TapOptions, e *dialogue.Env) shapes.Tap {
	tap := b.Passthrough.NewTap(o, e)
	tap.Watcher = &brittleTap{Watcher: tap.Watcher, b: b}
	return tap
}

func (e *brittleTap) Event(name string, data []byte) ([]byte, shapes.Verdict, bool) {
	if e.n++; e.n == e.b.at {
		panic("brittle")
	}
	return e.Watcher.Event(name, data)
}

// trickle is a good reply whose pieces come one by one.
func trickle() script {
	return stream(chatRole, time.Second, chatText("a"), time.Second, chatText("b"), time.Second, chatText("c"),
		time.Second, chatStop+chatUsage+chatDone)
}

func TestAPanicInAnAttemptEndsItsRequestOnly(t *testing.T) {
	for lane, shape := range map[string]dialogue.Shape{"untouched": dialoguetest.Chat, "translated": dialoguetest.Messages} {
		for at := 1; at <= 5; at++ {
			for _, all := range []bool{false, true} {
				t.Run(fmt.Sprint(lane, " event ", at, " ever after: ", all), func(t *testing.T) {
					play(t, func(t *testing.T, s *stage) {
						s.upstream("a", dialoguetest.Chat, trickle())
						ask, terminal := chatAskStream, `"error":{`
						if shape == dialoguetest.Messages {
							ask, terminal = messagesAskStream, "event: error\n"
						}
						o := s.request(shape, ask)
						o.Inbound = breaking(o.Inbound, at, all)
						other := s.service.Begin(context.Background(), s.request(dialoguetest.Chat, chatAskStream))
						got := s.ask(o)
						switch {
						case got.status == 200 && strings.Count(got.text, terminal) != 1:
							t.Errorf("not one terminal event in %q", got.text)
						case got.status != 200 && got.status != 500:
							t.Errorf("got %d", got.status)
						}
						if got.Err == nil || got.Err.Code != "internal_error" || strings.Contains(fmt.Sprint(got.Err.Message, got.Err.Cause), "brittle") {
							t.Errorf("got %v", got.Err)
						}
						if got := s.read(other); got.Err != nil || !strings.HasSuffix(got.text, chatDone) {
							t.Errorf("another request ended with %v", got.Err)
						}
					})
				})
			}
		}
	}
}

func TestAPanicInTheActorEndsItsRequestOnly(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.upstream("a", dialoguetest.Chat, func(c *call) (*http.Response, error) {
			time.Sleep(time.Second)
			return document(500, chatRefuse)(c)
		})
		reply := s.service.Begin(context.Background(), s.request(dialoguetest.Chat, chatAskStream))
		kittest.Quiesce()
		s.breakLookup() // the decision after the failure needs it
		if got := s.read(reply); got.status != 500 || got.Err.Code != "internal_error" {
			t.Errorf("got %d %v", got.status, got.Err)
		}
	})
}

// Whenever the client leaves, the request ends and gives back what it held.
func TestAClientMayLeaveAtAnyMoment(t *testing.T) {
	step := 400 * time.Millisecond
	if testing.Short() {
		step *= 3
	}
	for at := time.Duration(0); at < 5600*time.Millisecond; at += step {
		for name, scripts := range map[string][]script{
			"streaming":     {trickle()},
			"between tries": {withHeader(document(429, chatRefuse), "Retry-After", "4"), trickle()},
			"silence":       {stream(stall)},
		} {
			for _, way := range []string{"abandon", "context", "deaf"} {
				t.Run(fmt.Sprint(name, " ", at, " ", way), func(t *testing.T) {
					play(t, func(t *testing.T, s *stage) {
						p := s.upstream("a", dialoguetest.Chat, scripts...)
						ctx, cancel := context.WithCancel(context.Background())
						defer cancel()
						reply := s.service.Begin(ctx, s.request(dialoguetest.Chat, chatAskStream))
						ended := make(chan received, 1)
						if way != "deaf" {
							go func() { ended <- s.read(reply) }()
						}
						kittest.Pass(at)
						if way == "abandon" {
							reply.Abandon()
						} else {
							cancel()
						}
						kittest.Pass(100 * time.Millisecond)
						if n := p.Limiter.InFlight(); n != 0 {
							t.Errorf("the permit is still out")
						}
						if way == "deaf" {
							return // the reply is never read, and still nothing is left
						}
						select {
						case got := <-ended:
							if got.Err != nil && got.Err.Status != 499 {
								t.Errorf("ended with %v", got.Err)
							}
							if strings.Contains(got.text, `"error"`) {
								t.Errorf("sent an error to a client that has left: %q", got.text)
							}
						default:
							t.Error("the reply has not ended")
						}
					})
				})
			}
		}
	}
}

func TestASlowClientHoldsUpItsOwnUpstreamOnly(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		var pieces []any
		read := 0
		for range 200 {
			pieces = append(pieces, func() { read++ }, chatText(strings.Repeat("x", 1000)), time.Millisecond)
		}
		s.upstream("a", dialoguetest.Chat, stream(append(append([]any{chatRole}, pieces...), chatStop+chatDone)...),
			goodChat())
		slow := s.service.Begin(context.Background(), s.request(dialoguetest.Chat, chatAskStream))
		kittest.Pass(10 * time.Second)
		if read > 20 {
			t.Errorf("%d pieces were read for a client that reads nothing", read)
		}
		if got := s.ask(s.request(dialoguetest.Chat, chatAskStream)); got.Err != nil || got.took > time.Second {
			t.Errorf("another request took %s: %v", got.took, got.Err)
		}
		if got := s.read(slow); got.Err != nil || strings.Count(got.text, "xxx\"") != 200 || !strings.HasSuffix(got.text, chatDone) {
			t.Errorf("the slow one ended with %v", got.Err)
		}
	})
}

func TestDrainLetsFinishThenCuts(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.upstream("a", dialoguetest.Chat, trickle(), trickle(), stream(chatRole+chatText("x"), stall), stream(stall))
		var replies []*text.Reply
		for range 4 {
			replies = append(replies, s.service.Begin(context.Background(),
				s.request(dialoguetest.Chat, chatAskStream)))
			kittest.Quiesce()
		}
		results := make([]chan received, len(replies))
		for i, r := range replies {
			results[i] = make(chan received, 1)
			go func() { results[i] <- s.read(r) }()
		}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		start := time.Now()
		if n := s.engine.Drain(ctx, 5*time.Second); n != 2 {
			t.Errorf("%d were cut, want 2", n)
		}
		if took := time.Since(start); took > 11*time.Second {
			t.Errorf("draining took %s", took)
		}
		for i := range 2 {
			if got := <-results[i]; got.Err != nil || !strings.HasSuffix(got.text, chatDone) {
				t.Errorf("request %d was not let finish: %v", i, got.Err)
			}
		}
		if got := <-results[2]; got.status != 200 || strings.Count(got.text, "shutting_down") != 1 || got.Err == nil || got.Err.Code != "shutting_down" {
			t.Errorf("the stream that was cut: %v %q", got.Err, got.text)
		}
		if got := <-results[3]; got.status != 503 || got.Err.Code != "shutting_down" || got.Err.RetryAfter == 0 {
			t.Errorf("the request without an answer: %d %v", got.status, got.Err)
		}
		if got := s.ask(s.request(dialoguetest.Chat, chatAskStream)); got.status != 503 || got.Err.Code != "shutting_down" {
			t.Errorf("a request after the drain: %d %v", got.status, got.Err)
		}
	})
}

func TestDrainEndsWithTheLastRequest(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.upstream("a", dialoguetest.Chat, trickle())
		go s.ask(s.request(dialoguetest.Chat, chatAskStream))
		kittest.Quiesce()
		start := time.Now()
		if n := s.engine.Drain(context.Background(), 0); n != 0 || time.Since(start) != 4*time.Second {
			t.Errorf("%d cut after %s", n, time.Since(start))
		}
		if got := s.ask(s.request(dialoguetest.Chat, chatAskStream)); got.status != 503 || got.Err.Code != "shutting_down" {
			t.Errorf("a request after the drain: %d %v", got.status, got.Err)
		}
	})
}

// A client that is slower than the drain still reads how its stream ended.
func TestDrainTellsASlowClient(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		pieces := []any{chatRole}
		for range 100 {
			pieces = append(pieces, chatText("x"), time.Millisecond)
		}
		s.upstream("a", dialoguetest.Chat, stream(append(pieces, stall)...))
		reply := s.service.Begin(context.Background(), s.request(dialoguetest.Chat, chatAskStream))
		kittest.Pass(time.Second) // its window is full
		done := make(chan int)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		go func() { done <- s.engine.Drain(ctx, 5*time.Second) }()
		kittest.Pass(time.Second)
		if got := s.read(reply); strings.Count(got.text, "shutting_down") != 1 {
			t.Errorf("got %q", got.text)
		}
		<-done
	})
}

// A good end that waits for a slow client is no failure because of a drain.
func TestDrainDoesNotSpoilAGoodEnd(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		pieces := []any{chatRole}
		for range 8 { // as many as may wait for the client
			pieces = append(pieces, chatText("x"), time.Millisecond)
		}
		s.upstream("a", dialoguetest.Chat, stream(append(pieces, chatStop+chatDone)...))
		reply := s.service.Begin(context.Background(), s.request(dialoguetest.Chat, chatAskStream))
		kittest.Pass(time.Second)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		go s.engine.Drain(ctx, 5*time.Second)
		kittest.Pass(time.Second)
		if got := s.read(reply); strings.Contains(got.text, `"error"`) || strings.Count(got.text, chatDone) != 1 {
			t.Errorf("got %q", got.text)
		}
	})
}

// Stopping the tree without a drain is no excuse either.
func TestStoppingTheSystemEndsItsStreams(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.upstream("a", dialoguetest.Chat, stream(chatRole+chatText("x"), stall), stream(stall))
		results := make(chan received, 2)
		for range 2 {
			r := s.service.Begin(context.Background(), s.request(dialoguetest.Chat, chatAskStream))
			kittest.Quiesce()
			go func() { results <- s.read(r) }()
		}
		kittest.Pass(time.Second)
		if err := s.sys.Stop(context.Background()); err != nil {
			t.Error(err)
		}
		for range 2 {
			if got := <-results; got.Err == nil || got.Err.Code != "shutting_down" || got.status == 200 && strings.Count(got.text, "shutting_down") != 1 {
				t.Errorf("ended with %d %v %q", got.status, got.Err, got.text)
			}
		}
		if got := s.ask(s.request(dialoguetest.Chat, chatAsk)); got.status != 503 || got.Err.Code != "shutting_down" {
			t.Errorf("a request after the end: %v", got.Err)
		}
	})
}

func TestCompleteSeesTheLastEventBeforeTheClient(t *testing.T) {
	responsesWhole := `{"id":"resp_1","object":"response","created_at":1,"status":"completed","model":"m","output":[{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Hello","annotations":[]}]}],"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}`
	created := `event: response.created` + "\n" +
		`data: {"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","status":"in_progress","output":[]}}` + "\n\n"
	delta := `event: response.output_text.delta` + "\n" +
		`data: {"type":"response.output_text.delta","sequence_number":1,"item_id":"msg_1","output_index":0,"content_index":0,"delta":"Hello"}` + "\n\n"
	completed := `event: response.completed` + "\n" +
		`data: {"type":"response.completed","sequence_number":2,"response":` + responsesWhole + `}` + "\n\n"
	native := stream(created+delta, time.Second, completed)
	atOnce := stream(created + delta + completed)
	replacement := []byte(`{"type":"response.failed","sequence_number":9,"response":{"status":"failed"}}`)
	refuse := dialogue.Error{Status: 503, Type: dialogue.TypeAPI, Code: "storage_unavailable", Message: "no"}

	for _, tc := range []struct {
		name        string
		shape       dialogue.Shape
		play        script
		replacement []byte
		refuse      bool
		status      int
		terminal    string
	}{
		{"untouched, content", dialoguetest.Responses, native, nil, false, 200, "event: response.completed\n"},
		{"untouched, replaced", dialoguetest.Responses, native, replacement, true, 200, "event: response.failed\n"},
		{"untouched, refused", dialoguetest.Responses, native, nil, true, 200, "event: error\n"},
		{"untouched, refused at once", dialoguetest.Responses, atOnce, replacement, true, 503, ""},
		{"translated", dialoguetest.Chat, trickle(), nil, false, 200, "event: response.completed\n"},
		{"translated, replaced", dialoguetest.Chat, trickle(), replacement, true, 200, "event: response.failed\n"},
		{"translated, refused", dialoguetest.Chat, trickle(), nil, true, 200, "event: error\n"},
		{"translated, refused at once", dialoguetest.Chat, stream(chatRole + chatText("Hello") + chatStop + chatDone),
			replacement, true, 503, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				s.upstream("a", tc.shape, tc.play)
				o := s.request(dialoguetest.Responses, responsesAskStream)
				seen := ""
				o.Complete = func(_ context.Context, _ text.Meta, last []byte) ([]byte, *dialogue.Error) {
					seen += string(last)
					if tc.refuse {
						return tc.replacement, &refuse
					}
					return nil, nil
				}
				got := s.ask(o)
				if !strings.Contains(seen, `"response.completed"`) || strings.Count(seen, "resp_")+strings.Count(seen, "id0") == 0 {
					t.Errorf("Complete saw %q", seen)
				}
				if got.status != tc.status || tc.refuse != (got.Err != nil) {
					t.Errorf("got %d %v", got.status, got.Err)
				}
				ends := 0
				for _, name := range []string{"completed", "failed", "incomplete"} {
					ends += strings.Count(got.text, "event: response."+name+"\n")
				}
				ends += strings.Count(got.text, "event: error\n")
				if tc.status == 200 && (ends != 1 || strings.Count(got.text, tc.terminal) != 1) {
					t.Errorf("ends with %q", got.text[max(0, len(got.text)-400):])
				}
			})
		})
	}
}

func TestASimulatedProviderIsLikeAnyOther(t *testing.T) {
	simulate := func(_ context.Context, _ *dialogue.Request, h http.Header, emit func(*dialogue.Event) error) error {
		for _, ev := range []dialogue.Event{
			{Kind: dialogue.EventStart, ID: "x", Model: "m"}, {Kind: dialogue.EventOpen, PartKind: dialogue.TextPart},
			{Kind: dialogue.EventDelta, Text: "Hello"},
		} {
			if err := emit(&ev); err != nil {
				return err
			}
		}
		switch h.Get("X-End") {
		case "panic":
			panic("simulated")
		case "cut":
			return errors.New("cut")
		case "silent":
			return nil
		}
		for _, ev := range []dialogue.Event{{Kind: dialogue.EventClose}, {Kind: dialogue.EventFinish}, {Kind: dialogue.EventEnd}} {
			if err := emit(&ev); err != nil {
				return err
			}
		}
		return nil
	}
	play(t, func(t *testing.T, s *stage) {
		s.add(catalog.Provider{Name: "sim", Shape: catalog.Sandbox}, &fake{})
		s.simulate = simulate
		for _, end := range []string{"", "panic", "cut", "silent"} {
			o := s.request(dialoguetest.Chat, chatAskStream)
			o.In.Header.Set("X-End", end)
			got := s.ask(o)
			wrong := strings.Contains(got.text, chatDone) == strings.Contains(got.text, `"error":{`)
			if got.status == 500 {
				wrong = end != "panic"
			}
			if wrong || (end != "") != (got.Err != nil) {
				t.Errorf("%q: got %d %v %q", end, got.status, got.Err, got.text)
			}
		}
	})
}

func TestALateCauseIsNotTheClientsLeaving(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.upstream("a", dialoguetest.Chat, stream(chatRole+chatText("x"), stall))
		ctx, cancel := context.WithCancelCause(context.Background())
		go func() {
			time.Sleep(time.Second)
			cancel(&dialogue.Error{Status: 413, Code: "too_much", Message: "that is enough"})
		}()
		got := s.read(s.service.Begin(ctx, s.request(dialoguetest.Chat, chatAskStream)))
		if strings.Count(got.text, "that is enough") != 1 || got.Err == nil || got.Err.Code != "too_much" {
			t.Errorf("got %v %q", got.Err, got.text)
		}
	})
}

// speechless is a shape that panics when it is asked to read a reply.
type speechless struct {
	shapes.Outbound
	shapes.Passthrough
}

func (speechless) NewParser(int, *dialogue.Env) shapes.Parser         { panic("speechless") }
func (speechless) NewTap(shapes.TapOptions, *dialogue.Env) shapes.Tap { panic("speechless") }

func TestAShapeThatCannotReadRepliesLeavesNoneOpen(t *testing.T) {
	for inbound, ask := range map[dialogue.Shape]string{
		dialoguetest.Chat: chatAskStream, dialoguetest.Messages: messagesAskStream} {
		play(t, func(t *testing.T, s *stage) {
			s.upstream("a", dialoguetest.Chat, goodChat())
			broken := *registry.ByName()[dialoguetest.Chat]
			broken.Outbound = speechless{Outbound: broken.Outbound}
			broken.Passthrough = speechless{Passthrough: broken.Passthrough}
			s.service = text.New(s.engine, s.env, []*shapes.Shape{&broken}, nil)
			o := s.request(inbound, ask)
			if inbound == dialoguetest.Chat {
				o.Inbound = &broken
			}
			if got := s.ask(o); got.status != 500 || s.fakes["a"].count() != 0 {
				t.Errorf("%s: %d after %d calls", inbound, got.status, s.fakes["a"].count())
			}
		})
	}
}
