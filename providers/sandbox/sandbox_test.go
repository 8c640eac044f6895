package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/dialogue/dialoguetest"
	"stagedoor/providers/sandbox"
	"stagedoor/providers/tokens"
)

func env() *dialogue.Env {
	n := 0
	return &dialogue.Env{Now: time.Now, ID: func() string { n++; return fmt.Sprintf("%032d", n) }}
}

func ask(text string) *dialogue.Request {
	return &dialogue.Request{
		Inbound: dialoguetest.Chat,
		Model:   "m",
		Turns:   []dialogue.Turn{{Role: dialogue.User, Parts: []dialogue.Part{{Text: text}}}},
	}
}

// recorder records a reply and checks that its events are well formed.
type recorder struct {
	dialogue.ReplyBuilder
	t      *testing.T
	kinds  []dialogue.EventKind
	deltas int
	ended  bool
	open   map[[2]int]bool
}

func (p *recorder) add(ev *dialogue.Event) error {
	p.t.Helper()
	at := [2]int{ev.Choice, ev.Part}
	switch {
	case p.ended:
		p.t.Errorf("event %d after the end", ev.Kind)
	case len(p.kinds) == 0 && ev.Kind != dialogue.EventStart && ev.Kind != dialogue.EventError:
		p.t.Errorf("the first event is %d", ev.Kind)
	case ev.Kind == dialogue.EventOpen && p.open[at],
		(ev.Kind == dialogue.EventDelta || ev.Kind == dialogue.EventClose) && !p.open[at]:
		p.t.Errorf("event %d of part %v while open is %v", ev.Kind, at, p.open[at])
	}
	switch ev.Kind {
	case dialogue.EventOpen:
		p.open[at] = true
	case dialogue.EventClose:
		p.open[at] = false
	case dialogue.EventDelta:
		p.deltas++
	case dialogue.EventEnd, dialogue.EventError:
		p.ended = true
	}
	p.kinds = append(p.kinds, ev.Kind)
	p.Add(ev)
	return nil
}

func record(t *testing.T, req *dialogue.Request, script sandbox.Script) (*recorder, error) {
	t.Helper()
	if script.Pace == 0 {
		script.Pace = sandbox.MaxPace
	}
	p := &recorder{t: t, open: map[[2]int]bool{}}
	err := sandbox.Generate(t.Context(), req, script, env(), p.add)
	return p, err
}

// reply records a reply that must be whole.
func reply(t *testing.T, req *dialogue.Request, script sandbox.Script) *dialogue.Reply {
	t.Helper()
	p, err := record(t, req, script)
	if err != nil || p.Err != nil || !p.Done {
		t.Fatalf("reply did not end well: %v, %v", err, p.Err)
	}
	return &p.Reply
}

func textOf(c *dialogue.Choice) string {
	var b strings.Builder
	for _, part := range c.Parts {
		if part.Kind == dialogue.TextPart {
			b.WriteString(part.Text)
		}
	}
	return b.String()
}

func TestTheSameRequestGetsTheSameAnswer(t *testing.T) {
	first, second := reply(t, ask("hello"), sandbox.Script{}), reply(t, ask("hello"), sandbox.Script{})
	if textOf(first.Choices[0]) != textOf(second.Choices[0]) || textOf(first.Choices[0]) == "" {
		t.Errorf("%q and %q", textOf(first.Choices[0]), textOf(second.Choices[0]))
	}
	other := reply(t, ask("goodbye"), sandbox.Script{})
	if textOf(first.Choices[0]) == textOf(other.Choices[0]) {
		t.Error("another prompt got the same answer")
	}
	if !strings.Contains(textOf(first.Choices[0]), `"hello"`) {
		t.Errorf("the prompt is not mentioned: %q", textOf(first.Choices[0]))
	}
}

func TestUsageCountsRealTokens(t *testing.T) {
	for _, n := range []int{1, 7, 200} {
		r := reply(t, ask("count"), sandbox.Script{Tokens: n})
		if got := tokens.Count(textOf(r.Choices[0])); got != int64(n) || r.Usage.OutputTotal != int64(n) {
			t.Errorf("tokens=%d: the text has %d, usage says %d", n, got, r.Usage.OutputTotal)
		}
		if r.Usage.InputTotal != tokens.CountRequest(ask("count")) {
			t.Errorf("input tokens: %d", r.Usage.InputTotal)
		}
	}
}

