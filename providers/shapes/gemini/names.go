package gemini

import (
	"fmt"
	"hash/fnv"
	"strconv"
)

// maxName is a length of function names that every model takes; longer ones
// are documented, but not for all.
const maxName = 64

// maxSuffix limits the number that is added to a name, with its underscore.
const maxSuffix = 8

// names keeps the function names of one request: what this shape would refuse
// is spelled otherwise, always the same way and never like another name.
type names struct {
	sent    map[toolName]string
	taken   map[string]bool
	next    map[string]int    // the number to try next, by the name that it follows
	renamed map[string]string // as sent -> the client's
}

type toolName struct{ namespace, name string }

// spell returns the name to send.
func (n *names) spell(namespace, name string) string {
	key := toolName{namespace, name}
	if s, ok := n.sent[key]; ok {
		return s
	}
	if n.sent == nil {
		n.next = map[string]int{}
		n.sent, n.taken = map[toolName]string{}, map[string]bool{}
	}
	plain := name
	if namespace != "" {
		plain = namespace + "__" + name
	}
	s := legalName(plain)
	if n.taken[s] {
		base := s[:min(len(s), maxName-maxSuffix)]
		i := max(n.next[base], 2)
		for s = base + "_" + strconv.Itoa(i); n.taken[s]; s = base + "_" + strconv.Itoa(i) {
			i++
		}
		n.next[base] = i + 1 // else many names that become one would try all numbers each
	}
	n.sent[key], n.taken[s] = s, true
	if s != name {
		if n.renamed == nil {
			n.renamed = map[string]string{}
		}
		n.renamed[s] = name
	}
	return s
}

// legalName replaces what the shape's pattern does not allow, and ends a name
// that is too long in a hash of the rest.
func legalName(name string) string {
	out := make([]byte, 0, len(name)+1)
	for i := 0; i < len(name); i++ {
		switch c := name[i]; {
		case letter(c):
			out = append(out, c)
		case '0' <= c && c <= '9' || c == '.' || c == ':' || c == '-':
			if i == 0 {
				out = append(out, '_')
			}
			out = append(out, c)
		default:
			out = append(out, '_')
		}
	}
	if len(out) == 0 {
		return "_"
	}
	if len(out) > maxName {
		h := fnv.New32a()
		h.Write([]byte(name))
		hash := fmt.Sprintf("_%08x", h.Sum32())
		out = append(out[:maxName-len(hash)], hash...)
	}
	return string(out)
}

func letter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' || c == '_' }
