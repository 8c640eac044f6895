package telemetry

import (
	"encoding/json"
	"slices"
	"strings"

	"stagedoor/providers/dialogue"
)

// maxContent bounds the text that is kept of a prompt or a reply, in bytes.
const maxContent = 32 << 10

// content has the prompt and the reply of a call, if that is switched on. It has text only, no media, and of tools only
// that they were called.
type content struct {
	text strings.Builder // of the reply
	full bool
}

// KeepContent makes the prompt of the call an attribute of its span at once, and the reply at the
// end of the call. It does so in any case: the caller decides whether content may be kept.
func (c *Call) KeepContent(r *dialogue.Request) {
	c.content = &content{}
	c.span.SetAttributes(InputMessages.String(prompt(r)))
}

// KeepsContent reports whether the reply becomes an attribute.
func (c *Call) KeepsContent() bool { return c != nil && c.content != nil }

// KeepText keeps the text of an event of the reply. The texts of several choices are mixed. The
// first piece that does not fit into maxContent ends what is kept.
func (c *Call) KeepText(ev *dialogue.Event) {
	if !c.KeepsContent() || ev.Kind != dialogue.EventDelta || c.content.full {
		return
	}
	if c.content.full = c.content.text.Len()+len(ev.Text) > maxContent; !c.content.full {
		c.content.text.WriteString(ev.Text)
	}
}

// message is a message in the form of the conventions.
type message struct {
	Role  string     `json:"role"`
	Parts []textPart `json:"parts"`
}

type textPart struct {
	Type    string `json:"type"`
	Content string `json:"content"`
}

// texts returns the texts of parts, each cut at maxContent. Media, calls and thinking have no such
// text and are left out.
func texts(role string, parts []dialogue.Part) message {
	m := message{Role: role, Parts: []textPart{}}
	for _, p := range parts {
		if p.Text != "" {
			m.Parts = append(m.Parts, textPart{"text", p.Text[:min(len(p.Text), maxContent)]})
		}
	}
	return m
}

// prompt returns the text of a request, or of its last turns if all of it is too long.
func prompt(r *dialogue.Request) string {
	var all []message
	size := 0
	for _, t := range slices.Backward(r.Turns) {
		m := texts(string(t.Role), t.Parts)
		for _, p := range m.Parts {
			size += len(p.Content)
		}
		if all = append(all, m); size > maxContent {
			break
		}
	}
	if len(r.System) > 0 {
		all = append(all, texts("system", r.System))
	}
	slices.Reverse(all)
	return written(all)
}

// reply returns the text of the reply.
func (c *content) reply() string {
	return written([]message{texts("assistant", []dialogue.Part{{Text: c.text.String()}})})
}

// written returns messages as the JSON text of a span's attribute.
func written(all []message) string {
	text, err := json.Marshal(all)
	if err != nil {
		return "" // marshalling strings cannot fail
	}
	return string(text)
}
