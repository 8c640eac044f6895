package docs

import (
	"fmt"
	"strings"
	"unicode"
)

// An example is a block of commands, and what it prints.
type example struct {
	line     int // of the page
	script   string
	expected string // "": nothing is promised
}

// A block is a fenced block of a page.
type block struct {
	line int
	info string
	text string
}

const fence = "```"

// blocksOf finds the fenced blocks of a page.
func blocksOf(text string) ([]block, error) {
	var blocks []block
	var open *block
	for i, line := range strings.Split(text, "\n") {
		info, fenced := strings.CutPrefix(line, fence)
		switch {
		case fenced && open == nil:
			open = &block{line: i + 1, info: strings.TrimSpace(info)}
		case fenced:
			blocks, open = append(blocks, *open), nil
		case open != nil:
			open.text += line + "\n"
		}
	}
	if open != nil {
		return nil, fmt.Errorf("line %d: the block does not end", open.line)
	}
	return blocks, nil
}

// examplesOf finds the examples of a page.
func examplesOf(text string) ([]example, error) {
	blocks, err := blocksOf(text)
	if err != nil {
		return nil, err
	}
	var examples []example
	for _, b := range blocks {
		switch {
		case b.info == "sh run":
			examples = append(examples, example{line: b.line, script: b.text})
		case strings.HasSuffix(b.info, " run"), b.info == "expect":
			return nil, fmt.Errorf("line %d: %q is neither sh run nor what a run prints", b.line, b.info)
		case strings.HasSuffix(b.info, " expect"):
			last := len(examples) - 1
			if last < 0 || examples[last].expected != "" {
				return nil, fmt.Errorf("line %d: an expectation without an example before it", b.line)
			}
			examples[last].expected = b.text
		}
	}
	return examples, nil
}

// printed reports whether output is what was expected: the pieces between ... in
// their order, the first at the beginning and the last at the end.
func printed(output, expected string) bool {
	output = unspaced(output)
	pieces := strings.Split(unspaced(expected), "...")
	rest, ok := strings.CutPrefix(output, pieces[0])
	if len(pieces) == 1 {
		return ok && rest == ""
	}
	for _, piece := range pieces[1 : len(pieces)-1] {
		_, after, found := strings.Cut(rest, piece)
		rest, ok = after, ok && found
	}
	return ok && strings.HasSuffix(rest, pieces[len(pieces)-1])
}

func unspaced(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, s)
}
