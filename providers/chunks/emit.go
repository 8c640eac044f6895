package chunks

import (
	"cmp"
	"stagedoor/providers/dialogue"
)

// ModelAndTime returns the values of model and created in every chunk of a reply: the model as
// the client named it, and the time of the upstream or of now.
func ModelAndTime(req *dialogue.Request, env *dialogue.Env, ev *dialogue.Event) (model string, created int64) {
	model, created = req.Model, ev.Created
	model = cmp.Or(model, ev.Model)
	if created <= 0 {
		created = env.Now().Unix()
	}
	return model, created
}

// AppendEnd appends the end of a chunk, after the delta of its choice. reason is the
// finish_reason, or "" before the end. If the client asked for usage, every chunk but the last
// has usage null.
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
