package strict

import (
	"fmt"
	"strings"
)

// A step is what a model says in one turn of a loop, and what the tools return.
type step struct {
	thought string // "": it does not think in this turn
	text    string
	calls   []toolCall // none: the answer is complete
	hidden  bool       // the thought is redacted, where the vendor has that
	compact bool       // it compacts the conversation, where the vendor has that, and else summarises it in text
	long    bool       // the conversation is nearly too long for the model, as its usage says
}

// toolCall is a call of a tool. Its marker is part of its arguments and of its result.
type toolCall struct {
	name, args, marker string
	picture            bool // the result has one
	namespace          string
	custom             bool // args are no JSON
}

// turns counts the requests of a loop. In the middle of it the user says something new.
const turns = 8

// planned returns what the model says in a turn.
func planned(turn int) step {
	s := step{text: fmt.Sprintf("text %d", turn)}
	if turn != 2 {
		s.thought = fmt.Sprintf("thought %d", turn)
	}
	s.hidden = turn == 5
	if turn == 3 || turn == turns-1 {
		return s
	}
	for i := range 1 + turn%3 {
		c := toolCall{name: [...]string{"look", "read", "look"}[i], marker: fmt.Sprintf("t%dc%d", turn, i),
			picture: turn == 1 && i == 0}
		long := strings.Repeat("long ", 1+turn%2*600)
		c.args = `{"marker":"` + c.marker + `","text":"` + long + `","n":12345678901234567890}`
		s.calls = append(s.calls, c)
	}
	if turn%2 == 0 {
		s.text = ""
	}
	return s
}

// picture is the smallest PNG, in base64.
const picture = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

// resultOf returns the result of a tool.
func resultOf(marker string) string { return "result of " + marker }
