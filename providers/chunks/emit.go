package chunks

import "stagedoor/providers/dialogue"

// Stamp is what stands beside the id in every chunk of a reply: the model as the
// client asked for it, and a time.
func ModelAndTime(req *dialogue.Request, env *dialogue.Env, ev *dialogue.Event) (model string, created int64) {
	model, created = req.Model, ev.Created
	if model == "" {
		model = ev.Model
	}
	if created <= 0 {
		created = env.Now().Unix()
	}
	return model, created
}

// AppendEnd ends a chunk behind what its choice says. reason is the finish_reason,
// "" before the end. Chunks of a client that asked for usage say null until the
// last (wire/chat.md 5).
func AppendEnd(dst []byte, reason string, req *dialogue.Request) []byte {
	dst = append(dst, `,"finish_reason":`...)
	if reason == "" {
		dst = append(dst, "null}]"...)
	} else {
		dst = append(append(append(dst, '"'), reason...), `"}]`...)
	}
	if req.IncludeUsage {
		dst = append(dst, `,"usage":null`...)
	}
	return append(dst, "}\n\n"...)
}
