package text_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"stagedoor/actors/text"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue/dialoguetest"
)

// Four choices of a shape that can only be asked for one at a time.
const fourChoices = `{"model":"m","n":4,"messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"a.very/odd name","parameters":{"type":"object"}}}]}`

func messagesReply(text string) string {
	return fmt.Sprintf(`{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":%q}],"stop_reason":"end_turn","usage":{"input_tokens":3,"output_tokens":5}}`, text)
}

func fourOf(s *stage, limit int, play script) *catalog.Provider {
	spec := catalog.Provider{Name: "a", Shape: dialoguetest.Messages, BaseURL: "http://a.test", APIKeys: []string{"k"},
		Retries: 1, Limits: catalog.Limits{Concurrency: limit}}
	s.add(spec, &fake{scripts: []script{play}})
	return &spec
}

func TestFanOutMergesChoicesAndSumsUsage(t *testing.T) {
	for limit := range 4 {
		t.Run(fmt.Sprintf("at most %d at once", limit), func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				var now, most atomic.Int64
				fourOf(s, limit, func(c *call) (*http.Response, error) {
					most.Store(max(most.Load(), now.Add(1)))
					defer now.Add(-1)
					time.Sleep(time.Duration(c.number) * time.Second)
					return document(200, messagesReply(fmt.Sprint("number ", c.number)))(c)
				})
				got := s.ask(s.request(dialoguetest.Chat, strings.Replace(fourChoices, "a.very/odd name", "plain", 1)))
				doc := gjson.Parse(got.text)
				if got.status != 200 || doc.Get("choices.#").Int() != 4 || doc.Get("usage.completion_tokens").Int() != 20 || doc.Get("usage.prompt_tokens").Int() != 12 {
					t.Errorf("got %d %v %s", got.status, got.err, got.text)
				}
				for i, c := range doc.Get("choices").Array() {
					if c.Get("index").Int() != int64(i) || !strings.HasPrefix(c.Get("message.content").Str, "number ") {
						t.Errorf("choice %d: %s", i, c.Raw)
					}
				}
				if limit > 0 && most.Load() > int64(limit) {
					t.Errorf("%d calls at once", most.Load())
				}
			})
		})
	}
}

// fanOutFailures are the ways in which a call fails before its answer begins.
var fanOutFailures = map[string]script{
	"status": document(529, `{"type":"error","error":{"type":"overloaded_error","message":"busy"}}`),
	"reset":  unreachable(reset),
	"body":   document(200, `{"type":"error","error":{"type":"overloaded_error","message":"busy"}}`),
}

func TestAFailedCallOfAFanOutIsMadeOnceMore(t *testing.T) {
	for name, bad := range fanOutFailures {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				fourOf(s, 2, func(c *call) (*http.Response, error) {
					if c.number == 3 {
						return bad(c)
					}
					return document(200, messagesReply("x"))(c)
				})
				got := s.ask(s.request(dialoguetest.Chat, strings.Replace(fourChoices, "a.very/odd name", "plain", 1)))
				if n := gjson.Get(got.text, "choices.#").Int(); n != 4 || got.Err != nil || s.fakes["a"].count() != 5 {
					t.Errorf("%d choices, %v, %d calls", n, got.Err, s.fakes["a"].count())
				}
			})
		})
	}
}

func TestChoicesThatFailTwiceAreLeftOutOfTheReply(t *testing.T) {
	for name, bad := range fanOutFailures {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				fourOf(s, 1, func(c *call) (*http.Response, error) {
					if c.number > 1 {
						return bad(c)
					}
					return document(200, messagesReply("x"))(c)
				})
				got := s.ask(s.request(dialoguetest.Chat, strings.Replace(fourChoices, "a.very/odd name", "plain", 1)))
				doc := gjson.Parse(got.text)
				if doc.Get("choices.#").Int() != 1 || got.Err != nil || doc.Get("usage.completion_tokens").Int() != 5 ||
					!strings.Contains(got.meta.Losses, "n:incomplete") {
					t.Errorf("%v, losses %q: %s", got.Err, got.meta.Losses, got.text)
				}
			})
		})
	}
}

func TestAFanOutWhoseCallsAllFailFailsTheRequest(t *testing.T) {
	fanOutFailures := maps.Clone(fanOutFailures)
	fanOutFailures["panic"] = func(*call) (*http.Response, error) { panic("transport") }
	fanOutFailures["refusal"] = document(400, chatRefuse)
	for name, bad := range fanOutFailures {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				fourOf(s, 2, bad)
				got := s.ask(s.request(dialoguetest.Chat, strings.Replace(fourChoices, "a.very/odd name", "plain", 1)))
				if got.status < 400 || got.text != "" {
					t.Errorf("got %d %q", got.status, got.text)
				}
			})
		})
	}
}

func TestAFanOutTriedAgainBeginsAnew(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		fourOf(s, 0, func(c *call) (*http.Response, error) {
			if c.number == 2 {
				return document(500, chatRefuse)(c)
			}
			return document(200, messagesReply("x"))(c)
		})
		got := s.ask(s.request(dialoguetest.Chat, strings.Replace(fourChoices, "a.very/odd name", "plain", 1)))
		if got.status != 200 || gjson.Get(got.text, "choices.#").Int() != 4 || gjson.Get(got.text, "usage.completion_tokens").Int() != 20 || got.Usage.OutputTotal != 20 {
			t.Errorf("got %d %v %s", got.status, got.err, got.text)
		}
	})
}

