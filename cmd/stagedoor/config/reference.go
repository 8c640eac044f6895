package config

import (
	_ "embed"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"stagedoor/providers/upstream"
)

//go:embed reference.md
var preface string

// standIns are the defaults that Default does not show, because those who take the
// settings fill them in.
var standIns = map[string]string{
	"listen":                                  "127.0.0.1:8080",
	"data":                                    "./data; without a file $XDG_DATA_HOME/stagedoor",
	"keys[].scopes":                           "everything",
	"keys[].models":                           "all",
	"keys[].allow_ips":                        "any",
	"providers.NAME.limits.queue":             "64",
	"providers.NAME.limits.queue_timeout":     "as long as the client waits",
	"providers.NAME.timeouts.connect":         duration(upstream.DefaultTimeouts.Connect),
	"providers.NAME.timeouts.first_byte":      duration(upstream.DefaultTimeouts.FirstByte),
	"providers.NAME.timeouts.idle":            duration(upstream.DefaultTimeouts.Idle),
	"providers.NAME.timeouts.total":           duration(upstream.DefaultTimeouts.Total),
	"providers.NAME.retries":                  strconv.Itoa(defaultRetries),
	"models.NAME.targets[].weight":            "1",
	"models.NAME.targets[].max_output_tokens": "the model's",
	"models.NAME.targets[].on":                "every failure but those of the request itself",
	"models.NAME.max_output_tokens":           "8192",
	"webhooks[].events":                       "all",
	"alerts.events":                           "all",
}

// Reference writes a page about every setting, as Markdown: the source is the types
// of this package and their tags.
func Reference(w io.Writer) error {
	r := reference{sections: map[reflect.Type]string{}}
	r.queue = []section{{"", reflect.ValueOf(*Default())}}
	for len(r.queue) > 0 {
		next := r.queue[0]
		r.queue = r.queue[1:]
		r.describe(next)
	}
	_, err := io.WriteString(w, preface+r.text.String())
	return err
}

// reference is the page while it is written.
type reference struct {
	text     strings.Builder
	queue    []section
	sections map[reflect.Type]string // the first path of each struct
}

// section is a struct with its defaults.
type section struct {
	path  string
	value reflect.Value
}

// describe writes the table of a section and puts the sections below it before those that wait.
func (r *reference) describe(s section) {
	if s.path == "" {
		r.text.WriteString("\n## The file\n")
	} else {
		fmt.Fprintf(&r.text, "\n## %s\n", s.path)
	}
	r.text.WriteString("\n| Setting | Value | Default | Meaning |\n|---|---|---|---|\n")
	var inner []section
	for i := range s.value.NumField() {
		f := s.value.Type().Field(i)
		name := f.Tag.Get("yaml")
		if name == "" {
			continue
		}
		below := unfolded(section{join(s.path, name), s.value.Field(i)})
		shown := "`" + name + "`"
		if isStruct(below.value) {
			// A type that occurs twice, such as the limits of a price, is described once, and the second place links
			// to it.
			first, known := r.sections[below.value.Type()]
			if !known {
				first = below.path
				r.sections[below.value.Type()] = first
				inner = append(inner, below)
			}
			shown = fmt.Sprintf("[`%s`](#%s)", name, anchor(first))
		}
		meaning, standard := described(f, join(s.path, name), s.value.Field(i))
		fmt.Fprintf(&r.text, "| %s | %s | %s | %s |\n", shown, form(f), escaped(standard), escaped(meaning))
	}
	// What is in a section comes right after it.
	r.queue = append(inner, r.queue...)
}

// unfolded returns the section inside lists, mappings and pointers. Settings there
// have no defaults but zero.
func unfolded(s section) section {
	for {
		t := s.value.Type()
		switch {
		case t.Kind() == reflect.Pointer:
			s.value = reflect.Zero(t.Elem())
		case isMapping(t):
			value, _ := t.Elem().FieldByName("Value")
			s = section{s.path + ".NAME", reflect.Zero(value.Type)}
		case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
			s = section{s.path + "[]", reflect.Zero(t.Elem())}
		default:
			return s
		}
	}
}

