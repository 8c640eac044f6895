package config_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"stagedoor/cmd/stagedoor/config"
	"stagedoor/http/settings"
)

// TestEditsOfPagesBringInNoReference to a variable or a file, however it is written, because such a reference would
// send a secret of the machine to an address of the administrator's choice.
func TestEditsOfPagesBringInNoReference(t *testing.T) {
	key := []string{"providers", "p", "api_keys"}
	for value, refused := range map[string]bool{
		`["sk-1"]`: false, `"a $ and { in it"`: false, `"profile: x"`: false, `{"a":{"b":[1,true,null,"c"]}}`: false,
		`["${KEY}"]`: true, `"file:/etc/shadow"`: true, `["\u0024{KEY}"]`: true, `"\u0066ile:/etc/shadow"`: true,
		`{"a":{"b":["x","before ${KEY} behind"]}}`: true, `{"header":"file:x"}`: true,
	} {
		err := config.CheckEdits([]config.Edit{{Path: key, Value: []byte(value)}})
		if (err != nil) != refused {
			t.Errorf("%s: %v", value, err)
		}
	}
	if err := config.CheckEdits([]config.Edit{{Path: key}}); err != nil {
		t.Errorf("a removal: %v", err)
	}
}

// TestEditsOfPagesReachProvidersAndModelsOnly, in names of text and in bounded numbers and sizes.
func TestEditsOfPagesReachProvidersAndModelsOnly(t *testing.T) {
	one := func(value string, path ...string) []config.Edit {
		return []config.Edit{{Path: path, Value: []byte(value)}}
	}
	many := func(n int) []config.Edit {
		edits := make([]config.Edit, n)
		for i := range edits {
			edits[i] = config.Edit{Path: []string{settings.Models, fmt.Sprint("m", i)}}
		}
		return edits
	}
	for name, c := range map[string]struct {
		edits []config.Edit
		want  string
	}{
		"none":             {nil, "edits: expected 1 to 200"},
		"the most":         {many(200), ""},
		"one more":         {many(201), "edits: expected 1 to 200"},
		"another setting":  {one(`"x"`, "admin", "token"), "path: expected providers or models"},
		"all providers":    {one(`{}`, "providers"), "path: expected providers or models"},
		"no path":          {one(`1`), "path: expected providers or models"},
		"a broken value":   {one(`{"a"`, "models", "m"), "models.m: expected a JSON value"},
		"a control in it":  {one(`1`, "models", "m\nadmin: x"), "path: expected names without control characters"},
		"a deletion in it": {one(`1`, "models", "m\x7f"), "path: expected names without control characters"},
		"a long value":     {one(`"`+strings.Repeat("x", 60<<10)+`"`, "models", "m"), ""},
		"a longer one": {one(`"`+strings.Repeat("x", 64<<10)+`"`, "models", "m"),
			"edits: expected at most 65536 bytes"},
		"a long path":       {one(`1`, "models", strings.Repeat("x", 64<<10)), "edits: expected at most 65536 bytes"},
		"a name with a dot": {one(`"b"`, "models", "gpt-4.1", "targets", "0"), ""},
	} {
		got := ""
		if err := config.CheckEdits(c.edits); err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestRulesOfSectionsNameTheSetting with its place in the file.
func TestRulesOfSectionsNameTheSetting(t *testing.T) {
	token := strings.Repeat("t", 24)
	for _, c := range [][2]string{
		{"admin: {token: " + token + "}", ""},
		{"admin: {token: short}", "f:1:16: admin.token: expected 24 to 512"},
		{"admin: {token: \"" + token + " \"}", "f:1:16: admin.token: expected 24 to 512"},
		{
			"keys: [{name: n, key: " + token + "}]\nadmin: {token: " + token + "}",
			"f:2:16: admin.token: is the same as keys[0].key",
		},
		{"admin: {user: root}", "f:1:8: admin.password: expected 8 to 512 bytes"},
		{"admin: {user: root, password: seven77}", "f:1:31: admin.password: expected 8 to 512 bytes"},
		{"admin: {password: eight888}", "f:1:19: admin.password: expected 8 to 512 bytes"},
		{"admin: {user: root, password: eight888}", ""},
		{"aliases: {/vendor: /imagegen, /a/b: /v1}", ""},
		{"aliases: {vendor: /imagegen}", "f:1:19: aliases.vendor: expected paths"},
		{"aliases: {/vendor/: /imagegen}", "f:1:21: aliases./vendor/: expected paths"},
		{"aliases: {/vendor: /}", "f:1:20: aliases./vendor: expected paths"},
		{"aliases: {/vendor: /a/../b}", "f:1:20: aliases./vendor: expected paths"},
		{"aliases: {/vendor: \"/a?b\"}", "f:1:20: aliases./vendor: expected paths"},
		{"videos: {deadline: 9s}", "f:1:20: videos.deadline: expected 10s to 24h"},
		{"videos: {deadline: 25h}", "f:1:20: videos.deadline: expected 10s to 24h"},
		{"videos: {keep: 0s}", "f:1:16: videos.keep: expected more than 0s"},
		{"videos: {wait: 61s}", "f:1:16: videos.wait: expected more than 0s and at most 1m"},
		{"videos: {most: 0}", "f:1:16: videos.most: expected 1 to 100000"},
		{"videos: {deadline: 10s, keep: 1s, wait: 1m, most: 100000}", ""},
	} {
		text, want := c[0], c[1]
		_, err := config.Parse("f", []byte(text), environment())
		got := ""
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%s\n got  %s\n want %s", text, got, want)
		}
	}
}

// TestTheDataDirectoryOfABrokenFileIsFound, since an operator needs the commands most when the file has mistakes.
func TestTheDataDirectoryOfABrokenFileIsFound(t *testing.T) {
	for text, want := range map[string]string{
		"":                                 "./data",
		"data: /a":                         "/a",
		"data: ${DIR}/x":                   "/env/x",
		"data: /a\nnonsense: 1\nlisten: 7": "/a",
		"data: [1]":                        "./data",
		"}{":                               "./data",
	} {
		if got := config.DataOf([]byte(text), environment("DIR", "/env")); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if _, err := config.Read(t.TempDir() + "/none"); !errors.As(err, new(config.Issues)) {
		t.Errorf("a file that is not there: %v", err)
	}
}
