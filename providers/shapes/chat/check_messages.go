package chat

import (
	"cmp"
	"slices"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
)

// partKinds are the types of content parts that a message of each role may have. Images in the
// answer of a tool are beyond the vendor's rules, but clients of other models send them and most
// upstreams accept them.
var partKinds = map[string][]string{
	"developer": {"text"},
	"system":    {"text"},
	"user":      {"text", "image_url", "input_audio", "file"},
	"assistant": {"text", "refusal"},
	"tool":      {"text", "image_url", "file"},
	"function":  {"text"},
}

// messages checks the conversation. carriers reports whether a message has something that patch may
// have to remove: reasoning, or a large image. unknown is the error for the first content part of
// an unknown type, or nil. It forbids only translation.
func messages(r *fields.Reader) (carriers bool, unknown *dialogue.Error, err error) {
	n := 0
	err = r.Array(func(i int) error {
		n = i + 1
		m, err := message(r)
		carriers, unknown = carriers || m.carrier, cmp.Or(unknown, m.unknown)
		return err
	})
	if err == nil && n == 0 {
		return false, nil, r.Broken("must hold at least one message")
	}
	return carriers, unknown, err
}

// seen collects which members a message has, until it is known which it needs.
type seen struct {
	role    string
	content bool     // present and not null
	blank   bool     // the content is null or an empty list
	speaks  bool     // an assistant's message with something instead of content
	parts   []string // kinds that were met before the role
	answers bool     // tool_call_id
	named   bool
	carrier bool // reasoning, or an image that may be too large
	unknown *dialogue.Error
}

// message checks one message. The role may stand behind the content, so what
// depends on it is checked at the end, from the kinds of parts that were seen.
func message(r *fields.Reader) (m seen, err error) {
	if err := r.Object(func(name []byte) error { return m.field(r, name) }); err != nil {
		return m, err
	}
	return m, m.complete(r)
}

// field checks one member of a message as far as that is possible without the role.
func (m *seen) field(r *fields.Reader, name []byte) (err error) {
	switch string(name) {
	case "role":
		m.role, err = r.Word("developer", "system", "user", "assistant", "tool", "function")
	case "content":
		err = m.read(r)
	case "name":
		m.named = true
		err = fields.Nullable(fields.Of(fields.String))(r)
	case "tool_call_id":
		m.answers = true
		err = fields.Of(fields.String)(r)
	case "tool_calls":
		err = m.instead(r, fields.Each(toolCall))
	case "function_call":
		err = m.instead(r, calledFunction)
	case "audio":
		err = m.instead(r, fields.Of(fields.Object))
	case "refusal":
		err = m.instead(r, fields.Of(fields.String))
	case "reasoning_content":
		m.carrier = true
		err = m.instead(r, fields.Of(fields.String))
	case "reasoning_details":
		m.carrier = true
		err = m.instead(r, fields.Of(fields.Array))
	}
	return err
}

// instead checks a member with which an assistant's message needs no content: calls, a refusal,
// audio or reasoning.
func (m *seen) instead(r *fields.Reader, rule fields.Rule) error {
	if r.Null() {
		return nil
	}
	m.speaks = true
	return rule(r)
}

// read checks the content. If the role is known already, each part is checked against it at once.
// Otherwise the types of the parts wait in m.parts for complete.
func (m *seen) read(r *fields.Reader) error {
	switch r.Peek() {
	case fields.Null:
		m.blank = true
		r.Skip()
		return nil
	case fields.String:
		m.content = true
		r.Skip()
		return nil
	case fields.Array:
		n := 0
		err := r.Array(func(i int) error {
			n = i + 1
			kind, large, err := part(r)
			m.carrier = m.carrier || large
			switch {
			case err != nil:
				return err
			case kind == "":
				m.unknown = cmp.Or(m.unknown, dialogue.UnknownPart(r.Field()))
				return nil
			case m.role != "":
				return fits(r, m.role, kind)
			}
			m.parts = append(m.parts, kind)
			return nil
		})
		if m.content, m.blank = n > 0, n == 0; err == nil && m.blank && m.role != "" && !m.mayBeBlank() {
			return r.Broken("must hold at least one part")
		}
		return err
	}
	return r.Broken("must be a string or an array of parts")
}

// mayBeBlank reports whether the content of a message of this role may be null or an empty list. The vendor allows
// that only beside calls and the like. Clients also send back so what a model answered without words and what a tool
// returned without output.
func (m *seen) mayBeBlank() bool { return m.role == "assistant" || m.role == "tool" }

// complete checks a message after its last member: the role, the parts against it, and what the
// role requires.
func (m *seen) complete(r *fields.Reader) error {
	if m.role == "" {
		return r.Lacks("role")
	}
	for _, kind := range m.parts {
		if err := fits(r, m.role, kind); err != nil {
			return err
		}
	}
	switch {
	case m.role == "tool" && !m.answers:
		return r.Lacks("tool_call_id")
	case m.role == "function" && !m.named:
		return r.Lacks("name")
	case m.content, m.role == "function", m.role == "assistant" && m.speaks, m.blank && m.mayBeBlank():
		return nil
	}
	return r.Lacks("content")
}