func TestMaxTokensEndsInLength(t *testing.T) {
	for _, limit := range []int64{0, 1, 5} {
		req := ask("hello")
		req.MaxTokens = &limit
		r := reply(t, req, sandbox.Script{})
		if r.Usage.OutputTotal != limit || r.Choices[0].Reason != dialogue.ReasonLength {
			t.Errorf("limit %d: %d tokens, reason %d", limit, r.Usage.OutputTotal, r.Choices[0].Reason)
		}
	}
	req := ask("hello")
	plenty := int64(100_000)
	req.MaxTokens = &plenty
	if r := reply(t, req, sandbox.Script{}); r.Choices[0].Reason != dialogue.ReasonStop {
		t.Errorf("an unused limit ends in %d", r.Choices[0].Reason)
	}
}

func TestTextEndsBeforeAStopSequence(t *testing.T) {
	req := ask("alpha beta gamma")
	req.Stop = []string{"gamma", "beta"}
	r := reply(t, req, sandbox.Script{})
	c := r.Choices[0]
	if got := textOf(c); got != `You said: "alpha ` || c.Reason != dialogue.ReasonStopSequence ||
		c.StopSequence != "beta" {
		t.Errorf("text %q, reason %d, sequence %q", got, c.Reason, c.StopSequence)
	}
}

func TestChoicesDiffer(t *testing.T) {
	req := ask("hello")
	req.N = 3
	r := reply(t, req, sandbox.Script{})
	if len(r.Choices) != 3 || textOf(r.Choices[0]) == textOf(r.Choices[1]) || !r.Choices[2].Finished {
		t.Errorf("choices: %d, %q, %q", len(r.Choices), textOf(r.Choices[0]), textOf(r.Choices[1]))
	}
	req = &dialogue.Request{
		Inbound: dialoguetest.Completions,
		Model:   "m",
		N:       2,
		Prompts: [][]byte{[]byte(`"one"`), []byte(`"two"`)},
	}
	r = reply(t, req, sandbox.Script{})
	if len(r.Choices) != 4 || !strings.Contains(textOf(r.Choices[1]), "one") ||
		!strings.Contains(textOf(r.Choices[2]), "two") {
		t.Errorf("prompts and choices: %d", len(r.Choices))
	}
}

func TestThinkingFollowsTheRequestedEffort(t *testing.T) {
	budget := int64(10)
	rows := []struct {
		name      string
		reasoning dialogue.Reasoning
		tokens    int64
	}{
		{"not", dialogue.Reasoning{}, 0},
		{"none", dialogue.Reasoning{Effort: "none"}, 0},
		{"disabled", dialogue.Reasoning{Disabled: true, Adaptive: true}, 0},
		{"low", dialogue.Reasoning{Effort: "low"}, 16},
		{"budget", dialogue.Reasoning{Budget: &budget}, 10},
	}
	for _, row := range rows {
		req := ask("hello")
		req.Reasoning = row.reasoning
		r := reply(t, req, sandbox.Script{})
		thought := r.Choices[0].Parts[0].Kind == dialogue.ThinkingPart
		if r.Usage.Reasoning != row.tokens || thought != (row.tokens > 0) || r.Usage.OutputTotal <= row.tokens {
			t.Errorf("%s: %d tokens of thinking, part %v, output %d", row.name, r.Usage.Reasoning, thought,
				r.Usage.OutputTotal)
		}
	}
}

func weather(text string) *dialogue.Request {
	req := ask(text)
	req.Tools = []dialogue.Tool{
		{Kind: dialogue.WebSearchTool, Name: "web"},
		{
			Kind: dialogue.FunctionTool,
			Name: "weather",
			Schema: []byte(
				`{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer","minimum":3}},"required":["city","days"]}`,
			),
		},
		{Kind: dialogue.FunctionTool, Name: "weather_map"},
	}
	return req
}

