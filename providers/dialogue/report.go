package dialogue

import (
	"slices"
	"strings"
)

// Reasons in the header X-Structured-Output-Degraded, which say why a reply may not match the schema
// that the client sent. A reply without the header matches it.
const (
	ModelUnsupported      = "model_unsupported"
	JSONObjectUnsupported = "json_object_unsupported_on_anthropic"
	MissingSchema         = "json_schema_missing_schema"
	KeywordsStripped      = "schema_keywords_stripped"
)

// Report collects the changes that a translation made to the meaning of a request. The zero
// value is ready for use. A nil *Report records nothing.
type Report struct {
	// Degraded is the reason for which structured output was weakened, or "".
	Degraded string
	losses   []string
}

// Bounds of what is recorded. Unknown fields are recorded under the names that the client
// gave them, so a client could otherwise fill the header and the log.
const (
	maxLosses   = 64
	maxLossName = 64
	// unnamed replaces a name that is not fit for a header.
	unnamed = "unknown_field"
)

// Lose records that a parameter was dropped, changed or invented, for the header
// X-Stagedoor-Losses. A name is the parameter's, perhaps with a detail: "stop:truncated",
// "max_tokens:default".
func (r *Report) Lose(name string) {
	if r == nil || len(r.losses) >= maxLosses {
		return
	}
	if !nameable(name) {
		name = unnamed
	}
	if !slices.Contains(r.losses, name) {
		r.losses = append(r.losses, strings.Clone(name)) // it may be a part of a whole body
	}
}

// LoseIf calls Lose if lost is true. Encoders use it to list, one line each, the parameters for which their shape has
// no field.
func (r *Report) LoseIf(lost bool, name string) {
	if lost {
		r.Lose(name)
	}
}

// nameable reports whether a name is short and has only characters that names of parameters
// and their values have.
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

// Degrade records a reason unless one of higher precedence is recorded already.
func (r *Report) Degrade(reason string) {
	order := []string{ModelUnsupported, JSONObjectUnsupported, MissingSchema, KeywordsStripped}
	if r == nil || reason == "" {
		return
	}
	if r.Degraded == "" || slices.Index(order, reason) < slices.Index(order, r.Degraded) {
		r.Degraded = reason
	}
}

// Losses returns the recorded names in the order in which they were recorded.
func (r *Report) Losses() []string { return r.losses }

// Header returns the value of X-Stagedoor-Losses: the names, separated by commas, at most 1 KB.
// It is "" if nothing was lost.
func (r *Report) Header() string {
	const limit = 1024
	s := strings.Join(r.losses, ",")
	if len(s) <= limit {
		return s
	}
	return s[:strings.LastIndexByte(s[:limit], ',')]
}
