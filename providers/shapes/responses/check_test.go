package responses_test

import (
	"errors"
	"strings"
	"testing"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/shapes"
	"stagedoor/providers/shapes/responses"
)

func TestCheckNamesTheFirstBrokenField(t *testing.T) {
	long := strings.Repeat("x", 65)
	for _, tt := range []struct{ body, param, code string }{
		{`{"input":"x"}`, "model", "missing_required_parameter"},
		{`{"model":null,"input":"x"}`, "model", "missing_required_parameter"},
		{`{"model":1,"input":"x"}`, "model", "invalid_value"},
		{`{"model":"m"}`, "input", "missing_required_parameter"},
		{`{"model":"m","input":[]}`, "input", "missing_required_parameter"},
		{`{"model":"m","input":7}`, "input", "invalid_value"},
		{`{"model":"m","input":["x"]}`, "input[0]", "invalid_value"},
		{`{"model":"m","input":[{"content":"x"}]}`, "input[0].type", "missing_required_parameter"},
		{`{"model":"m","input":[{"role":"user","content":"a"},{"role":"bot","content":"x"}]}`, "input[1].role",
			"invalid_value"},
		{`{"model":"m","input":[{"role":"user"}]}`, "input[0].content", "missing_required_parameter"},
		{`{"model":"m","input":[{"role":"user","content":[{"type":"input_text"}]}]}`, "input[0].content[0].text",
			"missing_required_parameter"},
		{`{"model":"m","input":[{"role":"user","content":[{"type":"input_image","image_url":{"url":"x"}}]}]}`,
			"input[0].content[0].image_url", "invalid_value"},
		{`{"model":"m","input":[{"role":"user","content":[{"type":"input_file"}]}]}`, "input[0].content[0].file_data",
			"missing_required_parameter"},
		{`{"model":"m","input":[{"type":"function_call","name":"f","arguments":"{}"}]}`, "input[0].call_id",
			"missing_required_parameter"},
		{`{"model":"m","input":[{"type":"function_call","call_id":"c","name":"","arguments":"{}"}]}`, "input[0].name",
			"invalid_value"},
		{`{"model":"m","input":[{"type":"function_call","call_id":"c","name":"f","arguments":{}}]}`,
			"input[0].arguments", "invalid_value"},
		{`{"model":"m","input":[{"type":"function_call_output","call_id":"c"}]}`, "input[0].output",
			"missing_required_parameter"},
		{`{"model":"m","input":[{"type":"additional_tools","tools":[{"name":"f"}]}]}`, "input[0].tools[0].type",
			"missing_required_parameter"},
		{`{"model":"m","input":[{"type":"item_reference"}]}`, "input[0].id", "missing_required_parameter"},
		{`{"model":"m","input":"x","max_output_tokens":15}`, "max_output_tokens", "invalid_value"},
		{`{"model":"m","input":"x","max_output_tokens":20.5}`, "max_output_tokens", "invalid_value"},
		{`{"model":"m","input":"x","temperature":2.1}`, "temperature", "invalid_value"},
		{`{"model":"m","input":"x","temperature":"1"}`, "temperature", "invalid_value"},
		{`{"model":"m","input":"x","top_p":-0.1}`, "top_p", "invalid_value"},
		{`{"model":"m","input":"x","top_logprobs":21}`, "top_logprobs", "invalid_value"},
		{`{"model":"m","input":"x","top_k":-1}`, "top_k", "invalid_value"},
		{`{"model":"m","input":"x","truncation":"always"}`, "truncation", "invalid_value"},
		{`{"model":"m","input":"x","prompt_cache_retention":"1h"}`, "prompt_cache_retention", "invalid_value"},
		{`{"model":"m","input":"x","store":"yes"}`, "store", "invalid_value"},
		{`{"model":"m","input":"x","stream_options":{}}`, "stream_options", "invalid_value"},
		{`{"model":"m","input":"x","include":[1]}`, "include[0]", "invalid_value"},
		{`{"model":"m","input":"x","context_management":[]}`, "context_management", "invalid_value"},
		{`{"model":"m","input":"x","context_management":[{"type":"compaction"},1]}`, "context_management[1]",
			"invalid_value"},
		{`{"model":"m","input":"x","conversation":""}`, "conversation", "invalid_value"},
		{`{"model":"m","input":"x","conversation":1}`, "conversation", "invalid_value"},
		{`{"model":"m","input":"x","conversation":{"id":1}}`, "conversation.id", "invalid_value"},
		{`{"model":"m","input":"x","previous_response_id":"r","conversation":{"id":"c"}}`,
			"previous_response_id", "invalid_value"},
		{`{"model":"m","input":"x","metadata":{"k":1}}`, "metadata", "invalid_value"},
		{`{"model":"m","input":"x","metadata":{"` + long + `":"v"}}`, "metadata", "invalid_value"},
		{`{"model":"m","input":"x","metadata":{"k":"` + strings.Repeat("v", 513) + `"}}`, "metadata", "invalid_value"},
		{`{"model":"m","input":"x","safety_identifier":"` + long + `"}`, "safety_identifier", "invalid_value"},
		{`{"model":"m","input":"x","reasoning":"high"}`, "reasoning", "invalid_value"},
		{`{"model":"m","input":"x","reasoning":{"effort":3}}`, "reasoning.effort", "invalid_value"},
		{`{"model":"m","input":"x","text":{"verbosity":"chatty"}}`, "text.verbosity", "invalid_value"},
		{`{"model":"m","input":"x","text":{"format":{"type":"yaml"}}}`, "text.format.type", "invalid_value"},
		{`{"model":"m","input":"x","text":{"format":{"type":"json_schema","schema":"s"}}}`, "text.format.schema",
			"invalid_value"},
		{`{"model":"m","input":"x","tools":{}}`, "tools", "invalid_value"},
		{`{"model":"m","input":"x","tools":[{"name":"f"}]}`, "tools[0].type", "missing_required_parameter"},
		{`{"model":"m","input":"x","tools":[{"type":"function"}]}`, "tools[0].name", "missing_required_parameter"},
		{`{"model":"m","input":"x","tools":[{"type":"function","name":"f","parameters":[]}]}`, "tools[0].parameters",
			"invalid_value"},
		{`{"model":"m","input":"x","tools":[{"type":"namespace","name":"n","tools":[{"type":"function"}]}]}`,
			"tools[0].tools[0].name", "missing_required_parameter"},
		{`{"model":"m","input":"x","tool_choice":"maybe"}`, "tool_choice", "invalid_value"},
		{`{"model":"m","input":"x","tool_choice":{"type":"function"}}`, "tool_choice.name",
			"missing_required_parameter"},
		{`{"model":"m","input":"x","tool_choice":{"type":"allowed_tools","mode":"none","tools":[]}}`,
			"tool_choice.mode", "invalid_value"},
		{`{"model":"m","prompt":{}}`, "prompt.id", "missing_required_parameter"},
		{`{"temperature":3,"max_output_tokens":1,"model":"m"}`, "temperature", "invalid_value"},
		{`{"max_output_tokens":1,"temperature":3,"model":"m"}`, "max_output_tokens", "invalid_value"},
		{`[]`, "body", "invalid_value"},
	} {
		_, err := responses.Shape.Check([]byte(tt.body), shapes.Params{})
		var e *dialogue.Error
		if !errors.As(err, &e) {
			t.Errorf("%s: got %v, want an error about %s", tt.body, err, tt.param)
			continue
		}
		if e.Param != tt.param || e.Code != tt.code || e.Status != 400 || !strings.HasPrefix(e.Message, tt.param) {
			t.Errorf("%s: got %d %v %q %q, want %q %q", tt.body, e.Status, e.Code, e.Param, e.Message, tt.param,
				tt.code)
		}
	}
}

