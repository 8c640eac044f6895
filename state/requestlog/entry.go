package requestlog

import (
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Entry returns the JSON of a record for a store that has no kinds, without its place, its owner and its durations and
// without what is zero, which is more than half of it. It is written without reflection, because it is made for each
// request.
func (r *Record) Entry() []byte {
	e := append(make(entry, 0, 512), '{')
	if !r.Began.IsZero() {
		e.name("began")
		e = append(r.Began.AppendFormat(append(e, '"'), time.RFC3339Nano), '"')
	}
	e.text("id", r.ID)
	e.kind(r)
	e.own(r)
	e.number("input_tokens", r.Input)
	e.number("output_tokens", r.Output)
	e.number("cost_micro_usd", r.Cost)
	return append(e, '}')
}

// AppendKind appends the JSON of the kind of a record: of its names and of its outcome, without its owner.
func (r *Record) AppendKind(to []byte) []byte {
	e := entry(append(to, '{'))
	e.kind(r)
	return append(e, '}')
}

func (e *entry) kind(r *Record) {
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
	e.mark("stream", r.Stream)
	e.mark("background", r.Background)
	e.mark("untouched", r.Untouched)
	e.number("status", int64(r.Status))
	e.text("code", r.Code)
	e.text("error", r.Error)
	e.text("reason", r.Reason)
	e.text("losses", r.Losses)
	e.text("degraded", r.Degraded)
	e.number("attempts", int64(r.Attempts))
	if len(r.Tries) > 0 {
		e.name("tries")
		e.tries(r.Tries)
	}
}

// tries appends a list of one attempt or more.
func (e *entry) tries(all []Try) {
	for i, t := range all {
		*e = append(*e, openers[min(i, 1)]...)
		e.text("provider", t.Provider)
		e.text("model", t.Model)
		e.number("status", int64(t.Status))
		e.text("failure", t.Failure)
	}
	*e = append(*e, "}]"...)
}

func (e *entry) own(r *Record) {
	e.text("trace", r.Trace)
	e.number("cached_tokens", r.Cached)
	e.number("reasoning_tokens", r.Reasoning)
	e.number("images", r.Images)
	if len(r.Steps) > 0 {
		e.name("steps")
		for i, s := range r.Steps {
			*e = append(*e, openers[min(i, 1)]...)
			e.text("phase", s.Phase)
			e.number("attempt", int64(s.Attempt))
			e.number("at_us", s.AtUs)
		}
		*e = append(*e, "}]"...)
	}
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
	if text == "" {
		return
	}
	e.name(name)
	for i := range len(text) {
		if c := text[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			*e, _ = jsontext.AppendQuote(*e, text) // it has replaced what is not UTF-8
			return
		}
	}
	*e = append(append(append(*e, '"'), text...), '"') // most texts are names
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

// ReadEntry reads an entry, or the JSON of AppendKind, into a record whose At is set. A broken one does not keep
// readers from the others, so it is shown as a failed request without names.
func (r *Record) ReadEntry(entry []byte) {
	if json.Unmarshal(entry, r) != nil {
		r.unreadable()
	}
}

func (r *Record) unreadable() {
	*r = Record{At: r.At, Began: time.UnixMicro(TimeOf(r.At)).UTC(), Code: Unreadable,
		Error: "This record of the log of requests cannot be read."}
}
