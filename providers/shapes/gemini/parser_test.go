package gemini_test

import (
	"fmt"
	"strings"
	"testing"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/shapes/gemini"
)

// chunk is a chunk with these parts and whatever else the candidate says.
func chunk(parts string, more ...string) string {
	return `{"candidates":[{"content":{"role":"model","parts":[` + parts + `]}` + strings.Join(more, "") +
		`}],"modelVersion":"m","responseId":"r"}`
}

const stop = `,"finishReason":"STOP"`

// answer is a choice in short.
func answer(c *dialogue.Choice) string {
	var out []string
	for _, p := range c.Parts {
		switch p.Kind {
		case dialogue.TextPart:
			out = append(out, fmt.Sprintf("%q", p.Text))
		case dialogue.ThinkingPart:
			out = append(out, fmt.Sprintf("think %q %s", p.Text, p.Thinking.Signature))
		case dialogue.CallPart:
			out = append(out, p.Call.ID+" "+p.Call.Name+p.Call.Args)
		case dialogue.MediaPart:
			out = append(out, p.Media.MIME)
		case dialogue.ServerPart:
			out = append(out, string(p.Opaque))
		}
		if p.Signature != "" {
			out[len(out)-1] += " " + p.Signature
		}
	}
	return strings.Join(out, "; ")
}

