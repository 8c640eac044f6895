package responses_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/dialogue/dialoguetest"
	"stagedoor/providers/shapes"
	"stagedoor/providers/shapes/responses"
)

// turns writes the turns of a request in short.
func turns(req *dialogue.Request) string {
	var b strings.Builder
	for _, t := range req.Turns {
		b.WriteString(string(t.Role[0]) + "[")
		for i := range t.Parts {
			b.WriteString(part(&t.Parts[i]))
		}
		b.WriteString("]")
	}
	return b.String()
}

func part(p *dialogue.Part) string {
	switch p.Kind {
	case dialogue.SystemPart:
		return "sys:" + p.Text
	case dialogue.RefusalPart:
		return "no:" + p.Text
	case dialogue.MediaPart:
		m := p.Media
		return fmt.Sprintf("(%s %s %s %s %s %s)", m.Kind, m.MIME, m.Base64, m.URL, m.FileID, m.Name)
	case dialogue.CallPart:
		return fmt.Sprintf("call:%s,%s,%s,%v", p.Call.ID, p.Call.Name, p.Call.Args, p.Call.Custom)
	case dialogue.ResultPart:
		var inner strings.Builder
		for i := range p.Result.Parts {
			inner.WriteString(part(&p.Result.Parts[i]))
		}
		return fmt.Sprintf("result:%s,%s,%v", p.Result.CallID, inner.String(), p.Result.Custom)
	case dialogue.ThinkingPart:
		t := p.Thinking
		return fmt.Sprintf("think:%s,%s,%s,%s,%s", t.Text, t.Origin, t.ItemID, t.Encrypted, t.Signature)
	case dialogue.ServerPart:
		return "server:" + string(p.Opaque)
	}
	return p.Text
}

func TestDecodeKeepsItemsInOrder(t *testing.T) {
	env := newEnv()
	sealed := env.Sealer.Seal(&dialogue.Thinking{Text: "exact", Signature: "sig", Origin: dialoguetest.Messages})
	for _, tt := range []struct{ input, want string }{
		{`"hi"`, "u[hi]"},
		{`[{"role":"user","content":"a"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"b"},{"type":"refusal","refusal":"c"}]}]`, "u[a]a[bno:c]"},
		{`[{"role":"developer","content":"d"},{"role":"user","content":"a"},{"role":"system","content":"late"}]`,
			"u[a]u[sys:late]"},
		{`[{"type":"function_call","call_id":"c","name":"f","arguments":"{\"n\":9007199254740993}"},{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"x"},{"type":"input_image","image_url":"https://i"}]}]`,
			`a[call:c,f,{"n":9007199254740993},false]u[result:c,x(image   https://i  ),false]`},
		{`[{"type":"custom_tool_call","call_id":"c","name":"sh","input":"ls"},{"type":"custom_tool_call_output","call_id":"c","output":"."}]`, "a[call:c,sh,ls,true]u[result:c,.,true]"},
		{`[{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"s"}],"encrypted_content":"gAAA"}]`,
			"a[think:s,responses,rs_1,gAAA,]"},
		{`[{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"` + sealed + `"}]`,
			"a[think:exact,messages,,,sig]"},
		{`[{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"s"}],"encrypted_content":"` +
			sealed[:len(sealed)-2] + `"}]`, "a[think:s,,,,]"},
		{`[{"type":"web_search_call","id":"ws"},{"type":"shell_call_output","output":1}]`,
			`a[server:{"type":"web_search_call","id":"ws"}]u[server:{"type":"shell_call_output","output":1}]`},
		{`[{"role":"user","content":[{"type":"input_image","image_url":"data:image/PNG;charset=x;BASE64,QUJD"},{"type":"input_file","filename":"a.txt","file_data":"QUJD"},{"type":"input_file","file_id":"file_1"},{"type":"input_audio","input_audio":{"data":"QQ==","format":"mp3"}}]}]`,
			"u[(image image/png QUJD   )(file text/plain    a.txt)(file    file_1 )(audio audio/mpeg QQ==   )]"},
	} {
		req := decode(t, env, `{"model":"m","input":`+tt.input+`}`)
		want(t, tt.input, turns(req), tt.want)
	}
}

