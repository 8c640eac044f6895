package openapi

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// types returns the JSON Schemas of the types in a text such as bodies.txt, by name.
//
// A line that is not indented begins a type, and indented ones are its members:
//
//	Name                 an object
//	Name + Base          an object with the members of another one, too
//	Name = type          another name of a type
//	  id!, object! string  # members of one type; ! says that they are required
//	  ...                  further members, which are not described
func types(text string) object {
	all := object{}
	var last object // the type whose members follow
	for line := range strings.Lines(text) {
		code, doc, _ := strings.Cut(strings.TrimRight(line, "\n"), "#")
		member := strings.HasPrefix(code, " ")
		code, doc = strings.TrimSpace(code), strings.TrimSpace(doc)
		switch {
		case code == "":
		case member:
			addMembers(last, code, doc)
		default:
			name, alias, ok := strings.Cut(code, " = ")
			if last = typeOf(alias); !ok {
				var base string
				name, base, _ = strings.Cut(code, " + ")
				last = derived(all[base])
			}
			describe(last, doc)
			all[name] = last
		}
	}
	return all
}

// derived returns a type of objects that has the members of base, if there is one.
func derived(base any) object {
	properties, required := object{}, []string{}
	if from, ok := base.(object); ok {
		for name, schema := range from["properties"].(object) {
			properties[name] = schema
		}
		required = slices.Clone(from["required"].([]string))
	}
	return object{"type": "object", "properties": properties, "required": required}
}

// describe sets the description of a schema, if there is one.
func describe(schema object, doc string) {
	if doc != "" {
		schema["description"] = doc
	}
}

// addMembers adds the members of a line such as "id!, object! string" to a type. The line "..." says that there are
// others, which are not described.
func addMembers(to object, code, doc string) {
	if code == "..." {
		to["additionalProperties"] = true
		return
	}
	var names []string
	for more := true; more; {
		var name string
		name, code, _ = strings.Cut(code, " ")
		name, more = strings.CutSuffix(name, ",")
		names = append(names, name)
	}
	for _, name := range names {
		short, required := strings.CutSuffix(name, "!")
		if required {
			to["required"] = append(to["required"].([]string), short)
		}
		schema := typeOf(code)
		describe(schema, doc)
		to["properties"].(object)[short] = schema
	}
}

// words are the parts of a type: words in quotes, ranges, names and signs.
var words = regexp.MustCompile(`"[^"]*"|-?\d*\.\.-?\d*|\w+|[][{}|?]`)

// typeOf returns the JSON Schema of a type as bodies.txt writes it. The notation has string, integer, number,
// boolean, object, file and any, names of types, [x] for lists, {x} for objects with any names, "a" | "b" for
// closed lists of words, ? behind what may be null, and a range such as 1..100 behind what it bounds.
func typeOf(text string) object {
	p := parser{words.FindAllString(text, -1)}
	return p.alternatives()
}

// parser reads the short notation of types that the table of operations is written in.
type parser struct{ rest []string }

// next removes the next word if it is want, and reports whether it was.
func (p *parser) next(want string) bool {
	ok := len(p.rest) > 0 && p.rest[0] == want
	if ok {
		p.rest = p.rest[1:]
	}
	return ok
}

// alternatives reads types separated by bars. Words in quotes are joined into one enum.
func (p *parser) alternatives() object {
	var all, enum []any
	for more := true; more; more = p.next("|") {
		if len(p.rest) > 0 && p.rest[0][0] == '"' {
			enum = append(enum, strings.Trim(p.rest[0], `"`))
			p.rest = p.rest[1:]
			continue
		}
		all = append(all, p.one())
	}
	if enum != nil {
		all = append(all, object{"type": "string", "enum": enum})
	}
	if p.next("?") {
		all = append(all, object{"type": "null"})
	}
	if len(all) == 1 {
		return all[0].(object)
	}
	return object{"anyOf": all}
}

// one reads a type that is no alternative, and the range after it.
func (p *parser) one() object {
	if len(p.rest) == 0 {
		return object{}
	}
	word := p.rest[0]
	p.rest = p.rest[1:]
	switch word {
	case "[":
		items := p.alternatives()
		p.next("]")
		return p.bounded(object{"type": "array", "items": items}, "minItems", "maxItems")
	case "{":
		values := p.alternatives()
		p.next("}")
		return p.bounded(object{"type": "object", "additionalProperties": values}, "minProperties", "maxProperties")
	case "string":
		return p.bounded(object{"type": "string"}, "minLength", "maxLength")
	case "integer", "number":
		return p.bounded(object{"type": word}, "minimum", "maximum")
	case "boolean", "object":
		return object{"type": word}
	case "file":
		return object{"type": "string", "contentMediaType": "application/octet-stream"}
	case "any":
		return object{}
	}
	return reference("schemas", word)
}

// bounded adds the range that follows a type to its schema.
func (p *parser) bounded(schema object, least, most string) object {
	if len(p.rest) == 0 || !strings.Contains(p.rest[0], "..") {
		return schema
	}
	low, high, _ := strings.Cut(p.rest[0], "..")
	p.rest = p.rest[1:]
	for keyword, text := range map[string]string{least: low, most: high} {
		if n, err := strconv.Atoi(text); err == nil {
			schema[keyword] = n
		}
	}
	return schema
}
