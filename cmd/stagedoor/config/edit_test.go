package config_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"stagedoor/cmd/stagedoor/config"
)

// document is a generated file. Each comment has a number of its own; those inside of a setting go with it.
type document struct {
	t      *rapid.T
	text   strings.Builder
	eol    string
	number int
	paths  [][]string // of scalars
	maps   [][]string
	lists  map[string]int // lengths, by path
	inside map[int]string // the path of the setting whose lines have a comment
}

func (d *document) maybe(label string) bool { return rapid.Bool().Draw(d.t, label) }

func (d *document) comment(path ...string) string {
	d.number++
	d.inside[d.number] = strings.Join(path, "\x00")
	return fmt.Sprintf("# c%d é: {\"", d.number)
}

func (d *document) line(indent int, text string, path ...string) {
	if d.maybe("comment above") {
		d.text.WriteString(strings.Repeat(" ", indent) + d.comment(path[:max(len(path)-1, 0)]...) + d.eol)
	}
	d.text.WriteString(strings.Repeat(" ", indent) + text)
	if d.maybe("comment behind") {
		d.text.WriteString("   " + d.comment(path...))
	}
	d.text.WriteString(d.eol)
}

func (d *document) scalar(path ...string) string {
	d.paths = append(d.paths, path)
	return rapid.SampledFrom([]string{"5", "20s", `"a # b: \"c\", ]"`, "'it''s {'", "word", "a-b/c:d", "${NAME}"}).
		Draw(d.t, "scalar")
}

func path(parts ...any) (out []string) {
	for _, p := range parts {
		switch p := p.(type) {
		case []string:
			out = append(out, p...)
		default:
			out = append(out, fmt.Sprint(p))
		}
	}
	return out
}

// provider writes one provider in one of the forms of YAML.
func (d *document) provider(name string, indent int) {
	at := path("providers", name)
	d.maps = append(d.maps, at)
	key := name
	if strings.ContainsAny(name, " :") || d.maybe("quoted name") {
		key = `"` + name + `"`
	}
	if d.maybe("in brackets") {
		d.maps = append(d.maps, path(at, "limits"))
		d.lists[strings.Join(path(at, "api_keys"), "\x00")] = 2
		d.line(indent, fmt.Sprintf("%s: {shape: %s, api_keys: [%s,%s], limits: { rpm: %s}}", key,
			d.flowScalar(path(at, "shape")), d.flowScalar(path(at, "api_keys", 0)),
			d.flowScalar(path(at, "api_keys", 1)),
			d.flowScalar(path(at, "limits", "rpm"))), at...)
		return
	}
	d.line(indent, key+":", at...)
	d.line(indent+2, "shape: "+d.scalar(path(at, "shape")...), path(at, "shape")...)
	keys := path(at, "api_keys")
	switch rapid.IntRange(0, 3).Draw(d.t, "keys") {
	case 0:
		d.lists[strings.Join(keys, "\x00")] = 0
		d.line(indent+2, "api_keys: []", keys...)
	case 1:
		d.lists[strings.Join(keys, "\x00")] = 2
		d.line(indent+2, "api_keys:", keys...)
		deep := indent + 2*rapid.IntRange(1, 2).Draw(d.t, "indent of the list")
		d.line(deep, "- "+d.scalar(path(keys, 0)...), path(keys, 0)...)
		d.line(deep, "-   "+d.scalar(path(keys, 1)...), path(keys, 1)...)
	case 2:
		d.lists[strings.Join(keys, "\x00")] = 1
		d.text.WriteString(strings.Repeat(" ", indent+2) + "api_keys: [" + d.flowScalar(path(keys, 0)) + ",  " +
			d.comment(keys...) + d.eol + strings.Repeat(" ", indent+4) + "]" + d.eol)
	}
	limits := path(at, "limits")
	d.maps = append(d.maps, limits)
	switch rapid.IntRange(0, 3).Draw(d.t, "limits") {
	case 0:
		d.line(indent+2, "limits: {}", limits...)
	case 1:
		d.line(indent+2, "limits:", limits...)
	case 2:
		d.line(indent+2, "limits:", limits...)
		d.line(indent+6, "rpm: "+d.scalar(path(limits, "rpm")...), path(limits, "rpm")...)
		d.line(indent+6, "tpm: "+d.scalar(path(limits, "tpm")...), path(limits, "tpm")...)
	}
	if d.maybe("blank line") {
		d.text.WriteString(d.eol)
	}
}

