package text_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"stagedoor/actors/kit/kittest"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/dialogue/dialoguetest"
	"stagedoor/providers/shapes/images"
)

var (
	refusedDial = &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	reset       = io.ErrUnexpectedEOF
)

func TestAGoodReplyPassesUntouched(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.upstream("a", dialoguetest.Chat, goodChat(), document(200, chatWhole))
		got := s.ask(s.request(dialoguetest.Chat, chatAskStream))
		// The client did not request the usage.
		want := chatRole + chatText("Hello") + chatStop + chatDone
		if got.text != want || got.Err != nil || !got.Committed || got.Usage.OutputTotal != 4 || got.Attempts != 1 || !got.Untouched {
			t.Errorf("got %+v", got)
		}
		got = s.ask(s.request(dialoguetest.Chat, chatAsk))
		if got.text != chatWhole || got.Err != nil || got.Usage.InputTotal != 3 || got.Provider != "a" {
			t.Errorf("got %+v", got)
		}
	})
}

// Some clients split lines at U+2028 and U+2029, which JSON allows in strings. A translated reply
// has them escaped; one that passes through keeps its bytes.
func TestLineSeparatorsOfUnicodeAreEscapedInTranslatedReplies(t *testing.T) {
	const separated = "a\u2028b\u2029c\u2014d"
	play(t, func(t *testing.T, s *stage) {
		piece := strings.Replace(chatText("Hello"), "Hello", separated, 1)
		s.upstream("a", dialoguetest.Chat, stream(chatRole+piece, chatStop+chatUsage+chatDone),
			document(200, strings.Replace(chatWhole, "Hello", separated, 1)),
			stream(chatRole+piece, chatStop+chatUsage+chatDone))
		for _, ask := range []string{messagesAskStream, strings.Replace(messagesAskStream, `"stream":true,`, "", 1)} {
			got := s.ask(s.request(dialoguetest.Messages, ask))
			if got.Err != nil || !strings.Contains(got.text, `a\u2028b\u2029c`+"\u2014d") {
				t.Errorf("got %+v", got)
			}
		}
		if got := s.ask(s.request(dialoguetest.Chat, chatAskStream)); !strings.Contains(got.text, separated) {
			t.Errorf("passed through: %+v", got)
		}
	})
}

func TestWhatFailsBeforeTheFirstPieceIsTriedAgain(t *testing.T) {
	rows := []struct {
		name string
		fail script
	}{
		{"unreachable", unreachable(refusedDial)},
		{"reset before the headers", unreachable(reset)},
		{"500", document(500, chatRefuse)},
		{"503", document(503, chatRefuse)},
		{"429 that says when", withHeader(document(429, chatRefuse), "Retry-After", "2")},
		{"a page", reply(200, "text/html", "<html>")},
		{"nothing", stream()},
		{"only the end", stream(chatDone)},
		{"a beginning and a reset", stream(chatRole, reset)},
		{"a beginning and an end", stream(chatRole)},
		{"an error first", stream(strings.Replace(chatError, "rate_limit", "overloaded", 2))},
		{"silence", stream(stall)},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				s.upstream("a", dialoguetest.Chat, row.fail, goodChat())
				got := s.ask(s.request(dialoguetest.Chat, chatAskStream))
				if got.status != 200 || strings.Count(got.text, "Hello") != 1 || !strings.HasSuffix(got.text, chatDone) {
					t.Errorf("got %d %v %q", got.status, got.err, got.text)
				}
				if got.Err != nil || got.Attempts != 2 || s.fakes["a"].count() != 2 {
					t.Errorf("got %v after %d attempts, %d calls", got.Err, got.Attempts, s.fakes["a"].count())
				}
			})
		})
	}
}

