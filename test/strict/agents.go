package strict

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/tidwall/gjson"
)

// A script returns what the model says in answer to a request and which turn that is. loop is false if the
// request is not of the agent's loop, such as one for a title; such a request is not checked.
type script func(v *vendor, doc gjson.Result) (turn int, s step, loop bool)

// An agentTool is a tool of an agent, with the arguments by which it prints a text that holds a marker, or
// reads a file whose path does.
type agentTool struct {
	name string
	args func(text string) any
}

// agentTools are the tools that agents bring along, by what a plan calls them.
var agentTools = map[string][]agentTool{
	"shell": {
		{"Bash", func(text string) any { return object{"command": "echo " + text, "description": "Print a text"} }},
		{"exec_command", func(text string) any { return object{"cmd": "echo " + text} }},
		{"shell_command", func(text string) any { return object{"command": "echo " + text} }},
		{"run_shell_command", func(text string) any { return object{"command": "echo " + text} }},
	},
	"file": {
		{"Read", func(path string) any { return object{"file_path": path} }},
		{"read_file", func(path string) any { return object{"file_path": path} }},
		{"exec_command", func(path string) any { return object{"cmd": "cat " + path} }},
		{"shell_command", func(path string) any { return object{"command": "cat " + path} }},
	},
}

// A Plan says what the upstreams of Agents do, until the next one is set.
type Plan struct {
	Turns   [][]string `json:"turns"`   // of the whole conversation: the calls of each turn; none: an answer
	Files   string     `json:"files"`   // the folder with the files that "file" reads
	Failing string     `json:"failing"` // the upstream that fails
	From    int        `json:"from"`    // the turn from which on it fails
	Status  int        `json:"status"`  // with which it fails
}

// Report says what the upstreams of Agents have seen since the plan was set.
type Report struct {
	Served []string `json:"served"` // UPSTREAM:TURN of each request of the agent's loop that was answered
	Failed []string `json:"failed"` // the same of those that were to fail
	Aside  []string `json:"aside"`  // the upstreams of the other requests
	Bad    []string `json:"bad"`    // requests that an upstream refused
	Lost   []string `json:"lost"`   // what did not come back as it was
}

// Agents has one strict upstream of each kind for agents that run as they are. Each upstream is served
// below its own path (/chat, /thinking-chat, /responses, /messages, /messages-5.5, /gemini). PUT /plan sets
// a Plan and forgets every conversation; GET /report returns a Report.
type Agents struct {
	mu      sync.Mutex
	plan    Plan
	report  Report
	vendors map[string]*vendor
}

// NewAgents returns upstreams that answer every request with a text until they have a plan.
func NewAgents() *Agents {
	a := &Agents{}
	a.begin(Plan{})
	return a
}

func (a *Agents) begin(plan Plan) {
	a.plan, a.report, a.vendors = plan, Report{}, map[string]*vendor{}
	for _, k := range kinds {
		name := strings.ReplaceAll(k.name, " ", "-")
		v := newVendor(k, strings.ReplaceAll(name, ".", ""))
		if k.name == "thinking chat" {
			v.name = "deep"
		}
		v.script = a.step
		a.vendors[name] = v
	}
}

// ServeHTTP serves the upstreams and their plan.
func (a *Agents) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	switch r.Method + r.URL.Path {
	case "PUT/plan":
		var plan Plan
		if err := json.Unmarshal(body, &plan); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		a.begin(plan)
		return
	case "GET/report":
		a.collect()
		_ = json.NewEncoder(w).Encode(a.report) // the test that asked notices a broken connection
		return
	}
	name, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	v := a.vendors[name]
	if v == nil || r.Method != http.MethodPost {
		http.NotFound(w, r)
		return
	}
	if status, kind, reply := a.answer(name, v, path, r.Header, body); status != 0 {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		_, _ = w.Write(reply) // the gateway notices a broken connection
	}
}

// answer returns the reply of an upstream, with its status and media type.
func (a *Agents) answer(name string, v *vendor, path string, header http.Header, body []byte) (
	status int, kind string, reply []byte,
) {
	if strings.Contains(strings.ToLower(path), "count") {
		return 200, "application/json", []byte(`{"input_tokens":10,"totalTokens":10}`)
	}
	turn, _, loop := a.step(v, gjson.ParseBytes(body))
	if v.fails = 0; a.plan.Failing == name && turn >= a.plan.From {
		v.fails = a.plan.Status
	}
	status, kind, reply = v.answer(path, header, body)
	switch seen := name + ":" + strconv.Itoa(turn); {
	case !loop:
		a.report.Aside = append(a.report.Aside, name)
	case status == 200:
		a.report.Served = append(a.report.Served, seen)
	case v.fails != 0 && status == v.fails:
		a.report.Failed = append(a.report.Failed, seen)
	}
	return status, kind, reply
}

// collect moves what the upstreams noted into the report.
func (a *Agents) collect() {
	for name, v := range a.vendors {
		for _, bad := range v.bad {
			a.report.Bad = append(a.report.Bad, name+": "+bad)
		}
		for _, lost := range v.lost {
			a.report.Lost = append(a.report.Lost, name+": "+lost)
		}
		v.bad, v.lost = nil, nil
	}
}

// step follows the plan. The turn is read from the conversation, whose calls, results and answers hold
// markers, so that upstreams need not know of each other.
func (a *Agents) step(v *vendor, doc gjson.Result) (turn int, s step, loop bool) {
	names := toolNames(doc)
	if len(names) == 0 {
		return 0, step{text: "aside"}, false
	}
	for _, member := range []string{"messages", "input", "contents"} {
		for _, marker := range markers.FindAllString(doc.Get(member).Raw, -1) {
			var t, c int
			if n, _ := fmt.Sscanf(marker, "t%dc%d", &t, &c); n == 2 {
				turn = max(turn, t+1)
			}
		}
	}
	if turn != 2 {
		s.thought = fmt.Sprintf("thought %d", turn)
	}
	if turn < len(a.plan.Turns) {
		for i, what := range a.plan.Turns[turn] {
			s.calls = append(s.calls, a.call(what, names, fmt.Sprintf("t%dc%d", turn, i)))
		}
	}
	if s.text = fmt.Sprintf("step t%dc8", turn); len(s.calls) == 0 {
		s.text = fmt.Sprintf("answer t%dc9", turn)
	}
	return turn, s, true
}

// call returns a call of the agent's own tool, or of one that no agent has, which its answer then shows.
func (a *Agents) call(what string, names []string, marker string) toolCall {
	text := resultOf(marker)
	if what == "file" {
		text = a.plan.Files + "/" + marker + ".txt"
	}
	for _, tool := range agentTools[what] {
		if slices.Contains(names, tool.name) {
			args, err := json.Marshal(tool.args(text))
			if err != nil {
				panic(err)
			}
			return toolCall{name: tool.name, args: string(args), marker: marker}
		}
	}
	return toolCall{name: "no_tool_for_" + what, args: `{"text":"` + text + `"}`, marker: marker}
}

// toolNames returns the names of the tools that a request offers, in any shape.
func toolNames(doc gjson.Result) (names []string) {
	doc.Get("tools").ForEach(func(_, tool gjson.Result) bool {
		for _, at := range []gjson.Result{tool.Get("name"), tool.Get("function.name")} {
			if at.Str != "" {
				names = append(names, at.Str)
			}
		}
		tool.Get("functionDeclarations").ForEach(func(_, f gjson.Result) bool {
			names = append(names, f.Get("name").Str)
			return true
		})
		return true
	})
	return names
}
