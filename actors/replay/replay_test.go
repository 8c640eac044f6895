package replay_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"stagedoor/actors/engine"
	"stagedoor/actors/kit"
	"stagedoor/actors/kit/kittest"
	"stagedoor/actors/recording"
	"stagedoor/actors/replay"
	"stagedoor/actors/text"
	"stagedoor/actors/throttle"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/dialogue/dialoguetest"
	"stagedoor/providers/shapes"
	"stagedoor/providers/shapes/registry"
	"stagedoor/providers/upstream"
)

// vendor answers in its shape, in one of several ways.
type vendor struct {
	shape *shapes.Shape
	way   string
}

const providerKey = "sk-key-of-the-provider"

// RoundTrip implements http.RoundTripper.
func (v *vendor) RoundTrip(r *http.Request) (*http.Response, error) {
	sent, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	answer := func(status int, kind string, body io.Reader) (*http.Response, error) {
		h := http.Header{"Content-Type": {kind}, "Set-Cookie": {"session=a-cookie-of-the-provider"}}
		return &http.Response{StatusCode: status, Header: h, ContentLength: -1, Body: io.NopCloser(body)}, nil
	}
	if v.way == "silent" {
		const beginning = "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"He\"}}]}\n\n"
		return answer(200, "text/event-stream", io.MultiReader(strings.NewReader(beginning), silent{r.Context()}))
	}
	if v.way == "refused" {
		return answer(400, "application/json", bytes.NewReader(v.shape.Envelope(dialogue.Invalid("messages",
			"wrong for "+providerKey))))
	}
	mode, kind := shapes.Whole, "application/json"
	if strings.Contains(string(sent), `"stream":true`) || strings.Contains(r.URL.Path, "stream") {
		mode, kind = shapes.Stream, "text/event-stream"
	}
	req := &dialogue.Request{Model: "up", Inbound: v.shape.Name, IncludeUsage: true}
	emitter := v.shape.NewEmitter(req, mode, dialoguetest.NewEnv(1, "vendors"))
	var out []byte
	for _, ev := range []dialogue.Event{{Kind: dialogue.EventStart, ID: "x", Model: "up"},
		{Kind: dialogue.EventOpen, PartKind: dialogue.TextPart}, {Kind: dialogue.EventDelta, Text: "Hello\u2028 "},
		{Kind: dialogue.EventDelta, Text: "you"}, {Kind: dialogue.EventClose},
		{Kind: dialogue.EventUsage, Usage: &dialogue.Usage{InputTotal: 3, OutputTotal: 2}},
		{Kind: dialogue.EventFinish, Reason: dialogue.ReasonStop}, {Kind: dialogue.EventEnd}} {
		if v.way == "cut" && ev.Kind == dialogue.EventClose && mode == shapes.Stream {
			return answer(200, kind, io.MultiReader(bytes.NewReader(out), broken{}))
		}
		out = emitter.Emit(out, &ev)
	}
	return answer(200, kind, bytes.NewReader(out))
}

type broken struct{}

// Read implements io.Reader.
func (broken) Read([]byte) (int, error) { return 0, errors.New("connection reset") }

// silent is a reply that sends nothing more.
type silent struct{ ctx context.Context }

// Read implements io.Reader.
func (s silent) Read([]byte) (int, error) {
	<-s.ctx.Done()
	return 0, s.ctx.Err()
}

// stage records what a service does.
type stage struct {
	t       *testing.T
	sys     *kit.System
	env     *dialogue.Env
	service *text.Service
	vendors map[string]*engine.Provider
	dry     *engine.DryRun // of further requests
	caps    dialogue.Capabilities
}

func newStage(t *testing.T, sys *kit.System) *stage {
	s := &stage{t: t, sys: sys, vendors: map[string]*engine.Provider{}}
	e, err := engine.New(engine.Options{System: sys, Now: time.Now,
		Providers: func(name string) *engine.Provider { return s.vendors[name] }})
	if err != nil {
		t.Fatal(err)
	}
	s.env = dialoguetest.NewLiveEnv()
	s.service = text.New(e, s.env, registry.All, nil)
	return s
}