func TestAfterTheFirstPieceAFailureIsTheStreamsLastEvent(t *testing.T) {
	ends := map[string][]any{"reset": {reset}, "end": {}, "silence": {stall}, "error event": {chatError},
		"garbage": {"data: {\"choices\":[{\n\n"}}
	asks := map[string]struct {
		shape    dialogue.Shape
		body     string
		terminal string
	}{
		"chat":      {dialoguetest.Chat, chatAskStream, `"error":{`},
		"messages":  {dialoguetest.Messages, messagesAskStream, "event: error\n"},
		"responses": {dialoguetest.Responses, responsesAskStream, "event: response.failed\n"},
		"gemini":    {dialoguetest.Gemini, geminiAsk, `"error":`},
	}
	for how, end := range ends {
		for who, ask := range asks {
			t.Run(how+" "+who, func(t *testing.T) {
				play(t, func(t *testing.T, s *stage) {
					s.upstream("a", dialoguetest.Chat,
						stream(append([]any{chatRole + chatText("Hel"), time.Second}, end...)...))
					s.upstream("b", dialoguetest.Chat, goodChat())
					got := s.ask(s.request(ask.shape, ask.body))
					if got.status != 200 || !strings.Contains(got.text, "Hel") || got.Err == nil {
						t.Errorf("got %d %v", got.status, got.Err)
					}
					if n := strings.Count(got.text, ask.terminal); n != 1 {
						t.Errorf("%d terminal events in %q", n, got.text)
					}
					if n := s.fakes["a"].count() + s.fakes["b"].count(); n != 1 {
						t.Errorf("%d calls", n)
					}
				})
			})
		}
	}
}

// An upstream that began in good order and reports an error before any piece of
// answer has failed before the first byte for every purpose but one: a client
// that asked for a stream reads the error there.
func TestAnErrorAfterTheStartIsTheStreamsOwn(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.upstream("a", dialoguetest.Chat, stream(chatRole+chatError))
		for _, ask := range []struct {
			shape          dialogue.Shape
			body, terminal string
		}{{dialoguetest.Chat, chatAskStream, `"error":{`}, {dialoguetest.Messages, messagesAskStream, "event: error\n"},
			{dialoguetest.Responses, responsesAskStream, "event: response.failed\n"},
			{dialoguetest.Gemini, geminiAsk, `"error":`}} {
			before := s.fakes["a"].count()
			got := s.ask(s.request(ask.shape, ask.body))
			if got.status != 200 || strings.Count(got.text, ask.terminal) != 1 || !strings.Contains(got.text, "too fast") {
				t.Errorf("%s: got %d %v %q", ask.shape, got.status, got.err, got.text)
			}
			if got.Err == nil || !got.Committed {
				t.Errorf("%s: the outcome hides the failure: %+v", ask.shape, got.Outcome)
			}
			if n := s.fakes["a"].count() - before; n != 1 {
				t.Errorf("%s: %d calls", ask.shape, n)
			}
		}

	})
}

func TestAnErrorAfterTheStartIsRetriedAndForgotten(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.upstream("a", dialoguetest.Chat, stream(chatRole+strings.Replace(chatError, "rate_limit", "overloaded", 2)),
			goodChat())
		for _, ask := range []struct {
			shape dialogue.Shape
			body  string
		}{{dialoguetest.Chat, chatAskStream}, {dialoguetest.Messages, messagesAskStream}} {
			got := s.ask(s.request(ask.shape, ask.body))
			if strings.Contains(got.text, "too fast") || strings.Count(got.text, "Hello") != 1 || got.Err != nil {
				t.Errorf("%s: got %v %q", ask.shape, got.Err, got.text)
			}
			s.fakes["a"].mu.Lock()
			s.fakes["a"].calls = nil
			s.fakes["a"].mu.Unlock()
		}
	})
}

// The retry budget has three places at least. A request that was retried gives its place
// back when it ends, so any number of requests one after the other may be retried.
func TestARequestThatWasRetriedGivesItsPlaceInTheBudgetBack(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.upstream("a", dialoguetest.Chat, document(503, `{"error":{"message":"busy"}}`), goodChat())
		for n := range 3 * 2 {
			got := s.ask(s.request(dialoguetest.Chat, chatAskStream))
			if got.Err != nil || got.Attempts != 2 {
				t.Fatalf("request %d: got %v after %d attempts, want an answer after two", n, got.Err, got.Attempts)
			}
			s.fakes["a"].mu.Lock()
			s.fakes["a"].calls = nil
			s.fakes["a"].mu.Unlock()
		}
	})
}

func TestAnErrorAfterTheStartGoesElsewhereAndCountsWhatFailedLast(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.upstream("a", dialoguetest.Chat, stream(chatRole+chatError))
		s.upstream("b", dialoguetest.Chat,
			document(400, `{"error":{"message":"no such thing","type":"invalid_request_error"}}`))
		got := s.ask(s.request(dialoguetest.Chat, chatAskStream))
		if got.status != 400 || got.Provider != "b" {
			t.Errorf("got %d from %s: %q", got.status, got.Provider, got.text)
		}
	})
}