func TestCheckLetsPassWhatClientsAreAheadWith(t *testing.T) {
	for _, body := range []string{
		`{"model":"m","input":"x","client_metadata":{"a":1},"reasoning":{"effort":"max"},"service_tier":"ultrafast"}`,
		`{"model":"m","input":"x","include":["something.new"],"tools":[{"type":"web_search"},{"type":"teleport","x":1}]}`,
		`{"model":"m","input":[{"type":"program","code":1},{"id":"msg_1"}]}`,
		`{"model":"m","input":"x","tool_choice":{"type":"teleport"},"stream":true,"stream_options":{"include_obfuscation":false}}`,
		`{"model":"m","previous_response_id":"resp_1"}`,
		`{"model":"m","prompt":{"id":"pmpt_1"}}`,
		`{"model":"m","input":"x","temperature":null,"tools":null,"conversation":null,"text":{"format":null}}`,
		`{"model":"m","input":"x","text":{"format":{"type":"json_schema"}}}`,
		`{"model":"m","input":[{"role":"assistant","content":[{"type":"input_text","text":"x"}]}]}`,
		`{"model":"m","input":[{"role":"user","content":[]},{"type":"function_call","call_id":"c","name":"f","arguments":""}]}`,
	} {
		if _, err := responses.Shape.Check([]byte(body), shapes.Params{}); err != nil {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func TestCheckReadsTheHead(t *testing.T) {
	head, err := responses.Shape.Check([]byte(`{"model":"m","input":"x","stream":true,"max_output_tokens":2e1,"service_tier":"flex",
		"text":{"format":{"type":"json_object"}},"previous_response_id":"resp_1","background":true,"store":false}`), shapes.Params{})
	if err != nil {
		t.Fatal(err)
	}
	want(t, "head", head, shapes.Head{Model: "m", Stream: true, MaxTokens: 20, N: 1, ServiceTier: "flex",
		Structured:         true,
		PreviousResponseID: "resp_1", Background: true})
	head, err = responses.Shape.Check([]byte(`{"model":"m","input":"x"}`), shapes.Params{})
	if err != nil {
		t.Fatal(err)
	}
	want(t, "defaults", head, shapes.Head{Model: "m", MaxTokens: -1, N: 1, Store: true})
}

func BenchmarkCheck(b *testing.B) {
	body := []byte(`{"model":"gpt-5.1","stream":true,"instructions":"Be brief.","input":[` +
		strings.Repeat(`{"role":"user","content":[{"type":"input_text","text":"How is the weather in Oslo today?"}]},{"type":"function_call","call_id":"c1","name":"get_weather","arguments":"{\"city\":\"Oslo\"}"},{"type":"function_call_output","call_id":"c1","output":"rain"},`, 20) +
		`{"role":"user","content":"and now?"}],"tools":[{"type":"function","name":"get_weather","parameters":{"type":"object"}}]}`)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := responses.Shape.Check(body, shapes.Params{}); err != nil {
			b.Fatal(err)
		}
	}
}
