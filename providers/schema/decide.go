package schema

import (
	"bytes"
	"encoding/json"

	"stagedoor/providers/dialogue"
)

// Dialect is the form of structured output that upstreams of a shape take.
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

// DecideOutput returns the output constraint that a target can keep, and records in rep why it is
// less than the client asked for (gateway.md 4.8 rule 6). The schema that it returns is in the
// dialect d. If that is OpenAPI, GeminiSchema tells which of its two forms the schema has.
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

// objections returns the reasons for which the constraint must be dropped.
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

func isAbsent(raw json.RawMessage) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) == 0 || bytes.Equal(raw, []byte("null"))
}

// toDialect converts the schema of o for t.
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
