package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Issue is one mistake in a file. Line 0 is the file as a whole.
type Issue struct {
	File         string
	Line, Column int
	Path         string // of the setting, keys[0].name for example
	Message      string // what is wrong and what was expected
}

// String returns the mistake after its file, line and column, in the form that editors can jump to.
func (i Issue) String() string {
	where := i.File + ": "
	if i.Line > 0 {
		where = fmt.Sprintf("%s:%d:%d: ", i.File, i.Line, i.Column)
	}
	if i.Path != "" {
		where += i.Path + ": "
	}
	return where + i.Message
}

// Issues are all mistakes of a file, in its order.
type Issues []Issue

// Error returns one line for each mistake.
func (is Issues) Error() string {
	lines := make([]string, len(is))
	for i, issue := range is {
		lines[i] = issue.String()
	}
	return strings.Join(lines, "\n")
}

// sort sorts the issues by their place in the file, so that an operator can work through them from the top.
func (is Issues) sort() {
	slices.SortStableFunc(is, func(a, b Issue) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}