func TestAnErrorIsAStatusWhereNothingBegan(t *testing.T) {
	for name, tc := range map[string]struct {
		play script
		body string
	}{
		"first event":                    {stream(chatError), chatAskStream},
		"a whole reply was asked for":    {stream(chatRole + chatError), chatAsk},
		"an error with status 200":       {document(200, `{"error":{"message":"too fast","type":"rate_limit_error","code":"rate_limit_exceeded"}}`), chatAsk},
		"an error instead of the stream": {document(200, `{"error":{"message":"too fast","type":"rate_limit_error","code":"rate_limit_exceeded"}}`), chatAskStream},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				s.upstream("a", dialoguetest.Chat, tc.play)
				if got := s.ask(s.request(dialoguetest.Chat, tc.body)); got.status != 429 || got.text != "" {
					t.Errorf("got %d %v %q", got.status, got.err, got.text)
				}
			})
		})
	}
}

func TestAStreamWhereAWholeReplyWasAskedForIsCollected(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.upstream("a", dialoguetest.Chat, goodChat(), document(200, chatWhole))
		if got := s.ask(s.request(dialoguetest.Chat, chatAsk)); got.status != 200 || !strings.Contains(got.text, `"chat.completion"`) || !strings.Contains(got.text, "Hello") {
			t.Errorf("got %d %q", got.status, got.text)
		}
		if got := s.ask(s.request(dialoguetest.Chat, chatAskStream)); got.status != 200 || !strings.HasSuffix(got.text, chatDone) || !strings.Contains(got.text, "Hello") {
			t.Errorf("got %d %q", got.status, got.text)
		}
	})
}

func TestFallbacksAreTriedInOrder(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.upstream("a", dialoguetest.Chat, document(500, chatRefuse))
		s.upstream("b", dialoguetest.Messages,
			document(401, `{"type":"error","error":{"type":"authentication_error","message":"k1 is wrong"}}`))
		s.upstream("c", dialoguetest.Chat, goodChat())
		got := s.ask(s.request(dialoguetest.Chat, chatAskStream))
		if got.status != 200 || got.Provider != "c" || got.Attempts != 4 {
			t.Errorf("got %d from %s after %d attempts", got.status, got.Provider, got.Attempts)
		}
		if a, b := s.fakes["a"].count(), s.fakes["b"].count(); a != 2 || b != 1 {
			t.Errorf("%d and %d calls, want 2 and 1", a, b)
		}
	})
}

func TestAFailureNamesItsProviderAndAttempts(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.upstream("a", dialoguetest.Chat, document(500, chatRefuse))
		got := s.ask(s.request(dialoguetest.Chat, chatAskStream))
		if got.status != 500 || got.Provider != "a" || got.Attempts != 3 || got.meta.Provider != "a" || got.Committed {
			t.Errorf("got %+v", got)
		}
	})
}

func TestARefusedKeyGivesItsTurnToTheNext(t *testing.T) {
	for _, tc := range []struct {
		name string
		fail script
	}{
		{"401", document(401, chatRefuse)},
		{"403", document(403, chatRefuse)},
		{"429", withHeader(document(429, chatRefuse), "Retry-After", "3600")},
		{"503", withHeader(document(503, chatRefuse), "Retry-After", "3600")},
		{"429 in the stream", stream(chatRole + chatError)},
		{"429 in the body", document(200,
			`{"error":{"message":"x","type":"rate_limit_error","code":"rate_limit_exceeded"}}`)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				bad := ""
				f := &fake{scripts: []script{func(c *call) (*http.Response, error) {
					if bad == "" {
						bad = c.key
					}
					if c.key == bad {
						return tc.fail(c)
					}
					return goodChat()(c)
				}}}
				s.add(catalog.Provider{Name: "a", Shape: dialoguetest.Chat, BaseURL: "http://a.test",
					APIKeys: []string{"k1", "k2", "k3"}, Retries: 1}, f)
				for i := range 7 {
					got := s.ask(s.request(dialoguetest.Chat, chatAskStream))
					if got.status != 200 || got.took > time.Second {
						t.Fatalf("request %d: got %d after %s: %v", i, got.status, got.took, got.err)
					}
				}
				if n := f.count(); n > 9 { // the refused key rests for a while
					t.Errorf("%d calls for 7 requests", n)
				}
			})
		})
	}
}

