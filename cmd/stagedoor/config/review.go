package config

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"stagedoor/http/settings"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/shapes"
	"stagedoor/providers/shapes/registry"
)

// DefaultText says in YAML what Default serves: the file that changes are made to where there is none.
const DefaultText = `providers:
  sandbox: {shape: sandbox}
models:
  sandbox: {targets: [{provider: sandbox, model: sandbox}]}
  "*": {targets: [{provider: sandbox, model: "*"}]}
`

// Bounds of one change.
const (
	maxEdits    = 200
	maxEditText = 64 << 10
)

var wholeVariable = regexp.MustCompile(`^\$\{[A-Za-z_][A-Za-z0-9_]*\}$`)

// isReference reports whether a text in the file names a secret and is none itself.
func isReference(text string) bool {
	return wholeVariable.MatchString(text) || strings.HasPrefix(text, "file:")
}

// CheckEdits refuses edits that pages and the API may not make: those of other settings than providers and models, and
// those that bring a reference to a variable or a file. A new reference would send a secret of the machine to an
// address of the administrator's choice, so it is written by hand.
func CheckEdits(edits []Edit) error {
	if len(edits) == 0 || len(edits) > maxEdits {
		return fmt.Errorf("edits: expected 1 to %d", maxEdits)
	}
	size := 0
	for _, e := range edits {
		if len(e.Path) < 2 || e.Path[0] != settings.Providers && e.Path[0] != settings.Models {
			return errors.New("path: expected providers or models, a name, and the name of a setting")
		}
		for _, name := range e.Path {
			size += len(name)
			if strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
				return errors.New("path: expected names without control characters")
			}
		}
		if size += len(e.Value); size > maxEditText {
			return fmt.Errorf("edits: expected at most %d bytes", maxEditText)
		}
		if e.Value == nil {
			continue
		}
		if !e.Value.IsValid() {
			return fmt.Errorf("%s: expected a JSON value", pathText(e.Path))
		}
		// The value is read back as the file will be read. A reference that hides behind an escape of JSON is then
		// found, too.
		written, err := flowText(e.Value, 0)
		if err != nil {
			return err
		}
		v, err := plainText(written)
		if err != nil || refers(v) {
			return fmt.Errorf("%s: expected a value without ${ and file: at its beginning; references to variables "+
				"and files are written in the file by hand", pathText(e.Path))
		}
	}
	return nil
}

// refers reports whether a value has a text that the configuration would take for a reference.
func refers(v any) bool {
	switch t := v.(type) {
	case mapping:
		return slices.ContainsFunc(t, func(m member) bool { return refers(m.value) })
	case list:
		return slices.ContainsFunc(t, refers)
	case string:
		text := strings.TrimPrefix(t, "string ")
		return strings.Contains(text, "${") || strings.HasPrefix(text, "file:")
	}
	return false
}

// CheckAddresses returns a mistake for each provider whose address changes while keys or headers stay. A secret is only
// sent to the address that it was entered for, so that no administrator reads a key by a detour.
func CheckAddresses(before, after *Config) (mistakes []string) {
	for _, p := range after.Providers {
		was, known := before.Providers.Get(p.Name)
		if !known || was.BaseURL == "" || canonicalAddress(was.BaseURL) == canonicalAddress(p.Value.BaseURL) {
			continue
		}
		stays := slices.ContainsFunc(p.Value.APIKeys, func(k Secret) bool { return slices.Contains(was.APIKeys, k) })
		for _, h := range p.Value.Headers {
			if value, ok := was.Headers.Get(h.Name); ok && value == h.Value {
				stays = true
			}
		}
		if stays {
			mistakes = append(mistakes, "providers."+p.Name+".base_url: the address changes, so enter or remove "+
				"each of its keys and headers, too: they were entered for the earlier address")
		}
	}
	return mistakes
}

// canonicalAddress returns an address in the form that all its spellings share. The path counts: on a host that many
// accounts share, it says whose account gets the key.
func canonicalAddress(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	return strings.ToLower(u.Scheme+"://"+u.Hostname()+":"+port) + strings.TrimRight(u.EscapedPath(), "/")
}

// errUnmasked keeps a text from being shown.
var errUnmasked = errors.New("the file has a secret in a form that cannot be hidden, so the difference is not shown")

