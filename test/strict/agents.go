package strict

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/tidwall/gjson"
)

// reader returns what the model says in answer to a request and which turn that is. loop is false if the
// request is not of the agent's loop, such as one for a title; such a request is not checked.
type reader func(v *vendor, doc gjson.Result) (turn int, s step, loop bool)

// agentTools are the tools that agents bring along, by what a plan calls them, with the arguments by which
// they print a text that holds a marker, or read a file whose path does.
var agentTools = map[string][]agentTool{
	"shell": {
		{"Bash", func(text string) any { return object{"command": "echo " + text, "description": "Print a text"} }},
		{"exec_command", func(text string) any { return object{"cmd": "echo " + text} }},
		{"shell_command", func(text string) any { return object{"command": "echo " + text} }},
		{"run_shell_command", func(text string) any { return object{"command": "echo " + text} }},
		{"exec", func(text string) any { return script("echo " + text) }},
	},
	"file": {
		{"Read", func(path string) any { return object{"file_path": path} }},
		{"read_file", func(path string) any { return object{"file_path": path} }},
		{"exec_command", func(path string) any { return object{"cmd": "cat " + path} }},
		{"shell_command", func(path string) any { return object{"command": "cat " + path} }},
		{"exec", func(path string) any { return script("cat " + path) }},
	},
}

// An agentTool is a tool of an agent. args returns a string for the input of a custom tool.
type agentTool struct {
	name string
	args func(text string) any
}

// script returns the program with which Codex runs a command.
func script(command string) string {
	return `const r = await tools.exec_command({"cmd": "` + command + `"}); text(r);`
}

// A Plan says what the upstreams of Agents do, until the next one is set.
type Plan struct {
	Turns   [][]string `json:"turns"`   // of the whole conversation: the calls of each turn; none: an answer
	Files   string     `json:"files"`   // the folder with the files that "file" reads
	Failing string     `json:"failing"` // the upstream that fails
	From    int        `json:"from"`    // the turn from which on it fails
	Status  int        `json:"status"`  // with which it fails
	Long    []int      `json:"long"`    // the turns after which the conversation is nearly too long
}