// A 503 with a time is about one key and one model, as a 429 is: requests for other models go on at once.
func TestAnOverloadWithATimeHoldsUpItsModelOnly(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.upstream("a", dialoguetest.Chat, withHeader(document(503, chatRefuse), "Retry-After", "60"), goodChat())
		if got := s.ask(s.request(dialoguetest.Chat, chatAskStream)); got.status != 503 {
			t.Fatalf("got %d", got.status)
		}
		kittest.Quiesce()
		another := s.request(dialoguetest.Chat, chatAskStream)
		another.Plan = slices.Clone(another.Plan)
		another.Plan[0].Model = "other"
		if got := s.ask(another); got.status != 200 || got.meta.Queued > 0 {
			t.Errorf("another model: %d after %s", got.status, got.meta.Queued)
		}
		if got := s.ask(s.request(dialoguetest.Chat, chatAskStream)); got.status != 200 {
			t.Errorf("a trial of the same model: %d", got.status)
		}
	})
}

func TestAnUpstreamsRefusalOfOurKeyIsNotTheClients(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.upstream("a", dialoguetest.Chat,
			document(401, `{"error":{"message":"Incorrect API key k1","type":"invalid_request_error"}}`))
		got := s.ask(s.request(dialoguetest.Chat, chatAsk))
		if got.status != 502 || strings.Contains(got.err.Message, "k1") {
			t.Errorf("got %d %q", got.status, got.err.Message)
		}
		if n := s.fakes["a"].count(); n != 1 {
			t.Errorf("%d calls", n)
		}
	})
}

// TestARequestThatNeverFitsHoldsUpNobodyElse: a 429 about the size of one request is not
// tried again where it cannot fit, goes to another target, and cools nothing.
func TestARequestThatNeverFitsHoldsUpNobodyElse(t *testing.T) {
	large := document(429, `{"error":{"message":"Request too large for m on tokens per min (TPM): Limit 30000, Requested 41000.","type":"tokens","code":"rate_limit_exceeded"}}`)
	for _, keys := range [][]string{{"k1"}, {"k1", "k2"}} {
		play(t, func(t *testing.T, s *stage) {
			f := &fake{scripts: []script{large, document(200, chatWhole)}}
			s.add(catalog.Provider{Name: "a", Shape: dialoguetest.Chat, BaseURL: "http://a.test", APIKeys: keys,
				Retries: 2}, f)
			got := s.ask(s.request(dialoguetest.Chat, chatAsk))
			if got.status != 429 || !got.err.NoRetry || f.count() != 1 {
				t.Errorf("the large request: %d %v after %d calls", got.status, got.err, f.count())
			}
			kittest.Quiesce()
			for range 5 {
				if got := s.ask(s.request(dialoguetest.Chat, chatAsk)); got.status != 200 || got.took > 0 {
					t.Errorf("another request: %d after %s: %v", got.status, got.took, got.err)
				}
			}
		})
	}
	play(t, func(t *testing.T, s *stage) {
		s.upstream("small", dialoguetest.Chat, large)
		s.upstream("big", dialoguetest.Chat, document(200, chatWhole))
		if got := s.ask(s.request(dialoguetest.Chat, chatAsk)); got.status != 200 || got.took > 0 || s.fakes["small"].count() != 1 {
			t.Errorf("another target: %d after %s: %v", got.status, got.took, got.err)
		}
	})
}

// TestARateLimitOfOneModelLeavesTheOthersAlone: the provider's other models are asked at
// once, with one key and with several.
func TestARateLimitOfOneModelLeavesTheOthersAlone(t *testing.T) {
	for _, keys := range [][]string{{"k1"}, {"k1", "k2"}} {
		play(t, func(t *testing.T, s *stage) {
			f := &fake{scripts: []script{func(c *call) (*http.Response, error) {
				if strings.Contains(c.body, `"busy"`) {
					return withHeader(document(429, chatRefuse), "Retry-After", "30")(c)
				}
				return document(200, chatWhole)(c)
			}}}
			s.add(catalog.Provider{Name: "a", Shape: dialoguetest.Chat, BaseURL: "http://a.test", APIKeys: keys,
				Retries: 1}, f)
			busy := s.request(dialoguetest.Chat, chatAsk)
			s.targets[0].Model = "busy"
			busy.Plan = s.plan()
			s.targets[0].Model = "m"
			if got := s.ask(busy); got.status != 429 {
				t.Errorf("the busy model: %d", got.status)
			}
			kittest.Quiesce()
			for range 3 {
				if got := s.ask(s.request(dialoguetest.Chat, chatAsk)); got.status != 200 || got.took > 0 {
					t.Errorf("%d keys, another model: %d after %s: %v", len(keys), got.status, got.took, got.err)
				}
			}
		})
	}
}

