package recording

import (
	"bytes"
	"strings"
	"time"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/shapes"
)

// Text returns the content of a streamed reply in one piece, which its events divide into words: thoughts, answers,
// and calls of tools with their arguments. It is "" for other replies. shape is that of the client.
func (x *Exchange) Text(shape *shapes.Shape) string {
	if shape == nil || shapes.Mode(x.Client.Mode) != shapes.Stream || x.Client.Array {
		return ""
	}
	env := &dialogue.Env{Now: func() time.Time { return x.Began }, ID: func() string { return x.ID },
		Sealer: dialogue.NewSealer([]byte("page")), Signatures: forgetful{}}
	parser := shape.NewParser(1, env)
	var t transcript
	for event := range bytes.SplitSeq(x.Reply.Body, []byte("\n\n")) {
		var name string
		var data []byte
		for line := range bytes.Lines(event) {
			line = bytes.TrimRight(line, "\r\n")
			if value, ok := bytes.CutPrefix(line, []byte("event:")); ok {
				name = string(bytes.TrimSpace(value))
			} else if value, ok := bytes.CutPrefix(line, []byte("data:")); ok {
				data = bytes.TrimSpace(value)
			}
		}
		if len(data) > 0 && fields.CheckEvent(data) == nil && !parser.Done() {
			parser.Event(name, data, t.add)
		}
	}
	return t.String()
}

// transcript collects the parts of a reply in the order in which they began.
type transcript struct {
	parts []*part
}

type part struct {
	choice, number int
	label          string
	text           strings.Builder
}

// add adds an event of the reply to the part to which it belongs.
func (t *transcript) add(e *dialogue.Event) {
	switch e.Kind {
	case dialogue.EventOpen:
		p := &part{choice: e.Choice, number: e.Part}
		switch {
		case e.PartKind == dialogue.ThinkingPart:
			p.label = "[thinking]\n"
		case e.Call != nil:
			p.label = "[call of " + e.Call.Name + "]\n"
		}
		t.parts = append(t.parts, p)
	case dialogue.EventDelta:
		for _, p := range t.parts {
			if p.choice == e.Choice && p.number == e.Part {
				p.text.WriteString(e.Text)
			}
		}
	}
}

// String returns the parts that have a text or a label.
func (t *transcript) String() string {
	var all []string
	for _, p := range t.parts {
		if text := strings.TrimSpace(p.label + p.text.String()); text != "" {
			all = append(all, text)
		}
	}
	return strings.Join(all, "\n\n")
}

// forgetful is a cache of signatures that keeps none.
type forgetful struct{}

// Remember implements dialogue.SignatureCache.
func (forgetful) Remember(string, string, string) {}

// Recall implements dialogue.SignatureCache.
func (forgetful) Recall(string, string) (string, bool) { return "", false }