// Report says what the upstreams of Agents have seen since the plan was set.
type Report struct {
	Served    []string `json:"served"`    // UPSTREAM:TURN of each request of the agent's loop that was answered
	Failed    []string `json:"failed"`    // the same of those that were to fail
	Aside     []string `json:"aside"`     // the upstreams of the other requests
	Compacted []string `json:"compacted"` // UPSTREAM:TURN of each request to compact the conversation before a turn
	Bad       []string `json:"bad"`       // requests that an upstream refused
	Lost      []string `json:"lost"`      // what did not come back as it was
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

// begin makes the vendors anew for a plan.
func (a *Agents) begin(plan Plan) {
	a.plan, a.report, a.vendors = plan, Report{}, map[string]*vendor{}
	for _, k := range kinds {
		name := strings.ReplaceAll(k.name, " ", "-")
		v := newVendor(k, strings.ReplaceAll(name, ".", ""))
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
	turn, s, loop := a.step(v, gjson.ParseBytes(body))
	if v.fails = 0; !s.compact && a.plan.Failing == name && turn >= a.plan.From {
		v.fails = a.plan.Status
	}
	status, kind, reply = v.answer(path, header, body)
	switch seen := name + ":" + strconv.Itoa(turn); {
	case !loop:
		a.report.Aside = append(a.report.Aside, name)
	case status == 200 && s.compact:
		a.report.Compacted = append(a.report.Compacted, seen)
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
		for _, bad := range v.refused {
			a.report.Bad = append(a.report.Bad, name+": "+bad)
		}
		for _, lost := range v.lost {
			a.report.Lost = append(a.report.Lost, name+": "+lost)
		}
		v.refused, v.lost = nil, nil
	}
}

// spoken finds the markers of results and answers. An agent may also list its files, whose names have some.
var spoken = regexp.MustCompile(`(?:result of|step|answer) t(\d{1,3})c\d`)

// step follows the plan. The turn is read from the conversation, whose calls, results and answers hold
// markers, so that upstreams need not know of each other.
func (a *Agents) step(v *vendor, doc gjson.Result) (turn int, s step, loop bool) {
	offers := offered(doc)
	if len(offers) == 0 {
		return 0, step{text: aside(doc)}, false
	}
	for _, member := range []string{"messages", "input", "contents"} {
		for _, said := range spoken.FindAllStringSubmatch(doc.Get(member).Raw, -1) {
			if t, err := strconv.Atoi(said[1]); err == nil {
				turn = max(turn, t+1)
			}
		}
	}
	if s.compact = asksToCompact(doc); s.compact {
		s.text = fmt.Sprintf("answer t%dc9", turn-1)
		return turn, s, true
	}
	s.long = slices.Contains(a.plan.Long, turn)
	if turn != 2 {
		s.thought = fmt.Sprintf("thought %d", turn)
	}
	if turn < len(a.plan.Turns) {
		for i, what := range a.plan.Turns[turn] {
			s.calls = append(s.calls, a.call(what, offers, fmt.Sprintf("t%dc%d", turn, i)))
		}
	}
	if s.text = fmt.Sprintf("step t%dc8", turn); len(s.calls) == 0 {
		s.text = fmt.Sprintf("answer t%dc9", turn)
	}
	return turn, s, true
}

// trigger is the type of the last item of a conversation that its client wants compacted.
const trigger = "compaction_trigger"

// asksToCompact reports whether a request asks for a compacted conversation, or for a summary in its place, as the
// gateway words it for vendors that do not compact.
func asksToCompact(doc gjson.Result) bool {
	for _, member := range []string{"messages", "input", "contents"} {
		if all := doc.Get(member).Array(); len(all) > 0 {
			last := all[len(all)-1]
			return last.Get("type").Str == trigger || strings.Contains(last.Raw, "about to be replaced by a summary")
		}
	}
	return false
}

// aside answers a request that is not of the loop: with a text, or as its schema wants.
func aside(doc gjson.Result) string {
	for _, at := range []string{"responseJsonSchema", "responseSchema"} {
		if schema := doc.Get("generationConfig." + at); schema.IsObject() {
			text, err := json.Marshal(example(schema))
			if err != nil {
				panic(err)
			}
			return string(text)
		}
	}
	return "aside"
}

// example returns a value of a JSON schema.
func example(schema gjson.Result) any {
	if first := schema.Get("enum.0"); first.Exists() {
		return first.Value()
	}
	switch strings.ToLower(schema.Get("type").Str) {
	case "object":
		out := object{}
		schema.Get("properties").ForEach(func(name, v gjson.Result) bool {
			out[name.Str] = example(v)
			return true
		})
		return out
	case "array":
		return array{}
	case "integer", "number":
		return max(schema.Get("minimum").Int(), 1)
	case "boolean":
		return false
	}
	return "aside"
}

// call returns a call of the agent's own tool, or of one that no agent has, which its answer then shows.
func (a *Agents) call(what string, offers []offer, marker string) toolCall {
	text := resultOf(marker)
	if what == "file" {
		text = a.plan.Files + "/" + marker + ".txt"
	}
	for _, tool := range agentTools[what] {
		for _, offer := range offers {
			if offer.name != tool.name && !strings.HasSuffix(offer.name, "__"+tool.name) {
				continue
			}
			args := tool.args(text)
			input, free := args.(string)
			if offer.custom && free {
				return toolCall{name: offer.name, namespace: offer.namespace, args: input, custom: true, marker: marker}
			}
			if free {
				args = object{"input": input} // as the gateway describes a custom tool to other vendors
			}
			written, err := json.Marshal(args)
			if err != nil {
				panic(err)
			}
			return toolCall{name: offer.name, namespace: offer.namespace, args: string(written), marker: marker}
		}
	}
	return toolCall{name: "no_tool_for_" + what, args: `{"text":"` + text + `"}`, marker: marker}
}

// An offer is a tool that a request offers.
type offer struct {
	namespace, name string
	custom          bool
}

// offered returns the tools that a request offers, in any shape.
func offered(doc gjson.Result) (offers []offer) {
	var read func(namespace string, tools gjson.Result)
	read = func(namespace string, tools gjson.Result) {
		tools.ForEach(func(_, tool gjson.Result) bool {
			if tool.Get("type").Str == "namespace" {
				read(tool.Get("name").Str, tool.Get("tools"))
				return true
			}
			for _, at := range []gjson.Result{tool.Get("name"), tool.Get("function.name")} {
				if at.Str != "" {
					offers = append(offers, offer{namespace, at.Str, tool.Get("type").Str == "custom"})
				}
			}
			read(namespace, tool.Get("functionDeclarations"))
			return true
		})
	}
	read("", doc.Get("tools"))
	doc.Get("input").ForEach(func(_, item gjson.Result) bool {
		if item.Get("type").Str == "additional_tools" {
			read("", item.Get("tools"))
		}
		return true
	})
	return offers
}
