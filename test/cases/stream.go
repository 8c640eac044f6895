package cases

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// An Event is one server-sent event. Data is the decoded JSON object, or the string
// [DONE].
type Event struct {
	Name string // the event line; "" if there was none
	Data any
}

// Done is the sentinel that ends chat and completions streams.
const Done = "[DONE]"

// done reports whether the event is Done, body returns its object, and kind the member type of that.

func (e Event) done() bool   { return e.Data == Done }
func (e Event) body() object { return asObject(e.Data) }
func (e Event) kind() string { return asText(e.body()["type"]) }

var lineEnd = regexp.MustCompile("\r\n|\n|\r")

// Decode reads an event stream by the WHATWG rules, strictly where a gateway has no
// excuse: broken UTF-8 and data that is neither a JSON object nor [DONE] are errors.
// An unterminated last event is dropped, as the standard says.
func Decode(raw []byte) ([]Event, error) {
	if !utf8.Valid(raw) {
		return nil, errors.New("the stream is not valid UTF-8")
	}
	var out []Event
	var name string
	var data []string
	for _, line := range lineEnd.Split(strings.TrimPrefix(string(raw), "\ufeff"), -1) {
		if line == "" {
			if data != nil {
				e, err := decodeEvent(name, strings.Join(data, "\n"))
				if err != nil {
					return nil, err
				}
				out = append(out, e)
			}
			name, data = "", nil
			continue
		}
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "event":
			name = value
		case "data":
			data = append(data, value)
		}
	}
	return out, nil
}

// decodeEvent returns an event with its data parsed.
func decodeEvent(name, data string) (Event, error) {
	if data == Done {
		return Event{Name: name, Data: Done}, nil
	}
	v, err := parse([]byte(data))
	if err != nil {
		return Event{}, fmt.Errorf("event data is not JSON: %w: %.200s", err, data)
	}
	if _, ok := v.(object); !ok {
		return Event{}, fmt.Errorf("event data is not an object: %.200s", data)
	}
	return Event{Name: name, Data: v}, nil
}

// listed returns events in the form in which cases match them: objects with the members event and data.
func listed(events []Event) array {
	out := make(array, 0, len(events))
	for _, e := range events {
		var name any
		if e.Name != "" {
			name = e.Name
		}
		out = append(out, object{"event": name, "data": e.Data})
	}
	return out
}
