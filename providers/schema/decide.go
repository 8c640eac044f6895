package schema

import (
	"bytes"
	"encoding/json"

	"stagedoor/providers/dialogue"
)

// Dialect is the form of structured output that upstreams of one shape, which is a vendor's API format, accept.
type Dialect uint8

// Dialects.
const (
	// JSONSchema takes schemas as clients write them, and JSON without a schema.
	JSONSchema Dialect = iota
	// ClosedObjects takes the part of JSON Schema that ForMessages writes: closed objects without
	// bounds. It has no JSON without a schema.
	ClosedObjects
	// OpenAPI takes the part of OpenAPI's schemas that ForGemini writes or, at models with
	// Capabilities.JSONSchema, the part of JSON Schema that ForGeminiJSON writes.
	OpenAPI
	// NoOutput has no structured output.
	NoOutput
)

// DecideOutput returns the output constraint to send to the target t, with its schema in the dialect d. It is o if t
// can keep all of it, o with a rewritten schema if d lacks some of its keywords, and otherwise the zero Output, which
// constrains nothing. A schema is never weakened to JSON without a schema. DecideOutput returns no error, because a
// constraint that cannot be kept must never fail a request. It records the reason in rep instead, and the client gets
// it in the header X-Structured-Output-Degraded. If d is OpenAPI, the result's GeminiSchema says which of its two forms
// the schema has.
func DecideOutput(o dialogue.Output, d Dialect, t dialogue.Target, rep *dialogue.Report) dialogue.Output {
	reasons := objections(o, d, t)
	for _, reason := range reasons {
		rep.Degrade(reason)
	}
	if len(reasons) > 0 {
		return dialogue.Output{}
	}
	if o.Mode != dialogue.OutputSchema {
		return o
	}
	out, lossy := toDialect(o, d, t)
	if lossy {
		rep.Degrade(dialogue.KeywordsStripped)
	}
	return out
}

// objections returns the reasons (of dialogue.Report.Degraded) for which the constraint must be dropped, be it a schema
// or JSON without a schema. It returns none if the target can keep the constraint, or if there is none.
func objections(o dialogue.Output, d Dialect, t dialogue.Target) []string {
	if o.Mode == dialogue.OutputText {
		return nil
	}
	var reasons []string
	if t.NoSchema || d == NoOutput {
		reasons = append(reasons, dialogue.ModelUnsupported)
	}
	if o.Mode == dialogue.OutputJSON {
		// JSON without a schema is older than schemas. Models without structured outputs have
		// it, in the dialects that have it.
		if d == ClosedObjects {
			reasons = append(reasons, dialogue.JSONObjectUnsupported)
			if !t.Caps.StructuredOutputs {
				reasons = append(reasons, dialogue.ModelUnsupported)
			}
		}
		return reasons
	}
	if !t.Caps.StructuredOutputs {
		reasons = append(reasons, dialogue.ModelUnsupported)
	}
	if isAbsent(o.Schema) {
		reasons = append(reasons, dialogue.MissingSchema)
	}
	return reasons
}

// isAbsent reports whether raw is empty, only white space or null. The schema {} is not absent.
func isAbsent(raw json.RawMessage) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) == 0 || bytes.Equal(raw, []byte("null"))
}

// toDialect returns o with its schema converted to the dialect d. lossy says that keywords were dropped, or that the
// schema could not be converted at all, for which the result is the zero Output.
func toDialect(o dialogue.Output, d Dialect, t dialogue.Target) (_ dialogue.Output, lossy bool) {
	if d == OpenAPI {
		return toGeminiDialect(o, t)
	}
	if o.GeminiSchema {
		o.Schema, o.GeminiSchema = FromGemini(o.Schema), false
	}
	if d != ClosedObjects {
		return o, false
	}
	schema, stripped, ok := ForMessages(o.Schema)
	if !ok {
		return dialogue.Output{}, true
	}
	o.Schema = schema
	return o, stripped
}

// toGeminiDialect is toDialect for OpenAPI. It keeps a schema that the client wrote in Gemini's own form.
func toGeminiDialect(o dialogue.Output, t dialogue.Target) (_ dialogue.Output, lossy bool) {
	switch {
	case o.GeminiSchema: // as the client wrote it
	case t.Caps.JSONSchema:
		o.Schema, lossy = ForGeminiJSON(o.Schema)
	default:
		o.Schema, lossy = ForGemini(o.Schema)
		o.GeminiSchema = true
	}
	return o, lossy
}