func TestToolsAreCalledWhenWanted(t *testing.T) {
	no := false
	rows := []struct {
		name   string
		text   string
		choice *dialogue.ToolChoice
		serial bool
		calls  string
	}{
		{"not asked for", "hello", nil, false, ""},
		{"the text asks", "Please use the weather tool.", nil, false, "weather"},
		{"another verb", "call `weather_map` now", nil, false, "weather_map"},
		{"a longer name is another tool", "call weather_maps", nil, false, ""},
		{"two at once", "call weather and call weather_map", nil, false, "weather weather_map"},
		{"one at a time", "call weather and call weather_map", nil, true, "weather"},
		{"required", "hello", &dialogue.ToolChoice{Mode: dialogue.ToolRequired}, false, "weather"},
		{
			"named",
			"hello",
			&dialogue.ToolChoice{Mode: dialogue.ToolNamed, Names: []string{"weather_map"}},
			false,
			"weather_map",
		},
		{
			"allowed and required",
			"hello",
			&dialogue.ToolChoice{Mode: dialogue.ToolAllowed, Names: []string{"weather_map"}, Required: true},
			false,
			"weather_map",
		},
		{
			"not allowed",
			"call weather",
			&dialogue.ToolChoice{Mode: dialogue.ToolAllowed, Names: []string{"weather_map"}},
			false,
			"",
		},
		{"forbidden", "call weather", &dialogue.ToolChoice{Mode: dialogue.ToolNone}, false, ""},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			req := weather(row.text)
			req.ToolChoice = row.choice
			if row.serial {
				req.Parallel = &no
			}
			c := reply(t, req, sandbox.Script{}).Choices[0]
			var calls []string
			for _, part := range c.Parts {
				if part.Kind == dialogue.CallPart {
					calls = append(calls, part.Call.Name)
				}
			}
			if got := strings.Join(calls, " "); got != row.calls ||
				(c.Reason == dialogue.ReasonTool) != (row.calls != "") {
				t.Errorf("calls %q, reason %d; want %q", got, c.Reason, row.calls)
			}
		})
	}
}

func TestToolResultsAreRepeated(t *testing.T) {
	req := weather("call weather")
	req.Turns = append(
		req.Turns,
		dialogue.Turn{
			Role:  dialogue.Assistant,
			Parts: []dialogue.Part{{Kind: dialogue.CallPart, Call: &dialogue.Call{ID: "1", Name: "weather"}}},
		},
		dialogue.Turn{
			Role: dialogue.User,
			Parts: []dialogue.Part{
				{
					Kind:   dialogue.ResultPart,
					Result: &dialogue.Result{CallID: "1", Parts: []dialogue.Part{{Text: "17 degrees"}}},
				},
			},
		},
	)
	c := reply(t, req, sandbox.Script{}).Choices[0]
	if got := textOf(c); !strings.Contains(got, "17 degrees") || c.Reason != dialogue.ReasonStop {
		t.Errorf("%q, reason %d", got, c.Reason)
	}
}

func TestImagesAreAcknowledged(t *testing.T) {
	req := ask("look")
	req.Turns[0].Parts = append(
		req.Turns[0].Parts,
		dialogue.Part{
			Kind:  dialogue.MediaPart,
			Media: &dialogue.Media{Kind: dialogue.Image, URL: "https://example.com/a.png"},
		},
	)
	if got := textOf(reply(t, req, sandbox.Script{}).Choices[0]); !strings.Contains(got, "your image") {
		t.Errorf("%q", got)
	}
}

func TestFaults(t *testing.T) {
	rows := []struct {
		name   string
		script sandbox.Script
		err    error
		status int
		deltas int
	}{
		{"cut", sandbox.Script{Fault: sandbox.Cut, After: 3}, sandbox.ErrCut, 0, 3},
		{"cut at once", sandbox.Script{Fault: sandbox.Cut}, sandbox.ErrCut, 0, 0},
		{
			"cut later than the reply is long",
			sandbox.Script{Fault: sandbox.Cut, After: 1000, Tokens: 5},
			sandbox.ErrCut,
			0,
			5,
		},
		{"garbage", sandbox.Script{Fault: sandbox.Garbage, After: 2}, sandbox.ErrGarbage, 0, 2},
		{"error", sandbox.Script{Fault: sandbox.Failure, After: 2}, nil, 500, 2},
		{"status", sandbox.Script{Status: 429}, nil, 429, 0},
	}
	for _, row := range rows {
		p, err := record(t, ask("hello"), row.script)
		status := 0
		if p.Err != nil {
			status = p.Err.Status
		}
		if !errors.Is(err, row.err) || status != row.status || p.deltas != row.deltas || p.Done {
			t.Errorf("%s: error %v, status %d, %d deltas, done %v", row.name, err, status, p.deltas, p.Done)
		}
	}
}

func TestStallLastsUntilTheContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Hour, errors.New("enough"))
		defer cancel()
		began := time.Now()
		err := sandbox.Generate(ctx, ask("hello"),
			sandbox.Script{Fault: sandbox.Stall, After: 2, Pace: sandbox.MaxPace}, env(),
			func(*dialogue.Event) error { return nil })
		if took := time.Since(began); err == nil || err.Error() != "enough" || took != time.Hour {
			t.Errorf("ended after %v with %v", took, err)
		}
	})
}

func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var first time.Duration
		err := sandbox.Generate(
			t.Context(),
			ask("hello"),
			sandbox.Script{Pace: 10, Tokens: 21, Delay: time.Second},
			env(),
			func(ev *dialogue.Event) error {
				if ev.Kind == dialogue.EventDelta && first == 0 {
					first = time.Since(began)
				}
				return nil
			},
		)
		if took := time.Since(began); err != nil || first != 1400*time.Millisecond || took != 3400*time.Millisecond {
			t.Errorf("first token after %v, all after %v, %v", first, took, err)
		}
	})
}

func TestGenerateStopsWhenEmitFails(t *testing.T) {
	enough := errors.New("enough")
	calls := 0
	err := sandbox.Generate(
		t.Context(),
		ask("hello"),
		sandbox.Script{Pace: sandbox.MaxPace},
		env(),
		func(*dialogue.Event) error {
			if calls++; calls == 5 {
				return enough
			}
			return nil
		},
	)
	if err != enough || calls != 5 {
		t.Errorf("%v after %d events", err, calls)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := sandbox.Generate(ctx, ask("hello"), sandbox.Script{}, env(),
		func(*dialogue.Event) error { return nil }); !errors.Is(
		err,
		context.Canceled,
	) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestSimulateReadsDirectivesFromHeaderAndPrompt(t *testing.T) {
	m := &sandbox.Model{Env: env(), Base: sandbox.Script{Pace: sandbox.MaxPace}}
	rows := []struct {
		name, header, text string
		status             int
		param              string
	}{
		{"none", "", "hello", 0, ""},
		{"header", "status=503", "hello", 503, ""},
		{"prompt", "", "hello [sandbox: status=404 tokens=3] there", 404, ""},
		{"the prompt overrules", "status=503", "[sandbox: status=429]", 429, ""},
		{"not understood", "dance=yes", "hello", 400, "x-sandbox"},
		{"out of bounds", "status=200", "hello", 400, "x-sandbox"},
	}
	for _, row := range rows {
		var failure *dialogue.Error
		err := m.Simulate(
			t.Context(),
			ask(row.text),
			http.Header{sandbox.Header: {row.header}},
			func(ev *dialogue.Event) error {
				if ev.Kind == dialogue.EventError {
					failure = ev.Err
				}
				return nil
			},
		)
		status, param := 0, ""
		if failure != nil {
			status, param = failure.Status, failure.Param
		}
		if err != nil || status != row.status || param != row.param {
			t.Errorf("%s: status %d, param %q, %v", row.name, status, param, err)
		}
	}
}

func FuzzParseScript(f *testing.F) {
	for _, seed := range []string{"delay=2s, cut=10", "pace=max;drip", "tokens=0", "[sandbox: error=3]", "pace=NaN",
		"delay=-1s"} {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, header, text string) {
		s, err := sandbox.ParseScript(sandbox.Script{}, header, text)
		if err == nil && (s.Delay < 0 || s.Tokens < 0 || s.After < 0 || !(s.Pace >= 0)) {
			t.Errorf("%q and %q gave %+v", header, text, s)
		}
	})
}

func BenchmarkGenerate(b *testing.B) {
	req, e := ask("hello"), env()
	b.ReportAllocs()
	for b.Loop() {
		if err := sandbox.Generate(b.Context(), req, sandbox.Script{Pace: sandbox.MaxPace, Tokens: 100}, e,
			func(*dialogue.Event) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}
