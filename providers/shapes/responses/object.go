package responses

import (
	"cmp"
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

// object collects the response object. Its echoes are the parameters of the request in the client's
// own JSON.
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
	tier      string          // that served the reply, or ""; until then the request's one is repeated
	echo      echo
}

// echo has the JSON of the parameters in echoed, at the same indices. "" means that one was not
// given.
type echo [len(echoed)]string

// echoed are the parameters of a request that a response repeats, with the vendor's default for
// each. SDKs declare most of them as required.
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
	{"text", `{"format":{"type":"text"},"verbosity":"medium"}`},
	{"tool_choice", `"auto"`},
	{"tools", "[]"},
	{"top_logprobs", "0"},
	{"top_p", "1"},
	{"truncation", `"disabled"`},
	{"user", "null"},
	{"conversation", "null"},
	{"metadata", "{}"},
}

// newObject returns the object of a response to the request in body, without an id or a status.
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

// complete returns a parameter as the response repeats it. Objects of which clients read members
// get those that the request left out.
func complete(name string, v gjson.Result) string {
	var members []struct{ name, missing string }
	switch name {
	case "text":
		members = []struct{ name, missing string }{{"format", `{"type":"text"}`}, {"verbosity", `"medium"`}}
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

// append writes the object. output writes the elements of its output array. There is no member
// output_text: client libraries compute it.
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
		if echoed[i].name == "service_tier" && o.tier != "" {
			w.Key("service_tier").String(o.tier)
			continue
		}
		value := o.echo[i]
		value = cmp.Or(value, echoed[i].missing)
		w.Key(echoed[i].name).RawString(value)
	}
	w.Key("usage")
	appendUsage(w, o.usage)
	w.End()
}

// appendFailure writes the member error of a failed response.
func appendFailure(w *jsonw.Writer, err *dialogue.Error) {
	w.Object()
	w.Key("code").String(failureCode(err))
	w.Key("message").String(failureMessage(err))
	w.End()
}

// appendUsage writes the counts, which include cached and reasoning tokens, or null if none is
// known.
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

// cacheWrites returns the tokens written to the prompt cache, of all lifetimes.
func cacheWrites(u *dialogue.Usage) int64 {
	return max(dialogue.CountOrZero(u.CacheWrite),
		dialogue.CountOrZero(u.CacheWrite5m)+dialogue.CountOrZero(u.CacheWrite1h))
}
