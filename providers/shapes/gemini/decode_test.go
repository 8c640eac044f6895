package gemini_test

import (
	"testing"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/dialogue/dialoguetest"
)

func TestCallsWithoutIDsMeetTheirResultsByNameAndOrder(t *testing.T) {
	req := decode(t, newEnv(), `{"contents":[
		{"role":"user","parts":[{"text":"go"}]},
		{"role":"model","parts":[{"functionCall":{"name":"a"}},{"functionCall":{"name":"b"}},{"functionCall":{"name":"a","args":{"n":9007199254740993}}},{"functionCall":{"id":"x","name":"c"}}]},
		{"role":"function","parts":[{"functionResponse":{"id":"x","name":"c","response":{}}},{"functionResponse":{"name":"b","response":{"result":"two"}}},
			{"functionResponse":{"name":"a","response":{"output":"one"}}},{"functionResponse":{"name":"a","response":{"error":"bad"}}},{"functionResponse":{"name":"z","response":{"n":1}}}]}]}`)
	calls, results := req.Turns[1].Parts, req.Turns[2].Parts
	for i, want := range []struct {
		call   int
		text   string
		failed bool
	}{{3, "{}", false}, {1, "two", false}, {0, "one", false}, {2, "bad", true}} {
		r := results[i].Result
		if r.CallID != calls[want.call].Call.ID || r.Parts[0].Text != want.text || r.IsError != want.failed {
			t.Errorf("result %d: got %+v, want call %d %q", i, r, want.call, want.text)
		}
	}
	if calls[2].Call.Args != `{"n":9007199254740993}` || calls[0].Call.ID == calls[2].Call.ID || calls[3].Call.ID != "x" {
		t.Errorf("calls %+v %+v", calls[0].Call, calls[2].Call)
	}
	if id := results[4].Result.CallID; id == "" || id == calls[0].Call.ID {
		t.Errorf("the orphan got the id %q", id)
	}
}

func TestDecodeReadsEveryParameter(t *testing.T) {
	req := decode(t, newEnv(), `{"system_instruction":{"parts":[{"text":"A"},{"text":"B"}]},`+hi+`,
		"generation_config":{"temperature":0,"topP":0.5,"topK":"40","maxOutputTokens":100,"stopSequences":["x"],"seed":7,"candidateCount":2,
			"presencePenalty":1,"frequencyPenalty":-1,"responseLogprobs":true,"logprobs":3,"response_mime_type":"application/json","response_schema":{"type":"OBJECT"},
			"thinkingConfig":{"includeThoughts":true,"thinkingBudget":2000},"mediaResolution":"MEDIA_RESOLUTION_LOW"},
		"tools":[{"function_declarations":[{"name":"f","description":"d","parameters":{"type":"OBJECT"}},{"name":"g","parameters_json_schema":{"type":"object"}}]},{"googleSearch":{}},{"codeExecution":{}}],
		"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["f"]}},"safetySettings":[],"labels":{"a":"b"}}`)
	if len(req.System) != 2 || req.System[1].Text != "B" || req.Temperature != "0" || req.TopP != "0.5" || *req.TopK != 40 || *req.MaxTokens != 100 ||
		req.Stop[0] != "x" || req.Seed != "7" || req.N != 2 || req.PresencePenalty != "1" ||
		req.FrequencyPenalty != "-1" || !req.LogProbs || *req.TopLogProbs != 3 {
		t.Errorf("parameters: %+v", req)
	}
	if req.Output.Mode != dialogue.OutputSchema || !req.Output.GeminiSchema || string(req.Output.Schema) != `{"type":"OBJECT"}` {
		t.Errorf("output: %+v", req.Output)
	}
	if !req.Reasoning.Include || *req.Reasoning.Budget != 2000 {
		t.Errorf("reasoning: %+v", req.Reasoning)
	}
	if len(req.Tools) != 4 || !req.Tools[0].GeminiSchema || req.Tools[1].GeminiSchema || req.Tools[2].Kind != dialogue.WebSearchTool ||
		req.Tools[3].Type != "codeExecution" || string(req.Tools[3].Opaque) != `{"codeExecution":{}}` ||
		!req.WebSearch {
		t.Errorf("tools: %+v", req.Tools)
	}
	if c := req.ToolChoice; c.Mode != dialogue.ToolNamed || c.Names[0] != "f" {
		t.Errorf("choice: %+v", c)
	}
	if len(req.Extra) != 2 || req.Extra[0].Name != "generationConfig.mediaResolution" || req.Extra[1].Name != "safetySettings" || string(req.Metadata) != `{"a":"b"}` {
		t.Errorf("extra: %+v", req.Extra)
	}
}

func TestThinkingConfigIsToldApart(t *testing.T) {
	for _, row := range []struct {
		config string
		want   dialogue.Reasoning
	}{
		{`{"thinkingBudget":0}`, dialogue.Reasoning{Disabled: true}},
		{`{"thinkingBudget":-1}`, dialogue.Reasoning{Adaptive: true}},
		{`{"thinkingLevel":"HIGH"}`, dialogue.Reasoning{Effort: "high"}},
	} {
		req := decode(t, newEnv(), `{`+hi+`,"generationConfig":{"thinkingConfig":`+row.config+`}}`)
		if req.Reasoning != row.want {
			t.Errorf("%s: got %+v", row.config, req.Reasoning)
		}
	}
}