// send sends a request to a vendor of a shape that answers in a way, and returns the reply.
func (s *stage) send(in, out *shapes.Shape, body, way string, stream bool) (got []byte) {
	s.t.Helper()
	spec := &catalog.Provider{Name: string(out.Name) + "-" + way, Shape: out.Name, BaseURL: "http://vendor.test",
		APIKeys: []string{providerKey}, Headers: map[string]string{"X-Account": "an-account-of-the-operator"}}
	if s.vendors[spec.Name] == nil {
		client, err := upstream.New(upstream.Options{BaseURL: spec.BaseURL, APIKeys: spec.APIKeys,
			Headers: spec.Headers, Transport: &vendor{out, way}, Timeouts: upstream.Timeouts{Idle: time.Minute}})
		if err != nil {
			s.t.Fatal(err)
		}
		limiter, err := throttle.Spawn(s.sys, "p/"+spec.Name, throttle.Config{})
		if err != nil {
			s.t.Fatal(err)
		}
		s.vendors[spec.Name] = &engine.Provider{Spec: spec, Limiter: limiter, Client: client}
	}
	params := shapes.Params{Path: "/v1", Header: http.Header{"Authorization": {"Bearer " + clientKey},
		"Cookie": {"session=a-cookie-of-the-client"}, "X-Api-Key": {clientKey},
		"X-Auth-Token": {"tiny"}}}
	if in.Read != nil {
		params.Model, params.Stream = "m", stream
	} else if stream {
		body, _ = sjson.Set(body, "stream", true)
	}
	head, err := in.Check([]byte(body), params)
	if err != nil {
		s.t.Fatal(err)
	}
	mode := shapes.Whole
	if stream {
		mode = shapes.Stream
	}
	target := catalog.Fixed(spec, dialogue.Target{Provider: spec.Name, Shape: out.Name, Model: "up",
		MaxOutputTokens: 100, Caps: s.caps})
	reply := s.service.Begin(s.t.Context(), &text.Request{ID: "r", Inbound: in, Mode: mode, In: params, Head: head,
		Body: []byte(body), Plan: []catalog.Candidate{target}, Key: "k", Owner: "k",
		Dry: s.dry})
	for c := range reply.Chunks() {
		if c.Data != nil {
			got = append(got, c.Data.B...)
		}
		c.Data.Free()
	}
	return got
}

const clientKey = "sd-the-key-of-the-client"

// record returns the recording of what f does.
func (s *stage) record(limit int64, f func()) string {
	s.t.Helper()
	rec, err := s.service.Recorder().Start("k")
	if err != nil {
		s.t.Fatal(err)
	}
	var out bytes.Buffer
	done := make(chan error)
	go func() {
		done <- rec.Write(s.t.Context(), &out, func() error { return nil }, time.Hour, limit)
	}()
	f()
	s.service.Recorder().Stop("k")
	if err := <-done; err != nil {
		s.t.Fatal(err)
	}
	return out.String()
}

func (s *stage) replay(recorded string) (replay.Result, string) {
	s.t.Helper()
	r, err := replay.New(s.sys, registry.All)
	if err != nil {
		s.t.Fatal(err)
	}
	var out strings.Builder
	result, err := r.Run(context.Background(), strings.NewReader(recorded), &out)
	if err != nil {
		s.t.Fatal(err)
	}
	return result, out.String()
}

// sample returns the first sample request in a shape.
func sample(t *testing.T, s *shapes.Shape) string {
	b, err := os.ReadFile("../../providers/shapes/registry/testdata/" + string(s.Name) + ".jsonl")
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(b), "\n")
	return line
}

// TestEveryPairReplaysWithoutADifference: whole and streamed, with a good reply, a refusal and a stream that is cut.
func TestEveryPairReplaysWithoutADifference(t *testing.T) {
	kittest.Run(t, func(t *testing.T, sys *kit.System) {
		s := newStage(t, sys)
		for _, in := range registry.All {
			for _, out := range registry.All {
				body, n := sample(t, in), 0
				recorded := s.record(64<<20, func() {
					for _, way := range []string{"good", "refused", "cut"} {
						for _, stream := range []bool{false, true} {
							s.send(in, out, body, way, stream)
							n++
						}
					}
				})
				result, differences := s.replay(recorded)
				if result.Same+result.Skipped != n || result.Skipped > 0 && !strings.Contains(recorded, `"calls":[]`) ||
					result.Ending == nil || result.Ending.Exchanges != int64(n) {
					t.Errorf("%s to %s: %+v %+v %.2000s", in.Name, out.Name, result, result.Ending, differences)
				}
				for _, secret := range []string{providerKey, clientKey, "a-cookie-of", "an-account-of-the-operator",
					`"tiny"`} {
					if strings.Contains(recorded, secret) {
						t.Fatalf("%s to %s: the recording has %s", in.Name, out.Name, secret)
					}
				}
			}
		}
	})
}