func TestParserReadsStreams(t *testing.T) {
	for _, row := range []struct {
		name   string
		chunks []string
		want   string
		reason dialogue.Reason
	}{
		{"text in increments", []string{chunk(`{"text":"a"}`), chunk(`{"text":"b"}`, stop)}, `"ab"`,
			dialogue.ReasonStop},
		{"a chunk of usage, a candidate without content",
			[]string{`{"usageMetadata":{"promptTokenCount":1}}`, chunk(`{"text":"a"}`), `{"candidates":[{"index":0}]}`,
				`{"candidates":[{"finishReason":"STOP"}]}`}, `"a"`, dialogue.ReasonStop},
		{"a thought, text, and its signature at the end",
			[]string{chunk(`{"text":"t","thought":true}`), chunk(`{"text":"u","thought":true},{"text":"a"}`),
				chunk(`{"text":"","thoughtSignature":"S"}`, stop)}, `think "tu" ; "a" S`, dialogue.ReasonStop},
		{"a signed thought", []string{chunk(`{"text":"t","thought":true,"thoughtSignature":"S"}`, stop)}, `think "t" S`,
			dialogue.ReasonStop},
		{"a signature with nothing to sign opens nothing", []string{chunk(`{"text":"","thoughtSignature":"S"}`, stop)},
			``, dialogue.ReasonStop},
		{"calls make STOP a tool turn", []string{chunk(`{"text":"a"},{"functionCall":{"name":"f","args":{"n": 1.0}},"thoughtSignature":"S"},{"functionCall":{"id":"x","name":"f","args":null}}`), chunk(`{"text":"b"}`, stop)},
			`"a"; call_id1 f{"n": 1.0} S; x f{}; "b"`, dialogue.ReasonTool},
		{"the same id twice", []string{chunk(`{"functionCall":{"id":"x","name":"f"}},{"functionCall":{"id":"x","name":"g"}}`, stop)}, `x f{}; call_id1 g{}`, dialogue.ReasonTool},
		{"a cut call stays cut", []string{chunk(`{"functionCall":{"name":"f"}}`, `,"finishReason":"MAX_TOKENS"`)},
			`call_id1 f{}`, dialogue.ReasonLength},
		{"arguments in pieces", []string{
			chunk(`{"functionCall":{"name":"f","willContinue":true},"thoughtSignature":"S"}`),
			chunk(`{"functionCall":{"partialArgs":[{"jsonPath":"$.city","stringValue":"Os","willContinue":true}],"willContinue":true}}`),
			chunk(`{"functionCall":{"partialArgs":[{"jsonPath":"$.city","stringValue":"lo"},{"jsonPath":"$.at[0].x y","numberValue":1.50},{"jsonPath":"$['a.b']","boolValue":true},{"jsonPath":"$.at[9]","nullValue":"NULL_VALUE"}],"willContinue":true}}`),
			chunk(`{"functionCall":{}}`, stop)}, `call_id1 f{"city":"Oslo","at":[{"x y":1.50}],"a.b":true} S`,
			dialogue.ReasonTool},
		{"media and code", []string{chunk(`{"inlineData":{"mimeType":"image/png","data":"QQ=="}},{"executableCode":{"code":"1"}}`, stop)}, `image/png; {"executableCode":{"code":"1"}}`, dialogue.ReasonStop},
		{"a pair cut in two", []string{chunk(`{"text":"a\ud83d"}`), chunk(`{"text":"\ude80b"}`, stop)}, `"a🚀b"`,
			dialogue.ReasonStop},
		{"half a pair", []string{chunk(`{"text":"a\ud83d"}`, stop)}, `"a` + "\ufffd" + `"`, dialogue.ReasonStop},
		{"not half a pair", []string{chunk(`{"text":"a\\ud83d"}`, stop)}, `"a\\ud83d"`, dialogue.ReasonStop},
		{"snake case", []string{`{"candidates":[{"content":{"parts":[{"function_call":{"name":"f"}}]},"finish_reason":"STOP"}]}`}, `call_id1 f{}`, dialogue.ReasonTool},
		{"[DONE] and a later chunk", []string{chunk(`{"text":"a"}`, stop), "[DONE]", chunk(`{"text":"b"}`), "[DONE]"},
			`"a"`, dialogue.ReasonStop},
		{"unspecified is not yet", []string{chunk(`{"text":"a"}`, `,"finishReason":"FINISH_REASON_UNSPECIFIED"`),
			chunk(`{"text":"b"}`, `,"finishReason":"PROHIBITED_CONTENT"`)}, `"ab"`, dialogue.ReasonFilter},
		{"an unknown word", []string{chunk(`{"text":"a"}`, `,"finishReason":"BORED"`)}, `"a"`, dialogue.ReasonOther},
		{"a blocked prompt", []string{`{"promptFeedback":{"blockReason":"SAFETY"}}`}, ``, dialogue.ReasonFilter},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := fold(t, newEnv(), false, row.chunks...)
			if f.Err != nil || len(f.Reply.Choices) != 1 {
				t.Fatalf("got %d choices, error %v", len(f.Reply.Choices), f.Err)
			}
			c := f.Reply.Choices[0]
			if got := answer(c); got != row.want || c.Reason != row.reason {
				t.Errorf("got %s (%d), want %s (%d)", got, c.Reason, row.want, row.reason)
			}
		})
	}
}

func TestParserFailsHonestly(t *testing.T) {
	for _, row := range []struct {
		name   string
		chunks []string
		status int
		code   any
	}{
		{"nothing", nil, 502, "upstream_incomplete"},
		{"no finish", []string{chunk(`{"text":"a"}`)}, 502, "upstream_incomplete"},
		{"one candidate of two", []string{`{"candidates":[{"index":0,"finishReason":"STOP"},{"index":1,"content":{"parts":[{"text":"x"}]}}]}`}, 502, "upstream_incomplete"},
		{"[DONE] without a finish", []string{chunk(`{"text":"a"}`), "[DONE]"}, 502, "upstream_incomplete"},
		{"an error", []string{chunk(`{"text":"a"}`), `{"error":{"code":503,"message":"busy","status":"UNAVAILABLE"}}`},
			503, "UNAVAILABLE"},
		{"an error in an array", []string{`[{"error":{"code":429,"message":"slow","status":"RESOURCE_EXHAUSTED"}}]`},
			429, "RESOURCE_EXHAUSTED"},
		{"a word", []string{`"hello"`}, 502, "upstream_invalid_response"},
		{"an index from hell", []string{`{"candidates":[{"index":1000000000,"finishReason":"STOP"}]}`}, 502,
			"upstream_invalid_response"},
		{"a call without a name", []string{chunk(`{"functionCall":{"args":{}}}`, stop)}, 502,
			"upstream_invalid_response"},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := fold(t, newEnv(), false, row.chunks...)
			if f.Err == nil || f.Err.Status != row.status || f.Err.Code != row.code || f.Done {
				t.Errorf("got %+v", f.Err)
			}
		})
	}
}

