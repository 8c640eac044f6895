package messages

import (
	"errors"
	"strings"
	"testing"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/shapes"
)

const minimal = `"model":"m","max_tokens":10,"messages":[{"role":"user","content":"hi"}]`

func TestCheckNamesTheFirstBrokenRule(t *testing.T) {
	content := func(blocks string) string {
		return `{"model":"m","max_tokens":10,"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[` + blocks + `]}]}`
	}
	for _, c := range []struct{ name, body, param string }{
		{"minimal", `{` + minimal + `}`, ""},
		{"not an object", `[1]`, "body"},
		{"no model", `{"max_tokens":1,"messages":[{"role":"user","content":"a"}]}`, "model"},
		{"no max_tokens", `{"model":"m","messages":[{"role":"user","content":"a"}]}`, "max_tokens"},
		{"no messages", `{"model":"m","max_tokens":1}`, "messages"},
		{"empty model", `{"model":""}`, "model"},
		{"null model", `{"model":null}`, "model"},
		{"max_tokens zero", `{"model":"m","max_tokens":0,"messages":[{"role":"user","content":"a"}]}`, ""},
		{"max_tokens negative", `{"model":"m","max_tokens":-1}`, "max_tokens"},
		{"max_tokens fraction", `{"model":"m","max_tokens":1.5}`, "max_tokens"},
		{"max_tokens text", `{"model":"m","max_tokens":"1"}`, "max_tokens"},
		{"no message", `{"model":"m","max_tokens":1,"messages":[]}`, "messages"},
		{"messages no array", `{"model":"m","max_tokens":1,"messages":{}}`, "messages"},
		{"first in the document", `{"temperature":2,"model":""}`, "temperature"},
		{"unknown role", `{"messages":[{"role":"user","content":"a"},{"role":"robot","content":"b"}]}`,
			"messages.1.role"},
		{"no role", `{"messages":[{"content":"a"}]}`, "messages.0.role"},
		{"no content", `{"messages":[{"role":"user"}]}`, "messages.0.content"},
		{"content number", `{"messages":[{"role":"user","content":1}]}`, "messages.0.content"},
		{"unknown block", content(`{"type":"hologram"}`), ""},
		{"block without type", content(`{"text":"a"}`), "messages.1.content.0.type"},
		{"second block", content(`{"type":"text","text":"a"},{"type":"text"}`), "messages.1.content.1.text"},
		{"tool_use input", content(`{"type":"tool_use","id":"a","name":"b","input":"{}"}`),
			"messages.1.content.0.input"},
		{"tool_result id", content(`{"type":"tool_result"}`), "messages.1.content.0.tool_use_id"},
		{"tool_result block", content(`{"type":"tool_result","tool_use_id":"a","content":[{"type":"x"}]}`), ""},
		{"image source", content(`{"type":"image","source":{"type":"carrier pigeon"}}`),
			"messages.1.content.0.source.type"},
		{"image data", content(`{"type":"image","source":{"type":"base64","media_type":"image/png"}}`),
			"messages.1.content.0.source.data"},
		{"server blocks", content(`{"type":"server_tool_use"},{"type":"new_tool_result"}`), ""},
		{"temperature null", `{` + minimal + `,"temperature":null}`, ""},
		{"temperature 1.1", `{` + minimal + `,"temperature":1.1}`, "temperature"},
		{"top_p -1", `{` + minimal + `,"top_p":-1}`, "top_p"},
		{"top_k -1", `{` + minimal + `,"top_k":-1}`, "top_k"},
		{"stream text", `{` + minimal + `,"stream":"yes"}`, "stream"},
		{"stop text", `{` + minimal + `,"stop_sequences":"a"}`, "stop_sequences"},
		{"stop number", `{` + minimal + `,"stop_sequences":["a",1]}`, "stop_sequences.1"},
		{"system number", `{` + minimal + `,"system":1}`, "system"},
		{"system image", `{` + minimal + `,"system":[{"type":"image"}]}`, "system.0.type"},
		{"container number", `{` + minimal + `,"container":5}`, "container"},
		{"container with skills", `{` + minimal + `,"container":{"id":"c","skills":[]}}`, ""},
		{"metadata text", `{` + minimal + `,"metadata":"a"}`, "metadata"},
		{"open service tier", `{` + minimal + `,"service_tier":"fast"}`, ""},
		{"open effort", `{` + minimal + `,"output_config":{"effort":"max"}}`, ""},
		{"format type", `{` + minimal + `,"output_config":{"format":{"type":"xml"}}}`, "output_config.format.type"},
		{"format without schema", `{` + minimal + `,"output_config":{"format":{"type":"json_schema"}}}`, ""},
		{"older format", `{` + minimal + `,"output_format":{"type":"xml"}}`, "output_format.type"},
		{"thinking type", `{` + minimal + `,"thinking":{"type":"deep"}}`, "thinking.type"},
		{"thinking without budget", `{` + minimal + `,"thinking":{"type":"enabled"}}`, "thinking.budget_tokens"},
		{"thinking small", `{` + minimal + `,"thinking":{"type":"enabled","budget_tokens":1023}}`,
			"thinking.budget_tokens"},
		{"thinking not below", `{` + minimal + `,"thinking":{"type":"enabled","budget_tokens":1024}}`,
			"thinking.budget_tokens"},
		{"tool without schema", `{` + minimal + `,"tools":[{"name":"a"}]}`, "tools.0.input_schema"},
		{"tool without name", `{` + minimal + `,"tools":[{"input_schema":{}}]}`, "tools.0.name"},
		{"nameless server tool", `{` + minimal + `,"tools":[{"type":"web_search"}]}`, ""},
		{"tool_choice type", `{` + minimal + `,"tool_choice":{"type":"required"}}`, "tool_choice.type"},
		{"tool_choice name", `{` + minimal + `,"tool_choice":{"type":"tool"}}`, "tool_choice.name"},
		{"unknown fields", `{` + minimal + `,"client_metadata":1,"mcp_servers":"x"}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Shape.Check([]byte(c.body), shapes.Params{})
			var broken *dialogue.Error
			if c.param == "" {
				if err != nil {
					t.Fatalf("got %v, want no error", err)
				}
				return
			}
			if !errors.As(err, &broken) {
				t.Fatalf("got %v, want an error about %s", err, c.param)
			}
			if broken.Status != 400 || broken.Param != c.param || !strings.HasPrefix(broken.Message, c.param+": ") {
				t.Errorf("got %d %q %q, want 400 %q", broken.Status, broken.Param, broken.Message, c.param)
			}
		})
	}
}

func TestCheckReadsTheHead(t *testing.T) {
	body := `{` + minimal + `,"stream":true,"service_tier":"auto","output_config":{"format":{"type":"json_schema","schema":{}}}}`
	head, err := Shape.Check([]byte(body), shapes.Params{})
	if err != nil {
		t.Fatal(err)
	}
	want := shapes.Head{Model: "m", Stream: true, IncludeUsage: true, MaxTokens: 10, N: 1, ServiceTier: "auto",
		Structured: true}
	if head != want {
		t.Errorf("got %+v, want %+v", head, want)
	}
}

func TestCheckAcceptsASystemRoleInsideTheConversation(t *testing.T) {
	body := []byte(`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"a"},{"role":"system","content":"b"}]}`)
	head, err := Shape.Check(body, shapes.Params{})
	if err != nil || !head.SystemTurns {
		t.Errorf("got %+v, %v", head, err)
	}
}

func TestCheckWantsNoMaxTokensForCounting(t *testing.T) {
	body := []byte(`{"model":"m","messages":[{"role":"user","content":"a"}]}`)
	if _, err := Shape.Check(body, shapes.Params{Path: "/v1/messages/count_tokens"}); err != nil {
		t.Error(err)
	}
}

func TestAFileForTheVendorsSandboxIsNotTranslated(t *testing.T) {
	const upload = `{"type":"container_upload","file_id":"file_1"}`
	for body, unknown := range map[string]bool{
		`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[` + upload + `]}]}`: true,
		`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"a"},` +
			`{"role":"assistant","content":[` + upload + `]}]}`: false,
	} {
		head, err := Shape.Check([]byte(body), shapes.Params{})
		if err != nil || (head.Unknown != nil) != unknown {
			t.Errorf("%s: got %v, %v", body, head.Unknown, err)
		}
	}
}
