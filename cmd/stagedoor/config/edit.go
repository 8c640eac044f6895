package config

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/goccy/go-yaml/ast"

	"stagedoor/http/settings"
)

// Edit is one change of a file.
type Edit = settings.Edit

// maxNodes bounds the values that the aliases of a file unfold to.
const maxNodes = 200_000

// errShared refuses an edit whose place cannot be changed alone.
var errShared = errors.New("is written in a form that is changed by hand only, such as an anchor or several lines")

// ApplyEdits returns the text of a file with all edits made one after the other. All bytes outside of the edited values
// stay as they are: comments, blank lines, quotes and line ends. A removed setting takes its own lines with it. Each
// edit is verified by reading the result: an edit that would change another setting, too, is an error that names its
// path, and so is a path through a value that has no members.
// A library that writes YAML anew was not used, because all of them lose comments or change quotes
// and indentation, and the file belongs to an operator who keeps it under version control.
func ApplyEdits(text []byte, edits []Edit) ([]byte, error) {
	for _, edit := range edits {
		next, err := apply(string(text), edit)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", pathText(edit.Path), err)
		}
		text = []byte(next)
	}
	return text, nil
}

// pathText returns a path as messages name it: models.m.targets[0].weight.
func pathText(path []string) (text string) {
	for _, name := range path {
		if _, err := strconv.Atoi(name); err == nil && text != "" {
			text += "[" + name + "]"
		} else {
			text = join(text, name)
		}
	}
	return text
}

// apply makes one edit. It computes the values that the edited file must have (want) and compares them with those of
// the edited text, because positions in YAML are too subtle to be trusted: a wrong edit is refused instead of
// written.
// The cost is that the text is parsed twice for each edit. Edits are made by people, one at a time.
func apply(text string, edit Edit) (string, error) {
	if len(edit.Path) == 0 {
		return "", errors.New("expected the path of a setting")
	}
	var value any
	if edit.Value != nil {
		written, err := flowText(edit.Value, 0)
		if err != nil {
			return "", err
		}
		if value, err = plainText(written); err != nil {
			return "", err
		}
	}
	before, err := plainText(text)
	if err != nil {
		return "", err
	}
	want, err := edited(before, edit.Path, value, edit.Value == nil)
	if err != nil {
		return "", err
	}
	e, err := newEditor(text)
	if err != nil {
		return "", err
	}
	if edit.Value == nil {
		err = e.remove(edit.Path)
	} else {
		err = e.set(edit.Path, edit.Value)
	}
	if err != nil {
		return "", err
	}
	after, err := plainText(e.text)
	if err != nil || !reflect.DeepEqual(tidied(after), tidied(want)) {
		return "", errShared
	}
	return e.text, nil
}

// set writes a value at path, and adds the member or element if it does not exist.
// A block is replaced by a value on one line. The last line end stays, so that the next key keeps
// its line.
func (e *editor) set(path []string, value jsontext.Value) error {
	found, err := e.find(path)
	if err != nil {
		return err
	}
	s := found[len(found)-1]
	if missing := path[len(found)-1:]; len(missing) > 0 {
		return e.insert(s, missing, len(path)-len(missing), value)
	}
	written, err := flowText(value, 0)
	switch {
	case err != nil:
		return err
	case s.below:
		end := s.to - len(e.text[:s.to]) + len(strings.TrimRight(e.text[:s.to], "\r\n"))
		e.splice(s.from, end, " "+written)
	case s.from == s.to:
		e.splice(s.from, s.to, " "+written)
	default:
		e.splice(s.from, s.to, written)
	}
	return nil
}

// blockDepth is the number of levels that are written as lines of their own: providers, and the settings of one.
const blockDepth = 2