func TestParserReadsBodies(t *testing.T) {
	two := `{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"},{"content":{"parts":[{"text":"b"}]},"finishReason":"MAX_TOKENS"}]}`
	f := fold(t, newEnv(), true, two)
	if len(f.Reply.Choices) != 2 || answer(f.Reply.Choices[1]) != `"b"` || f.Reply.Choices[1].Reason != dialogue.ReasonLength {
		t.Errorf("two candidates: %+v %v", f.Reply, f.Err)
	}
	f = fold(t, newEnv(), true, `[`+chunk(`{"text":"a"}`)+`,`+chunk(`{"text":"b"}`, stop)+`]`)
	if f.Err != nil || answer(f.Reply.Choices[0]) != `"ab"` || f.Reply.ID != "r" || f.Reply.Model != "m" {
		t.Errorf("array: %+v %v", f.Reply, f.Err)
	}
	for _, body := range []string{`{}`, ``, `[]`, `<html>`, `{"candidates":[]}`, `[` + chunk(`{"text":"a"}`) + `]`} {
		if f := fold(t, newEnv(), true, body); f.Err == nil || f.Err.Status != 502 {
			t.Errorf("%s: got %v", body, f.Err)
		}
	}
	if f := fold(t, newEnv(), true, `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"m"}}`); f.Err == nil || f.Err.Status != 429 {
		t.Errorf("error with status 200: %v", f.Err)
	}
}

func TestUsageAddsUp(t *testing.T) {
	for _, row := range []struct {
		usage             string
		in, cache, out, r int64
	}{
		{`{"promptTokenCount":1000,"candidatesTokenCount":20,"thoughtsTokenCount":50,"cachedContentTokenCount":800,"totalTokenCount":1070}`, 1000, 800, 70, 50},
		{`{"promptTokenCount":"7","toolUsePromptTokenCount":3,"candidatesTokenCount":2}`, 10, -1, 2, -1},
		{`{"promptTokenCount":9,"totalTokenCount":9}`, 9, -1, 0, -1},
		{`{"promptTokenCount":9,"thoughtsTokenCount":5}`, 9, -1, 5, 5},
		{`{"promptTokenCount":-4,"candidatesTokenCount":"x"}`, dialogue.NegativeCount, -1, -1, -1},
		{`{"promptTokenCount":4,"candidatesTokenCount":-1}`, 4, -1, dialogue.NegativeCount, -1},
	} {
		f := fold(t, newEnv(), false, strings.TrimSuffix(chunk(`{"text":"a"}`, stop),
			"}")+`,"usageMetadata":`+row.usage+`}`)
		u := f.Reply.Usage
		if u.InputTotal != row.in || u.CacheRead != row.cache || u.OutputTotal != row.out || u.Reasoning != row.r {
			t.Errorf("%s: got %+v", row.usage, u)
		}
	}
}

func TestACountOnceToldStands(t *testing.T) {
	f := fold(t, newEnv(), false, `{"usageMetadata":{"promptTokenCount":5,"thoughtsTokenCount":9}}`,
		chunk(`{"text":"a"}`, stop), `{"usageMetadata":{"candidatesTokenCount":2}}`)
	if u := f.Reply.Usage; u.InputTotal != 5 || u.OutputTotal != 11 {
		t.Errorf("got %+v", u)
	}
}