// TestADividedRequestReplaysWithoutADifference: its calls are made at the same time and replayed one after the other.
func TestADividedRequestReplaysWithoutADifference(t *testing.T) {
	kittest.Run(t, func(t *testing.T, sys *kit.System) {
		s, known := newStage(t, sys), registry.ByName()
		recorded := s.record(64<<20, func() {
			for _, stream := range []bool{false, true} {
				s.send(known[dialoguetest.Chat], known[dialoguetest.Messages],
					`{"model":"m","n":5,"messages":[{"role":"user","content":"hi"}]}`, "good", stream)
				s.send(known[dialoguetest.Completions], known[dialoguetest.Gemini],
					`{"model":"m","prompt":["a","b","c"],"max_tokens":5}`, "good", stream)
			}
		})
		if result, out := s.replay(recorded); result.Same != 4 {
			t.Errorf("%+v %s", result, out)
		}
	})
}

// TestCredentialsInARequestAreRedacted, and the recording still replays without a difference.
func TestCredentialsInARequestAreRedacted(t *testing.T) {
	kittest.Run(t, func(t *testing.T, sys *kit.System) {
		s, shape := newStage(t, sys), registry.ByName()[dialoguetest.Responses]
		recorded := s.record(1<<20, func() {
			s.send(shape, shape, `{"model":"m","input":"hi, secret-of-a-server","tools":[{"type":"mcp",`+
				`"server_label":"a","server_url":"https://x","authorization":"secret-of-a-server",`+
				`"headers":{"Authorization":"Bearer another-secret","Private-Token":"a-private-secret",`+
				`"X-Goog-Api-Key":"quoted\"tail-secret","password":"\u0070first-secret",`+
				`"Client-Secret":"with\/slash-secret","cookie":"ends-with\\","id_token":"last-secret"},`+
				`"note":"with/slash-secret {\"api_key\":\"in-a\\\"text-secret\",\"kept\":1}"}]}`, "good", false)
		})
		for _, secret := range []string{"secret-of-a-server", "another-secret", "private-secret", "tail-secret",
			"first-secret", "slash-secret", "ends-with", "last-secret", "text-secret"} {
			if strings.Contains(recorded, secret) {
				t.Errorf("%s is in %.2000s", secret, recorded)
			}
		}
		if result, out := s.replay(recorded); result.Same != 1 || !strings.Contains(recorded, `kept`) {
			t.Errorf("%+v %s", result, out)
		}
	})
}

// What a request takes from earlier ones is in the recording: thoughts that its client dropped, and a summary of its
// conversation, which is bound to its owner.
func TestWhatAGatewayRemembersIsReplayed(t *testing.T) {
	kittest.Run(t, func(t *testing.T, sys *kit.System) {
		s := newStage(t, sys)
		s.env.Signatures, s.caps.Thinking = dialoguetest.SignatureMap{}, dialogue.ThinkingBudget
		chat, messages := registry.ByName()[dialoguetest.Chat], registry.ByName()[dialoguetest.Messages]
		s.env.ForOwner("k").RememberThoughts("c", []dialogue.Thinking{{Text: "why", Signature: "proof-of-why",
			Origin: dialoguetest.Messages}})
		responses := registry.ByName()[dialoguetest.Responses]
		const trigger = `{"model":"m","input":[{"role":"user","content":"hi"},{"type":"compaction_trigger"}]}`
		compacted := gjson.GetBytes(s.send(responses, chat, trigger, "good", false), "output.0").Raw
		recorded := s.record(1<<20, func() {
			s.send(chat, messages, `{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant",`+
				`"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},`+
				`{"role":"tool","tool_call_id":"c","content":"r"}]}`, "good", false)
			s.send(responses, chat, `{"model":"m","input":[`+compacted+`,{"role":"user","content":"on"}]}`, "good",
				false)
			s.send(responses, chat, trigger, "good", true)
		})
		if !strings.Contains(recorded, "proof-of-why") || !strings.Contains(recorded, "replaced by this summary") {
			t.Errorf("the upstreams did not get what was remembered: %.2000s", recorded)
		}
		if result, out := s.replay(recorded); result.Same != 3 {
			t.Errorf("%+v %s", result, out)
		}
	})
}

