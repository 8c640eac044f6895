package dialogue

import (
	"slices"
	"strings"
)

// Degradation reasons of X-Structured-Output-Degraded (gateway.md 4.8).
const (
	ModelUnsupported      = "model_unsupported"
	JSONObjectUnsupported = "json_object_unsupported_on_anthropic"
	MissingSchema         = "json_schema_missing_schema"
	KeywordsStripped      = "schema_keywords_stripped"
)

// Report collects what translation did to a request beyond spelling. The zero
// value is ready; it belongs to one request and is not safe for concurrent use.
type Report struct {
	// Degraded is the reason structured output was weakened, or "".
	Degraded string
	losses   []string
}

// Bounds of what is recorded: fields that nobody knows are lost under the names
// their client gave them, and it may have given any number of any.
const (
	maxLosses   = 64
	maxLossName = 64
	// unnamed stands for names that would not do in a header.
	unnamed = "unknown_field"
)

// Lose records that something was dropped, changed or invented. Names are
// short: the parameter's name, or "name:what" ("stop:truncated", "max_tokens:default").
func (r *Report) Lose(name string) {
	if r == nil || len(r.losses) >= maxLosses {
		return
	}
	if !nameable(name) {
		name = unnamed
	}
	if !slices.Contains(r.losses, name) {
		r.losses = append(r.losses, name)
	}
}

// nameable reports whether a name is short and made of what names of parameters
// and their values are made of.
func nameable(name string) bool {
	if name == "" || len(name) > maxLossName {
		return false
	}
	for _, c := range []byte(name) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("_-.:/$", c) >= 0:
		default:
			return false
		}
	}
	return true
}

// Degrade records a reason unless one of higher precedence stands already.
func (r *Report) Degrade(reason string) {
	order := []string{ModelUnsupported, JSONObjectUnsupported, MissingSchema, KeywordsStripped}
	if r == nil || reason == "" {
		return
	}
	if r.Degraded == "" || slices.Index(order, reason) < slices.Index(order, r.Degraded) {
		r.Degraded = reason
	}
}

// Losses lists what was lost, in the order it was recorded.
func (r *Report) Losses() []string { return r.losses }

// Header is the value of X-Stagedoor-Losses: the names, comma separated, at
// most 1 KB. It is "" if nothing was lost.
func (r *Report) Header() string {
	const limit = 1024
	s := strings.Join(r.losses, ",")
	if len(s) <= limit {
		return s
	}
	return s[:strings.LastIndexByte(s[:limit], ',')]
}