// fits returns the error for a part that messages of this role cannot have, or nil.
func fits(r *fields.Reader, role, kind string) error {
	if slices.Contains(partKinds[role], kind) {
		return nil
	}
	return r.Broken("a message of role " + role + " cannot hold a part of type " + kind)
}

// payload is a type of content part and the rule of its content. The member with the content has
// the name of the type: {"type":"text","text":"Hi"}.
type payload struct {
	kind string
	rule fields.Rule
}

// payloads are the known types, the most frequent first. A part of another type is forwarded to
// upstreams of this shape and refused for all others, because a part that vanishes changes the
// question.
var payloads = []payload{
	{"text", fields.Of(fields.String)},
	{"image_url", image},
	{"file", file},
	{"input_audio", needs("data", "format")},
	{"refusal", fields.Of(fields.String)},
}

// part checks one content part and returns its type, or "" for an unknown one. The type may stand
// behind the members that it gives a meaning to, so a known member is checked before the type is
// read. large reports an image that may be over the limit; patch measures it exactly.
func part(r *fields.Reader) (kind string, large bool, err error) {
	var brought string
	typed := false
	err = r.Object(func(name []byte) (err error) {
		if string(name) == "type" {
			typed = true
			kind, err = partKind(r)
			return err
		}
		for _, p := range payloads {
			if string(name) == p.kind && (kind == "" || kind == p.kind) {
				brought = p.kind
				start := r.Pos()
				err = p.rule(r)
				large = p.kind == "image_url" && r.Pos()-start >= maxImage
				return err
			}
		}
		return nil
	})
	switch {
	case err != nil:
		return "", false, err
	case !typed:
		return "", false, r.Lacks("type")
	case kind == "":
		return "", false, nil
	case brought != kind:
		return "", false, r.Lacks(kind)
	}
	return kind, large, nil
}

// partKind returns the type of a part if it is known, else "". It compares raw bytes, because a
// copy for every part of a long history would be most of the work of Check.
func partKind(r *fields.Reader) (string, error) {
	raw, err := r.Quoted()
	if err != nil {
		return "", err
	}
	for _, p := range payloads {
		if len(raw) == len(p.kind)+2 && string(raw[1:len(raw)-1]) == p.kind {
			return p.kind, nil
		}
	}
	return "", nil
}

// needs returns the rule of an object that must have all of these members, each a string.
func needs(members ...string) fields.Rule {
	return func(r *fields.Reader) error {
		found := 0
		err := r.Object(func(name []byte) error {
			for i, member := range members {
				if string(name) == member {
					found |= 1 << i
					return fields.Of(fields.String)(r)
				}
			}
			return nil
		})
		for i, member := range members {
			if err == nil && found&(1<<i) == 0 {
				return r.Lacks(member)
			}
		}
		return err
	}
}

// image checks an image, whose address some vendors of this shape take without the object around it.
func image(r *fields.Reader) error {
	if r.Peek() == fields.String {
		r.Skip()
		return nil
	}
	return needs("url")(r)
}

// file checks a file, which is given by value or by the id of an upload.
func file(r *fields.Reader) error {
	given := false
	err := r.Object(func(name []byte) error {
		switch string(name) {
		case "file_data", "file_id":
			given = given || r.Peek() == fields.String
			return fields.Nullable(fields.Of(fields.String))(r)
		case "filename":
			return fields.Nullable(fields.Of(fields.String))(r)
		}
		return nil
	})
	if err == nil && !given {
		return r.Broken("file_data or file_id is required")
	}
	return err
}

// toolCall checks a call in the history. It accepts calls without arguments and of types that the
// vendor does not document, because clients send back what other servers of this shape gave them.
func toolCall(r *fields.Reader) error {
	id, body := false, false
	err := r.Object(func(name []byte) error {
		switch string(name) {
		case "id":
			id = true
			return fields.Of(fields.String)(r)
		case "type":
			return fields.Of(fields.String)(r)
		case "function", "custom":
			body = true
			return calledFunction(r)
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case !id:
		return r.Lacks("id")
	case !body:
		return r.Lacks("function")
	}
	return nil
}

// calledFunction checks the name and the arguments of a call. The arguments are a string with JSON,
// whose syntax is not checked here: a reply that was cut off leaves broken ones in the history.
func calledFunction(r *fields.Reader) error {
	named := false
	err := r.Object(func(name []byte) error {
		switch string(name) {
		case "name":
			named = true
			return fields.Of(fields.String)(r)
		case "arguments", "input":
			return fields.Nullable(fields.Of(fields.String))(r)
		}
		return nil
	})
	if err == nil && !named {
		return r.Lacks("name")
	}
	return err
}