func TestToolModes(t *testing.T) {
	for config, want := range map[string]dialogue.ToolChoice{
		`{"mode":"AUTO"}`:      {Mode: dialogue.ToolAuto},
		`{"mode":"NONE"}`:      {Mode: dialogue.ToolNone},
		`{"mode":"any"}`:       {Mode: dialogue.ToolRequired},
		`{"mode":"VALIDATED"}`: {Mode: dialogue.ToolAuto},
		`{"mode":"ANY","allowed_function_names":["a","b"]}`: {Mode: dialogue.ToolAllowed, Required: true},
		`{"mode":"VALIDATED","allowedFunctionNames":["a"]}`: {Mode: dialogue.ToolAllowed},
	} {
		req := decode(t, newEnv(), `{`+hi+`,"tool_config":{"function_calling_config":`+config+`}}`)
		if got := req.ToolChoice; got == nil || got.Mode != want.Mode || got.Required != want.Required {
			t.Errorf("%s: got %+v", config, got)
		}
	}
}

func TestMediaIsReadInBothSpellings(t *testing.T) {
	req := decode(t, newEnv(), `{"contents":[{"parts":[
		{"inlineData":{"mimeType":"image/png","data":"a-_z"}},
		{"inline_data":{"mime_type":"application/pdf","data":"QUI"}},
		{"fileData":{"fileUri":"https://example.org/a.mp4","mimeType":"video/mp4"},"videoMetadata":{"fps":1}},
		{"fileData":{"fileUri":"https://generativelanguage.googleapis.com/v1beta/files/x"}},
		{"inlineData":{"mimeType":"text/plain","data":"aGk="}}]}]}`)
	p := req.Turns[0].Parts
	if m := p[0].Media; m.Kind != dialogue.Image || m.Base64 != "a+/z" {
		t.Errorf("image: %+v", m)
	}
	if m := p[1].Media; m.Kind != dialogue.File || m.Base64 != "QUI=" {
		t.Errorf("file: %+v", m)
	}
	if m := p[2].Media; m.Kind != dialogue.Video || m.URL != "https://example.org/a.mp4" || len(p[2].Opaque) == 0 {
		t.Errorf("video: %+v", p[2])
	}
	if m := p[3].Media; m.FileID == "" || m.URL != "" || p[3].Origin != dialoguetest.Gemini {
		t.Errorf("stored file: %+v", m)
	}
	if m := p[4].Media; m.Text != "hi" || m.Base64 != "" {
		t.Errorf("text file: %+v", m)
	}
}

func TestCachedContentIsAFileOnlyItsVendorCanOpen(t *testing.T) {
	req := decode(t, newEnv(), `{"cachedContent":"cachedContents/x",`+hi+`}`)
	if p := req.Turns[0].Parts[0]; p.Media == nil || p.Media.FileID != "cachedContents/x" || p.Origin != dialoguetest.Gemini {
		t.Errorf("got %+v", p)
	}
}

func TestThoughtsAreJoinedUpToTheirSignature(t *testing.T) {
	env := newEnv()
	sealed := env.Sealer.Seal(&dialogue.Thinking{Text: "ab", Signature: "S", Origin: dialoguetest.Messages})
	req := decode(t, env, `{"contents":[{"role":"model","parts":[
		{"text":"a","thought":true},{"text":"b","thought":true},{"text":"","thought":true,"thoughtSignature":"`+sealed+`"},
		{"text":"c","thought":true},{"text":"d","thought":true,"thoughtSignature":"QQ=="},
		{"text":"see","thoughtSignature":"Qg=="},{"text":""},{"text":"x","thought":true,"thoughtSignature":"sd1.messages.forged.x"},
		{"functionCall":{"name":"f"},"thoughtSignature":"Qw=="},{"executableCode":{"code":"1"}}]}]}`)
	p := req.Turns[0].Parts
	want := []dialogue.Thinking{
		0: {Text: "ab", Signature: "S", Origin: dialoguetest.Messages},
		1: {Text: "cd", Signature: "QQ==", Origin: dialoguetest.Gemini},
		3: {Signature: "Qg==", Origin: dialoguetest.Gemini},
		4: {Text: "x"},
	}
	for _, i := range []int{0, 1, 3, 4} {
		if p[i].Thinking == nil || *p[i].Thinking != want[i] {
			t.Errorf("part %d: got %+v, want %+v", i, p[i].Thinking, want[i])
		}
	}
	if p[2].Text != "see" || p[5].Call.Signature != "Qw==" || p[6].Kind != dialogue.ServerPart || len(p) != 7 {
		t.Errorf("parts: %+v", p)
	}
}

func TestASignatureWithoutATextIsReadAsOneOfAnEmptyText(t *testing.T) {
	req := decode(t, newEnv(), `{"contents":[{"parts":[{"text":"q"}]},`+
		`{"role":"model","parts":[{"text":"a"},{"thoughtSignature":"QQ=="}]},{"parts":[{"text":"b"}]}]}`)
	parts := req.Turns[1].Parts
	if len(parts) != 2 || parts[1].Kind != dialogue.ThinkingPart || parts[1].Thinking.Signature != "QQ==" {
		t.Errorf("got %+v", parts)
	}
}
