package strict

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// only returns an error for a member that is not among those that the vendor knows.
func only(v gjson.Result, where string, known ...string) (err error) {
	v.ForEach(func(key, _ gjson.Result) bool {
		if !slices.Contains(known, key.Str) {
			err = fmt.Errorf("%s: unknown member %q", where, key.Str)
		}
		return err == nil
	})
	return err
}

var markers = regexp.MustCompile(`\bt\d+c\d+\b`)

// markerOf returns the marker in the arguments of a call, or "" if they are not as the model gave them. An
// agent's own tools have no member for it: it is part of a command or of a file's name. The model's calls
// carry a marker such as t3c0, the turn and the call, and a number that a float64 cannot hold. A call whose
// number has changed has no marker, which the rules report.
func markerOf(args string) string {
	marker := gjson.Get(args, "marker")
	if !marker.Exists() {
		return markers.FindString(args)
	}
	if gjson.Get(args, "n").Raw != "12345678901234567890" {
		return ""
	}
	return marker.Str
}

// pairing follows the calls of a conversation and their results. The vendors refuse a conversation in which
// an id occurs twice, a result has no call, or a call has no result before the conversation goes on.
type pairing struct {
	limit int
	open  map[string]string // markers of calls without a result, by id
	seen  map[string]bool   // ids
}

// newPairing returns an empty list of calls. limit is the length of their ids.
func newPairing(limit int) *pairing {
	return &pairing{limit: limit, open: map[string]string{}, seen: map[string]bool{}}
}

