package requestlog

import (
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Entry returns what stores keep of a record beside its place, its owner and its durations: its JSON without what is
// zero, which is more than half of it. It is written without reflection, because it is made for each request.
func (r *Record) Entry() []byte {
	e := append(make(entry, 0, 512), '{')
	if !r.Began.IsZero() {
		e.name("began")
		e = append(r.Began.AppendFormat(append(e, '"'), time.RFC3339Nano), '"')
	}
	e.text("id", r.ID)
	e.text("node", r.Node)
	e.text("user", r.User)
	e.text("group", r.Group)
	e.text("key", r.Key)
	e.text("key_name", r.KeyName)
	e.text("app", r.App)
	e.text("model", r.Model)
	e.text("provider", r.Provider)
	e.text("upstream_model", r.Upstream)
	e.text("shape", r.Shape)
	e.text("trace", r.Trace)
	e.mark("stream", r.Stream)
	e.mark("background", r.Background)
	e.mark("untouched", r.Untouched)
	e.number("status", int64(r.Status))
	e.text("code", r.Code)
	e.text("error", r.Error)
	e.text("reason", r.Reason)
	e.text("losses", r.Losses)
	e.text("degraded", r.Degraded)
	e.number("input_tokens", r.Input)
	e.number("cached_tokens", r.Cached)
	e.number("output_tokens", r.Output)
	e.number("reasoning_tokens", r.Reasoning)
	e.number("images", r.Images)
	e.number("cost_micro_usd", r.Cost)
	e.number("attempts", int64(r.Attempts))
	if len(r.Tries) > 0 {
		e.name("tries")
		for i, t := range r.Tries {
			e = append(e, openers[min(i, 1)]...)
			e.text("provider", t.Provider)
			e.text("model", t.Model)
			e.number("status", int64(t.Status))
			e.text("failure", t.Failure)
		}
		e = append(e, "}]"...)
	}
	if len(r.Steps) > 0 {
		e.name("steps")
		for i, s := range r.Steps {
			e = append(e, openers[min(i, 1)]...)
			e.text("phase", s.Phase)
			e.number("attempt", int64(s.Attempt))
			e.number("at_us", s.AtUs)
		}
		e = append(e, "}]"...)
	}
	return append(e, '}')
}

// openers begin the first object of a list, and each further one.
var openers = [2]string{"[{", "},{"}

// entry is a JSON object that is being written.
type entry []byte

// name appends the name of a member.
func (e *entry) name(name string) {
	if (*e)[len(*e)-1] != '{' {
		*e = append(*e, ',')
	}
	*e = append(append(append(*e, '"'), name...), `":`...)
}

// text appends a member unless its text is empty.
func (e *entry) text(name, text string) {
	if text != "" {
		e.name(name)
		*e, _ = jsontext.AppendQuote(*e, text) // it has replaced what is not UTF-8
	}
}

// number appends a member unless its number is zero.
func (e *entry) number(name string, n int64) {
	if n != 0 {
		e.name(name)
		*e = strconv.AppendInt(*e, n, 10)
	}
}

// mark appends a member that is true.
func (e *entry) mark(name string, is bool) {
	if is {
		e.name(name)
		*e = append(*e, "true"...)
	}
}

// Unreadable is the Code of a record whose entry could not be read.
const Unreadable = "unreadable"

// ReadEntry reads an Entry into a record whose At is set. A broken one does not keep readers from the others, so it is
// shown as a failed request without names.
func (r *Record) ReadEntry(entry []byte) {
	if at := r.At; json.Unmarshal(entry, r) != nil {
		*r = Record{At: at, Began: time.UnixMicro(TimeOf(at)).UTC(), Code: Unreadable,
			Error: "This record of the log of requests cannot be read."}
	}
}