func TestFanOutGivesRenamedToolsTheirNamesBack(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		fourOf(s, 0, func(c *call) (*http.Response, error) {
			name := gjson.Get(c.body, "tools.0.name").Str
			if name == "a.very/odd name" {
				t.Error("the name was not changed: this test tests nothing")
			}
			return document(200, fmt.Sprintf(`{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"tool_use","id":"t1","name":%q,"input":{}}],"stop_reason":"tool_use","usage":{"input_tokens":3,"output_tokens":5}}`, name))(c)
		})
		got := s.ask(s.request(dialoguetest.Chat, fourChoices))
		for _, c := range gjson.Get(got.text, "choices").Array() {
			if name := c.Get("message.tool_calls.0.function.name").Str; name != "a.very/odd name" {
				t.Errorf("the client's tool came back as %q", name)
			}
		}
		if gjson.Get(got.text, "choices.#").Int() != 4 {
			t.Errorf("got %d %v %s", got.status, got.err, got.text)
		}
	})
}

// TestFanOutFillsEachCall asks for more choices than one call of the shape makes.
func TestFanOutFillsEachCall(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		var asked atomic.Int64
		spec := catalog.Provider{Name: "a", Shape: dialoguetest.Gemini, BaseURL: "http://a.test",
			APIKeys: []string{"k"}, Retries: 1}
		s.add(spec, &fake{scripts: []script{func(c *call) (*http.Response, error) {
			n := max(gjson.Get(c.body, "generationConfig.candidateCount").Int(), 1)
			asked.Add(n)
			var candidates []string
			for i := range n {
				candidates = append(candidates, fmt.Sprintf(`{"index":%d,"content":{"role":"model","parts":[{"text":"one of %d"}]},"finishReason":"STOP"}`, i, n))
			}
			return document(200, `{"candidates":[`+strings.Join(candidates,
				",")+`],"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":5,"totalTokenCount":8}}`)(c)
		}}})
		got := s.ask(s.request(dialoguetest.Chat, strings.Replace(fourChoices, `"n":4`, `"n":19`, 1)))
		choices := gjson.Get(got.text, "choices").Array()
		if got.status != 200 || len(choices) != 19 || asked.Load() != 19 || gjson.Get(got.text, "usage.prompt_tokens").Int() != 9 {
			t.Fatalf("%d were asked for: %d %v %s", asked.Load(), got.status, got.err, got.text)
		}
		for i, want := range map[int]string{0: "one of 8", 8: "one of 8", 15: "one of 8", 16: "one of 3", 18: "one of 3"} {
			if c := choices[i]; c.Get("index").Int() != int64(i) || c.Get("message.content").Str != want {
				t.Errorf("choice %d: %s", i, c.Raw)
			}
		}
	})
}

// poorMeter has no money for anything beyond the first piece of a reply.
type poorMeter struct{ endMeter }

func (poorMeter) Progress(*text.Outcome) bool { return true }

// A call that stops because the reply has ended has not failed. Another one would be paid for and not be heard.
func TestAFanOutWithoutMoneyMakesNoFurtherCalls(t *testing.T) {
	const begin = `data: {"type":"message_start","message":{"id":"msg_1","model":"m","usage":{"input_tokens":3,` +
		`"output_tokens":1}}}` + "\n\n"
	const piece = `data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}` + "\n\n" +
		`data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x"}}` + "\n\n"
	play(t, func(t *testing.T, s *stage) {
		fourOf(s, 0, func(c *call) (*http.Response, error) {
			if c.number == 1 {
				return stream(begin+piece+"event: ping\n", stall)(c) // its text waits for the next event
			}
			return stream(time.Duration(c.number)*time.Second, begin, stall)(c)
		})
		o := s.request(dialoguetest.Chat, strings.Replace(fourChoices, `{`, `{"stream":true,`, 1))
		o.Meter = poorMeter{func(context.Context) {}}
		got := s.ask(o)
		if got.Err != nil || !strings.Contains(got.text, `"finish_reason":"length"`) || s.fakes["a"].count() != 4 {
			t.Errorf("got %v after %d calls: %s", got.Err, s.fakes["a"].count(), got.text)
		}
	})
}

// The calls of a fan-out may be served at several service tiers. The tier of the reply is then none, whichever call
// ends last, so that the plain price is charged.
func TestCallsAtSeveralServiceTiersHaveThePlainPrice(t *testing.T) {
	for name, c := range map[string]struct {
		tiers [4]string
		want  string
	}{
		"all the same":     {[4]string{"batch", "batch", "batch", "batch"}, "batch"},
		"the first":        {[4]string{"standard", "batch", "batch", "batch"}, ""},
		"the last":         {[4]string{"batch", "batch", "batch", "standard"}, ""},
		"the two in pairs": {[4]string{"batch", "standard", "standard", "batch"}, ""},
		"one says nothing": {[4]string{"batch", "auto", "batch", "batch"}, "batch"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				fourOf(s, 0, func(call *call) (*http.Response, error) {
					time.Sleep(time.Duration(call.number) * time.Second)
					tier := fmt.Sprintf(`"usage":{"service_tier":%q,`, c.tiers[call.number-1])
					return document(200, strings.Replace(messagesReply("x"), `"usage":{`, tier, 1))(call)
				})
				if got := s.ask(s.request(dialoguetest.Chat, fourChoices)); got.ServiceTier != c.want || got.status != 200 {
					t.Errorf("the tier is %q: %d %v", got.ServiceTier, got.status, got.err)
				}
			})
		})
	}
}
