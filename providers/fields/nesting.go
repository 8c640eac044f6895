package fields

import "stagedoor/providers/dialogue"

// Nesting checks JSON that arrives in pieces, such as the arguments of a call, against the limits of replies. It does
// not check the syntax. The zero value is ready for use.
type Nesting struct {
	names   []int // number of names in each open object; 0 for arrays
	quoted  bool
	escaped bool
}

// Add reads the next piece. what names the text in the error.
func (n *Nesting) Add(what, piece string) *dialogue.Error {
	for i := range len(piece) {
		c := piece[i]
		switch {
		case n.escaped:
			n.escaped = false
		case n.quoted:
			n.quoted, n.escaped = c != '"', c == '\\'
		case c == '"':
			n.quoted = true
		case c == '{' || c == '[':
			if n.names = append(n.names, 0); len(n.names) > MaxReplyDepth {
				return overLimit(what, TooDeep)
			}
		case len(n.names) == 0:
		case c == '}' || c == ']':
			n.names = n.names[:len(n.names)-1]
		case c == ':':
			last := len(n.names) - 1
			if n.names[last]++; n.names[last] > MaxNames {
				return overLimit(what, TooManyNames)
			}
		}
	}
	return nil
}
