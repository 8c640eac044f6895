package docs

import "testing"

func TestPrintedNeedsEveryPieceInItsPlace(t *testing.T) {
	for _, c := range []struct {
		output, expected string
		want             bool
	}{
		{`{"a":1}`, `{"a": 1}`, true},
		{`{"a":1}`, `{"a": 2}`, false},
		{`{"a":1,"b":2}`, `{"a": 1, ...}`, true},
		{`{"a":1,"b":2}`, `{"b": 2, ...}`, false},
		{`{"a":1,"b":2}`, `... "b": 2}`, true},
		{`{"a":1,"b":2}`, `... "a": 1}`, false},
		{`{"a":1,"b":2,"c":3}`, `{... "a": 1 ... "c": 3}`, true},
		{`{"a":1,"b":2,"c":3}`, `{... "c": 3 ... "a": 1 ...}`, false},
		{"aba", "ab...ba", false},
		{"", "", true},
		{"more", "", false},
		{"more", "...", true},
	} {
		if got := printed(c.output, c.expected); got != c.want {
			t.Errorf("%q as %q: %v", c.output, c.expected, got)
		}
	}
}

func TestBlocksThatCannotBeRunAreRefused(t *testing.T) {
	for name, text := range map[string]string{
		"no end":             "```sh run\ntrue\n",
		"no example before":  "```json expect\n{}\n```\n",
		"two expectations":   "```sh run\ntrue\n```\n```json expect\n{}\n```\n```json expect\n{}\n```\n",
		"another language":   "```go run\n```\n",
		"no language at all": "```sh run\ntrue\n```\n```expect\n{}\n```\n",
	} {
		if examples, err := examplesOf(text); err == nil {
			t.Errorf("%s: accepted as %+v", name, examples)
		}
	}
	examples, err := examplesOf("a\n```sh\nnot run\n```\n```sh run\necho 1\n```\ntext\n```text expect\n1\n```\n")
	if err != nil || len(examples) != 1 || examples[0] != (example{line: 5, script: "echo 1\n", expected: "1\n"}) {
		t.Errorf("%+v, %v", examples, err)
	}
}
