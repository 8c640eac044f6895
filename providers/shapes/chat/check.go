package chat

import (
	"math"

	"stagedoor/providers/chunks"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/shapes"
)

// rules of the top-level fields that routing does not care about (gateway.md
// 4.3). Fields that are not listed, here or in checker.field, may be anything:
// clients are ahead of the documents (decisions.md).
var rules = map[string]fields.Rule{
	"metadata":               fields.Metadata,
	"temperature":            fields.Between(0, 2),
	"top_p":                  fields.Between(0, 1),
	"frequency_penalty":      fields.Between(-2, 2),
	"presence_penalty":       fields.Between(-2, 2),
	"user":                   fields.Of(fields.String),
	"safety_identifier":      fields.UpTo(64),
	"prompt_cache_key":       fields.Of(fields.String),
	"prompt_cache_retention": fields.OneOf("in_memory", "in-memory", "24h"),
	"verbosity":              fields.OneOf("low", "medium", "high"),
	"reasoning_effort":       fields.Of(fields.String), // open: decisions.md
	"web_search_options":     fields.Of(fields.Object),
	"stop":                   fields.Stop,
	"logit_bias":             fields.LogitBias,
	"prediction":             fields.Of(fields.Object),
	"seed":                   fields.Whole(math.MinInt64, math.MaxInt64),
	"tools":                  fields.Each(tool),
	"tool_choice":            toolChoice,
	"parallel_tool_calls":    fields.Of(fields.Bool),
	"function_call":          functionCall,
	"functions":              functions,
	"top_k":                  fields.Whole(0, math.MaxInt64),
}

// checker collects what Check learns while it reads a request once, from its first byte to its last. Rules
// about one field are in rules or in field, and those about several fields are in together, because fields
// may come in any order.
type checker struct {
	chunks.Checker

	hasMessages           bool
	logprobs, topLogprobs bool
	carriers              bool // some message has reasoning, or an image that may be too large
	// audio is set if the parameter of that name is given. wantsAudio is set if modalities asks for
	// audio, which requires the parameter.
	audio, wantsAudio bool
	maxTokens         int64 // deprecated, counts if the newer one is absent
}

// check implements shapes.Inbound. Its Reader checks the syntax on the way, so the body is read
// once and nothing is built. Head.Plain, which it sets for most requests, lets patch skip its own
// search.
func check(body []byte) (shapes.Head, error) {
	k := &checker{Checker: chunks.NewChecker(body, memberNames), maxTokens: -1}
	defer k.Free()
	if err := k.Walk(k.field); err != nil {
		return shapes.Head{}, err
	}
	if err := k.together(); err != nil {
		return shapes.Head{}, err
	}
	if k.Head.MaxTokens < 0 {
		k.Head.MaxTokens = k.maxTokens
	}
	k.Head.Plain = !k.carriers && !k.Head.Structured && (!k.UsageSaid || k.Head.IncludeUsage)
	return k.Head, nil
}

// together applies the rules that concern several fields, and then those about required fields.
func (k *checker) together() error {
	switch {
	case k.topLogprobs && !k.logprobs:
		return dialogue.Invalid("top_logprobs", "requires logprobs to be true")
	case k.Options && !k.Head.Stream:
		return dialogue.Invalid("stream_options", "is only allowed when stream is true")
	case k.wantsAudio && !k.audio:
		return dialogue.Missing("audio")
	case !k.hasMessages:
		return dialogue.Missing("messages")
	case !k.HasModel:
		return dialogue.Missing("model")
	}
	return nil
}

// field checks one member at the top of the body. Clients write null for what they leave out, also
// where the documents do not allow it, so null counts as absent for all but the required members.
func (k *checker) field(name []byte) (err error) {
	k.UsageSaid = k.UsageSaid || string(name) == "stream_options"
	if word := string(name); word != "messages" && word != "model" && k.Null() {
		return nil
	}
	switch string(name) {
	case "messages":
		k.hasMessages = true
		k.carriers, k.Head.Unknown, err = messages(k.Reader)
		return err
	case "model":
		return k.Model()
	case "stream":
		return k.Switch(&k.Head.Stream)
	case "store":
		return k.Switch(&k.Head.Store)
	case "logprobs":
		return k.Switch(&k.logprobs)
	case "n":
		return k.Choices()
	case "max_completion_tokens":
		return k.Count(1, math.MaxInt64, func(n int64) { k.Head.MaxTokens = n })
	case "max_tokens":
		return k.Count(1, math.MaxInt64, func(n int64) { k.maxTokens = n })
	case "top_logprobs":
		return k.Count(0, 20, func(int64) { k.topLogprobs = true })
	case "temperature", "top_p", "top_k", "presence_penalty", "frequency_penalty", "reasoning_effort",
		"prompt_cache_key", "prompt_cache_retention", "prompt_cache_options":
		k.Head.Tuned = true
	case "stream_options":
		return k.StreamOptions()
	case "service_tier":
		k.Head.ServiceTier, err = k.Text()
		return err
	case "response_format":
		k.Head.Structured, err = responseFormat(k.Reader)
		return err
	case "modalities":
		return k.modalities()
	case "audio":
		k.audio = true
		return fields.Of(fields.Object)(k.Reader)
	}
	if rule, ok := rules[string(name)]; ok {
		return rule(k.Reader)
	}
	return nil
}

