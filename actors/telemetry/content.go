package telemetry

import (
	"encoding/json"
	"slices"
	"strings"

	"stagedoor/providers/dialogue"
)

// maxContent bounds what is kept of a prompt or of a reply.
const maxContent = 32 << 10

// content is what a call is asked and answers, where that is switched on. The
// text alone is kept: no media, and nothing of tools but that they are called.
type content struct {
	text strings.Builder // of the reply
	full bool
}

// KeepContent has a call's reply become an attribute, and sets its prompt.
func (c *Call) KeepContent(r *dialogue.Request) {
	c.content = &content{}
	c.span.SetAttributes(InputMessages.String(prompt(r)))
}

// KeepsContent reports whether the call's reply becomes an attribute.
func (c *Call) KeepsContent() bool { return c != nil && c.content != nil }

// Hear keeps what an event of the reply says.
func (c *Call) Hear(ev *dialogue.Event) {
	if !c.KeepsContent() || ev.Kind != dialogue.EventDelta || c.content.full {
		return
	}
	if c.content.full = c.content.text.Len()+len(ev.Text) > maxContent; !c.content.full {
		c.content.text.WriteString(ev.Text)
	}
}

// message is one of the conventions' messages.
type message struct {
	Role  string     `json:"role"`
	Parts []textPart `json:"parts"`
}

type textPart struct {
	Type    string `json:"type"`
	Content string `json:"content"`
}

func texts(role string, parts []dialogue.Part) message {
	m := message{Role: role, Parts: []textPart{}}
	for _, p := range parts {
		if p.Text != "" {
			m.Parts = append(m.Parts, textPart{"text", p.Text[:min(len(p.Text), maxContent)]})
		}
	}
	return m
}

// prompt is a request's text, its last turns if there is more of it than is kept.
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

// reply is the text of the reply.
func (c *content) reply() string {
	return written([]message{texts("assistant", []dialogue.Part{{Text: c.text.String()}})})
}

func written(all []message) string {
	text, err := json.Marshal(all)
	if err != nil {
		return "" // strings can always be written
	}
	return string(text)
}
