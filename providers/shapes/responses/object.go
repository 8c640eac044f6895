package responses

import (
	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/jsonw"
)

// Statuses of a response.
const (
	statusQueued     = "queued"
	statusInProgress = "in_progress"
	statusCompleted  = "completed"
	statusIncomplete = "incomplete"
	statusFailed     = "failed"
	statusCancelled  = "cancelled"
)

// object is a response object in the making. Its echoes are the request's own
// JSON; clients validate them.
type object struct {
	id        string
	model     string
	created   int64
	completed int64 // 0 unless status is completed
	status    string
	err       *dialogue.Error
	reason    string // of incomplete_details
	previous  string
	usage     *dialogue.Usage // nil until it is known
	echo      echo
}

// echo holds raw JSON by the order of echoed; "" was not given.
type echo [len(echoed)]string

// echoed are the request fields that a response repeats, with what they are
// when the request does not give them.
var echoed = [...]struct{ name, missing string }{
	{"background", "false"},
	{"instructions", "null"},
	{"max_output_tokens", "null"},
	{"max_tool_calls", "null"},
	{"parallel_tool_calls", "true"},
	{"prompt", "null"},
	{"prompt_cache_key", "null"},
	{"prompt_cache_retention", "null"},
	{"reasoning", `{"effort":null,"summary":null}`},
	{"safety_identifier", "null"},
	{"service_tier", `"auto"`},
	{"store", "true"},
	{"temperature", "1"},
	{"text", `{"format":{"type":"text"}}`},
	{"tool_choice", `"auto"`},
	{"tools", "[]"},
	{"top_logprobs", "0"},
	{"top_p", "1"},
	{"truncation", `"disabled"`},
	{"user", "null"},
	{"conversation", "null"},
	{"metadata", "{}"},
}

// newObject reads what a response to body repeats of it.
func newObject(body []byte) object {
	var o object
	gjson.ParseBytes(body).ForEach(func(key, v gjson.Result) bool {
		if v.Type == gjson.Null {
			return true
		}
		switch key.Str {
		case "model":
			o.model = v.Str
		case "previous_response_id":
			o.previous = v.Str
		}
		for i := range echoed {
			if echoed[i].name == key.Str {
				o.echo[i] = complete(key.Str, v)
			}
		}
		return true
	})
	return o
}

// complete gives objects that clients read members of the members that the
// request left out.
func complete(name string, v gjson.Result) string {
	var members []struct{ name, missing string }
	switch name {
	case "text":
		members = []struct{ name, missing string }{{"format", `{"type":"text"}`}}
	case "reasoning":
		members = []struct{ name, missing string }{{"effort", "null"}, {"summary", "null"}}
	default:
		return v.Raw
	}
	var w jsonw.Writer
	w.Object()
	v.ForEach(func(key, m gjson.Result) bool {
		w.KeyOf(key.String()).RawString(m.Raw)
		return true
	})
	for _, m := range members {
		if !v.Get(m.name).Exists() {
			w.Key(m.name).RawString(m.missing)
		}
	}
	w.End()
	return string(w.Buf)
}

// append writes the object; output writes the elements of its output array.
// There is no output_text: that is made by client libraries.
func (o *object) append(w *jsonw.Writer, output func(*jsonw.Writer)) {
	w.Object()
	w.Key("id").String(o.id)
	w.Key("object").String("response")
	w.Key("created_at").Int(o.created)
	w.Key("status").String(o.status)
	if o.status == statusCompleted {
		w.Key("completed_at").Int(o.completed)
	}
	w.Key("error")
	if o.err == nil {
		w.Null()
	} else {
		appendFailure(w, o.err)
	}
	w.Key("incomplete_details")
	if o.reason == "" {
		w.Null()
	} else {
		w.Object().Key("reason").String(o.reason).End()
	}
	w.Key("model").String(o.model)
	w.Key("output").Array()
	output(w)
	w.End()
	w.Key("previous_response_id").StringOrNull(o.previous)
	for i := range echoed {
		value := o.echo[i]
		if value == "" {
			value = echoed[i].missing
		}
		w.Key(echoed[i].name).RawString(value)
	}
	w.Key("usage")
	appendUsage(w, o.usage)
	w.End()
}

func appendFailure(w *jsonw.Writer, err *dialogue.Error) {
	w.Object()
	w.Key("code").String(failureCode(err))
	w.Key("message").String(failureMessage(err))
	w.End()
}

// appendUsage writes counts that include cached and reasoning tokens,
// or null while nothing is known.
func appendUsage(w *jsonw.Writer, u *dialogue.Usage) {
	if u == nil || u.InputTotal < 0 && u.OutputTotal < 0 {
		w.Null()
		return
	}
	in, out := dialogue.CountOrZero(u.InputTotal), dialogue.CountOrZero(u.OutputTotal)
	w.Object()
	w.Key("input_tokens").Int(in)
	w.Key("input_tokens_details").Object()
	w.Key("cached_tokens").Int(dialogue.CountOrZero(u.CacheRead))
	if n := cacheWrites(u); n > 0 {
		w.Key("cache_write_tokens").Int(n)
	}
	w.End()
	w.Key("output_tokens").Int(out)
	w.Key("output_tokens_details").Object()
	w.Key("reasoning_tokens").Int(dialogue.CountOrZero(u.Reasoning))
	w.End()
	w.Key("total_tokens").Int(in + out)
	w.End()
}

func cacheWrites(u *dialogue.Usage) int64 {
	return max(dialogue.CountOrZero(u.CacheWrite),
		dialogue.CountOrZero(u.CacheWrite5m)+dialogue.CountOrZero(u.CacheWrite1h))
}
