package text_test

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"stagedoor/actors/text"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/dialogue/dialoguetest"
	"stagedoor/providers/shapes"
	"stagedoor/providers/shapes/registry"
)

// sentTo returns the body that an upstream of a shape gets for a request, if the gateway sends it.
func sentTo(t *testing.T, upstream, client dialogue.Shape, body string) (sent gjson.Result, got text.Outcome) {
	t.Helper()
	good := tooLong[upstream][1]
	if upstream == dialoguetest.Completions {
		good = `{"id":"t","object":"text_completion","created":1,"model":"m",` +
			`"choices":[{"index":0,"text":"x","finish_reason":"stop"}]}`
	}
	play(t, func(t *testing.T, s *stage) {
		s.upstream("a", upstream, document(200, good))
		r := s.request(client, body)
		got = s.ask(r).Outcome
		if calls := s.fakes["a"].calls; len(calls) > 0 {
			sent = gjson.Parse(calls[0].body)
		}
	})
	return sent, got
}

func TestItemsThatNoOtherModelReadsAreNamedAndNothingIsInvented(t *testing.T) {
	for _, upstream := range []dialogue.Shape{
		dialoguetest.Chat, dialoguetest.Messages, dialoguetest.Gemini, dialoguetest.Completions,
	} {
		sent, got := sentTo(t, upstream, dialoguetest.Responses,
			`{"model":"m","store":false,"input":[{"type":"hologram","x":1}]}`)
		if got.Err == nil || got.Err.Status != 400 || !strings.Contains(got.Err.Message, `"hologram"`) ||
			sent.Exists() {
			t.Errorf("%s alone: got %v, sent %s", upstream, got.Err, sent.Raw)
		}
		sent, got = sentTo(t, upstream, dialoguetest.Responses,
			`{"model":"m","store":false,"input":[{"role":"user","content":"hi"},{"type":"hologram","x":1}]}`)
		if !sent.Exists() || strings.Contains(sent.Raw, "Continue.") || !strings.Contains(got.Losses, "server_tool") {
			t.Errorf("%s: losses %q, sent %s", upstream, got.Losses, sent.Raw)
		}
	}
}

func TestParametersOfOneVendorPassBetweenItsShapes(t *testing.T) {
	cache := `"prompt_cache_retention":"24h","prompt_cache_options":{"mode":"x"}`
	for upstream, test := range map[dialogue.Shape]struct {
		client dialogue.Shape
		body   string
	}{
		dialoguetest.Responses: {dialoguetest.Chat, `{"model":"m",` + cache +
			`,"messages":[{"role":"user","content":"hi"}]}`},
		dialoguetest.Chat: {dialoguetest.Responses, `{"model":"m","store":false,` + cache + `,"input":"hi"}`},
	} {
		sent, got := sentTo(t, upstream, test.client, test.body)
		if sent.Get("prompt_cache_retention").Str != "24h" || sent.Get("prompt_cache_options.mode").Str != "x" ||
			got.Losses != "" {
			t.Errorf("to %s: losses %q, sent %s", upstream, got.Losses, sent.Raw)
		}
	}
}

func TestAStrictToolIsStrictTowardMessages(t *testing.T) {
	schema := `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`
	sent, got := sentTo(
		t,
		dialoguetest.Messages,
		dialoguetest.Chat,
		`{"model":"m","messages":[{"role":"user","content":"hi"}],
		"tools":[{"type":"function","function":{"name":"f","strict":true,"parameters":`+schema+`}}]}`,
	)
	if !sent.Get("tools.0.strict").Bool() {
		t.Errorf("losses %q, sent %s", got.Losses, sent.Raw)
	}
}

func TestAFormatForMessagesHasNothingButItsSchema(t *testing.T) {
	sent, _ := sentTo(
		t,
		dialoguetest.Messages,
		dialoguetest.Messages,
		`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}],
		"output_config":{"effort":"low","format":{"type":"json_schema",
			"name":"x","strict":true,"schema":{"type":"object","properties":{}}}}}`,
	)
	format := sent.Get("output_config.format")
	if format.Get("name").Exists() || format.Get("strict").Exists() || format.Get("schema.type").Str != "object" ||
		sent.Get("output_config.effort").Str != "low" {
		t.Errorf("sent %s", sent.Raw)
	}
}

// asksForSchema are requests for an answer in a schema, in the shapes whose schemas always bind it.
var asksForSchema = map[dialogue.Shape]string{
	dialoguetest.Messages: `{"model":"m","max_tokens":99,"messages":[{"role":"user","content":"hi"}],
		"output_config":{"format":{"type":"json_schema","schema":%s}}}`,
	dialoguetest.Gemini: `{"contents":[{"role":"user","parts":[{"text":"hi"}]}],
		"generationConfig":{"responseMimeType":"application/json","responseJsonSchema":%s}}`,
}

