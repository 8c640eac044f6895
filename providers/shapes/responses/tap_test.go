package responses_test

import (
	"testing"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/shapes"
	"stagedoor/providers/shapes/responses"
)

func newTap(model string) shapes.Tap {
	return responses.Shape.NewTap(shapes.TapOptions{Model: model, Stream: true}, newEnv())
}

func TestTapPutsTheClientsModelBack(t *testing.T) {
	tap := newTap("alias")
	data, v, content := tap.Event("response.created",
		[]byte(`{"type":"response.created","sequence_number":0,"response":{"id":"r","model":"real","x":1.0}}`))
	want(t, "verdict", v, shapes.Replace)
	want(t, "content", content, false)
	want(t, "data", string(data), `{"type":"response.created","sequence_number":0,"response":{"id":"r","model":"alias","x":1.0}}`)
	body, err := newTap("alias").Body([]byte(`{"object":"response","status":"completed","model":"real","output":[]}`))
	if err != nil {
		t.Fatal(err)
	}
	want(t, "body", string(body), `{"object":"response","status":"completed","model":"alias","output":[]}`)
}

func TestTapLearnsHowTheReplyEnds(t *testing.T) {
	tap := newTap("")
	_, v, content := tap.Event("", []byte(`{"type":"response.output_text.delta","sequence_number":4,"delta":"x"}`))
	want(t, "delta", v, shapes.Forward)
	want(t, "content", content, true)
	tap.Event("response.output_item.added", []byte(`{"item":{"type":"function_call"}}`))
	_, v, _ = tap.Event("response.completed",
		[]byte(`{"response":{"status":"completed","usage":{"input_tokens":3,"output_tokens":5}}}`))
	want(t, "terminal", v, shapes.Forward)
	want(t, "done", tap.Done(), true)
	want(t, "reason", tap.Reason(), dialogue.ReasonTool)
	want(t, "usage", tap.Usage().OutputTotal, 5)
	_, v, _ = tap.Event("response.completed", []byte(`{}`))
	want(t, "after the end", v, shapes.Drop)
	if _, err := tap.EOF(); err != nil {
		t.Error(err)
	}
}

func TestTapEndsABrokenStreamAsTheClientKnowsIt(t *testing.T) {
	tap := newTap("")
	tap.Event("response.created", []byte(`{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","status":"in_progress","error":null,"output":[]}}`))
	tap.Event("response.output_text.delta", []byte(`{"sequence_number": 41,"delta":"x"}`))
	_, err := tap.EOF()
	if err == nil {
		t.Fatal("a stream without terminal event is no success")
	}
	events := frames(t, tap.Fail(nil, err))
	want(t, "type", events[0].Get("type").Str, "response.failed")
	want(t, "sequence_number", events[0].Get("sequence_number").Int(), 42)
	want(t, "id", events[0].Get("response.id").Str, "resp_1")
	want(t, "status", events[0].Get("response.status").Str, "failed")
	want(t, "code", events[0].Get("response.error.code").Str, "server_error")
	want(t, "again", len(tap.Fail(nil, err)), 0)
}

// The client gets the gateway's own event in place of the upstream's, which therefore has used no number.
func TestTapNumbersItsFailureAsTheNextEvent(t *testing.T) {
	for name, last := range map[string]string{
		"error":           `{"type":"error","sequence_number":6,"message":"x"}`,
		"response.failed": `{"type":"response.failed","sequence_number":6,"response":{"error":{"message":"x"}}}`,
	} {
		tap := newTap("")
		tap.Event("response.created", []byte(`{"type":"response.created","sequence_number":0,"response":{"id":"r"}}`))
		tap.Event("response.output_text.delta", []byte(`{"sequence_number":5,"delta":"x"}`))
		tap.Event(name, []byte(last))
		events := frames(t, tap.Fail(nil, tap.Err()))
		want(t, name, events[0].Get("sequence_number").Int(), 6)
	}
}

func TestTapKnowsFailures(t *testing.T) {
	for name, data := range map[string]string{
		"error":           `{"type":"error","code":"rate_limit_exceeded","message":"x"}`,
		"response.failed": `{"type":"response.failed","response":{"error":{"code":"rate_limit_exceeded","message":"x"}}}`,
		"":                `{"error":{"type":"rate_limit_error","message":"x"}}`,
	} {
		tap := newTap("")
		_, v, _ := tap.Event(name, []byte(data))
		want(t, name, v, shapes.Failed)
		want(t, name, tap.Err().Status, 429)
		want(t, name, frames(t, tap.Fail(nil, tap.Err()))[0].Get("type").Str, "error")
	}
	if _, err := newTap("").Body([]byte(`{"error":{"message":"x"}}`)); err == nil {
		t.Error("an error body passed as an answer")
	}
}

func TestEnvelopeHasFourKeys(t *testing.T) {
	got := responses.Shape.Envelope(dialogue.Missing("model"))
	want(t, "envelope", string(got), `{"error":{"message":"model: is required","type":"invalid_request_error","param":"model","code":"missing_required_parameter"}}`)
}

func TestUpstreamRefusalsAreRead(t *testing.T) {
	for body, wanted := range map[string]string{
		`{"error":{"message":"m","type":"t","param":"p","code":"c"}}`: "m t p c",
		`{"error":"m"}`:       "m invalid_request_error  ",
		`{"detail":"m"}`:      "m invalid_request_error  ",
		`[{"message":"m"}]`:   "m invalid_request_error  ",
		`<html>secret</html>`: "the upstream provider refused the request invalid_request_error  ",
	} {
		e := responses.Shape.DecodeError(400, nil, []byte(body))
		code, _ := e.Code.(string)
		want(t, body, e.Message+" "+e.Type+" "+e.Param+" "+code, wanted)
	}
}

func BenchmarkTapDelta(b *testing.B) {
	tap := newTap("alias")
	delta := []byte(`{"type":"response.output_text.delta","sequence_number":7,"item_id":"msg_1","output_index":0,"content_index":0,"delta":" the weather","logprobs":[]}`)
	b.ReportAllocs()
	for b.Loop() {
		tap.Event("response.output_text.delta", delta)
	}
}

func TestTapResponseIsJSON(t *testing.T) {
	tap := newTap("")
	tap.Event("response.created", []byte(`{"response":{"id":"a\"b"}}`))
	out := frames(t, tap.Fail(nil, dialogue.Incomplete()))
	want(t, "valid", gjson.Valid(out[0].Raw), true)
}
