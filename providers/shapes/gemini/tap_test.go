package gemini_test

import (
	"strings"
	"testing"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/shapes"
	"stagedoor/providers/shapes/gemini"
)

func TestTapWatchesAStream(t *testing.T) {
	tap := gemini.Shape.NewTap(shapes.TapOptions{Model: "alias", Stream: true}, newEnv())
	for _, row := range []struct {
		data    string
		verdict shapes.Verdict
		content bool
	}{
		{`{"usageMetadata":{"promptTokenCount":5}}`, shapes.Forward, false},
		{`{"candidates":[{"index":0}],"modelVersion":"m"}`, shapes.Replace, false},
		{chunk(`{"text":"a"}`), shapes.Replace, true},
		{`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f"}}]}}]}`, shapes.Forward, true},
		{`{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":2,"thoughtsTokenCount":1}}`, shapes.Forward, true},
		{`[DONE]`, shapes.Drop, false},
		{chunk(`{"text":"late"}`), shapes.Drop, false},
	} {
		out, v, content := tap.Event("", []byte(row.data))
		if v != row.verdict || content != row.content {
			t.Errorf("%s: got %d %v, want %d %v", row.data, v, content, row.verdict, row.content)
		}
		if v == shapes.Replace && string(out) != strings.Replace(row.data, `"modelVersion":"m"`, `"modelVersion":"alias"`, 1) {
			t.Errorf("replaced %s", out)
		}
	}
	if u := tap.Usage(); u.InputTotal != 5 || u.OutputTotal != 3 || tap.Reason() != dialogue.ReasonTool {
		t.Errorf("usage %+v reason %d", u, tap.Reason())
	}
	if owed, err := tap.EOF(); owed != nil || err != nil || !tap.Done() {
		t.Errorf("EOF: %q %v", owed, err)
	}
}

func TestTapsHaveABoundedNumberOfCandidates(t *testing.T) {
	for n, refused := range map[int]bool{4096: false, 4097: true, 1 << 20: true} {
		body := `{"candidates":[` + strings.Repeat("0,", n-1) + `0]}`
		tap := gemini.Shape.NewTap(shapes.TapOptions{Stream: true}, newEnv())
		if _, v, _ := tap.Event("", []byte(body)); (v == shapes.Failed) != refused {
			t.Errorf("an event of %d: verdict %d, error %v", n, v, tap.Err())
		}
		if _, err := gemini.Shape.NewTap(shapes.TapOptions{}, newEnv()).Body([]byte(body)); (err != nil) != refused || refused && err.Status != 502 {
			t.Errorf("a reply of %d: %v", n, err)
		}
	}
}

func TestTapSeesFailures(t *testing.T) {
	for data, status := range map[string]int{
		`{"error":{"code":429,"message":"m","status":"RESOURCE_EXHAUSTED"}}`: 429,
		`[{"error":{"code":503,"message":"m","status":"UNAVAILABLE"}}]`:      503,
	} {
		tap := gemini.Shape.NewTap(shapes.TapOptions{Stream: true}, newEnv())
		if _, v, _ := tap.Event("", []byte(data)); v != shapes.Failed || tap.Err() == nil || tap.Err().Status != status || !tap.Done() {
			t.Errorf("%s: got %d %v", data, v, tap.Err())
		}
	}
	tap := gemini.Shape.NewTap(shapes.TapOptions{Stream: true}, newEnv())
	tap.Event("", []byte(chunk(`{"text":"a"}`)))
	if _, err := tap.EOF(); err == nil || err.Code != "upstream_incomplete" {
		t.Errorf("early end: %v", err)
	}
	if got := string(tap.Fail(nil, dialogue.Incomplete())); !strings.HasPrefix(got, `data: {"error":{`) || !strings.HasSuffix(got, "}\n\n") {
		t.Errorf("fail: %s", got)
	}
}

func TestTapReadsBodies(t *testing.T) {
	body := chunk(`{"text":"a"}`, `,"finishReason":"MAX_TOKENS"`)
	tap := gemini.Shape.NewTap(shapes.TapOptions{}, newEnv())
	if out, err := tap.Body([]byte(body)); string(out) != body || err != nil || tap.Reason() != dialogue.ReasonLength {
		t.Errorf("got %s %v %d", out, err, tap.Reason())
	}
	blocked := `{"promptFeedback":{"blockReason":"SAFETY"}}`
	tap = gemini.Shape.NewTap(shapes.TapOptions{}, newEnv())
	if _, err := tap.Body([]byte(blocked)); err != nil || tap.Reason() != dialogue.ReasonFilter {
		t.Errorf("blocked: %v %d", err, tap.Reason())
	}
	for _, bad := range []string{``, `{}`, `[]`, `<html>`, `{"error":{"message":"x"}}`, `[{"error":{"message":"x"}}]`} {
		if _, err := gemini.Shape.NewTap(shapes.TapOptions{}, newEnv()).Body([]byte(bad)); err == nil {
			t.Errorf("%s was accepted", bad)
		}
	}
}