// modalities notes whether the answer shall have audio.
func (k *checker) modalities() error {
	return k.Array(func(int) error {
		word, err := k.Word("text", "audio")
		k.wantsAudio = k.wantsAudio || word == "audio"
		return err
	})
}

// responseFormat checks response_format. A json_schema without a schema is not an error, because it
// can be served as json_object.
func responseFormat(r *fields.Reader) (structured bool, err error) {
	kind := ""
	err = r.Object(func(name []byte) (err error) {
		switch string(name) {
		case "type":
			kind, err = r.Word("text", "json_object", "json_schema")
		case "json_schema":
			err = fields.Nullable(jsonSchema)(r)
		}
		return err
	})
	if err == nil && kind == "" {
		err = r.Lacks("type")
	}
	return kind == "json_object" || kind == "json_schema", err
}

// jsonSchema checks the member of that name, whose only required member is the name. The characters of the
// name are not checked, because the encoder makes a name legal for its upstream.
func jsonSchema(r *fields.Reader) error {
	named := false
	err := r.Object(func(name []byte) error {
		switch string(name) {
		case "name":
			named = true
			return fields.Of(fields.String)(r)
		case "description":
			return fields.Nullable(fields.Of(fields.String))(r)
		case "strict":
			return fields.Nullable(fields.Of(fields.Bool))(r)
		case "schema":
			return fields.Nullable(fields.Of(fields.Object))(r)
		}
		return nil
	})
	if err == nil && !named {
		return r.Lacks("name")
	}
	return err
}

// tool checks one definition. A type other than function and custom is a tool that the upstream
// runs. Their set is open, so nothing more is checked.
func tool(r *fields.Reader) error {
	kind, function, custom := "", false, false
	err := r.Object(func(name []byte) (err error) {
		switch string(name) {
		case "type":
			kind, err = r.Text()
		case "function":
			function = true
			err = definition(r)
		case "custom":
			custom = true
			err = definition(r)
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case kind == "":
		return r.Lacks("type")
	case kind == "function" && !function:
		return r.Lacks("function")
	case kind == "custom" && !custom:
		return r.Lacks("custom")
	}
	return nil
}

// definition checks the object that describes a tool: in the members function and custom of a tool,
// and in the deprecated list functions.
func definition(r *fields.Reader) error {
	named := false
	err := r.Object(func(name []byte) error {
		switch string(name) {
		case "name":
			named = true
			return filled(r)
		case "description":
			return fields.Nullable(fields.Of(fields.String))(r)
		case "parameters", "format":
			return fields.Nullable(fields.Of(fields.Object))(r)
		case "strict":
			return fields.Nullable(fields.Of(fields.Bool))(r)
		}
		return nil
	})
	if err == nil && !named {
		return r.Lacks("name")
	}
	return err
}

// filled checks a string of at least one character.
func filled(r *fields.Reader) error {
	raw, err := r.Quoted()
	if err == nil && len(raw) <= len(`""`) {
		return r.Broken("must not be empty")
	}
	return err
}

// functions checks the deprecated predecessor of tools.
func functions(r *fields.Reader) error {
	n := 0
	err := r.Array(func(i int) error {
		n = i + 1
		return definition(r)
	})
	if err == nil && (n < 1 || n > 128) {
		return r.Broken("must hold 1 to 128 functions")
	}
	return err
}

// toolChoice checks a word or an object that names tools. Every type other than the three is a tool of the
// upstream, whose members are not known here.
func toolChoice(r *fields.Reader) error {
	if r.Peek() == fields.String {
		_, err := r.Word("none", "auto", "required")
		return err
	}
	if r.Peek() != fields.Object {
		return r.Broken("must be none, auto, required or an object that names a tool")
	}
	kind, named := "", map[string]bool{}
	err := r.Object(func(name []byte) (err error) {
		switch string(name) {
		case "type":
			kind, err = r.Text()
		case "function", "custom":
			named[string(name)] = true
			err = definition(r)
		case "allowed_tools":
			named["allowed_tools"] = true
			err = allowedTools(r)
		}
		return err
	})
	switch kind {
	case "":
		if err == nil {
			return r.Lacks("type")
		}
	case "function", "custom", "allowed_tools":
		if err == nil && !named[kind] {
			return r.Lacks(kind)
		}
	}
	return err
}

// allowedTools checks the choice of a subset of the tools.
func allowedTools(r *fields.Reader) error {
	return r.Object(func(name []byte) error {
		switch string(name) {
		case "mode":
			return fields.OneOf("auto", "required")(r)
		case "tools":
			return fields.Each(fields.Of(fields.Object))(r)
		}
		return nil
	})
}

// functionCall checks the deprecated predecessor of tool_choice.
func functionCall(r *fields.Reader) error {
	if r.Peek() == fields.String {
		_, err := r.Word("none", "auto")
		return err
	}
	if r.Peek() != fields.Object {
		return r.Broken("must be none, auto or an object that names a function")
	}
	return definition(r)
}