// call notes a call and checks its id and its arguments.
func (p *pairing) call(id, args string) error {
	marker := markerOf(args)
	switch {
	case id == "" || len(id) > p.limit:
		return fmt.Errorf("the id %q has %d characters", id, len(id))
	case strings.Trim(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "":
		return fmt.Errorf("the id %q has other characters", id)
	case p.seen[id]:
		return fmt.Errorf("the id %q is used twice", id)
	case !gjson.Valid(args) || marker == "":
		return fmt.Errorf("arguments %.80q", args)
	}
	p.seen[id], p.open[id] = true, marker
	return nil
}

// result checks the content of a result, in which a picture may stand, and settles its call.
func (p *pairing) result(id, content string) error {
	marker, ok := p.open[id]
	if !ok {
		return fmt.Errorf("a result of %q, which no call waits for", id)
	}
	delete(p.open, id)
	if !strings.Contains(content, resultOf(marker)) {
		return fmt.Errorf("the result of %s is %.100s", marker, content)
	}
	return nil
}

// done returns an error if a call has no result.
func (p *pairing) done() error {
	for id := range p.open {
		return fmt.Errorf("the call %q has no result", id)
	}
	return nil
}

// checkChat has the rules of strict chat servers. A thinking one wants reasoning_content with calls.
func (v *vendor) checkChat(doc gjson.Result) (err error) {
	thinks := v.kind.name == thinkingChat
	if err := only(doc, "request", "model", "messages", "tools", "tool_choice", "stream", "stream_options",
		"max_completion_tokens", "max_tokens", "reasoning_effort", "parallel_tool_calls", "store",
		"temperature", "top_p", "prompt_cache_key", "verbosity", "safety_identifier"); err != nil {
		return err
	}
	if !thinks && doc.Get("reasoning_effort").Exists() {
		return fmt.Errorf("reasoning_effort is not supported")
	}
	known := []string{"role", "content", "name", "tool_calls", "tool_call_id", "refusal", "annotations"}
	if thinks {
		known = append(known, "reasoning_content", "reasoning_details")
	}
	pairs := newPairing(40)
	doc.Get("messages").ForEach(func(_, m gjson.Result) bool {
		role, calls := m.Get("role").Str, m.Get("tool_calls")
		if err = only(m, role+" message", known...); err != nil {
			return false
		}
		if role == "tool" {
			err = pairs.result(m.Get("tool_call_id").Str, m.Get("content").Raw)
			return err == nil
		}
		if err = pairs.done(); err != nil {
			return false
		}
		if role == "assistant" && m.Get("content").Str == "" && !calls.Get("0").Exists() {
			err = fmt.Errorf("an assistant's message with nothing in it")
		}
		if thinks && calls.Get("0").Exists() && !m.Get("reasoning_content").Exists() {
			err = fmt.Errorf("a message with calls lacks reasoning_content")
		}
		calls.ForEach(func(_, c gjson.Result) bool {
			f := c.Get("function")
			args := f.Get("arguments").Str
			if err == nil {
				err = pairs.call(c.Get("id").Str, args)
			}
			given, own := v.proofs["call "+markerOf(args)]
			if own && m.Get("reasoning_content").Str != given {
				v.noteLoss("reasoning_content of %.40s is %q", args, m.Get("reasoning_content").Str)
			}
			return err == nil
		})
		return err == nil
	})
	if err == nil {
		err = pairs.done()
	}
	return err
}

// itemPrefixes begin the ids of items, as the vendor wants them.
var itemPrefixes = map[string]string{
	"reasoning": "rs_", "message": "msg_", "function_call": "fc_", "function_call_output": "fc",
	"custom_tool_call": "ctc_", "custom_tool_call_output": "ctc", "additional_tools": "at_",
}

// passedThrough is a member that Codex adds to items, for its vendor's own use.
const passedThrough = "internal_chat_message_metadata_passthrough"

// checkResponses checks a request by the rules of the responses vendor: which item may follow which, that reasoning
// with a proof is this vendor's own, and that it stands before the call that it led to.
func (v *vendor) checkResponses(doc gjson.Result) (err error) {
	if err := only(doc, "request", "model", "input", "instructions", "tools", "tool_choice", "stream", "store",
		"include", "reasoning", "max_output_tokens", "parallel_tool_calls", "prompt_cache_key", "safety_identifier",
		"text", "client_metadata"); err != nil {
		return err
	}
	if who := doc.Get("safety_identifier").Str; len(who) > 64 {
		return fmt.Errorf("safety_identifier has %d characters", len(who))
	}
	c := responsesCheck{vendor: v, pairs: newPairing(64)}
	doc.Get("input").ForEach(func(_, item gjson.Result) bool {
		err = c.item(item)
		return err == nil
	})
	if err == nil && c.last == "reasoning" {
		err = fmt.Errorf("reasoning ends the input")
	}
	if err == nil {
		err = c.pairs.done()
	}
	return err
}

// responsesCheck holds what checkResponses knows of the items that it has checked.
type responsesCheck struct {
	*vendor
	pairs     *pairing
	last      string // type of the item before
	reasoning string // encrypted content of the reasoning that the next items belong to
}

// item checks the next item: its id, its place behind the last one, and its content.
func (c *responsesCheck) item(item gjson.Result) error {
	what := item.Get("type").Str
	what = cmp.Or(what, "message")
	if id := item.Get("id").Str; id != "" && !strings.HasPrefix(id, itemPrefixes[what]) {
		return fmt.Errorf("the id %q of a %s", id, what)
	}
	follows := !strings.HasSuffix(what, "_output") && (what != "message" || item.Get("role").Str == "assistant")
	if c.last == trigger {
		return fmt.Errorf("a %s before another item", trigger)
	}
	if c.last == "reasoning" && !follows {
		return fmt.Errorf("reasoning without the item that follows it")
	}
	c.last = what
	return c.content(what, item)
}

// content checks the members of an item of a type, that a proof is the vendor's own, and that calls and results belong
// together. A call that came back without the reasoning before it is noted as a loss.
func (c *responsesCheck) content(what string, item gjson.Result) error {
	switch what {
	case "reasoning":
		c.reasoning = item.Get("encrypted_content").Str
		given, ok := c.proofs[c.reasoning]
		if err := only(item, what, "type", "id", "summary", "content", "encrypted_content", "status",
			passedThrough); err != nil {
			return err
		}
		if !ok || given != item.Get("id").Str || !item.Get("summary").IsArray() {
			return fmt.Errorf("encrypted content %.40q does not belong to %q", c.reasoning, item.Get("id").Str)
		}
	case "message":
		return only(item, what, "type", "role", "content", "id", "status", "phase", passedThrough)
	case "additional_tools":
		return only(item, what, "type", "role", "id", "tools", passedThrough)
	case "function_call", "custom_tool_call":
		args, field := item.Get("arguments").Str, "arguments"
		if what == "custom_tool_call" {
			args, field = item.Get("input").Raw, "input"
		}
		if given, own := c.proofs["call "+markerOf(args)]; own && c.reasoning != given {
			c.noteLoss("the reasoning of %.40s", args)
		}
		if err := only(item, what, "type", "id", "status", "call_id", "namespace", "name", field,
			passedThrough); err != nil {
			return err
		}
		return c.pairs.call(item.Get("call_id").Str, args)
	case "function_call_output", "custom_tool_call_output":
		c.reasoning = ""
		if err := only(item, what, "type", "id", "status", "call_id", "output", passedThrough); err != nil {
			return err
		}
		return c.pairs.result(item.Get("call_id").Str, item.Get("output").Raw)
	case "compaction":
		made := item.Get("encrypted_content").Str
		if _, own := c.proofs[made]; !own {
			return fmt.Errorf("the compacted conversation %.40q is not of this vendor", made)
		}
	case trigger:
	default:
		return fmt.Errorf("an item of type %q", what)
	}
	return nil
}

// betas are the members that the vendor knows only with a beta whose name begins so.
var betas = map[string]string{"context-management-": "context_management", "fast-mode-": "speed"}

// messageTurn holds the state of checkMessages within a tool loop. The vendor calls everything from a text of
// the user to the next one a turn. In a turn that begins without thinking, none may be switched on.
type messageTurn struct {
	begun, bare bool // the assistant has answered the last text, and did so without thinking
}

// checkMessages checks a request by the rules of the messages vendor, which depend on the model and on its beta
// headers.
func (v *vendor) checkMessages(doc gjson.Result) (err error) {
	known := []string{"model", "max_tokens", "messages", "system", "tools", "tool_choice", "stream", "thinking",
		"metadata", "temperature", "output_config"}
	for beta, member := range betas {
		if strings.Contains(v.beta, beta) {
			known = append(known, member)
		}
	}
	if err := only(doc, "request", known...); err != nil {
		return err
	}
	mode := doc.Get("thinking.type").Str
	thinks := mode == "enabled"
	if strings.HasSuffix(v.model, "5-5") && (thinks || mode == "disabled" || doc.Get("temperature").Exists()) {
		return fmt.Errorf("thinking %q or a temperature is not supported", mode)
	}
	if thinks && doc.Get("thinking.budget_tokens").Int() >= doc.Get("max_tokens").Int() {
		return fmt.Errorf("the budget is not below max_tokens")
	}
	pairs, last := newPairing(64), ""
	var loop messageTurn
	doc.Get("messages").ForEach(func(_, m gjson.Result) bool {
		role, content := m.Get("role").Str, m.Get("content")
		known := []string{"role", "content"}
		if strings.Contains(v.beta, "per-turn-control-") {
			known = append(known, "output_config")
		}
		if err = only(m, "message", known...); err != nil {
			return false
		}
		if role == "system" && strings.HasSuffix(v.model, "5-5") && last != "" {
			return true
		}
		if role != "user" && role != "assistant" || role == last {
			err = fmt.Errorf("a message of %q after one of %q", role, last)
			return false
		}
		last = role
		if role == "user" {
			err = v.userBlocks(content, pairs, &loop)
		} else {
			err = v.assistantBlocks(content, pairs, &loop, thinks || mode == "adaptive")
		}
		return err == nil
	})
	switch {
	case err != nil:
		return err
	case thinks && loop.begun && loop.bare:
		return fmt.Errorf("expected thinking, found tool_use")
	}
	return pairs.done()
}

// userBlocks checks a message of the user. Results come first, because the vendor refuses them behind text.
func (v *vendor) userBlocks(content gjson.Result, pairs *pairing, loop *messageTurn) (err error) {
	results, text := 0, content.Type == gjson.String
	content.ForEach(func(_, b gjson.Result) bool {
		switch kind := b.Get("type").Str; {
		case content.Type == gjson.String:
		case kind == "tool_result" && text:
			err = fmt.Errorf("a tool_result behind text")
		case kind == "tool_result":
			results++
			if err = only(b, kind, "type", "tool_use_id", "content", "is_error", "cache_control"); err == nil {
				err = pairs.result(b.Get("tool_use_id").Str, b.Get("content").Raw)
			}
		case kind == "text" && strings.TrimSpace(b.Get("text").Str) == "":
			err = fmt.Errorf("an empty text")
		default:
			text = true
		}
		return err == nil
	})
	if err == nil {
		err = pairs.done()
	}
	if results == 0 {
		*loop = messageTurn{}
	}
	return err
}

// assistantBlocks checks a message of the assistant. Thinking must be unchanged and stand before the calls that it
// led to.
func (v *vendor) assistantBlocks(content gjson.Result, pairs *pairing, loop *messageTurn, thinks bool) (err error) {
	first, before := "", ""
	content.ForEach(func(_, b gjson.Result) bool {
		kind := b.Get("type").Str
		if content.Type == gjson.String {
			kind = "text"
		}
		first = cmp.Or(first, kind)
		switch kind {
		case "text":
			if content.IsArray() && strings.TrimSpace(b.Get("text").Str) == "" {
				err = fmt.Errorf("an empty text")
			}
		case "thinking", "redacted_thinking":
			before = b.Get("signature").Str + b.Get("data").Str
			if text, ok := v.proofs[before]; !ok || kind == "thinking" && text != b.Get("thinking").Str {
				err = fmt.Errorf("the signature %.40q is not of this thinking", before)
			}
		case "tool_use":
			if err = only(b, kind, "type", "id", "name", "input", "cache_control"); err == nil {
				err = pairs.call(b.Get("id").Str, b.Get("input").Raw)
			}
			if given, own := v.proofs["call "+markerOf(b.Get("input").Raw)]; own && thinks && before != given {
				v.noteLoss("the thinking of %.60s", b.Get("input").Raw)
			}
		default:
			err = fmt.Errorf("a block of type %q", kind)
		}
		return err == nil
	})
	if first == "" && err == nil {
		err = fmt.Errorf("an assistant's message with nothing in it")
	}
	if !loop.begun {
		loop.begun, loop.bare = true, !strings.HasSuffix(first, "thinking")
	}
	return err
}

// standIn is the signature that the vendor documents for history of other models.
const standIn = "skip_thought_signature_validator"

// checkGemini checks a request by the rules of the gemini vendor: roles alternate, every call has a result in the
// next content, and signatures are the vendor's own.
func (v *vendor) checkGemini(doc gjson.Result) (err error) {
	if err := only(doc, "request", "contents", "tools", "toolConfig", "generationConfig", "systemInstruction",
		"model"); err != nil {
		return err
	}
	var waiting []string // markers of the calls of the turn before
	last := ""
	doc.Get("contents").ForEach(func(_, c gjson.Result) bool {
		role, parts := c.Get("role").Str, c.Get("parts")
		if role != "user" && role != "model" || role == last || !parts.Get("0").Exists() {
			err = fmt.Errorf("a content of %q after one of %q: %.100s", role, last, parts.Raw)
			return false
		}
		last = role
		var calls []string
		parts.ForEach(func(_, p gjson.Result) bool {
			if err = only(p, "part", "text", "thought", "thoughtSignature", "functionCall", "functionResponse",
				"inlineData"); err != nil {
				return false
			}
			signature := p.Get("thoughtSignature").Str
			if _, ok := v.proofs[signature]; signature != "" && signature != standIn && !ok {
				err = fmt.Errorf("the signature %.40q is not valid", signature)
				return false
			}
			if f := p.Get("functionCall"); f.Exists() {
				marker := markerOf(f.Get("args").Raw)
				if len(calls) == 0 {
					err = v.checkSignature(signature, marker)
				}
				calls = append(calls, marker)
			}
			if r := p.Get("functionResponse"); r.Exists() && err == nil {
				if len(waiting) == 0 || !strings.Contains(r.Get("response").Raw, resultOf(waiting[0])) {
					err = fmt.Errorf("a response out of order: %.100s", r.Raw)
					return false
				}
				waiting = waiting[1:]
			}
			return err == nil
		})
		if err == nil && len(waiting) > 0 {
			err = fmt.Errorf("the calls %q have no response", waiting)
		}
		waiting = calls
		return err == nil
	})
	if err == nil && len(waiting) > 0 {
		err = fmt.Errorf("the calls %q have no response", waiting)
	}
	return err
}

// checkSignature checks the signature of the first call of a step. A call of this vendor's model must have
// the signature that the vendor gave out with it; one that another model made has the documented stand-in.
func (v *vendor) checkSignature(signature, marker string) error {
	own := ""
	for given, of := range v.proofs {
		if of == marker {
			own = given
		}
	}
	switch {
	case signature == "":
		return fmt.Errorf("the call %s is missing a thought_signature", marker)
	case signature == standIn && own != "":
		v.noteLoss("the signature of %s", marker)
	case signature != standIn && signature != own:
		return fmt.Errorf("the signature of %s is that of another call", marker)
	}
	return nil
}
