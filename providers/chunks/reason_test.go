package chunks_test

import (
	"testing"

	"github.com/tidwall/gjson"

	"stagedoor/providers/chunks"
	"stagedoor/providers/dialogue"
)

func TestFinishReasonsOfOtherServersAreRead(t *testing.T) {
	for word, want := range map[string]dialogue.Reason{
		"stop": dialogue.ReasonStop, "eos": dialogue.ReasonStop, "STOP": dialogue.ReasonStop,
		"model_length": dialogue.ReasonLength, "MAX_TOKENS": dialogue.ReasonLength,
		"tool_use": dialogue.ReasonTool, "function_call": dialogue.ReasonTool,
		"safety": dialogue.ReasonFilter, "refusal": dialogue.ReasonFilter,
		"a new word": dialogue.ReasonOther, "": dialogue.ReasonOther,
	} {
		if got := chunks.ParseFinishReason(word); got != want {
			t.Errorf("%q: got %v, want %v", word, got, want)
		}
	}
}

// Typed clients fail on a finish_reason that is not among the vendor's.
func TestClientsGetOnlyTheVendorsReasons(t *testing.T) {
	for reason, want := range map[dialogue.Reason]string{
		dialogue.ReasonStop: "stop", dialogue.ReasonOther: "stop", dialogue.ReasonLength: "length",
		dialogue.ReasonContextWindow: "length", dialogue.ReasonTool: "function_call",
		dialogue.ReasonFilter: "content_filter",
	} {
		if got := chunks.FinishReason(reason, "function_call"); got != want {
			t.Errorf("%v: got %q, want %q", reason, got, want)
		}
	}
}

// An error inside a reply came with status 200, so its code and its type decide how it is treated.
func TestErrorsInRepliesGetAStatus(t *testing.T) {
	for body, want := range map[string]int{
		`{"error":{"code":"context_length_exceeded","type":"rate_limit_error"}}`: 400,
		`{"error":{"code":"insufficient_quota"}}`:                                429,
		`{"error":{"type":"overloaded_error"}}`:                                  503,
		`{"error":{"code":529}}`:                                                 529,
		`{"error":{"code":"418"}}`:                                               418,
		`{"error":{"code":200,"type":"invalid_request_error"}}`:                  400,
		`{"error":{"code":"x","type":"y"}}`:                                      502,
		`{"error":"busy"}`:                                                       502,
	} {
		if e := chunks.DecodeFailure(gjson.Parse(body)); e.Status != want {
			t.Errorf("%s: got %d, want %d", body, e.Status, want)
		}
	}
	for body, want := range map[string]bool{`{"error":null}`: false, `{}`: false, `{"error":{}}`: true} {
		if chunks.HasError(gjson.Parse(body)) != want {
			t.Errorf("%s: got %t", body, !want)
		}
	}
}

func TestAnEndHasItsReasonAndTheUsageThatWasAskedFor(t *testing.T) {
	for want, req := range map[string]*dialogue.Request{
		`,"finish_reason":"stop"}]}` + "\n\n":              {},
		`,"finish_reason":"stop"}],"usage":null}` + "\n\n": {IncludeUsage: true},
	} {
		if got := string(chunks.AppendEnd(nil, "stop", req)); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := string(chunks.AppendEnd(nil, "", &dialogue.Request{})); got != `,"finish_reason":null}]}`+"\n\n" {
		t.Errorf("before the end: got %q", got)
	}
}
