package cases

import "strings"

var responsesTerminals = set("response.completed", "response.incomplete", "response.failed", "error")

// responsesRules judge responses streams.
//
// The vendor's SDK builds the response from the events and trusts their numbers, so each event must belong to
// an item and a part that were opened before and are not closed yet. What the deltas add up to must be what
// the done events and the final response say.
type responsesRules struct {
	*rules
	added map[int]any // output_index -> item id
	done  map[int]object
	parts map[[2]int]bool
	args  map[int]string // what the argument deltas add up to
}

// check checks a stream of the shape responses.
func (s *responsesRules) check(events []Event) {
	var real []object
	named := true
	for _, e := range events {
		if e.done() {
			continue
		}
		named = named && (e.Name == "" || e.Name == e.kind())
		real = append(real, e.body())
	}
	s.breaksIf(!named, "event name differs from type")
	if len(real) == 0 {
		s.breaks("no events")
		return
	}
	switch asText(real[0]["type"]) {
	case "response.created", "error", "response.failed":
	default:
		s.breaks("first event is not response.created")
	}
	s.sequence(real)
	terminal := s.terminal(real)
	for _, d := range real {
		s.event(d)
	}
	s.final(terminal)
}

// sequence checks that events are numbered, which clients need to resume a stream.
func (s *responsesRules) sequence(real []object) {
	last := -1
	for _, d := range real {
		n, ok := asInt(d["sequence_number"])
		if !ok || n <= last {
			s.breaks("sequence_number missing or not increasing")
			return
		}
		last = n
	}
}

// terminal answers the last terminal event, nil if there is none. The event error may stand before
// response.failed, which is the end then.
func (s *responsesRules) terminal(real []object) object {
	var terminal object
	ends, position := 0, 0
	for i, d := range real {
		kind := asText(d["type"])
		if !responsesTerminals[kind] {
			continue
		}
		terminal, position = d, i
		if kind != "error" {
			ends++
		}
	}
	s.breaksIf(terminal == nil, "no terminal event")
	s.breaksIf(terminal != nil && position != len(real)-1, "events after the terminal event")
	s.breaksIf(ends > 1, "two terminal events")
	return terminal
}

// event checks one event against the items and parts that are open.
func (s *responsesRules) event(d object) {
	kind, i := asText(d["type"]), intOr(d["output_index"], -1)
	id, added := s.added[i]
	_, done := s.done[i]
	switch kind {
	case "response.output_item.added":
		s.breaksIf(added, "output_index %d added twice", i)
		s.breaksIf(i != len(s.added), "output_index %d added, want %d", i, len(s.added))
		id, added = asObject(d["item"])["id"], true
		s.added[i] = id
	case "response.output_item.done":
		s.breaksIf(!added, "output_item.done without added")
		s.breaksIf(done, "output_item.done twice")
		s.done[i] = asObject(d["item"])
	case "response.content_part.added":
		s.parts[[2]int{i, intOr(d["content_index"], -1)}] = true
	case "response.output_text.delta", "response.output_text.done":
		s.breaksIf(!s.parts[[2]int{i, intOr(d["content_index"], -1)}], "%s before content_part.added", kind)
		s.breaksIf(done, "text delta after output_item.done")
	case "response.function_call_arguments.delta":
		s.breaksIf(!added, "arguments delta before output_item.added")
		s.args[i] += asText(d["delta"])
	case "response.function_call_arguments.done":
		sum, streamed := s.args[i]
		s.breaksIf(streamed && sum != asText(d["arguments"]), "arguments.done differs from the deltas")
	}
	item, named := d["item_id"]
	s.breaksIf(strings.HasPrefix(kind, "response.") && named && added && !equal(item, id),
		"item_id does not belong to output_index")
}

// final compares the last word with what was streamed.
func (s *responsesRules) final(terminal object) {
	want, ok := map[string]string{"response.completed": "completed",
		"response.incomplete": "incomplete"}[asText(terminal["type"])]
	if !ok {
		return
	}
	response := asObject(terminal["response"])
	s.breaksIf(response["status"] != want, "response.status %s in %s", show(response["status"], 80),
		asText(terminal["type"]))
	for i := range len(s.added) {
		if _, ok := s.done[i]; !ok {
			s.breaks("some output items were never done")
			break
		}
	}
	output := asArray(response["output"])
	if len(output) != len(s.added) {
		s.breaks("final output differs in length from the streamed items")
	} else {
		for i, v := range output {
			item := asObject(v)
			if done, ok := s.done[i]; ok && (!equal(item["type"], done["type"]) || !equal(item["id"], done["id"])) {
				s.breaks("final output item differs from the streamed item")
			}
		}
	}
	for i, args := range s.args {
		done := s.done[i]
		s.breaksIf(done["type"] == "function_call" && asText(done["arguments"]) != args,
			"function_call.arguments differ from the deltas")
	}
}
