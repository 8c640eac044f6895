package config

import (
	"bytes"
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// blockLines returns a new member as lines. depth is the number of levels above it. At most blockDepth levels
// become lines of their own. What is deeper is written in brackets on one line, as in the example of the
// documentation.
func blockLines(indent string, names []string, depth int, value jsontext.Value) ([]string, error) {
	head := indent + keyText(names[0]) + ":"
	switch rest := names[1:]; {
	case len(rest) > 0 && depth+1 < blockDepth:
		lines, err := blockLines(indent+"  ", rest, depth+1, value)
		return append([]string{head}, lines...), err
	case len(rest) == 0 && depth+1 <= blockDepth && value.Kind() == '{':
		lines := []string{head}
		err := eachMember(value, func(name string, v jsontext.Value) error {
			below, err := blockLines(indent+"  ", []string{name}, depth+1, v)
			lines = append(lines, below...)
			return err
		})
		if len(lines) > 1 || err != nil {
			return lines, err
		}
		fallthrough
	default:
		inner, err := nested(rest, value)
		return []string{head + " " + inner}, err
	}
}

// nested returns a value in brackets, one for each name. The names a and b around 1 give {a: {b: 1}}.
func nested(names []string, value jsontext.Value) (string, error) {
	written, err := flowText(value, 0)
	for _, name := range slices.Backward(names) {
		written = "{" + keyText(name) + ": " + written + "}"
	}
	return written, err
}

var (
	// plainWord is a text that needs no quotes in YAML and is a string for every reader of it.
	plainWord = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_./-]*\*?$`)
	// timeWord is a duration.
	timeWord  = regexp.MustCompile(`^([0-9]+(ms|s|m|h|d))+$`)
	otherWord = regexp.MustCompile(`(?i)^(true|false|null|yes|no|on|off|y|n)$`)
)

// keyText returns a text as YAML, in quotes where a reader could take it for something else than a string.
// The rules are stricter than YAML 1.2 requires, because older readers take yes, on and 12e3 for
// something else than a text.
func keyText(name string) string {
	if (plainWord.MatchString(name) || timeWord.MatchString(name)) && !otherWord.MatchString(name) {
		return name
	}
	quoted, _ := jsontext.AppendQuote(nil, name)
	return string(quoted)
}

// maxDepth bounds the values in values.
const maxDepth = 100

// flowText writes JSON as YAML on one line, without the quotes that are not needed. depth is 0 for the outermost value.
func flowText(value jsontext.Value, depth int) (string, error) {
	if depth > maxDepth {
		return "", errors.New("expected fewer values in values")
	}
	switch value.Kind() {
	case '"':
		text, err := jsontext.AppendUnquote(nil, value)
		return keyText(string(text)), err
	case '{':
		var all []string
		err := eachMember(value, func(name string, v jsontext.Value) error {
			written, err := flowText(v, depth+1)
			all = append(all, keyText(name)+": "+written)
			return err
		})
		return "{" + strings.Join(all, ", ") + "}", err
	case '[':
		var all []string
		d := jsontext.NewDecoder(bytes.NewReader(value))
		if _, err := d.ReadToken(); err != nil {
			return "", err
		}
		for d.PeekKind() != ']' {
			v, err := d.ReadValue()
			if err != nil {
				return "", err
			}
			written, err := flowText(v, depth+1)
			if err != nil {
				return "", err
			}
			all = append(all, written)
		}
		return "[" + strings.Join(all, ", ") + "]", nil
	}
	if !value.IsValid() {
		return "", errors.New("expected a JSON value")
	}
	return strings.TrimSpace(string(value)), nil
}

// eachMember calls do for each member of a JSON object, in its order. A map would lose the order, and with it the
// order in which an administrator entered the settings.
func eachMember(value jsontext.Value, do func(name string, v jsontext.Value) error) error {
	d := jsontext.NewDecoder(bytes.NewReader(value))
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return err
		}
		text := name.String()
		v, err := d.ReadValue()
		if err == nil {
			err = do(text, v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