func TestSignaturesAreRemembered(t *testing.T) {
	env := newEnv()
	fold(t, env, true, chunk(`{"functionCall":{"name":"f"},"thoughtSignature":"S"}`, stop))
	if s, ok := env.RecallSignature("call_id1"); !ok || s != "S" {
		t.Errorf("got %q", s)
	}
}

func TestSourcesBecomeCitationsInCharacters(t *testing.T) {
	f := fold(t, newEnv(), false, chunk(`{"text":"Größe: 7"}`), chunk(``, stop, `,"groundingMetadata":{"groundingChunks":[{"web":{"uri":"https://a","title":"A"}},{"web":{"uri":"https://b"}}],
		"groundingSupports":[{"segment":{"startIndex":9,"endIndex":10,"text":"7"},"groundingChunkIndices":[1,7]}]},"citationMetadata":{"citationSources":[{"startIndex":0,"endIndex":7,"uri":"https://c"}]}`))
	got := f.Reply.Choices[0].Parts[0].Citations
	if len(got) != 2 || got[0].URL != "https://b" || got[0].Start != 7 || got[0].End != 8 || got[0].CitedText != "7" || got[1].URL != "https://c" || got[1].End != 5 {
		t.Errorf("got %+v", got)
	}
}

func TestLogProbsTakeTheNeutralForm(t *testing.T) {
	f := fold(t, newEnv(), false, chunk(`{"text":"é"}`, stop,
		`,"logprobsResult":{"chosenCandidates":[{"token":"é","tokenId":3,"logProbability":-0.25}],"topCandidates":[{"candidates":[{"token":"e"}]}]}`))
	logs := f.Reply.Choices[0].LogProbs
	want := `[{"token":"é","logprob":-0.25,"bytes":[195,169],"top_logprobs":[{"token":"e","logprob":0,"bytes":[101]}]}]`
	if len(logs) != 1 || string(logs[0]) != want {
		t.Errorf("got %s, want %s", logs, want)
	}
}

// What a chunk says about its text reaches the text also if a call in the same chunk has closed it.
func TestTextBeforeACallKeepsItsLogProbsAndSources(t *testing.T) {
	f := fold(t, newEnv(), false, chunk(`{"text":"Hi"},{"functionCall":{"name":"f"}}`, stop,
		`,"logprobsResult":{"chosenCandidates":[{"token":"H"},{"token":"i"},{"token":"<call>"}]},
		"citationMetadata":{"citationSources":[{"startIndex":0,"endIndex":2,"uri":"https://c"}]}`))
	choice := f.Reply.Choices[0]
	want := `[{"token":"H","logprob":0,"bytes":[72],"top_logprobs":[]},` +
		`{"token":"i","logprob":0,"bytes":[105],"top_logprobs":[]}]`
	if len(choice.LogProbs) != 1 || string(choice.LogProbs[0]) != want {
		t.Errorf("got %s, want %s", choice.LogProbs, want)
	}
	if cited := choice.Parts[0].Citations; len(cited) != 1 || cited[0].URL != "https://c" || cited[0].End != 2 {
		t.Errorf("got %+v", cited)
	}
	f = fold(t, newEnv(), false, chunk(`{"functionCall":{"name":"f"}},{"text":"Hi"}`, stop,
		`,"logprobsResult":{"chosenCandidates":[{"token":"H"},{"token":"i"}]}`))
	if logs := f.Reply.Choices[0].LogProbs; len(logs) != 1 || string(logs[0]) != want {
		t.Errorf("got %s, want %s", logs, want)
	}
}

func TestNothingFollowsTheEnd(t *testing.T) {
	p := gemini.Shape.NewParser(1, newEnv())
	n := 0
	emit := func(*dialogue.Event) { n++ }
	p.Event("", []byte(`{"error":{"message":"x"}}`), emit)
	p.Event("", []byte(chunk(`{"text":"a"}`, stop)), emit)
	p.Body([]byte(chunk(`{"text":"a"}`, stop)), emit)
	p.EOF(emit)
	if n != 1 || !p.Done() {
		t.Errorf("%d events", n)
	}
}
