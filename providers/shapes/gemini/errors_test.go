package gemini_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/shapes/gemini"
)

func TestRefusalsAreRead(t *testing.T) {
	for _, row := range []struct {
		status              int
		body, message, kind string
		code                string // as JSON
		want                int
	}{
		{400, `{"error":{"code":400,"message":"bad","status":"INVALID_ARGUMENT"}}`, "bad", "invalid_request_error",
			`"INVALID_ARGUMENT"`, 400},
		{429, `[{"error":{"code":429,"message":"Quota exceeded","status":"RESOURCE_EXHAUSTED"}}]`, "Quota exceeded",
			"rate_limit_error", `"RESOURCE_EXHAUSTED"`, 429},
		{400, `{"error":{"code":400,"message":"API key not valid","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}`, "API key not valid", "authentication_error", `"INVALID_ARGUMENT"`, 401},
		{404, `{"error":{"message":"m","type":"not_found","code":"gone","param":"model"}}`, "m", "not_found", `"gone"`,
			404},
		{500, `{"error":"text"}`, "text", "api_error", `null`, 500},
		{403, `{"message":"text"}`, "text", "permission_error", `null`, 403},
		{422, `{"detail":"text"}`, "text", "invalid_request_error", `null`, 422},
		{503, `<html>secret</html>`, "upstream returned status 503", "overloaded_error", `null`, 503},
		{502, ``, "upstream returned status 502", "api_error", `null`, 502},
		{529, `[]`, "upstream returned status 529", "overloaded_error", `null`, 529},
		{500, `"` + strings.Repeat("x", 70<<10) + `"`, "upstream returned status 500", "api_error", `null`, 500},
	} {
		e := gemini.Shape.DecodeError(row.status, http.Header{}, []byte(row.body))
		code, _ := json.Marshal(e.Code)
		if e.Status != row.want || e.Message != row.message || e.Type != row.kind || string(code) != row.code {
			t.Errorf("%.80s: got %d %q %q %s", row.body, e.Status, e.Message, e.Type, code)
		}
	}
}

func TestRefusalsSayWhenToComeBack(t *testing.T) {
	e := gemini.Shape.DecodeError(429, http.Header{},
		[]byte(`{"error":{"code":429,"details":[{"retryDelay":"12.5s"}]}}`))
	if e.RetryAfter != 12500*time.Millisecond {
		t.Errorf("details: %v", e.RetryAfter)
	}
}

func TestEnvelopes(t *testing.T) {
	for _, row := range []struct {
		err  *dialogue.Error
		want string
	}{
		{dialogue.Missing("contents"), `{"error":{"message":"contents: is required","type":"invalid_request_error","param":"contents","code":400,"status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"MISSING_REQUIRED_PARAMETER","domain":"gateway"}]}}`},
		{&dialogue.Error{Status: 429, Message: "m", Type: "rate_limit_error", Code: "RESOURCE_EXHAUSTED"},
			`{"error":{"message":"m","type":"rate_limit_error","param":null,"code":429,"status":"RESOURCE_EXHAUSTED"}}`},
		{&dialogue.Error{Status: 400, Message: "m", Code: json.RawMessage(`"FAILED_PRECONDITION"`)},
			`{"error":{"message":"m","type":null,"param":null,"code":400,"status":"FAILED_PRECONDITION"}}`},
		{&dialogue.Error{Status: 502, Message: "m", Code: 7},
			`{"error":{"message":"m","type":null,"param":null,"code":502,"status":"UNAVAILABLE"}}`},
	} {
		if got := string(gemini.Shape.Envelope(row.err)); got != row.want {
			t.Errorf("got  %s\nwant %s", got, row.want)
		}
	}
}
