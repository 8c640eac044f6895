package cases

import "slices"

// deltaHomes says in which blocks a delta may occur; deltas not listed are newer
// than these rules and may stand anywhere.
var deltaHomes = map[string][]string{
	"text_delta":       {"text"},
	"citations_delta":  {"text"},
	"input_json_delta": {"tool_use", "server_tool_use", "mcp_tool_use"},
	"thinking_delta":   {"thinking"},
	"signature_delta":  {"thinking"},
}

// messagesRules judge messages streams.
type messagesRules struct {
	*rules
	failed bool

	open    map[int]string // block index -> type
	next    int            // index the next block must have
	deltas  int            // message_delta events seen
	reason  any            // stop_reason of the last of them
	stopped bool
}

// check checks a stream of the shape messages.
func (m *messagesRules) check(events []Event) {
	var real []object
	for _, e := range events {
		if e.done() || e.Name != e.kind() {
			m.breaks("event name %q differs from type %q", e.Name, e.kind())
			break
		}
	}
	for _, e := range events {
		if !e.done() && e.kind() != "ping" {
			real = append(real, e.body())
		}
	}
	if len(real) == 0 {
		m.breaks("no events")
		return
	}
	m.first(real[0])
	for i, d := range real {
		m.event(i, d)
	}
	if m.failed {
		m.breaksIf(m.stopped && !isEmpty(m.reason), "error and successful end in one stream")
		return
	}
	m.breaksIf(!m.stopped, "no message_stop")
	m.breaksIf(!stopReasons[asText(m.reason)], "stop_reason %s is not in the vocabulary", show(m.reason, 80))
}

// first checks the event that opens the stream, from which SDKs build the message object.
func (m *messagesRules) first(d object) {
	if d["type"] != "message_start" {
		m.breaksIf(d["type"] != "error", "first event is not message_start")
		return
	}
	message := asObject(d["message"])
	content, isList := message["content"].(array)
	_, hasUsage := message["usage"].(object)
	m.breaksIf(message["stop_reason"] != nil, "message_start.stop_reason is not null")
	m.breaksIf(message["role"] != "assistant" || message["type"] != "message" || !isList || len(content) > 0,
		"message_start.message is malformed")
	m.breaksIf(isEmpty(message["id"]) || !hasUsage, "message_start.message lacks id or usage")
}

// event checks that an event may come in the state of the stream, and follows its state.
func (m *messagesRules) event(position int, d object) {
	kind := asText(d["type"])
	m.breaksIf(m.stopped, "%s after message_stop", kind)
	switch kind {
	case "message_start":
		m.breaksIf(position > 0, "two message_start")
	case "content_block_start":
		m.start(d)
	case "content_block_delta":
		m.delta(d)
	case "content_block_stop":
		i := intOr(d["index"], -1)
		_, open := m.open[i]
		m.breaksIf(!open, "content_block_stop for a block that is not open")
		delete(m.open, i)
	case "message_delta":
		m.deltas++
		m.breaksIf(len(m.open) > 0, "message_delta while a block is open")
		m.reason = firstFull(asObject(d["delta"])["stop_reason"], m.reason)
		m.breaksIf(!isWhole(asObject(d["usage"])["output_tokens"]), "message_delta without usage.output_tokens")
	case "message_stop":
		m.stopped = true
		m.breaksIf(m.deltas == 0, "message_stop without message_delta")
	}
}

// start checks the beginning of a block. Blocks are numbered without gaps.
func (m *messagesRules) start(d object) {
	i, block := intOr(d["index"], -1), asObject(d["content_block"])
	m.breaksIf(m.deltas > 0, "content_block_start after message_delta")
	m.breaksIf(i != m.next, "content_block_start index %d, want %d", i, m.next)
	m.next = i + 1
	m.open[i] = asText(block["type"])
	m.breaksIf(m.open[i] == "", "content_block without type")
	m.breaksIf(block["type"] == "tool_use" && (isEmpty(block["id"]) || isEmpty(block["name"])),
		"tool_use block without id or name")
}

// delta checks that a delta is of a kind that its block can have.
func (m *messagesRules) delta(d object) {
	i := intOr(d["index"], -1)
	block, open := m.open[i]
	if !open {
		m.breaks("delta for a block that is not open (%d)", i)
		return
	}
	kind := asText(asObject(d["delta"])["type"])
	homes, known := deltaHomes[kind]
	m.breaksIf(known && !slices.Contains(homes, block), "%s on a %s block", kind, block)
}