// isStruct reports whether a value is a section.
func isStruct(v reflect.Value) bool { return v.Kind() == reflect.Struct }

// described returns the meaning of a setting, and its default.
func described(f reflect.StructField, path string, v reflect.Value) (meaning, standard string) {
	meaning, standard, documented := strings.Cut(f.Tag.Get("doc"), "; default: ")
	if known, ok := standIns[path]; ok {
		return meaning, known
	}
	switch {
	case documented:
		return meaning, standard
	case strings.HasPrefix(path, "models.NAME.capabilities."):
		return meaning, "by the model's name"
	case f.Tag.Get("required") != "":
		return meaning, "required"
	case isStruct(unfolded(section{value: v}).value):
		return meaning, ""
	}
	return meaning, written(v)
}

// written returns a default as the file would have it, or "none".
func written(v reflect.Value) string {
	if d, ok := v.Interface().(Duration); ok {
		return duration(time.Duration(d))
	}
	if list, ok := v.Interface().(Strings); ok && len(list) > 0 {
		return strings.Join(list, ", ")
	}
	switch v.Kind() {
	case reflect.Bool:
		return strconv.FormatBool(v.Bool())
	case reflect.Int, reflect.Int64:
		return strconv.FormatInt(v.Int(), 10)
	case reflect.String:
		if v.String() != "" {
			return v.String()
		}
	}
	return "none"
}

// duration writes 15m and not 15m0s, and 30d and not 720h0m0s.
func duration(d time.Duration) string {
	const day = 24 * time.Hour
	if d >= day {
		rest := duration(d % day)
		if d%day == 0 {
			rest = ""
		}
		return fmt.Sprintf("%dd%s", d/day, rest)
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// form returns the notation of a setting, such as a duration or a list.
func form(f reflect.StructField) string {
	t := f.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if set := wordsOf(f); len(set) > 0 {
		words := "`" + strings.Join(set, "`, `") + "`"
		if t.Kind() == reflect.Slice {
			return "list of " + words
		}
		return words
	}
	return formOf(t)
}

var forms = map[reflect.Type]string{
	reflect.TypeFor[Duration]():   "duration",
	reflect.TypeFor[HedgeAfter](): "`p95` or a duration",
	reflect.TypeFor[Money]():      "dollars",
	reflect.TypeFor[Secret]():     "secret",
	reflect.TypeFor[Ratio]():      "share, 0 to 1",
}

// formOf returns the notation of a type, in words.
func formOf(t reflect.Type) string {
	if known, ok := forms[t]; ok {
		return known
	}
	switch {
	case t.Kind() == reflect.Struct:
		return "settings"
	case isMapping(t):
		value, _ := t.Elem().FieldByName("Value")
		return "names and " + plural(formOf(value.Type))
	case t.Kind() == reflect.Slice:
		return "list of " + plural(formOf(t.Elem()))
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t.Kind() == reflect.Int:
		return "whole number"
	}
	return "text"
}

// plural returns the plural of a notation. "settings" is one already.
func plural(form string) string {
	if form == "settings" {
		return form
	}
	return form + "s"
}

// isMapping reports whether a type is a Map. The generic type cannot be compared, so its shape is.
func isMapping(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct &&
		slices.Equal(fieldNames(t.Elem()), []string{"Name", "Value"})
}

// fieldNames returns the names of the fields of a struct, in their order.
func fieldNames(t reflect.Type) []string {
	var names []string
	for i := range t.NumField() {
		names = append(names, t.Field(i).Name)
	}
	return names
}

// anchor returns the fragment that GitHub and GitLab link to a heading.
func anchor(heading string) string {
	return strings.ToLower(strings.NewReplacer(".", "", "[", "", "]", "").Replace(heading))
}

// escaped returns a text as it is written in a cell of a Markdown table.
func escaped(s string) string {
	return strings.NewReplacer("|", `\|`, "*", `\*`, "<", "&lt;").Replace(s)
}
