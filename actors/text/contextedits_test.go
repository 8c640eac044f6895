package text_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"stagedoor/actors/text"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/dialogue/dialoguetest"
)

// toolHistory is a messages request with five calls, of which the second is of another tool, and these members.
func toolHistory(members string) string {
	var turns []string
	for i := range 5 {
		name := "f"
		if i == 1 {
			name = "g"
		}
		turns = append(turns,
			fmt.Sprintf(`{"role":"assistant","content":[{"type":"tool_use","id":"toolu_%d","name":%q,`+
				`"input":{"n":%d}}]}`, i, name, i),
			fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_%d",`+
				`"content":"result %d %s"}]}`, i, i, strings.Repeat("long ", 100)))
	}
	return `{"model":"m","max_tokens":50,` + members + `,"tools":[{"name":"f","input_schema":{"type":"object"}},
		{"name":"g","input_schema":{"type":"object"}}],
		"messages":[{"role":"user","content":"the question"},` + strings.Join(turns, ",") + `]}`
}

const clearOld = `"context_management":{"edits":[{"type":"clear_tool_uses_20250919",` +
	`"trigger":{"type":"tool_uses","value":3},"keep":{"type":"tool_uses","value":2},"exclude_tools":["g"]%s}]}`

// has reports which of the five results of toolHistory a body has.
func has(body string) (results []int) {
	for i := range 5 {
		if strings.Contains(body, fmt.Sprintf("result %d", i)) {
			results = append(results, i)
		}
	}
	return results
}

// The vendor of messages clears old results by itself. Any other upstream gets a conversation that the gateway edited.
func TestOldResultsAreClearedForUpstreamsThatDoNotDoIt(t *testing.T) {
	for shape, said := range tooLong {
		if shape == dialoguetest.Messages {
			continue
		}
		play(t, func(t *testing.T, s *stage) {
			s.upstream("a", shape, document(200, said[1]))
			body := toolHistory(fmt.Sprintf(clearOld, ""))
			got := s.ask(s.request(dialoguetest.Messages, body))
			if got.Err != nil || strings.Contains(got.meta.Losses, "context_management") {
				t.Fatalf("%s: got %v, losses %s", shape, got.Err, got.meta.Losses)
			}
			sent := s.fakes["a"].calls[0].body
			if !slices.Equal(has(sent), []int{1, 3, 4}) || strings.Count(sent, "was cleared to save room") != 2 {
				t.Errorf("%s: sent %s", shape, sent)
			}
			edit := gjson.Get(got.text, "context_management.applied_edits.0")
			if edit.Get("type").Str != "clear_tool_uses_20250919" || edit.Get("cleared_tool_uses").Int() != 2 ||
				edit.Get("cleared_input_tokens").Int() < 200 {
				t.Errorf("%s: the reply says %s", shape, got.text)
			}
			s.ask(s.request(dialoguetest.Messages, body))
			if again := s.fakes["a"].calls[1].body; again != sent {
				t.Errorf("%s: the same request became %s and then %s", shape, sent, again)
			}
		})
	}
}

func TestEditsWaitForTheirTriggerAndAreReportedInStreams(t *testing.T) {
	for members, want := range map[string]struct {
		results []int
		args    int // calls whose arguments are sent
	}{
		fmt.Sprintf(clearOld, `,"clear_at_least":{"type":"input_tokens","value":100000}`): {[]int{0, 1, 2, 3, 4}, 5},
		fmt.Sprintf(clearOld, `,"clear_at_least":{"type":"input_tokens","value":100}`):    {[]int{1, 3, 4}, 5},
		fmt.Sprintf(clearOld, `,"clear_tool_inputs":true`):                                {[]int{1, 3, 4}, 3},
		fmt.Sprintf(clearOld, `,"clear_tool_inputs":["other"]`):                           {[]int{1, 3, 4}, 5},
		`"context_management":{"edits":[{"type":"clear_tool_uses_20250919"}]}`:            {[]int{0, 1, 2, 3, 4}, 5},
		`"context_management":{"edits":[{"type":"clear_tool_uses_20250919",
			"trigger":{"type":"input_tokens","value":300},"keep":{"type":"tool_uses","value":0}}]}`: {[]int{4}, 5},
		`"context_management":{"edits":[{"type":"clear_tool_uses_20250919",
			"trigger":{"type":"input_tokens","value":3000}}]}`: {[]int{0, 1, 2, 3, 4}, 5},
		`"context_management":{}`:   {[]int{0, 1, 2, 3, 4}, 5},
		`"context_management":null`: {[]int{0, 1, 2, 3, 4}, 5},
	} {
		play(t, func(t *testing.T, s *stage) {
			s.upstream("a", dialoguetest.Chat, goodChat())
			got := s.ask(s.request(dialoguetest.Messages, toolHistory(`"stream":true,`+members)))
			sent := s.fakes["a"].calls[0].body
			args := strings.Count(sent, `{\"n\":`)
			if got.Err != nil || !slices.Equal(has(sent), want.results) || args != want.args || got.meta.Losses != "" {
				t.Errorf("%s: got %v, losses %q, %d arguments, sent %s", members, got.Err, got.meta.Losses, args, sent)
			}
			applied := strings.Contains(got.text, `"applied_edits":[{"type":"clear_tool_uses_20250919"`)
			if applied != (len(want.results) < 5) {
				t.Errorf("%s: the stream is %s", members, got.text)
			}
		})
	}
}