// TestASchemaThatBindsIsClosedAndStrictOrALoss also has a schema with an optional property, which cannot be strict.
// None of its keywords is removed, so there is no degradation.
func TestASchemaThatBindsIsClosedAndStrictOrALoss(t *testing.T) {
	const open = `{"type":"object","properties":{"a":{"type":"object","properties":{"b":{"type":"string"}},` +
		`"required":["b"]}}`
	for client, ask := range asksForSchema {
		for upstream, at := range map[dialogue.Shape]string{
			dialoguetest.Chat: "response_format.json_schema", dialoguetest.Responses: "text.format",
		} {
			sent, got := sentTo(t, upstream, client, strings.Replace(ask, "%s", open+`,"required":["a"]}`, 1))
			format := sent.Get(at)
			if !format.Get("strict").Bool() || format.Get("schema.additionalProperties").Raw != "false" ||
				format.Get("schema.properties.a.additionalProperties").Raw != "false" || got.Degraded != "" {
				t.Errorf("%s to %s: degraded %q, sent %s", client, upstream, got.Degraded, sent.Raw)
			}
			sent, got = sentTo(t, upstream, client, strings.Replace(ask, "%s", open+`}`, 1))
			if sent.Get(at+".strict").Bool() || got.Degraded != "" ||
				!strings.Contains(got.Losses, "response_format:strict") {
				t.Errorf("%s to %s, optional: degraded %q, losses %q, sent %s",
					client, upstream, got.Degraded, got.Losses, sent.Raw)
			}
		}
	}
}

// unknownParts are requests with a content part of a type that the gateway does not know, by shape.
var unknownParts = map[dialogue.Shape]string{
	dialoguetest.Chat:      `{"model":"m","messages":[{"role":"user","content":[{"type":"hologram"}]}]}`,
	dialoguetest.Responses: `{"model":"m","store":false,"input":[{"role":"user","content":[{"type":"hologram"}]}]}`,
	dialoguetest.Messages:  `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"hologram"}]}]}`,
	dialoguetest.Gemini:    `{"contents":[{"role":"user","parts":[{"hologram":{"a":1}}]}]}`,
}

func TestUnknownContentPartsPassToTheirShapeAndAreNeverDropped(t *testing.T) {
	for client, body := range unknownParts {
		for upstream := range unknownParts {
			sent, got := sentTo(t, upstream, client, body)
			switch {
			case client == upstream && !strings.Contains(sent.Raw, "hologram"):
				t.Errorf("%s: got %v, sent %s", client, got.Err, sent.Raw)
			case client != upstream && (sent.Exists() || got.Err == nil || got.Err.Code != "unknown_content_part" ||
				!strings.Contains(got.Err.Param, "0")):
				t.Errorf("%s to %s: got %v, sent %s", client, upstream, got.Err, sent.Raw)
			}
		}
	}
}

func TestAMistakeBehindAnUnknownContentPartIsReported(t *testing.T) {
	for client, body := range map[dialogue.Shape]string{
		dialoguetest.Chat:      strings.Replace(unknownParts[dialoguetest.Chat], `}]}]}`, `},{"type":"text"}]}]}`, 1),
		dialoguetest.Responses: strings.Replace(unknownParts[dialoguetest.Responses], `"}]`, `"},{"type":"text"}]`, 1),
		dialoguetest.Messages:  strings.Replace(unknownParts[dialoguetest.Messages], `"}]`, `"},{"type":"text"}]`, 1),
		dialoguetest.Gemini:    strings.Replace(unknownParts[dialoguetest.Gemini], `}}]`, `}},{"text":1}]`, 1),
	} {
		_, err := registry.ByName()[client].Check([]byte(body), shapes.Params{Model: "m"})
		if err == nil {
			t.Errorf("%s: %s passed", client, body)
		}
	}
}

// Encoders name the fields of the neutral form. The client gets the name of the field that it has sent.
func TestRefusalsOfAnEncoderNameTheClientsField(t *testing.T) {
	const noAudio = `{"inlineData":{"mimeType":"audio/wav","data":"UklGRg=="}}`
	for _, c := range []struct {
		from, to    dialogue.Shape
		body, param string
	}{
		{dialoguetest.Gemini, dialoguetest.Messages, `{"contents":[{"parts":[` + noAudio + `]}]}`, "contents"},
		{dialoguetest.Gemini, dialoguetest.Chat, `{"contents":[{"parts":[{"text":"hi"}]}],
			"generationConfig":{"responseModalities":["AUDIO"]}}`, "generationConfig.responseModalities"},
		{dialoguetest.Responses, dialoguetest.Messages, `{"model":"m","input":[{"role":"user","content":[
			{"type":"input_file","file_id":"file-1"}]}]}`, "input"},
		{dialoguetest.Messages, dialoguetest.Chat, `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[
			{"type":"document","source":{"type":"file","file_id":"file_1"}}]}]}`, "messages"},
	} {
		play(t, func(t *testing.T, s *stage) {
			s.upstream("a", c.to)
			got := s.ask(s.request(c.from, c.body))
			if got.Err == nil || got.Err.Param != c.param || !strings.HasPrefix(got.Err.Message, c.param+": ") {
				t.Errorf("%s to %s: got %+v, want an error about %s", c.from, c.to, got.Err, c.param)
			}
		})
	}
}