// A reply that the gateway gave up is compared as far as it came, and a dry run is no exchange.
func TestTimeoutsAreReplayedAndDryRunsAreNotRecorded(t *testing.T) {
	kittest.Run(t, func(t *testing.T, sys *kit.System) {
		s, shape := newStage(t, sys), registry.ByName()[dialoguetest.Chat]
		recorded := s.record(1<<20, func() {
			s.send(shape, shape, sample(t, shape), "silent", true)
			s.dry = &engine.DryRun{}
			s.send(shape, shape, sample(t, shape), "good", false)
		})
		result, out := s.replay(recorded)
		if result.Same != 1 || result.Different != 0 || result.Ending.Exchanges != 1 || result.Ending.Unfinished != 0 {
			t.Errorf("%+v %+v %s", result, result.Ending, out)
		}
	})
}

// TestARecordingIsBounded: a file ends at its size, exchanges that do not fit into memory are dropped, and a writer
// that does not write delays no request. The last line counts what is missing.
func TestARecordingIsBounded(t *testing.T) {
	kittest.Run(t, func(t *testing.T, sys *kit.System) {
		s, shape := newStage(t, sys), registry.ByName()[dialoguetest.Chat]
		small := sample(t, shape)
		large := `{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat("x", 17<<20) + `"}]}`
		recorded := s.record(64<<10, func() {
			for range 60 {
				s.send(shape, shape, small, "good", false)
			}
		})
		result, _ := s.replay(recorded)
		if len(recorded) > 64<<10 || result.Ending == nil || result.Ending.End != "size" || result.Same == 0 ||
			int64(result.Same) != result.Ending.Exchanges {
			t.Errorf("%d bytes, %+v %+v", len(recorded), result, result.Ending)
		}
		recorded = s.record(64<<20, func() { s.send(shape, shape, large, "good", false) }) // kept three times
		if result, _ := s.replay(recorded); result.Ending.Dropped != 1 || result.Same != 0 {
			t.Errorf("%+v %+v", result, result.Ending)
		}
		rec, err := s.service.Recorder().Start("k")
		if err != nil {
			t.Fatal(err)
		}
		for range 100 { // nothing writes
			s.send(shape, shape, small, "good", false)
		}
		var out bytes.Buffer
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := rec.Write(ctx, &out, func() error { return nil }, time.Hour, 64<<20); err != nil {
			t.Fatal(err)
		}
		result, _ = s.replay(out.String())
		if e := result.Ending; e.Exchanges+e.Dropped != 100 || e.Dropped < 60 || e.End != "stopped" {
			t.Errorf("%+v", e)
		}
	})
}

// TestAKeyIsRecordedOnce at a time, and only a few keys are.
func TestAKeyIsRecordedOnce(t *testing.T) {
	var r recording.Recorder
	for _, key := range []string{"a", "b", "c", "d"} {
		if _, err := r.Start(key); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.Start("a"); !errors.Is(err, recording.ErrBusy) {
		t.Errorf("got %v", err)
	}
	if _, err := r.Start("e"); !errors.Is(err, recording.ErrMany) {
		t.Errorf("got %v", err)
	}
	if !r.Stop("a") || r.Stop("a") {
		t.Error("the recording of a was not stopped once")
	}
	if _, err := r.Start("a"); err != nil {
		t.Error(err)
	}
}

// TestNothingIsAllocatedWhileNothingIsRecorded, so that an ordinary request costs one atomic load more.
func TestNothingIsAllocatedWhileNothingIsRecorded(t *testing.T) {
	var r recording.Recorder
	if n := testing.AllocsPerRun(100, func() { r.Begin("k").Deliver(nil, false) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestABrokenFileIsRefused names the line and returns no result of it.
func TestABrokenFileIsRefused(t *testing.T) {
	kittest.Run(t, func(t *testing.T, sys *kit.System) {
		r, err := replay.New(sys, registry.All)
		if err != nil {
			t.Fatal(err)
		}
		for file, want := range map[string]string{"{}\n": "not a recording", "x": "not a recording",
			`{"stagedoor_recording":1}` + "\nx\n": "line 2"} {
			if _, err := r.Run(t.Context(), strings.NewReader(file), io.Discard); err == nil ||
				!strings.Contains(err.Error(), want) {
				t.Errorf("%q: got %v", file, err)
			}
		}
	})
}

func BenchmarkNothingIsRecorded(b *testing.B) {
	var r recording.Recorder
	for b.Loop() {
		r.Begin("k").Deliver(nil, false)
	}
}
