package messages

import (
	"reflect"
	"testing"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/dialogue/dialoguetest"
	"stagedoor/providers/fields"
	"stagedoor/providers/shapes"
)

func inbound() shapes.Params { return shapes.Params{} }

func decode(t *testing.T, body string, env *dialogue.Env) *dialogue.Request {
	t.Helper()
	if _, err := Shape.Check([]byte(body), inbound()); err != nil {
		t.Fatal(err)
	}
	req, err := Shape.Decode([]byte(body), inbound(), env)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

func TestDecodeReadsEveryParameter(t *testing.T) {
	req := decode(t, `{"model":"m","max_tokens":5000,"stream":true,"system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}],
		"temperature":0.10,"top_p":1,"top_k":0,"stop_sequences":["a","b"],"metadata":{"user_id":"u"},"service_tier":"auto",
		"thinking":{"type":"enabled","budget_tokens":2000},"output_config":{"effort":"low","format":{"type":"json_schema","schema":{"type":"object"}}},
		"tool_choice":{"type":"any","disable_parallel_tool_use":true},"container":"c",
		"tools":[{"name":"f","description":"d","input_schema":{"type":"object"}},{"type":"web_search_20250305","name":"web_search"},{"type":"bash_20250124","name":"bash"}],
		"messages":[{"role":"user","content":"hi"}]}`, newEnv())
	if req.Model != "m" || *req.MaxTokens != 5000 || !req.Stream || !req.IncludeUsage || req.Temperature != "0.10" || req.TopP != "1" || *req.TopK != 0 {
		t.Errorf("got %+v", req)
	}
	if !reflect.DeepEqual(req.Stop, []string{"a", "b"}) || req.User != "u" || req.ServiceTier != "auto" || !req.WebSearch {
		t.Errorf("got %+v", req)
	}
	if req.System[0].Text != "s" || string(req.System[0].CacheHint) != `{"type":"ephemeral"}` {
		t.Errorf("system %+v", req.System)
	}
	if r := req.Reasoning; *r.Budget != 2000 || r.Effort != "low" || !r.Include {
		t.Errorf("reasoning %+v", r)
	}
	if o := req.Output; o.Mode != dialogue.OutputSchema || string(o.Schema) != `{"type":"object"}` {
		t.Errorf("output %+v", o)
	}
	if req.ToolChoice.Mode != dialogue.ToolRequired || *req.Parallel {
		t.Errorf("choice %+v, parallel %v", req.ToolChoice, *req.Parallel)
	}
	kinds := []dialogue.ToolKind{req.Tools[0].Kind, req.Tools[1].Kind, req.Tools[2].Kind}
	if !reflect.DeepEqual(kinds, []dialogue.ToolKind{dialogue.FunctionTool, dialogue.WebSearchTool, dialogue.OpaqueTool}) {
		t.Errorf("tools %v", kinds)
	}
	if len(req.Extra) != 1 || req.Extra[0].Name != "container" {
		t.Errorf("extra %v", req.Extra)
	}
}

func TestSealedThinkingComesBackToItsOrigin(t *testing.T) {
	env := newEnv()
	seal := env.Sealer.Seal(&dialogue.Thinking{Encrypted: "E", ItemID: "rs_1", Origin: dialoguetest.Responses})
	forged := seal[:len(seal)-1] + "x"
	req := decode(t, `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[
		{"type":"thinking","thinking":"t","signature":"`+seal+`"},{"type":"redacted_thinking","data":"`+seal+`"},
		{"type":"thinking","thinking":"t","signature":"`+forged+`"},{"type":"thinking","thinking":"t","signature":"native"},{"type":"redacted_thinking","data":"native"},
		{"type":"thinking","thinking":"t","signature":""}]}]}`, env)
	want := []dialogue.Thinking{
		{Text: "t", Encrypted: "E", ItemID: "rs_1", Origin: dialoguetest.Responses},
		{Encrypted: "E", ItemID: "rs_1", Origin: dialoguetest.Responses},
		{Text: "t"},
		{Text: "t", Signature: "native", Origin: dialoguetest.Messages},
		{Redacted: "native", Origin: dialoguetest.Messages},
		{Text: "t"},
	}
	for i, p := range req.Turns[1].Parts {
		if *p.Thinking != want[i] {
			t.Errorf("%d: got %+v, want %+v", i, *p.Thinking, want[i])
		}
	}
}

func TestTheVaultGivesBackThoughtSignatures(t *testing.T) {
	env := newEnv()
	env.RememberSignature("call_1", "SIG")
	req := decode(t, `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"tool_use","id":"call_1","name":"f","input":{}}]}]}`, env)
	if got := req.Turns[1].Parts[0].Call.Signature; got != "SIG" {
		t.Errorf("got %q", got)
	}
}

// A client may repeat the id of a call in one message and in many.
func TestThoughtsOfARepeatedCallAreRecalledOnce(t *testing.T) {
	env := newEnv()
	env.RememberThoughts("c", []dialogue.Thinking{{Text: "a"}, {Text: "b"}})
	const call = `{"type":"tool_use","id":"c","name":"f","input":{}}`
	const message = `{"role":"assistant","content":[` + call + `,` + call + `]}`
	req := decode(t, `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"a"},`+message+
		`,{"role":"user","content":"b"},`+message+`]}`, env)
	if first, second := len(req.Turns[1].Parts), len(req.Turns[3].Parts); first != 4 || second != 2 {
		t.Errorf("%d parts in the first message and %d in the second", first, second)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{` + minimal + `}`))
	f.Add([]byte(`{"model":"m","max_tokens":9,"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"b","input":{}},{"type":"thinking","thinking":"t","signature":"s"}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"},{"type":"document","source":{"type":"content","content":[{"type":"text","text":"x"}]}}]}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		head, err := Shape.Check(body, inbound())
		if err != nil || !fields.ValidLenient(body) {
			return
		}
		env := newEnv()
		rep := new(dialogue.Report)
		if c, err := Shape.Patch(body, inbound(), head, model(), rep, env); err == nil && !fields.ValidLenient(c.Body) {
			t.Errorf("patched into %s", c.Body)
		}
		req, err := Shape.Decode(body, inbound(), env)
		if err != nil {
			return
		}
		if c, err := Shape.Encode(req, model(), rep, env); err == nil && !fields.ValidLenient(c.Body) {
			t.Errorf("encoded into %s", c.Body)
		}
	})
}
