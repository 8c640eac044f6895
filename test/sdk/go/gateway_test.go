package sdk

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// The gateway under test must serve the models any and limited-*, answered by the
// sandbox directly or as an upstream, and no model no-such-model. The limited ones
// have providers that a test may make refuse without making others wait.
const (
	model        = "any"
	unknownModel = "no-such-model"
	wrongKey     = "sd-wrong-key"
	limited      = "limited-go-"
)

// Prompts with which the sandbox behaves in a certain way.
const (
	plain     = "Say something short. [sandbox: pace=max]"
	useTool   = "Please use the get_weather tool for Oslo. [sandbox: pace=max]"
	describe  = "Describe a person. [sandbox: pace=max]"
	rateLimit = "Hello [sandbox: status=429]"
	midStream = "Hello [sandbox: tokens=40 error=10 pace=max]"
	long      = "Tell a long story [sandbox: tokens=2000]"
)

var (
	citySchema = map[string]any{
		"type":       "object",
		"properties": map[string]any{"city": map[string]any{"type": "string"}},
		"required":   []string{"city"}, "additionalProperties": false,
	}
	personSchema = map[string]any{
		"type": "object",
		"properties": map[string]any{
			"name": map[string]any{"type": "string"}, "age": map[string]any{"type": "integer"},
		},
		"required": []string{"name", "age"}, "additionalProperties": false,
	}
)

// gateway answers the address and key of the gateway under test.
func gateway(t *testing.T) (url, key string) {
	t.Helper()
	url, key = os.Getenv("STAGEDOOR_URL"), os.Getenv("STAGEDOOR_KEY")
	if url == "" || key == "" {
		t.Fatal("STAGEDOOR_URL and STAGEDOOR_KEY are not set; start the suite with ../run.sh")
	}
	return strings.TrimSuffix(url, "/"), key
}

// wantPerson holds a reply's text against personSchema.
func wantPerson(t *testing.T, text string) {
	t.Helper()
	var person struct {
		Name *string
		Age  *int
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&person); err != nil || person.Name == nil || person.Age == nil {
		t.Errorf("got %s (%v), want an object of the schema", text, err)
	}
}

// wantCity holds a tool call's arguments against citySchema.
func wantCity(t *testing.T, arguments []byte) {
	t.Helper()
	var args struct{ City *string }
	d := json.NewDecoder(strings.NewReader(string(arguments)))
	d.DisallowUnknownFields()
	if err := d.Decode(&args); err != nil || args.City == nil {
		t.Errorf("got arguments %s (%v), want an object of the schema", arguments, err)
	}
}
