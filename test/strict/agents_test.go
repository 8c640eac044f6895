package strict

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// The upstreams of agents call the agent's own tools as the plan says, read the turn from the conversation,
// fail when they are to, and report what they saw.
func TestAgentsAreLedThroughThePlan(t *testing.T) {
	server := httptest.NewServer(NewAgents())
	defer server.Close()
	do := func(method, path, body string) (int, gjson.Result) {
		r, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, gjson.ParseBytes(text)
	}
	do("PUT", "/plan", `{"turns":[["shell","file"],[]],"files":"/f","failing":"responses","from":1,"status":529}`)
	tools := `"tools":[{"type":"function","name":"shell_command"}]`
	first := `{"type":"message","role":"user","content":"go"}`
	_, reply := do("POST", "/responses/v1/responses", `{"input":[`+first+`],`+tools+`}`)
	calls := reply.Get(`output.#(type=="function_call")#`).Array()
	if len(calls) != 2 || calls[0].Get("arguments").Str != `{"command":"echo result of t0c0"}` ||
		calls[1].Get("arguments").Str != `{"command":"cat /f/t0c1.txt"}` {
		t.Fatalf("calls: %s", reply.Raw)
	}
	input := first
	for i, call := range calls {
		output, err := json.Marshal(object{"type": "function_call_output", "call_id": call.Get("call_id").Str,
			"output": resultOf([]string{"t0c0", "t0c1"}[i])})
		if err != nil {
			t.Fatal(err)
		}
		input += "," + call.Raw + "," + string(output)
	}
	if status, _ := do("POST", "/responses/v1/responses", `{"input":[`+input+`],`+tools+`}`); status != 529 {
		t.Errorf("the second turn: %d", status)
	}
	if _, reply := do("POST", "/responses/v1/responses", `{"input":"a title"}`); reply.Get("error").Type == gjson.JSON {
		t.Errorf("a request aside: %s", reply.Raw)
	}
	do("POST", "/responses/v1/responses", `{"input":[{"type":"unknown"}],`+tools+`}`)
	_, reply = do("POST", "/responses/v1/responses", `{"input":[`+input+`,{"type":"compaction_trigger"}],`+tools+`}`)
	if reply.Get("output.#").Int() != 1 || reply.Get("output.0.type").Str != "compaction" {
		t.Errorf("a compacted conversation: %s", reply.Raw)
	}
	do("POST", "/responses/v1/responses", `{"input":[`+reply.Get("output.0").Raw+`],`+tools+`}`)
	_, report := do("GET", "/report", "")
	want := `{"served":["responses:0"],"failed":["responses:1","responses:1"],"aside":["responses"],` +
		`"compacted":["responses:1"],"bad":["responses: turn 0: an item of type \"unknown\""],"lost":null}`
	if report.Raw != want+"\n" && report.Raw != want {
		t.Errorf("the report is %s\nwant %s", report.Raw, want)
	}
}
