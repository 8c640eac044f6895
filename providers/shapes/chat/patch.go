package chat

import (
	"bytes"
	"slices"

	"github.com/tidwall/gjson"

	"stagedoor/providers/chunks"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/jsonw"
	"stagedoor/providers/schema"
	"stagedoor/providers/shapes"
)

// patch implements shapes.Passthrough. It changes the model, asks for usage, and removes what the
// target or the vendor would refuse: parameters, old reasoning, large images, the format. All other
// bytes stay. Where Check has found nothing to remove, it does not search the body.
func patch(
	body []byte, head shapes.Head, t dialogue.Target, rep *dialogue.Report, env *dialogue.Env,
) shapes.Call {
	tuned := head.Tuned && (!t.Caps.Sampling || t.Caps.Thinking == dialogue.ThinkingNone || t.Caps.NoCacheKey)
	if head.Plain && !tuned && t.Caps.ReasoningContent != dialogue.ReasoningRequired {
		return shapes.Call{Path: path, Body: chunks.PatchPlain(body, head, t), Stream: head.Stream}
	}
	members := fields.Members(body)
	edits := chunks.Patch(body, members, head, t)
	effort := "" // of reasoning
	if i := slices.IndexFunc(members, func(m fields.Member) bool { return m.Name == "reasoning_effort" }); i >= 0 {
		effort = gjson.ParseBytes(body[members[i].Value:members[i].End]).Str
	}
	var refused []string // members that the model refuses
	for _, m := range members {
		value := body[m.Value:m.End]
		switch m.Name {
		case "messages":
			if kept := history(value, t, rep, env); len(kept) != len(value) {
				edits = append(edits, fields.Edit{Start: m.Value, End: m.End, With: kept})
			}
		case "response_format":
			if degrades(value, t, rep) {
				refused = append(refused, m.Name)
			}
		default:
			if tuned && t.Caps.Refuses(m.Name, value, effort) {
				rep.Lose(m.Name)
				refused = append(refused, m.Name)
			}
		}
	}
	patched := fields.Splice(body, edits)
	if len(refused) > 0 {
		members = fields.Members(patched)
		patched = fields.Without(patched, members, func(i int) bool {
			return slices.Contains(refused, members[i].Name)
		})
	}
	return shapes.Call{Path: path, Body: patched, Stream: head.Stream}
}

// degrades reports whether response_format has to be removed, because the target binds no output.
func degrades(value []byte, t dialogue.Target, rep *dialogue.Report) bool {
	wish := output(fields.View(value))
	return wish.Mode != dialogue.OutputText &&
		schema.DecideOutput(wish, schema.JSONSchema, t, rep).Mode == dialogue.OutputText
}

// Marks whose absence proves that a body needs no change. A search for bytes costs far less than
// parsing.
var (
	sealMark = []byte("sd1.")
	dataMark = []byte("data:")

	reasoningMark = []byte(`"reasoning_`)
	callsMark     = []byte(`"tool_calls"`)
)

// history returns the messages as the upstream takes them: without seals of this gateway and images
// over 8 MB, and with or without reasoning_content. reasoning_details of an upstream stay, because the
// one that gave them out wants them back, until an upstream refuses them. Few requests need a change,
// so it first looks for the marks of each.
func history(messages []byte, t dialogue.Target, rep *dialogue.Report, env *dialogue.Env) []byte {
	reasons := bytes.Contains(messages, reasoningMark)
	large := len(messages) > maxImage && bytes.Contains(messages, dataMark)
	sealed := bytes.Contains(messages, sealMark)
	refused := reasons && t.Caps.ReasoningContent == dialogue.ReasoningRefused
	undetailed := reasons && t.OwnReasoning
	required := t.Caps.ReasoningContent == dialogue.ReasoningRequired && bytes.Contains(messages, callsMark)
	if !large && !sealed && !refused && !undetailed && !required {
		return messages
	}
	var edits []fields.Edit
	var recall dialogue.ThoughtRecall
	if required {
		recall = env.NewThoughtRecall(messages)
	}
	for _, m := range fields.Elements(messages) {
		kept := messages[m.Value:m.End]
		if large {
			kept = withoutLarge(kept, rep)
		}
		if refused {
			kept = withoutReasoning(kept, "reasoning_content", rep)
		}
		switch {
		case undetailed:
			kept = withoutReasoning(kept, "reasoning_details", rep)
		case sealed:
			kept = withoutSeals(kept, rep)
		}
		if required {
			kept = withReasoning(kept, &recall)
		}
		if len(kept) != m.End-m.Value {
			edits = append(edits, fields.Edit{Start: m.Value, End: m.End, With: kept})
		}
	}
	return fields.Splice(messages, edits)
}

