package upstream

import (
	"testing"

	"stagedoor/providers/dialogue"
)

func TestA400AboutTheSchemaIsRecognized(t *testing.T) {
	for message, want := range map[string]bool{
		"Invalid schema for response_format 'x': In context=()":                                   true,
		"output_config.format: Extra inputs are not permitted":                                    true,
		"'response_format' of type 'json_schema' is not supported, use function calling":          true,
		"This model does not support structured outputs":                                          true,
		"The specified schema produces a constraint that has too many states for serving.":        true,
		"Unknown name \"x\" at 'generation_config.response_schema': Cannot find field.":           true,
		"tools.0.custom.input_schema: JSON schema is invalid":                                     false,
		"Invalid schema for function 'f': schema must be a JSON Schema of 'type: \"object\"'":     false,
		"Unknown name \"$ref\" at 'tools[0].function_declarations[0].parameters': no such schema": false,
		"messages: at least one message is required":                                              false,
	} {
		f := Refused(dialogue.Traits{}, 400, nil, &dialogue.Error{Status: 400, Message: message})
		if f.Schema != want {
			t.Errorf("%q: %v", message, f.Schema)
		}
	}
}
