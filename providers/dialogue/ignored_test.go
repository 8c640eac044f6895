package dialogue_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/dialogue/dialoguetest"
)

func TestEmptyMembersAreNotRecordedAsIgnored(t *testing.T) {
	for value, want := range map[string]bool{
		`null`: false, `false`: false, `""`: false, `[]`: false, `{}`: false, `{"enabled":false}`: false,
		`{"a":null,"b":""}`: false,
		`true`:              true, `0`: true, `"x"`: true, `[null]`: true, `{"enabled":true}`: true, `{"a":null,"b":{}}`: true,
	} {
		var r dialogue.Request
		r.RecordIgnoredExcept("messages", gjson.Parse(`{"role":"user","x":`+value+`}`), "role")
		if got := strings.Join(r.Ignored, ","); (got == "messages.x") != want {
			t.Errorf("%s: got %q", value, got)
		}
	}
}

func TestIgnoredMembersAreBounded(t *testing.T) {
	var r dialogue.Request
	for i := range 100_000 {
		r.RecordIgnoredExcept("tools", gjson.Parse(fmt.Sprintf(`{"x%d":1}`, i)))
	}
	if n := len(r.Ignored); n != 64 {
		t.Errorf("%d names are kept", n)
	}
}

func TestIgnoredMembersAreLostWhereTheyAreNotSent(t *testing.T) {
	hint := json.RawMessage(`{"type":"ephemeral"}`)
	marked := dialogue.Part{
		Kind:   dialogue.ResultPart,
		Result: &dialogue.Result{Parts: []dialogue.Part{{Text: "r", CacheHint: hint}}},
	}
	traits := map[dialogue.Shape]dialogue.Traits{
		dialoguetest.Messages:  {ReplaysParts: true, CacheHints: true},
		dialoguetest.Gemini:    {ReplaysParts: true},
		dialoguetest.Responses: {StoresReplies: true},
	}
	for _, c := range []struct {
		from, to dialogue.Shape
		want     string
	}{
		{dialoguetest.Messages, dialoguetest.Messages, ""},
		{dialoguetest.Messages, dialoguetest.Chat, "tools.x,cache_control"},
		{dialoguetest.Chat, dialoguetest.Chat, "tools.x,cache_control"},
		{dialoguetest.Chat, dialoguetest.Messages, "tools.x"},
		{dialoguetest.Responses, dialoguetest.Responses, "tools.x,cache_control"},
		{dialoguetest.Responses, dialoguetest.Gemini, "tools.x,include:file_search_call.results,cache_control"},
	} {
		req := dialogue.Request{
			Inbound: c.from,
			Traits:  traits[c.from],
			Ignored: []string{"tools.x"},
			Turns:   []dialogue.Turn{{Parts: []dialogue.Part{marked}}},
		}
		if c.from == dialoguetest.Responses {
			req.Include = []string{dialogue.IncludeEncrypted, "file_search_call.results"}
		}
		var rep dialogue.Report
		if rep.LoseUntranslated(&req, c.to, traits[c.to]); rep.Header() != c.want {
			t.Errorf("%s -> %s: got %q, want %q", c.from, c.to, rep.Header(), c.want)
		}
	}
}