func TestDecodeGathersSystemTextInOrder(t *testing.T) {
	req := decode(t, newEnv(), `{"input":[{"role":"developer","content":[{"type":"input_text","text":"two"}]},{"role":"system","content":"three"},{"role":"user","content":"x"}],"model":"m","instructions":"one"}`)
	got := ""
	for _, p := range req.System {
		got += p.Text + " "
	}
	want(t, "system", got, "one two three ")
}

func TestDecodeReadsTools(t *testing.T) {
	req := decode(t, newEnv(), `{"model":"m","input":"x","tools":[
		{"type":"function","name":"f","parameters":{"type":"object"},"strict":true},
		{"type":"function","function":{"name":"nested"}},
		{"type":"custom","name":"c","format":{"type":"text"}},
		{"type":"web_search_preview_2025_03_11"},
		{"type":"mcp","server_label":"s"},
		{"type":"namespace","name":"n","tools":[{"type":"function","name":"g"}]}],
		"tool_choice":{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"f"},{"type":"web_search"}]},
		"parallel_tool_calls":false,"reasoning":{"effort":"low","summary":"auto"},"include":["reasoning.encrypted_content"],"unknown":{"a":1}}`)
	got := ""
	for _, tool := range req.Tools {
		got += string(tool.Kind) + ":" + tool.Name + " "
	}
	want(t, "tools", got, "function:f function:nested custom:c web_search:web_search opaque: function:n__g ")
	want(t, "strict", *req.Tools[0].Strict, true)
	want(t, "choice", fmt.Sprint(req.ToolChoice.Mode, req.ToolChoice.Names, req.ToolChoice.Required),
		"allowed[f web_search] true")
	want(t, "parallel", *req.Parallel, false)
	want(t, "reasoning", req.Reasoning.Effort == "low" && req.Reasoning.Include && req.Reasoning.EncryptedContent, true)
	want(t, "extra", req.Extra[0].Name, "unknown")
}

func TestDecodeRefusesWhatWouldBeLostInSilence(t *testing.T) {
	for body, param := range map[string]string{
		`{"model":"m","prompt":{"id":"p"}}`:                              "prompt",
		`{"model":"m","input":[{"type":"item_reference","id":"msg_1"}]}`: "input[0]",
	} {
		_, err := responses.Shape.Decode([]byte(body), shapes.Params{}, newEnv())
		var e *dialogue.Error
		if !errors.As(err, &e) || e.Param != param || e.Status != 400 {
			t.Errorf("%s: got %v, want a 400 about %s", body, err, param)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(`{"model":"m","input":"x"}`)
	f.Add(`{"model":"m","input":[{"type":"function_call","call_id":"c","name":"f","arguments":"{"},{"type":"function_call_output","call_id":"c","output":[{"type":"refusal","refusal":"x"}]}],"tools":[{"type":"custom","name":"é"}],"tool_choice":{"type":"custom","name":"é"}}`)
	f.Add(`{"model":"m","instructions":"i","input":[{"type":"reasoning","encrypted_content":"sd1.a.b.c"},{"role":"user","content":[{"type":"input_file","file_data":"data:,"}]}],"text":{"format":{"type":"json_schema","schema":{}}}}`)
	f.Fuzz(func(t *testing.T, body string) {
		if !validUnique(body) {
			return
		}
		head, err := responses.Shape.Check([]byte(body), shapes.Params{})
		if err != nil {
			return
		}
		patched, err := responses.Shape.Patch([]byte(body), shapes.Params{}, head, newTarget(), new(dialogue.Report),
			newEnv())
		if err != nil {
			t.Fatalf("Patch: %v", err)
		}
		mustBeJSON(t, patched.Body)
		mustBeJSON(t, responses.Queued([]byte(body), "resp_1", newEnv().Now()))
		for _, item := range responses.InputItems([]byte(body), newEnv().ID) {
			mustBeJSON(t, item)
		}
		req, err := responses.Shape.Decode([]byte(body), shapes.Params{}, newEnv())
		if err != nil {
			return
		}
		req.Inbound = dialoguetest.Chat
		call, err := responses.Shape.Encode(req, newTarget(), new(dialogue.Report), newEnv())
		if err != nil {
			return
		}
		mustBeJSON(t, call.Body)
		if _, err := responses.Shape.Check(call.Body, shapes.Params{}); err != nil && len(req.Turns) > 0 && !strings.Contains(err.Error(), "input") {
			t.Errorf("what Encode wrote does not pass Check: %v: %s", err, call.Body)
		}
	})
}