// Masked returns a text of YAML with its secrets hidden: of each remain the last four characters if it is long.
// References to variables and files stay. It is an error if a secret would remain. Call it for a text without mistakes:
// in another one a secret may stand where no setting is known to have one. Comments stay; Diff hides them.
func Masked(text []byte) ([]byte, error) {
	e, err := newEditor(string(text))
	if err != nil {
		return nil, err
	}
	m := masker{editor: e, plainer: plainer{anchors: make(map[string]ast.Node)}}
	if e.body != nil {
		ast.Walk(collector{&decoder{anchors: m.plainer.anchors}}, e.body)
		m.walk(e.root(), reflect.TypeFor[Config]())
	}
	slices.SortFunc(m.found, func(a, b hiding) int { return cmp.Compare(b.from, a.from) })
	for _, h := range m.found {
		e.splice(h.from, h.to, h.text)
	}
	for _, h := range m.found {
		// A secret may also stand in a comment or in a setting of another type. The text is then not shown at all.
		if len(h.secret) >= leastKey && !isReference(h.secret) && strings.Contains(e.text, h.secret) {
			m.failed = true
		}
	}
	if m.failed {
		return nil, errUnmasked
	}
	return []byte(e.text), nil
}

// masker finds the secrets of a text by the types of the settings, so a new secret setting is hidden without further
// work.
type masker struct {
	editor  *editor
	plainer plainer // follows aliases
	found   []hiding
	failed  bool
}

// hiding is a secret, where it stands and the text in its place.
type hiding struct {
	from, to     int
	text, secret string
}

// walk finds the secrets in a value of a type.
func (m *masker) walk(s spot, t reflect.Type) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == reflect.TypeFor[Secret]() {
		m.hide(s)
		return
	}
	_, isScalar := reflect.New(t).Interface().(scalar)
	if isScalar || t.Kind() != reflect.Struct && t.Kind() != reflect.Slice {
		return
	}
	switch s.node.(type) {
	case nil, *ast.NullNode, *ast.MappingNode, *ast.MappingValueNode, *ast.SequenceNode:
	case *ast.AliasNode:
		return // its anchor is elsewhere in the file
	default: // a single value is fine only where it stands for a list of one
		m.failed = m.failed || t.Kind() == reflect.Struct || isMapping(t)
	}
	names, spots, err := m.editor.children(s)
	if err != nil {
		m.failed = true
		return
	}
	fields := map[string]int{}
	if t.Kind() == reflect.Struct {
		fields, _ = fieldsOf(t)
	}
	for i, child := range spots {
		switch f, known := fields[names[i]]; {
		case t.Kind() == reflect.Struct && known:
			m.walk(child, t.Field(f).Type)
		case t.Kind() == reflect.Struct:
		case isMapping(t):
			m.walk(child, t.Elem().Field(1).Type)
		default:
			m.walk(child, t.Elem())
		}
	}
	if t.Kind() == reflect.Slice && !isMapping(t) && len(spots) == 0 {
		m.walk(s, t.Elem()) // one value stands for a list of one
	}
}

// hide records the secret at a spot. A reference such as ${NAME} or file:PATH is not hidden, because it names
// a secret and is none. What has a form that is not foreseen here is hidden whole.
func (m *masker) hide(s spot) {
	switch n := s.node.(type) {
	case *ast.StringNode:
		if !isReference(n.Value) {
			// The end of a plain text with several lines is not found.
			v, err := plainText(m.editor.text[s.from:s.to])
			m.failed = m.failed || err != nil || v != "string "+n.Value
			m.found = append(m.found, hiding{s.from, s.to, keyText(HideSecret(n.Value)), n.Value})
		}
	case *ast.LiteralNode:
		m.found = append(m.found, hiding{s.from, s.to, " \"…\"" + m.editor.eol, n.Value.Value})
	case *ast.AliasNode:
		// Its anchor may stand at a setting that is not hidden.
		if secret, ok := m.plainer.plain(n, 0).(string); ok {
			m.found = append(m.found, hiding{secret: strings.TrimPrefix(secret, "string ")})
		}
	case *ast.NullNode, *ast.SequenceNode:
	default:
		m.found = append(m.found, hiding{s.from, s.to, `"…"`, ""})
	}
}

// HideSecret returns what may be shown of a secret.
func HideSecret(secret string) string {
	const shown = 4
	if len(secret) < leastKey {
		return "…"
	}
	return "…" + strings.ToValidUTF8(secret[len(secret)-shown:], "")
}

// maxDiff bounds the lines that are compared one by one. around is the number of unchanged lines that are shown before
// and after a change.
const (
	maxDiff = 1500
	around  = 2
)

