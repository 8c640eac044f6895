package cases

// chatRules judge chat and completions streams.
//
// A choice goes through three states: nothing, its role is known, and finished. The clients that these rules
// protect read the role from the first delta, join contents and arguments in the order of arrival, and stop
// to read a choice at its finish_reason.
type chatRules struct {
	*rules
	shape        Shape
	includeUsage bool
	failed       bool

	finished map[int]bool
	roles    map[int]bool
	calls    map[int]map[int]any // per choice: tool call index -> id
}

// check checks a stream of the shapes chat and completions.
func (c *chatRules) check(events []Event) {
	c.finished, c.roles, c.calls = map[int]bool{}, map[int]bool{}, map[int]map[int]any{}
	var chunks []object
	for i, e := range events {
		switch {
		case e.done():
			c.breaksIf(i < len(events)-1, "[DONE] is not the last event")
		case isEmpty(e.body()["error"]):
			chunks = append(chunks, e.body())
		}
	}
	c.breaksIf(!c.failed && !events[len(events)-1].done(), "stream does not end with data: [DONE]")
	c.heads(chunks)
	for _, d := range chunks {
		choices, ok := d["choices"].(array)
		if !ok {
			continue // said by heads
		}
		c.breaksIf(d["usage"] != nil && len(choices) == 0 && !c.includeUsage,
			"usage-only chunk although stream_options.include_usage was not set")
		for _, v := range choices {
			c.choice(asObject(v))
		}
	}
	c.breaksIf(!c.failed && len(c.finished) == 0, "no finish_reason")
}

// heads are the members that every chunk repeats.
func (c *chatRules) heads(chunks []object) {
	want := "chat.completion.chunk"
	if c.shape == Completions {
		want = "text_completion"
	}
	if len(chunks) == 0 {
		c.breaksIf(!c.failed, "first chunk has no id")
		return
	}
	c.breaksIf(isEmpty(chunks[0]["id"]), "first chunk has no id")
	for _, d := range chunks {
		if d["object"] != want {
			c.breaks("object is %s, want %q", show(member(d, "object"), 80), want)
			break
		}
		if _, ok := d["choices"].(array); !ok {
			c.breaks("chunk without choices array")
			break
		}
	}
	for _, d := range chunks {
		if !equal(d["id"], chunks[0]["id"]) {
			c.breaks("chunks have different ids")
			return
		}
	}
}

// choice checks one choice of a chunk. Clients take a choice to be over after its finish_reason. The reasons
// are a closed list, because typed clients fail on another word.
func (c *chatRules) choice(choice object) {
	i, ok := asInt(choice["index"])
	if !ok {
		c.breaks("choice without index")
		return
	}
	delta, hasDelta := choice["delta"].(object)
	c.breaksIf(c.finished[i] && !isEmpty(delta["content"]), "content after finish_reason")
	if c.shape == Chat {
		if !hasDelta {
			c.breaks("choice without delta")
			return
		}
		c.delta(i, delta)
	}
	reason := choice["finish_reason"]
	if isEmpty(reason) {
		return
	}
	c.breaksIf(c.finished[i], "two finish_reasons for one choice")
	c.finished[i] = true
	c.breaksIf(c.shape == Chat && !finishReasons[asText(reason)], "finish_reason %s is not in the vocabulary",
		show(reason, 80))
}

// delta checks that the role of a message comes before anything it says.
func (c *chatRules) delta(i int, delta object) {
	if !isEmpty(delta["role"]) {
		c.roles[i] = true
	}
	for _, k := range []string{"content", "tool_calls", "refusal", "reasoning_content", "function_call"} {
		if !isEmpty(delta[k]) && !c.roles[i] {
			c.breaks("delta before role")
			break
		}
	}
	for _, t := range asArray(delta["tool_calls"]) {
		c.call(i, asObject(t))
	}
}

// call checks a piece of a tool call. Clients join pieces by index and read id and name from the first one only.
func (c *chatRules) call(choice int, t object) {
	i, ok := asInt(t["index"])
	if !ok {
		c.breaks("tool_call delta without index")
		return
	}
	known := c.calls[choice]
	if known == nil {
		known = map[int]any{}
		c.calls[choice] = known
	}
	id, open := known[i]
	if open {
		c.breaksIf(!isEmpty(t["id"]) && !equal(t["id"], id), "tool call id changed between deltas")
		return
	}
	c.breaksIf(i != len(known), "tool_call index %d opened, want %d", i, len(known))
	c.breaksIf(isEmpty(t["id"]), "first delta of a tool call has no id")
	c.breaksIf(isEmpty(asObject(t["function"])["name"]) && isEmpty(asObject(t["custom"])["name"]),
		"first delta of a tool call has no name")
	known[i] = t["id"]
}