func (d *document) flowScalar(path []string) string {
	d.paths = append(d.paths, path)
	return rapid.SampledFrom([]string{"5", "20s", `"a # b: \"c\", ]"`, "'it''s {'", "word"}).Draw(d.t, "scalar")
}

func generate(t *rapid.T) *document {
	d := &document{t: t, eol: rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "line end"), lists: map[string]int{},
		inside: map[int]string{}}
	d.line(0, "listen: x")
	d.line(0, "providers:", "providers")
	d.maps = append(d.maps, path("providers"))
	indent := rapid.IntRange(1, 4).Draw(t, "indent")
	for _, name := range []string{"one", "two é: x", "gpt-4.1"}[:rapid.IntRange(1, 3).Draw(t, "providers")] {
		d.provider(name, indent)
	}
	d.line(0, "heartbeat: 5s")
	return d
}

var commentNumber = regexp.MustCompile(`# c(\d+) é: \{"`)

// TestAnEditKeepsAllOtherBytes shows for generated files with comments, in all forms that settings are written in, that
// a change, an addition and a removal are one place of the text, with every comment kept that is not on the lines of a
// removed setting. That each has its effect and no other is verified by ApplyEdits itself.
func TestAnEditKeepsAllOtherBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := generate(t)
		before := d.text.String()
		if rapid.Bool().Draw(t, "no line end at the end") {
			before = strings.TrimRight(before, "\r\n")
		}
		values := rapid.SampledFrom([]string{"7", `"new"`, `"q\"#: ,]é"`, `["a","b: c"]`, "true"})
		edit := config.Edit{Value: jsontext.Value(values.Draw(t, "value"))}
		kind := rapid.SampledFrom([]string{"set", "add", "append", "remove"}).Draw(t, "kind")
		switch kind {
		case "set":
			edit.Path = rapid.SampledFrom(d.paths).Draw(t, "path")
		case "add":
			edit.Path = path(rapid.SampledFrom(d.maps).Draw(t, "path"), "added")
		case "append":
			all := []string{}
			for p := range d.lists {
				all = append(all, p)
			}
			if len(all) == 0 {
				return
			}
			at := rapid.SampledFrom(all).Draw(t, "list")
			edit.Path = path(strings.Split(at, "\x00"), d.lists[at])
		case "remove":
			edit = config.Edit{Path: rapid.SampledFrom(append(d.paths, d.maps[1:]...)).Draw(t, "path")}
			if strings.HasSuffix(strings.Join(edit.Path, "/"), "/limits") && !strings.Contains(before, "limits") {
				return
			}
		}
		out, err := config.ApplyEdits([]byte(before), []config.Edit{edit})
		if err != nil {
			if kind == "remove" && strings.Contains(err.Error(), "is not in the file") {
				return // this provider has no limits
			}
			t.Fatalf("%v: %v in\n%s", edit, err, before)
		}
		after := string(out)
		prefix, suffix := 0, 0
		for prefix < min(len(before), len(after)) && before[prefix] == after[prefix] {
			prefix++
		}
		for suffix < min(len(before), len(after))-prefix && before[len(before)-1-suffix] == after[len(after)-1-suffix] {
			suffix++
		}
		gone := before[prefix : len(before)-suffix]
		removed := kind == "remove"
		if !removed && strings.Contains(gone, "\n") && !strings.Contains(gone, "limits") {
			t.Errorf("%v removes %q from\n%s", edit, gone, before)
		}
		if removed && len(after)-prefix-suffix > 0 {
			t.Errorf("%v adds %q to\n%s", edit, after[prefix:len(after)-suffix], before)
		}
		for _, m := range commentNumber.FindAllStringSubmatch(before, -1) {
			var n int
			fmt.Sscan(m[1], &n)
			in := removed && strings.HasPrefix(d.inside[n]+"\x00", strings.Join(edit.Path, "\x00")+"\x00")
			if !in && !strings.Contains(after, m[0]) {
				t.Errorf("%v loses the comment %s of\n%s\nwhich is now\n%s", edit, m[0], before, after)
			}
		}
	})
}