func TestALongRetryAfterIsPassedOn(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.upstream("a", dialoguetest.Chat, withHeader(document(429, chatRefuse), "Retry-After", "30"))
		got := s.ask(s.request(dialoguetest.Chat, chatAsk))
		if got.status != 429 || got.err.RetryAfter != 30*time.Second || got.took > time.Second {
			t.Errorf("got %d, retry after %s, after %s", got.status, got.err.RetryAfter, got.took)
		}
	})
}

func TestARefusedSchemaIsLeftOutAndTheClientIsTold(t *testing.T) {
	const ask = `{"model":"m","messages":[{"role":"user","content":"hi"}],"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"type":"object","properties":{"a":{"type":"string"}}}}}}`
	refuse := document(400, `{"error":{"message":"Invalid schema for response_format","type":"invalid_request_error","param":"response_format"}}`)
	for _, shape := range []dialogue.Shape{dialoguetest.Chat, dialoguetest.Gemini} {
		t.Run(string(shape), func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				good := document(200, chatWhole)
				if shape == dialoguetest.Gemini {
					good = document(200, `{"candidates":[{"content":{"role":"model","parts":[{"text":"{}"}]},"finishReason":"STOP"}]}`)
				}
				p := s.upstream("a", shape, refuse, good)
				p.Spec.Retries = 0 // it is no retry
				got := s.ask(s.request(dialoguetest.Chat, ask))
				if got.status != 200 || got.meta.Degraded != dialogue.ModelUnsupported {
					t.Errorf("got %d %v, degraded %q", got.status, got.err, got.meta.Degraded)
				}
				if second := s.fakes["a"].calls[1].body; strings.Contains(second, "json_schema\"") || strings.Contains(second, "responseSchema") {
					t.Errorf("the schema was sent again: %s", second)
				}
			})
		})
	}
}

func TestTheDeadlineHoldsForAllAttemptsTogether(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		spec := catalog.Provider{Name: "a", Shape: dialoguetest.Chat, BaseURL: "http://a.test", APIKeys: []string{"k"},
			Retries:  10,
			Timeouts: catalog.Timeouts{Total: 30 * time.Second, FirstByte: 20 * time.Second, Idle: 20 * time.Second}}
		s.add(spec, &fake{scripts: []script{stream(stall)}})
		got := s.ask(s.request(dialoguetest.Chat, chatAskStream))
		if got.status != 504 || got.took > 31*time.Second {
			t.Errorf("got %d after %s", got.status, got.took)
		}
		if n := s.fakes["a"].count(); n != 2 {
			t.Errorf("%d calls, want 2", n)
		}
	})
}

func TestAProviderThatIsGoneIsNoRoute(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.upstream("a", dialoguetest.Chat, goodChat())
		o := s.request(dialoguetest.Chat, chatAsk)
		delete(s.providers, "a")
		if got := s.ask(o); got.status != 503 || got.err.Code != "no_route" {
			t.Errorf("got %d %v", got.status, got.err)
		}
	})
}

func TestAProviderWithoutDialogueIsNotAskedForText(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.upstream("a", images.Name, goodChat())
		got := s.ask(s.request(dialoguetest.Chat, chatAsk))
		if got.status != 400 || got.err.Param != "model" {
			t.Errorf("got %d %v", got.status, got.err)
		}
	})
}

// Every attempt of every failing request would be one too many: retries are a
// fifth of the traffic, or three at a time.
func TestRetriesDoNotMultiplyTheLoadOfAFailingUpstream(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.upstream("a", dialoguetest.Chat, func(c *call) (*http.Response, error) {
			time.Sleep(time.Second)
			return document(504, chatRefuse)(c)
		})
		const requests = 100
		for range requests {
			go s.ask(s.request(dialoguetest.Chat, chatAsk))
		}
		kittest.Pass(time.Minute)
		if n := s.fakes["a"].count(); n > requests*14/10 {
			t.Errorf("%d calls for %d requests", n, requests)
		}
	})
}

