package strict

import (
	"strings"
	"testing"
)

// Each vendor refuses what its documents forbid, and accepts the same conversation without the
// mistake.
func TestVendorsRefuseWhatTheirRulesForbid(t *testing.T) {
	const args = `{\"marker\":\"t1c1\",\"n\":12345678901234567890}`
	input := strings.ReplaceAll(args, `\`, "")
	chat := `{"messages":[{"role":"assistant","tool_calls":[{"id":"a","function":{"arguments":"` + args +
		`"}}]},{"role":"tool","tool_call_id":"a","content":"result of t1c1"}]}`
	thinking := strings.Replace(chat, `"tool_calls"`, `"reasoning_content":"","tool_calls"`, 1)
	responses := `{"input":[{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"E"},` +
		`{"type":"function_call","call_id":"a","name":"f","arguments":"` + args + `"},` +
		`{"type":"function_call_output","call_id":"a","output":"result of t1c1"}]}`
	messages := `{"max_tokens":2000,"thinking":{"type":"enabled","budget_tokens":1024},"messages":[` +
		`{"role":"user","content":"q"},{"role":"assistant","content":[` +
		`{"type":"thinking","thinking":"t","signature":"S"},` +
		`{"type":"tool_use","id":"a","name":"f","input":` + input + `}]},{"role":"user","content":[` +
		`{"type":"tool_result","tool_use_id":"a","content":"result of t1c1"}]}]}`
	newer := strings.Replace(messages, `"enabled"`, `"adaptive"`, 1)
	gemini := `{"contents":[{"role":"model","parts":[{"functionCall":{"args":` + input +
		`},"thoughtSignature":"G"}]},` +
		`{"role":"user","parts":[{"functionResponse":{"response":{"output":"result of t1c1"}}}]}]}`
	for _, c := range []struct {
		kind           int
		good, old, new string
	}{
		{0, chat, `"id":"a"`, `"id":"` + strings.Repeat("a", 41) + `"`},
		{0, chat, `"tool_call_id":"a"`, `"tool_call_id":"b"`},
		{0, chat, `"tool_calls"`, `"reasoning_content":"x","tool_calls"`},
		{0, chat, `result of t1c1`, `result of t1c2`},
		{0, chat, `"messages"`, `"reasoning_effort":"low","messages"`},
		{1, thinking, `"reasoning_content":"",`, ``},
		{2, responses, `"rs_1"`, `"rs_2"`},
		{2, responses, `"encrypted_content":"E"`, `"encrypted_content":"F"`},
		{2, responses, `{"type":"function_call_output","call_id":"a","output":"result of t1c1"}`, `{"type":"other"}`},
		{2, responses, `"name":"f"`, `"name":"f","id":"call_1"`},
		{3, messages, `"thinking":"t","signature":"S"`, `"thinking":"u","signature":"S"`},
		{3, messages, `{"type":"thinking","thinking":"t","signature":"S"},`, ``},
		{3, messages, `[{"type":"tool_result"`, `[{"type":"text","text":"x"},{"type":"tool_result"`},
		{3, messages, `"role":"user","content":"q"`, `"role":"system","content":"q"`},
		{4, newer, `"adaptive"`, `"disabled"`},
		{4, newer, `"adaptive"`, `"enabled"`},
		{4, newer, `"messages"`, `"temperature":0.5,"messages"`},
		{5, gemini, `,"thoughtSignature":"G"`, ``},
		{5, gemini, `"thoughtSignature":"G"`, `"thoughtSignature":"H"`},
		{5, gemini, `"functionResponse"`, `"text":"x","x"`},
	} {
		for _, body := range []string{c.good, strings.Replace(c.good, c.old, c.new, 1)} {
			v := newVendor(kinds[c.kind], "x")
			v.proofs = map[string]string{"E": "rs_1", "S": "t", "G": "t1c1"}
			if err := v.examine([]byte(body)); (err == nil) != (body == c.good) {
				t.Errorf("%s, %s for %s: %v", v.kind.name, c.new, c.old, err)
			}
		}
	}
}

// A vendor notices that its own reasoning, a picture or the bytes of earlier turns did not come back.
func TestVendorsNoteWhatDidNotComeBack(t *testing.T) {
	v := newVendor(kinds[3], "m")
	v.proofs["call t1c1"] = "S"
	body := `{"max_tokens":2000,"thinking":{"type":"enabled","budget_tokens":1024},"messages":[` +
		`{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"redacted_thinking","data":"R"},` +
		`{"type":"tool_use","id":"a","name":"f","input":{"marker":"t1c1","n":12345678901234567890}}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"result of t1c1"}]}]}`
	v.proofs["R"] = ""
	if err := v.examine([]byte(body)); err != nil || len(v.lost) != 1 {
		t.Fatalf("reasoning: %v %q", err, v.lost)
	}
	if err := v.examine([]byte(strings.Replace(body, `"q"`, `"r"`, 1))); err != nil || len(v.lost) != 3 {
		t.Errorf("bytes: %v %q", err, v.lost)
	}
	v.shown = true
	body = strings.ReplaceAll(strings.Replace(body, `"q"`, `"r"`, 1), "t1c1", "t1c0")
	if err := v.examine([]byte(body)); err != nil || !strings.Contains(strings.Join(v.lost, "\n"), "picture") {
		t.Errorf("pictures: %v %q", err, v.lost)
	}
}
