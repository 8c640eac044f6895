package faults

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"stagedoor/test/cases"
)

// judge says what is wrong with a reply: it must be exactly one of the right ends,
// legal in its shape, and silent about what is behind the gateway.
func (o outcome) judge(reply *cases.Reply, w way, upstream cases.Shape, silent bool, secrets []string) []string {
	var bad []string
	wrong := func(format string, args ...any) { bad = append(bad, fmt.Sprintf(format, args...)) }
	if reply.Header.Get("X-Request-Id") == "" {
		wrong("no X-Request-Id")
	}
	for _, s := range secrets {
		if strings.Contains(string(reply.Body), s) || strings.Contains(fmt.Sprint(reply.Header), s) {
			wrong("%q leaks to the client", s)
		}
	}
	if reply.Aborted {
		wrong("the connection broke instead of an error in the shape")
	}
	if reply.Status != http.StatusOK || !w.streamed {
		return append(bad, o.judgeWhole(reply, w, upstream, silent)...)
	}
	return append(bad, o.judgeStream(reply, w, silent)...)
}

func (o outcome) judgeWhole(reply *cases.Reply, w way, upstream cases.Shape, silent bool) []string {
	_, bad := cases.WholeRules(w.inbound, reply, w.inbound != upstream)
	if reply.Status != http.StatusOK {
		if !slices.Contains(o.refused, reply.Status) {
			bad = append(bad, fmt.Sprintf("refused with %d, want %s: %.300s", reply.Status, o, reply.Body))
		}
		return bad
	}
	if !o.answer {
		bad = append(bad, fmt.Sprintf("answered, want %s: %.300s", o, reply.Body))
	}
	return append(bad, missingText(string(reply.Body), silent)...)
}

func (o outcome) judgeStream(reply *cases.Reply, w way, silent bool) []string {
	var bad []string
	if kind := reply.Header.Get("Content-Type"); !strings.HasPrefix(kind, "text/event-stream") {
		bad = append(bad, "content type of a stream is "+kind)
	}
	events, err := cases.Decode(reply.Body)
	if err != nil {
		return append(bad, err.Error())
	}
	bad = append(bad, cases.ClientRules(w.inbound, events, false)...)
	folded, unreadable := cases.Fold(w.inbound, events)
	bad = append(bad, unreadable...)
	if cases.Failed(w.inbound, events) {
		if !o.broken {
			bad = append(bad, fmt.Sprintf("broke off, want %s: %.300s", o, tail(reply.Body)))
		}
		if folded["_done"] == true || folded["_stopped"] == true || folded["_terminal"] == "response.completed" {
			bad = append(bad, fmt.Sprintf("an error and a successful end: %.300s", tail(reply.Body)))
		}
		return bad
	}
	if !o.answer {
		bad = append(bad, fmt.Sprintf("ended well, want %s: %.300s", o, tail(reply.Body)))
	}
	text, err := json.Marshal(folded)
	if err != nil {
		return append(bad, err.Error())
	}
	return append(bad, missingText(string(text), silent)...)
}

// missingText: an answer has the provider's text, of which faults may change the
// middle.
func missingText(reply string, silent bool) []string {
	if silent || strings.Contains(reply, "The quick") && strings.Contains(reply, "fox.") {
		return nil
	}
	return []string{fmt.Sprintf("the text is not what the provider said: %.300s", reply)}
}

func (o outcome) String() string {
	var parts []string
	if o.answer {
		parts = append(parts, "an answer")
	}
	if o.broken {
		parts = append(parts, "an error event")
	}
	if len(o.refused) > 0 {
		parts = append(parts, fmt.Sprintf("a refusal of %v", o.refused))
	}
	return strings.Join(parts, " or ")
}

func tail(b []byte) []byte { return b[max(0, len(b)-300):] }
