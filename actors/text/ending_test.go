package text_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"stagedoor/actors/text"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/dialogue/dialoguetest"
)

// Pieces of the gemini and completions shapes.
const (
	geminiText = `data: {"candidates":[{"index":0,"content":{"role":"model","parts":[{"text":"Hello"}]}}],"modelVersion":"m","responseId":"g1"}` + "\n\n"
	geminiStop = `data: {"candidates":[{"index":0,"finishReason":"STOP"}],"modelVersion":"m","responseId":"g1"}` +
		"\n\n"
	geminiLate = `data: {"candidates":[{"index":0,"content":{"role":"model","parts":[{"text":"too late"}]}}],"modelVersion":"m"}` + "\n\n"
	geminiUsed = `data: {"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":4,"totalTokenCount":7},"modelVersion":"m"}` + "\n\n"

	completionsAskStream = `{"model":"m","stream":true,"prompt":"hi"}`
	completionsText      = `data: {"id":"t1","object":"text_completion","created":1,"model":"m","choices":[{"index":0,"text":"Hello","finish_reason":null}]}` + "\n\n"
	completionsStop      = `data: {"id":"t1","object":"text_completion","created":1,"model":"m","choices":[{"index":0,"text":"","finish_reason":"stop"}]}` + "\n\n"
	completionsLate      = `data: {"id":"t1","object":"text_completion","created":1,"model":"m","choices":[{"index":0,"text":"too late","finish_reason":null}]}` + "\n\n"
)

// An ending is how an upstream of a shape ends an answer: text, reason, a text
// that comes too late, usage.
type ending struct {
	shape           dialogue.Shape
	ask, text, stop string
	late, usage     string
}

var endings = []ending{
	{dialoguetest.Chat, chatAskStream, chatRole + chatText("Hello"), chatStop, chatText("too late"), chatUsage},
	{dialoguetest.Completions, completionsAskStream, completionsText, completionsStop, completionsLate, chatUsage},
	{dialoguetest.Gemini, geminiAsk, geminiText, geminiStop, geminiLate, geminiUsed},
}

// checkWhole expects a good answer with its text, and none of the later events.
func checkWhole(t *testing.T, name string, got received) {
	t.Helper()
	if got.Err != nil || got.status != 200 || !got.Committed {
		t.Errorf("%s: status %d, %v", name, got.status, got.Err)
	}
	// The text has a space, because the random letters of an id may be "late".
	if !strings.Contains(got.text, "Hello") || strings.Contains(got.text, "too late") ||
		strings.Contains(got.text, `"error":{`) {
		t.Errorf("%s: the client got %s", name, got.text)
	}
	if got.took > 3*time.Second {
		t.Errorf("%s: took %v", name, got.took)
	}
}

// clients are the shapes that can ask an upstream of a shape.
func clients(upstream dialogue.Shape) map[dialogue.Shape]string {
	all := map[dialogue.Shape]string{dialoguetest.Chat: chatAskStream, dialoguetest.Messages: messagesAskStream,
		dialoguetest.Responses: responsesAskStream, dialoguetest.Gemini: geminiAsk}
	if upstream == dialoguetest.Completions {
		return map[dialogue.Shape]string{dialoguetest.Completions: completionsAskStream}
	}
	return all
}

func TestAStreamWithoutDoneIsACompleteAnswer(t *testing.T) {
	for _, e := range endings {
		for client, ask := range clients(e.shape) {
			play(t, func(t *testing.T, s *stage) {
				s.upstream("a", e.shape, stream(e.text, time.Millisecond, e.stop))
				got := s.ask(s.request(client, ask))
				checkWhole(t, string(client)+" from "+string(e.shape), got)
				done := client == dialoguetest.Chat || client == dialoguetest.Completions
				if strings.HasSuffix(got.text, chatDone) != done {
					t.Errorf("%s from %s ends %q", client, e.shape, got.text[max(0, len(got.text)-60):])
				}
			})
		}
	}
}

func TestNothingAfterTheReasonSpoilsAnAnswer(t *testing.T) {
	tried := 0
	for _, e := range endings {
		for name, after := range map[string][]any{
			"a reset":             {reset},
			"silence":             {stall},
			"another error":       {errors.New("tls: bad record MAC")},
			"an event of garbage": {"data: <html>\n\n"},
			"an object cut short": {`data: {"usage":{` + "\n\n"},
			"more text":           {e.late},
			"a second reason":     {e.stop},
			"text and the reason": {strings.Replace(e.late, `"finish_reason":null`, `"finish_reason":"stop"`, 1)},
			"garbage and silence": {"data: <html>\n\n", stall},
		} {
			for client, ask := range clients(e.shape) {
				if tried++; testing.Short() && tried%3 != 0 {
					continue // a third of them, and others in the next run because the order of maps is random
				}
				play(t, func(t *testing.T, s *stage) {
					pieces := append([]any{e.text, time.Millisecond, e.stop, time.Millisecond}, after...)
					s.upstream("a", e.shape, stream(pieces...))
					checkWhole(t, name+" to "+string(client)+" from "+string(e.shape), s.ask(s.request(client, ask)))
				})
			}
		}
	}
}