func TestAnOpenBreakerAnswersAtOnce(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		p := s.upstream("a", dialoguetest.Chat, document(500, chatRefuse))
		p.Spec.Retries = 0
		for range 20 {
			s.ask(s.request(dialoguetest.Chat, chatAsk))
		}
		kittest.Quiesce() // the reply of a request ends before the breaker has heard of its failure
		s.fakes["a"].scripts = []script{stream(stall)}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go s.read(s.service.Begin(ctx, s.request(dialoguetest.Chat, chatAskStream))) // the one that finds out
		kittest.Quiesce()
		before := s.fakes["a"].count()
		got := s.ask(s.request(dialoguetest.Chat, chatAsk))
		if got.status != 503 || got.took > 5*time.Millisecond || s.fakes["a"].count() != before || got.err.RetryAfter == 0 {
			t.Errorf("got %d after %s: %v", got.status, got.took, got.err)
		}
	})
}

// TestAnUpstreamThatIsWellAgainIsUsedWithinTenSeconds: the requests that follow each other every
// 100 ms are all answered by the second target while the first one is left alone, and the
// first one is called again within ten seconds.
func TestAnUpstreamThatIsWellAgainIsUsedWithinTenSeconds(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.upstream("a", dialoguetest.Chat, document(500, chatRefuse))
		s.upstream("b", dialoguetest.Chat, document(200, chatWhole))
		ask := func() {
			t.Helper()
			if got := s.ask(s.request(dialoguetest.Chat, chatAsk)); got.status != 200 {
				t.Fatalf("got %d: %v", got.status, got.err)
			}
			kittest.Quiesce()
		}
		calls := s.fakes["a"].count
		for before := -1; calls() != before; { // until the breaker is open
			before = calls()
			ask()
		}
		s.fakes["a"].scripts = []script{document(200, chatWhole)}
		well, before := time.Now(), calls()
		for calls() == before {
			kittest.Pass(100 * time.Millisecond)
			ask()
			if took := time.Since(well); took > 10*time.Second {
				t.Fatalf("not called again %s after it was well", took)
			}
		}
		for before = calls(); calls() < before+10; {
			was := calls()
			if ask(); calls() == was {
				t.Fatal("not used for each request after its first good answer")
			}
		}
	})
}

// A model with one provider is better served by hearing that provider fail than
// by not asking it: one request at a time goes through, and the first good
// answer opens the way for all.
func TestTheOnlyProviderIsNeverLeftAloneForGood(t *testing.T) {
	for name, fail := range map[string]script{
		"failing": document(500, chatRefuse), "refusing our key": document(401, chatRefuse),
		"rate limited for long": withHeader(document(429, chatRefuse), "Retry-After", "600"),
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				p := s.upstream("a", dialoguetest.Chat, fail)
				p.Spec.Retries = 0
				for range 7 {
					s.ask(s.request(dialoguetest.Chat, chatAsk))
					kittest.Quiesce()
				}
				s.fakes["a"].scripts = []script{document(200, chatWhole)}
				for range 3 {
					if got := s.ask(s.request(dialoguetest.Chat, chatAsk)); got.status != 200 || got.took > 2*time.Second {
						t.Errorf("got %d after %s: %v", got.status, got.took, got.err)
					}
					kittest.Quiesce()
				}
			})
		})
	}
}

func TestKeysAreToldWhatTheProviderSaysIsLeft(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.upstream("a", dialoguetest.Chat, withHeader(withHeader(document(200, chatWhole),
			"X-Ratelimit-Remaining-Requests", "0"), "X-Ratelimit-Reset-Requests", "7s"))
		s.ask(s.request(dialoguetest.Chat, chatAsk))
		kittest.Quiesce()
		if got := s.ask(s.request(dialoguetest.Chat, chatAsk)); got.took < 6*time.Second {
			t.Errorf("the next request waited %s", got.took)
		}

	})
}

func TestTheUpstreamsLastEventIsTheClients(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.upstream("a", dialoguetest.Chat, stream(chatRole+chatText("Hello")+chatStop+chatDone, stall))
		got := s.ask(s.request(dialoguetest.Chat, chatAskStream))
		if got.took > time.Second || got.Err != nil {
			t.Errorf("an upstream that stays after [DONE] kept its client for %s: %v", got.took, got.Err)
		}
	})
}

func TestCancelledByItsContext(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.upstream("a", dialoguetest.Chat, stream(stall))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		got := s.read(s.service.Begin(ctx, s.request(dialoguetest.Chat, chatAskStream)))
		if got.err == nil || got.took != time.Second || !errors.Is(got.err.Cause, context.DeadlineExceeded) {
			t.Errorf("got %v after %s", got.err, got.took)
		}
	})
}