// A reminder or a message of the system may follow the results, and each result may have a message of its own.
func TestResultsThatTheModelHasNotSeenAreNeverCleared(t *testing.T) {
	const clearAll = `"context_management":{"edits":[{"type":"clear_tool_uses_20250919",` +
		`"trigger":{"type":"tool_uses","value":1},"keep":{"type":"tool_uses","value":0}}]}`
	result := func(i int) string {
		return fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"p%d",`+
			`"content":"result %d %s"}]}`, i, i, strings.Repeat("long ", 100))
	}
	uses := `{"role":"assistant","content":[{"type":"tool_use","id":"p3","name":"f","input":{}},` +
		`{"type":"tool_use","id":"p4","name":"f","input":{}}]}`
	const answer = `{"role":"assistant","content":"So:"}`
	for name, test := range map[string]struct {
		end  []string // follows the five calls of toolHistory
		left []int
	}{
		"a reminder":            {[]string{`{"role":"user","content":"<reminder>todo</reminder>"}`}, []int{4}},
		"a system message":      {[]string{`{"role":"system","content":"The file has changed."}`}, []int{4}},
		"the begin of a reply":  {[]string{answer}, []int{4}},
		"a message each":        {[]string{uses, result(3), result(4)}, []int{3, 4}},
		"an answer and a reply": {[]string{answer, `{"role":"user","content":"go on"}`}, nil},
	} {
		play(t, func(t *testing.T, s *stage) {
			s.upstream("a", dialoguetest.Chat, goodChat())
			body := strings.TrimSuffix(toolHistory(clearAll), "]}") + "," + strings.Join(test.end, ",") + "]}"
			got := s.ask(s.request(dialoguetest.Messages, body))
			if sent := s.fakes["a"].calls[0].body; got.Err != nil || !slices.Equal(has(sent), test.left) {
				t.Errorf("%s: got %v, the results %v were sent", name, got.Err, has(sent))
			}
		})
	}
}

func TestOldThinkingIsClearedByWholeAnswers(t *testing.T) {
	thought := func(text string) dialogue.Part {
		return dialogue.Part{Kind: dialogue.ThinkingPart, Thinking: &dialogue.Thinking{Text: text}}
	}
	turn := func(role dialogue.Role, parts ...dialogue.Part) dialogue.Turn {
		return dialogue.Turn{Role: role, Parts: parts}
	}
	call := dialogue.Part{Kind: dialogue.CallPart, Call: &dialogue.Call{ID: "c", Name: "f"}}
	result := dialogue.Part{Kind: dialogue.ResultPart, Result: &dialogue.Result{CallID: "c"}}
	word := dialogue.Part{Text: "word"}
	for keep, want := range map[int64]struct {
		left    string
		cleared int
	}{0: {"", 2}, 1: {"bc", 1}, 2: {"abc", 0}, math.MaxInt64: {"abc", 0}} {
		req := &dialogue.Request{Turns: []dialogue.Turn{
			turn(dialogue.User, word), turn(dialogue.Assistant, thought("a"), word), turn(dialogue.User, word),
			turn(dialogue.Assistant, thought("b"), call), turn(dialogue.User, result),
			turn(dialogue.Assistant, thought("c"), call), turn(dialogue.User, result),
		}, ContextEdits: []dialogue.ContextEdit{{Thinking: true, Keep: keep}}, OnlyContextEdits: true}
		if !text.EditContext(req) {
			t.Error("an edit is left")
		}
		var left strings.Builder
		for _, turn := range req.Turns {
			for _, p := range turn.Parts {
				if p.Thinking != nil {
					left.WriteString(p.Thinking.Text)
				}
			}
		}
		if left.String() != want.left || req.ContextEdits[0].Cleared != want.cleared {
			t.Errorf("keep %d: %q is left, %d cleared", keep, left.String(), req.ContextEdits[0].Cleared)
		}
	}
}

// Servers that only speak the shape of the vendor refuse the member, at which a client would fail at every request.
func TestEditsThatAnUpstreamRefusesAreMadeHere(t *testing.T) {
	refusal := document(400, says(anthropicSays, "invalid_request_error", "",
		"context_management: Extra inputs are not permitted"))
	body := toolHistory(fmt.Sprintf(clearOld, ""))
	play(t, func(t *testing.T, s *stage) {
		s.upstream("a", dialoguetest.Messages, refusal, document(200, messagesReply("Hello")))
		got := s.ask(s.request(dialoguetest.Messages, body))
		calls := s.fakes["a"].calls
		if got.Err != nil || len(calls) != 2 || calls[0].body != body {
			t.Fatalf("got %v after %d calls, the first with %s", got.Err, len(calls), calls[0].body)
		}
		sent := calls[1].body
		if strings.Contains(sent, "context_management") || !slices.Equal(has(sent), []int{1, 3, 4}) {
			t.Errorf("sent %s", sent)
		}
	})
	play(t, func(t *testing.T, s *stage) {
		s.upstream("a", dialoguetest.Messages, refusal)
		if got := s.ask(s.request(dialoguetest.Messages, body)); got.err == nil || s.fakes["a"].count() != 2 {
			t.Errorf("got %v after %d calls", got.err, s.fakes["a"].count())
		}
	})
	play(t, func(t *testing.T, s *stage) {
		s.upstream("a", dialoguetest.Responses, document(400, unknownContext), document(200, responsesWhole("Hello")))
		got := s.ask(s.request(dialoguetest.Responses, compacting(longHistory("disabled"))))
		calls := s.fakes["a"].calls
		if got.Err != nil || got.meta.Losses != "context_management" || len(calls) != 2 ||
			strings.Contains(calls[1].body, "context_management") {
			t.Errorf("got %v, losses %q after %d calls", got.Err, got.meta.Losses, len(calls))
		}
	})
}

// tightMeter is that of a balance that may end before the reply, whose requests are translated to be ended early.
type tightMeter struct{ endMeter }

func (tightMeter) Begin(context.Context, *catalog.Candidate, int) (tight bool, err *dialogue.Error) {
	return true, nil
}

func (m tightMeter) Another() text.Meter { return m }

// A request that is translated to its own shape gets no other edits than one that passes through, and its reply says
// which were made.
func TestTranslatedRequestsAreEditedAlsoForUpstreamsOfTheirShape(t *testing.T) {
	tight := func(q *text.Request) { q.Meter = tightMeter{func(context.Context) {}} }
	good := document(200, messagesReply("Hello"))
	badIDs := document(400, says(anthropicSays, "invalid_request_error", "",
		"messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"))
	for name, test := range map[string]struct {
		scripts []script
		ask     func(*text.Request)
	}{
		"tight":       {[]script{good}, tight},
		"refused ids": {[]script{badIDs, good}, func(*text.Request) {}},
	} {
		play(t, func(t *testing.T, s *stage) {
			s.upstream("a", dialoguetest.Messages, test.scripts...)
			q := s.request(dialoguetest.Messages, toolHistory(fmt.Sprintf(clearOld, "")))
			test.ask(q)
			got := s.ask(q)
			sent := s.fakes["a"].calls[len(test.scripts)-1].body
			if got.Err != nil || strings.Contains(sent, "context_management") ||
				!slices.Equal(has(sent), []int{1, 3, 4}) {
				t.Errorf("%s: got %v, sent %s", name, got.Err, sent)
			}
			if gjson.Get(got.text, "context_management.applied_edits.0.cleared_tool_uses").Int() != 2 {
				t.Errorf("%s: the reply is %s", name, got.text)
			}
		})
	}
	for name, ask := range map[string]func(*text.Request){
		"tight":    tight,
		"previous": func(q *text.Request) { q.PreviousResponseID = "resp_1" },
	} {
		play(t, func(t *testing.T, s *stage) {
			s.upstream("a", dialoguetest.Responses, document(400, unknownContext),
				document(200, responsesWhole("Hello")))
			q := s.request(dialoguetest.Responses, compacting(longHistory("disabled")))
			ask(q)
			got := s.ask(q)
			calls := s.fakes["a"].calls
			if got.Err != nil || got.meta.Losses != "context_management" || len(calls) != 2 ||
				!strings.Contains(calls[0].body, "context_management") ||
				strings.Contains(calls[1].body, "context_management") {
				t.Errorf("%s: got %v, losses %q after %d calls", name, got.Err, got.meta.Losses, len(calls))
			}
		})
		// The vendor that is asked to compact says why it could not, and no turn is left out.
		play(t, func(t *testing.T, s *stage) {
			s.upstream("a", dialoguetest.Responses, document(400, tooLong[dialoguetest.Responses][0]))
			q := s.request(dialoguetest.Responses, compacting(longHistory("disabled")))
			ask(q)
			got := s.ask(q)
			if got.err == nil || got.err.Code != "context_length_exceeded" || s.fakes["a"].count() != 1 {
				t.Errorf("%s: got %v after %d calls", name, got.err, s.fakes["a"].count())
			}
		})
	}
}

// The vendor refuses a member whose beta is missing.
func TestATranslatedRequestKeepsTheBetasThatItsMembersNeed(t *testing.T) {
	const body = `{"model":"m","max_tokens":50,"speed":"fast","messages":[{"role":"user","content":"x"}]}`
	for shape, want := range map[dialogue.Shape]string{dialoguetest.Messages: "fast-mode-2026-02-01",
		dialoguetest.Chat: ""} {
		play(t, func(t *testing.T, s *stage) {
			s.upstream("a", shape, document(200, tooLong[shape][1]))
			q := s.request(dialoguetest.Messages, body)
			q.In.Header.Set("Anthropic-Beta", "fast-mode-2026-02-01")
			q.Meter = tightMeter{func(context.Context) {}}
			got := s.ask(q)
			call := s.fakes["a"].calls[0]
			if got.Err != nil || call.Header.Get("Anthropic-Beta") != want ||
				strings.Contains(call.body, `"speed":"fast"`) != (want != "") {
				t.Errorf("%s: got %v, sent %v %s", shape, got.Err, call.Header, call.body)
			}
		})
	}
}

// A vendor that knows the member says what is wrong in it, which the client must read.
func TestMistakesInEditsAreSentToTheClient(t *testing.T) {
	for message, calls := range map[string]int{
		"context_management.edits.0: Input tag 'clear_foo' does not match any of the expected tags": 1,
		"context_management.edits.0.foo: Extra inputs are not permitted":                            1,
		"context_management: keep must be at most 100":                                              1,
		"body.context_management: Extra inputs are not permitted":                                   2,
		"json: unknown field 'context_management'":                                                  2,
		"Unrecognized request argument supplied: context_management.":                               2,
	} {
		play(t, func(t *testing.T, s *stage) {
			refusal := document(400, says(anthropicSays, "invalid_request_error", "", message))
			s.upstream("a", dialoguetest.Messages, refusal, document(200, messagesReply("Hello")))
			got := s.ask(s.request(dialoguetest.Messages, toolHistory(fmt.Sprintf(clearOld, ""))))
			if s.fakes["a"].count() != calls || (got.Err == nil) != (calls == 2) {
				t.Errorf("%s: got %v after %d calls", message, got.Err, s.fakes["a"].count())
			}
		})
	}
}

// unknownContext is the refusal of a responses server that does not compact.
const unknownContext = `{"error":{"message":"Unknown parameter: 'context_management'.","param":"context_management"}}`

// compacting is a request of responses that lets the provider compact the conversation while it answers.
func compacting(body string) string {
	return strings.Replace(body, "{", `{"context_management":[{"type":"compaction","compact_threshold":1000}],`, 1)
}

// A client that lets its provider compact the conversation never shortens it, so that a target which does not compact
// would refuse each further turn.
func TestAConversationThatItsProviderWouldCompactIsShortenedWhereItIsTooLong(t *testing.T) {
	const edit = `"context_management":{"edits":[{"type":"compact_20260112"}]}`
	for name, test := range map[string]struct{ from, body string }{
		"responses": {string(dialoguetest.Responses), compacting(longHistory("disabled"))},
		"messages":  {string(dialoguetest.Messages), toolHistory(edit)},
	} {
		play(t, func(t *testing.T, s *stage) {
			s.upstream("a", dialoguetest.Chat, document(400, tooLong[dialoguetest.Chat][0]), document(200, chatWhole))
			got := s.ask(s.request(dialogue.Shape(test.from), test.body))
			if got.Err != nil || got.meta.Losses != "context_management,input:truncated" || s.fakes["a"].count() != 2 {
				t.Errorf("%s: got %v, losses %q after %d calls", name, got.Err, got.meta.Losses, s.fakes["a"].count())
			}
		})
		// The vendor itself knows why it could not compact, and its client acts upon that.
		play(t, func(t *testing.T, s *stage) {
			s.upstream("a", dialogue.Shape(test.from), document(400, tooLong[dialogue.Shape(test.from)][0]))
			got := s.ask(s.request(dialogue.Shape(test.from), test.body))
			if got.err == nil || got.err.Code != "context_length_exceeded" || s.fakes["a"].count() != 1 {
				t.Errorf("%s: got %v after %d calls", name, got.err, s.fakes["a"].count())
			}
		})
	}
}