func TestUsageAfterTheReasonIsWaitedFor(t *testing.T) {
	for _, e := range endings {
		for client, ask := range clients(e.shape) {
			play(t, func(t *testing.T, s *stage) {
				s.upstream("a", e.shape, stream(e.text, time.Millisecond, e.stop, time.Second, e.usage, stall))
				got := s.ask(s.request(client, ask))
				checkWhole(t, string(client)+" from "+string(e.shape), got)
				if got.Usage.InputTotal != 3 || got.Usage.OutputTotal != 4 {
					t.Errorf("%s from %s: usage %+v", client, e.shape, got.Usage)
				}
			})
		}
	}
}

// An answer of several choices is whole when all of them have ended.
func TestAnAnswerWaitsForAllItsChoices(t *testing.T) {
	const ask = `{"model":"m","stream":true,"n":2,"messages":[{"role":"user","content":"hi"}]}`
	second := func(s string) string { return strings.Replace(s, `"index":0`, `"index":1`, 1) }
	play(t, func(t *testing.T, s *stage) {
		s.upstream("a", dialoguetest.Chat, stream(chatRole+chatText("Hello"), time.Millisecond, chatStop,
			10*time.Second, second(chatText("World")), second(chatStop)))
		if got := s.ask(s.request(dialoguetest.Chat, ask)); got.Err != nil || !strings.Contains(got.text, "World") {
			t.Errorf("got %v, %s", got.Err, got.text)
		}
	})
	play(t, func(t *testing.T, s *stage) {
		s.upstream("a", dialoguetest.Chat, stream(chatRole+chatText("Hello"), time.Millisecond, chatStop, reset))
		if got := s.ask(s.request(dialoguetest.Chat, ask)); got.Err == nil {
			t.Errorf("half an answer is taken for a whole one: %s", got.text)
		}
	})
}

// What an upstream sends is judged by one rule, whatever the client's shape: the two
// ends of a short event, and the whole of a long one.
func TestEventsAreJudgedByOneRuleOnBothLanes(t *testing.T) {
	tried := 0
	blanks := strings.Repeat(" ", 1<<10)
	for _, e := range endings {
		for name, row := range map[string]struct {
			event string
			good  bool
		}{
			"a page":                     {"<html>", false},
			"a word in quotes":           {`"hello"`, false},
			"a list":                     {`[{"a":1}]`, false},
			"a short object cut off":     {`{"a":1`, false},
			"a long object with a flaw":  {`{"a":` + blanks + `}`, false},
			"a short object with a flaw": {`{"later":}`, true},
			"a short object":             {`{"later":1}`, true},
			"a long object":              {`{"later":` + blanks + `1}`, true},
		} {
			for client, ask := range clients(e.shape) {
				if tried++; testing.Short() && tried%3 != 0 {
					continue // a third of them, and others in the next run because the order of maps is random
				}
				play(t, func(t *testing.T, s *stage) {
					event := "data: " + row.event + "\n\n"
					s.upstream("a", e.shape, stream(e.text, time.Millisecond, event, time.Millisecond, e.stop, e.usage))
					got := s.ask(s.request(client, ask))
					if good := got.Err == nil; good != row.good {
						t.Errorf("%s to %s from %s: %v", name, client, e.shape, got.Err)
					}
					if !row.good && got.Err != nil && got.Err.Code != "upstream_invalid_response" {
						t.Errorf("%s to %s from %s: %v", name, client, e.shape, got.Err)
					}
				})
			}
		}
	}
}

// The total deadline of a request with several attempts may pass while only the usage
// of the last one is waited for.
func TestTheTotalDeadlineDoesNotFailAWholeAnswer(t *testing.T) {
	const total = 10 * time.Second
	for _, e := range endings {
		for client, ask := range clients(e.shape) {
			play(t, func(t *testing.T, s *stage) {
				s.add(catalog.Provider{
					Name: "a", Shape: e.shape, BaseURL: "http://a.test", APIKeys: []string{"k1"}, Retries: 2,
					Timeouts: catalog.Timeouts{Total: total},
				}, &fake{scripts: []script{
					stream(5500*time.Millisecond, reset), stream(e.text, 3*time.Second, e.stop, stall),
				}})
				settled := false
				o := s.request(client, ask)
				o.Meter = endMeter(func(ctx context.Context) { settled = ctx.Err() == nil })
				got := s.ask(o)
				if got.took < total-time.Second || got.took > total+time.Second {
					t.Fatalf("%s from %s: took %v, so the deadline did not pass in the wait", client, e.shape, got.took)
				}
				failed := got.Err != nil || strings.Contains(got.text, `"error":{`)
				if failed || !strings.Contains(got.text, "Hello") || !settled {
					t.Errorf("%s from %s: %v, settled %v: %s", client, e.shape, got.Err, settled, got.text)
				}
			})
		}
	}
}

// endMeter calls itself when a request is settled.
type endMeter func(ctx context.Context)

func (endMeter) Begin(context.Context, *catalog.Candidate, int) (bool, *dialogue.Error) {
	return false, nil
}
func (endMeter) Progress(*text.Outcome) bool { return false }
func (m endMeter) Another() text.Meter       { return m }

func (m endMeter) Settle(ctx context.Context, _ *text.Outcome) *dialogue.Error { m(ctx); return nil }