// Difference returns the lines that only one of two configurations has, with secrets hidden as by Masked. It returns
// nothing if a secret cannot be hidden.
func Difference(before, after *Config) (removed, added string) {
	old, err := Masked(before.Text)
	now, wrong := Masked(after.Text)
	if err != nil || wrong != nil {
		return "", ""
	}
	lines := map[string][]string{}
	for _, l := range Diff(old, now) {
		lines[l.Sign] = append(lines[l.Sign], l.Text)
	}
	return strings.Join(lines["-"], "\n"), strings.Join(lines["+"], "\n")
}

// Diff returns the lines that differ, with two around them. The texts are those of Masked. Of comments only
// the sign is left, because they may have secrets that are no settings any more. Lines that both texts begin
// and end with are taken off first. What is left is compared by the longest common sequence of lines, in time
// and memory that grow with the product of the two lengths. Above maxDiff lines all old ones are shown as
// removed and all new ones as added.
func Diff(before, after []byte) []settings.Line {
	a, b := strings.SplitAfter(string(before), "\n"), strings.SplitAfter(string(after), "\n")
	var all []settings.Line
	add := func(sign string, lines []string) {
		for _, l := range lines {
			if l != "" {
				all = append(all, settings.Line{Sign: sign, Text: withoutComment(strings.TrimRight(l, "\r\n"))})
			}
		}
	}
	start := 0
	for start < min(len(a), len(b)) && a[start] == b[start] {
		start++
	}
	end := 0
	for end < min(len(a), len(b))-start && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	add(" ", a[:start])
	x, y := a[start:len(a)-end], b[start:len(b)-end]
	if len(x) > maxDiff || len(y) > maxDiff {
		add("-", x)
		add("+", y)
	} else {
		// same[i][j] is the number of lines that x[i:] and y[j:] have in common, in their sequence.
		same := make([][]int, len(x)+1)
		for i := range same {
			same[i] = make([]int, len(y)+1)
		}
		for i := len(x) - 1; i >= 0; i-- {
			for j := len(y) - 1; j >= 0; j-- {
				if same[i][j] = max(same[i+1][j], same[i][j+1]); x[i] == y[j] {
					same[i][j] = same[i+1][j+1] + 1
				}
			}
		}
		for i, j := 0, 0; i < len(x) || j < len(y); {
			switch {
			case i < len(x) && j < len(y) && x[i] == y[j]:
				add(" ", x[i:i+1])
				i, j = i+1, j+1
			case j == len(y) || i < len(x) && same[i+1][j] >= same[i][j+1]:
				add("-", x[i:i+1])
				i++
			default:
				add("+", y[j:j+1])
				j++
			}
		}
	}
	add(" ", a[len(a)-end:])
	return shortened(all)
}

// withoutComment returns a line without the words of its comment. It also hides what only looks like a comment, in
// quotes, so that it need not know where quotes of earlier lines end.
func withoutComment(line string) string {
	for i := range line {
		if line[i] == '#' && len(line) > i+1 && (i == 0 || strings.IndexByte(" \t,[]{}\"'", line[i-1]) >= 0) {
			return line[:i] + "# …"
		}
	}
	return line
}

// shortened leaves out the unchanged lines that are not near a changed one. A line with the sign … stands for those
// between two changes.
func shortened(all []settings.Line) (out []settings.Line) {
	for i, l := range all {
		near := slices.ContainsFunc(all[max(i-around, 0):min(i+around+1, len(all))],
			func(l settings.Line) bool { return l.Sign != " " })
		switch {
		case near:
			out = append(out, l)
		case len(out) > 0 && out[len(out)-1].Sign != "…":
			out = append(out, settings.Line{Sign: "…"})
		}
	}
	if len(out) > 0 && out[len(out)-1].Sign == "…" {
		out = out[:len(out)-1]
	}
	return out
}

// EntrySettings returns the settings that a provider or a model has in a text and those that it may have. It returns
// false if there is none of that name; the name "" stands for a new one. The text is read before defaults and
// environment variables are applied, because a form must show what was written. The error is that of a text that is not
// YAML.
func EntrySettings(text []byte, kind, name string) ([]settings.Setting, bool, error) {
	root, err := plainText(string(text))
	if err != nil {
		return nil, false, err
	}
	entry := memberOf(memberOf(root, kind), name)
	if name != "" && entry == nil {
		return nil, false, nil
	}
	t := reflect.TypeFor[Provider]()
	if kind == settings.Models {
		t = reflect.TypeFor[Model]()
	}
	var all []settings.Setting
	flatten(&all, nil, t, "", nil, entry)
	return all, true, nil
}