// insert adds a member or an element that does not exist. depth is the number of names that do.
// The new member takes the form of its neighbours: inside brackets it is added to the brackets, in
// a block it gets lines of its own with the indentation of the first member.
func (e *editor) insert(s spot, missing []string, depth int, value jsontext.Value) error {
	_, spots, err := e.children(s)
	if err != nil {
		return err
	}
	inner, err := nested(missing[1:], value)
	if err != nil {
		return err
	}
	item := keyText(missing[0]) + ": " + inner
	sequence, isSequence := s.node.(*ast.SequenceNode)
	m, isMapping := s.node.(*ast.MappingNode)
	_, isPair := s.node.(*ast.MappingValueNode)
	if isSequence {
		item = inner
	}
	switch {
	case isSequence && sequence.IsFlowStyle, isMapping && m.IsFlowStyle, isPair && s.flow:
		if len(spots) == 0 {
			e.splice(s.from+1, s.from+1, item)
		} else {
			last := spots[len(spots)-1].to
			e.splice(last, last, ", "+item)
		}
	case isSequence:
		last := spots[len(spots)-1]
		e.addLines(e.entryEnd(last), e.text[e.lineStart(last.key):last.key]+"- "+item)
	case isMapping, isPair:
		first, last := spots[0].key, spots[len(spots)-1]
		lines, err := blockLines(strings.Repeat(" ", first-e.lineStart(first)), missing, depth, value)
		if err != nil {
			return err
		}
		e.addLines(e.entryEnd(last), lines...)
	case s.key < 0 && s.node == nil: // an empty file
		lines, err := blockLines("", missing, depth, value)
		if err != nil {
			return err
		}
		e.addLines(len(e.text), lines...)
	case s.from < s.to: // the word null
		e.splice(s.from, s.to, "{"+item+"}")
	case s.flow || e.text[s.key] == '-':
		e.splice(s.from, s.from, " {"+item+"}")
	default:
		lines, err := blockLines(strings.Repeat(" ", s.key-e.lineStart(s.key)+2), missing, depth, value)
		if err != nil {
			return err
		}
		e.addLines(e.lineEnd(s.key), lines...)
	}
	return nil
}

// addLines adds lines at the beginning of a line, or at the end of the text.
func (e *editor) addLines(at int, lines ...string) {
	text := strings.Join(lines, e.eol) + e.eol
	if at > 0 && e.text[at-1] != '\n' {
		text = e.eol + text
	}
	e.splice(at, at, text)
}

// entryEnd returns the place behind the last line of a member or an element that has lines of its own.
func (e *editor) entryEnd(s spot) int {
	if s.below {
		return s.to
	}
	return e.lineEnd(max(s.to-1, s.key))
}

// remove removes a setting with its lines. In brackets it takes a comma with it: the one behind the member, or, for the
// last member, the one before it. It returns errShared for a setting that belongs to an anchor, and for one whose key
// is not the first text on its line.
func (e *editor) remove(path []string) error {
	found, err := e.find(path)
	if err != nil {
		return err
	}
	if len(found) != len(path)+1 {
		return errShared // an alias has the value, and its anchor is elsewhere
	}
	s, parent := found[len(found)-1], found[len(found)-2]
	if !s.flow {
		start := e.lineStart(s.key)
		// Something stands before the key on its line, such as the dash of a list whose first member this is.
		if strings.TrimLeft(e.text[start:s.key], " ") != "" {
			return errShared
		}
		e.splice(start, e.entryEnd(s), "")
		return nil
	}
	names, spots, err := e.children(parent)
	if err != nil {
		return err
	}
	i := slices.Index(names, path[len(path)-1])
	begin := func(s spot) int {
		if s.key >= 0 {
			return s.key
		}
		return s.from
	}
	switch {
	case i+1 < len(spots):
		e.splice(begin(s), begin(spots[i+1]), "")
	case i > 0:
		e.splice(spots[i-1].to, s.to, "")
	default: // the only one
		end := s.to
		if e.text[end] == ',' {
			end++
		}
		e.splice(begin(s), end, "")
	}
	return nil
}