func TestEditsOfTheExampleAreVerifiedOrRefused(t *testing.T) {
	text := []byte("# top\nproviders:\n  a: &shared {shape: chat, base_url: \"http://x/v1\"}  # keep\n  b: *shared\n" +
		"  c:\n    shape: chat\n    headers: {X: |\n      a\n      }\n")
	for _, bad := range [][]string{{"providers", "a", "shape"}, {"providers", "missing"},
		{"providers", "a", "shape", "x"}, nil} {
		e := config.Edit{Path: bad}
		if len(bad) == 3 {
			e.Value = jsontext.Value(`"gemini"`)
		}
		if out, err := config.ApplyEdits(text, []config.Edit{e}); err == nil {
			t.Errorf("%v gives\n%s", bad, out)
		}
	}
}

// TestNewSettingsAreWrittenAsPeopleDo compares whole texts: a new provider is a block, its settings are lines, and
// deeper ones stand in brackets.
func TestNewSettingsAreWrittenAsPeopleDo(t *testing.T) {
	set := func(value string, names ...string) config.Edit {
		return config.Edit{Path: names, Value: jsontext.Value(value)}
	}
	for _, c := range []struct {
		before, after string
		edits         []config.Edit
	}{
		{"", "providers:\n  local:\n    shape: chat\n    base_url: \"http://127.0.0.1/v1\"\n    limits: {rpm: 5}\n",
			[]config.Edit{set(`{"shape":"chat","base_url":"http://127.0.0.1/v1","limits":{"rpm":5}}`,
				"providers", "local")}},
		{"providers: {a: {shape: chat}} # x\n",
			"providers: {a: {shape: chat, limits: {rpm: 5}}, b: {shape: chat}} # x\n",
			[]config.Edit{set("5", "providers", "a", "limits", "rpm"), set(`{"shape":"chat"}`, "providers", "b")}},
		{"models:\n  m: # why\n    targets:\n    - {provider: a, model: b}\n\n# end\n",
			"models:\n  m: # why\n    targets:\n    - {provider: a, model: b, weight: 3}\n" +
				"    - {provider: c, model: \"*\"}\n    price: {input: 0.25}\n\n# end\n",
			[]config.Edit{set("3", "models", "m", "targets", "0", "weight"),
				set(`{"provider":"c","model":"*"}`, "models", "m", "targets", "1"),
				set("0.25", "models", "m", "price", "input")}},
		{"models:\n  m:\n    targets:\n      - provider: a\n        model: b\n  n: {}\n",
			"models:\n  m:\n    targets:\n      - provider: a\n        model: c\n",
			[]config.Edit{set(`"c"`, "models", "m", "targets", "0", "model"), {Path: []string{"models", "n"}}}},
		{"providers:\n  a:\n    api_keys:\n      # old\n      - x\n    shape: chat\n",
			"providers:\n  a:\n    api_keys: [yy, \"0123\"]\n    shape: chat\n",
			[]config.Edit{set(`["yy","0123"]`, "providers", "a", "api_keys")}},
	} {
		out, err := config.ApplyEdits([]byte(c.before), c.edits)
		if err != nil || string(out) != c.after {
			t.Errorf("%v\n%s\nwant\n%s", err, out, c.after)
		}
	}
}

// TestSecretsAreMaskedInEveryForm that a file can have them in, and references stay.
func TestSecretsAreMaskedInEveryForm(t *testing.T) {
	text := `keys: [{key: "first-secret-with-the-end-abcd", name: "a"}]
admin: {token: 'second-secret-with-the-end-efgh'}
providers:
  a:
    shape: chat
    api_keys:
      - third-secret-with-the-end-ijkl # comment
      - "${VARIABLE}"
      - file:/run/secret
      - &shared fourth-secret-with-the-end-mnop
      - short
    headers:
      X-Key: |
        fifth-secret-with-the-end-qrst
      Y: *shared
  b: {shape: chat, api_keys: "sixth\u002dsecret-with-the-end-uvwx"}
`
	out, err := config.Masked([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	got := string(out)
	if strings.Contains(got, "secret-with") || strings.Contains(got, "short") || strings.Contains(got, "sixth") {
		t.Errorf("a secret is left in\n%s", got)
	}
	for _, want := range []string{"…abcd", "…efgh", "…ijkl\" # comment", "${VARIABLE}", "file:/run/secret",
		"…mnop", "…uvwx", "name: \"a\""} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is missing in\n%s", want, got)
		}
	}
}