// memberOf returns the member of a mapping with this name, or nil.
func memberOf(v any, name string) any {
	m, _ := v.(mapping)
	for _, x := range m {
		if x.name == name {
			return x.value
		}
	}
	return nil
}

// shown returns a value as it is typed. A scalar of plainText is its kind, a space and its text, so the text
// begins behind the first space.
func shown(v any) string {
	switch t := v.(type) {
	case string:
		_, text, _ := strings.Cut(t, " ")
		return text
	case list:
		var all []string
		for _, item := range t {
			all = append(all, shown(item))
		}
		return strings.Join(all, ", ")
	}
	return ""
}

// flatten appends the settings of a type with their values. A struct or a mapping gives one Setting for each
// of its members, and a list of structs or of secrets one for each element. A list of texts is a single
// Setting. Settings that are not in the file are included with the value "", so that a form can offer them.
func flatten(all *[]settings.Setting, path []string, t reflect.Type, doc string, words []string, v any) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	s := settings.Setting{Path: path, Doc: doc, Words: words, Kind: settings.Text, Value: shown(v)}
	_, isScalar := reflect.New(t).Interface().(scalar)
	switch {
	case t == reflect.TypeFor[Secret]():
		s.Kind = settings.Secret
		if !isReference(s.Value) && s.Value != "" {
			s.Value = HideSecret(s.Value)
		}
	case isScalar:
	case len(path) > 0 && path[len(path)-1] == "base_url":
		if u, err := url.Parse(s.Value); err != nil || u.User != nil {
			s.Value = "" // a mistake of the file, which may be a password
		}
	case t.Kind() == reflect.Struct:
		fields, names := fieldsOf(t)
		for _, name := range names {
			f := t.Field(fields[name])
			flatten(all, append(slices.Clone(path), name), f.Type, f.Tag.Get("doc"), wordsOf(f), memberOf(v, name))
		}
		return
	case isMapping(t):
		m, _ := v.(mapping)
		for _, x := range m {
			flatten(all, append(slices.Clone(path), x.name), t.Elem().Field(1).Type, doc, nil, x.value)
		}
		return
	case t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.String, t == reflect.TypeFor[[]Secret]():
		items, isList := v.(list)
		if !isList && v != nil {
			items = list{v}
		}
		for i, item := range items {
			flatten(all, append(slices.Clone(path), strconv.Itoa(i)), t.Elem(), doc, nil, item)
		}
		return
	case t.Kind() == reflect.Slice:
		s.Kind = settings.List
	case t.Kind() == reflect.Int:
		s.Kind = settings.Number
	case t.Kind() == reflect.Bool:
		s.Kind = settings.Flag
	}
	*all = append(*all, s)
}

// SuggestAddress returns a better base URL for a shape, or "" if the address looks right.
func SuggestAddress(shape, address string) string {
	_, better := judgeAddress(registry.Describe(dialogue.Shape(shape)), shape, address)
	return better
}

// judgeAddress returns what is probably wrong with a base URL, or "", and a better one. A shape's list of
// models shows whether its paths have a version of their own. The two usual mistakes are that the address has
// the whole path of a route and that it lacks, or repeats, the version that the shape's own paths have.
func judgeAddress(shape *shapes.Descriptor, name, address string) (problem, better string) {
	u, err := url.Parse(address)
	if err != nil || shape == nil || address == "" {
		return "", ""
	}
	path := strings.TrimRight(u.Path, "/")
	with := func(path string) string {
		changed := *u
		changed.Path, changed.RawPath = path, ""
		return changed.String()
	}
	if found := endpoints.FindString(path); found != "" {
		return fmt.Sprintf("ends with %s, which the gateway adds itself; leave it out", found),
			with(strings.TrimSuffix(path, found))
	}
	versioned := slices.ContainsFunc(strings.Split(path, "/"), versionSegment.MatchString)
	own := versionedPath.FindStringSubmatch(shape.Probe.Path)
	switch {
	case own != nil && strings.HasSuffix(path, "/"+own[1]):
		return fmt.Sprintf("ends with /%s, which the gateway adds itself for shape %s; leave it out", own[1], name),
			with(strings.TrimSuffix(path, "/"+own[1]))
	case own == nil && shape.Probe.Path != "" && !versioned:
		return fmt.Sprintf("has no version; most servers of shape %s have their paths below one, such as /v1", name),
			with(path + "/v1")
	}
	return "", ""
}