// withoutReasoning removes a member that strict servers refuse in a message: the reasoning of another
// server, or the vendor's own, which it does not take back.
func withoutReasoning(message []byte, member string, rep *dialogue.Report) []byte {
	if !bytes.Contains(message, reasoningMark) {
		return message
	}
	members := fields.Members(message)
	return fields.Without(message, members, func(i int) bool {
		refused := members[i].Name == member
		rep.LoseIf(refused, "thinking")
		return refused
	})
}

// withReasoning adds the reasoning_content to a message with calls that has none, because its client dropped it.
// Thinking servers refuse a message without the member, so that it is empty if the reasoning is not known any more.
func withReasoning(message []byte, recall *dialogue.ThoughtRecall) []byte {
	if !bytes.Contains(message, callsMark) {
		return message
	}
	calls, thought := 0, ""
	for _, m := range fields.Members(message) {
		switch m.Name {
		case "tool_calls":
			chunks.OnlyArray(fields.View(message[m.Value:m.End])).ForEach(func(_, call gjson.Result) bool {
				calls = m.Start
				for _, t := range recall.Before(call.Get("id").Str) {
					thought += t.Text
				}
				return true
			})
		case "reasoning_content":
			return message
		}
	}
	if calls == 0 {
		return message
	}
	member := append(jsonw.AppendString([]byte(`"reasoning_content":`), thought), ',')
	return fields.Splice(message, []fields.Edit{{Start: calls, End: calls, With: member}})
}

// withoutLarge drops image parts over the limit from a message. Content that
// becomes empty is replaced, because a list must not be.
func withoutLarge(message []byte, rep *dialogue.Report) []byte {
	members := fields.Members(message)
	for _, m := range members {
		content := message[m.Value:m.End]
		if m.Name != "content" || len(content) < maxImage {
			continue
		}
		parts, dropped := fields.Elements(content), 0
		kept := fields.Without(content, parts, func(i int) bool {
			part := fields.View(content[parts[i].Value:parts[i].End])
			over := part.Get("type").String() == "image_url" && tooLarge(imageAddress(part))
			if over {
				dropped++
				rep.Lose("image:too_large")
			}
			return over
		})
		if dropped > 0 && dropped == len(parts) {
			kept = []byte(`[{"type":"text","text":""}]`)
		}
		return fields.Splice(message, []fields.Edit{{Start: m.Value, End: m.End, With: kept}})
	}
	return message
}

// withoutSeals drops the reasoning_details this gateway wrote: no upstream
// could read them, and some refuse what they cannot read.
func withoutSeals(message []byte, rep *dialogue.Report) []byte {
	if !bytes.Contains(message, sealMark) {
		return message
	}
	members := fields.Members(message)
	for at, m := range members {
		if m.Name != "reasoning_details" {
			continue
		}
		list := message[m.Value:m.End]
		entries, dropped := fields.Elements(list), 0
		kept := fields.Without(list, entries, func(i int) bool {
			entry := fields.View(list[entries[i].Value:entries[i].End])
			ours := entry.Get("format").String() == sealFormat || dialogue.Sealed(entry.Get("data").String())
			if ours {
				dropped++
				rep.Lose("reasoning_details")
			}
			return ours
		})
		if dropped > 0 && dropped == len(entries) {
			return fields.Without(message, members, func(i int) bool { return i == at })
		}
		return fields.Splice(message, []fields.Edit{{Start: m.Value, End: m.End, With: kept}})
	}
	return message
}