func TestSuggestedAddressesHaveTheVersionThatTheShapeExpects(t *testing.T) {
	for _, c := range []struct{ shape, address, want string }{
		{"chat", "http://127.0.0.1:11434", "http://127.0.0.1:11434/v1"},
		{"chat", "https://host/v1/chat/completions", "https://host/v1"}, {"chat", "https://host/v1", ""},
		{"messages", "https://host/v1", "https://host"}, {"messages", "https://host", ""}, {"sandbox", "", ""},
	} {
		if got := config.SuggestAddress(c.shape, c.address); got != c.want {
			t.Errorf("%s at %s: %q, want %q", c.shape, c.address, got, c.want)
		}
	}
}

// TestARootWithAnAnchorOrATagIsEditedAndMasked as one without, and a place that only an alias has is refused.
func TestARootWithAnAnchorOrATagIsEditedAndMasked(t *testing.T) {
	for _, head := range []string{"", "--- &root\n", "--- !!map\n"} {
		text := head + "providers:\n  p: {shape: chat, api_keys: [a-secret-with-the-end-abcd]}\n  q: {shape: sandbox}\n"
		out, err := config.ApplyEdits([]byte(text), []config.Edit{{Path: []string{"providers", "q"}}})
		if err != nil || string(out) != strings.Replace(text, "  q: {shape: sandbox}\n", "", 1) {
			t.Errorf("after %q: %v\n%s", head, err, out)
		}
		if out, err = config.Masked([]byte(text)); err != nil || strings.Contains(string(out), "a-secret") {
			t.Errorf("after %q: %v, masked\n%s", head, err, out)
		}
	}
	text := []byte("providers:\n  a: &x {shape: chat}\n  b: *x\n")
	if out, err := config.ApplyEdits(text, []config.Edit{{Path: []string{"providers", "b", "shape"}}}); err == nil {
		t.Errorf("a part of an alias is removed:\n%s", out)
	}
}

// TestASecretThatCannotBeHiddenIsAnError so that the text is not shown.
func TestASecretThatCannotBeHiddenIsAnError(t *testing.T) {
	for _, text := range []string{
		"providers:\n  p:\n    api_keys:\n      - first-line-of-the-secret\n        second-line\n",
		"providers:\n  p:\n    vendor: &v a-secret-that-an-alias-names\n    api_keys: [*v]\n",
		"providers: a-secret-in-place-of-providers\n",
	} {
		if out, err := config.Masked([]byte(text)); err == nil {
			t.Errorf("shown:\n%s", out)
		}
	}
}

// TestADifferenceHasNoWordsOfComments because an old key may stand in one.
func TestADifferenceHasNoWordsOfComments(t *testing.T) {
	before := "#old-secret\nproviders: # old-secret\n  p: {shape: chat} # old-secret\n"
	after := before + "  q: {base_url: \"http://h/a#b\"}\t# old-secret\n"
	var got []string
	for _, l := range config.Diff([]byte(before), []byte(after)) {
		got = append(got, l.Sign+l.Text)
	}
	want := " providers: # …|   p: {shape: chat} # …|+  q: {base_url: \"http://h/a#b\"}\t# …"
	if strings.Join(got, "|") != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestAnAddressWithAPasswordIsRefusedAndNotShown because addresses are no secrets for pages and logs.
func TestAnAddressWithAPasswordIsRefusedAndNotShown(t *testing.T) {
	text := []byte("providers: {p: {shape: chat, base_url: \"http://user:hidden@host/v1\"}}\n")
	if _, err := config.Parse("f", text, environment()); err == nil || strings.Contains(err.Error(), "hidden") ||
		!strings.Contains(err.Error(), "without user and password") {
		t.Errorf("got %v", err)
	}
	all, _, err := config.EntrySettings(text, "providers", "p")
	if err != nil || strings.Contains(fmt.Sprint(all), "hidden") {
		t.Errorf("%v, the form shows %v", err, all)
	}
}

// TestKeysStayWithTheAddressThatTheyWereEnteredFor also where another path is another account of the same host.
func TestKeysStayWithTheAddressThatTheyWereEnteredFor(t *testing.T) {
	with := func(address string) *config.Config {
		return parse(t, "providers: {p: {shape: chat, base_url: \""+address+"\", api_keys: [k]}}\n")
	}
	for address, refused := range map[string]bool{"https://Host:443/v1/mine/": false, "https://host/v1/other": true,
		"https://host/v1": true, "http://host/v1/mine": true, "https://host:8443/v1/mine": true,
		"https://host/v1%2Fmine": true} {
		got := config.CheckAddresses(with("https://host/v1/mine"), with(address))
		if (len(got) > 0) != refused {
			t.Errorf("%s: %v", address, got)
		}
	}
}
