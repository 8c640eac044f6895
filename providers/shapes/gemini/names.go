package gemini

import (
	"fmt"
	"hash/fnv"
	"strconv"

	"stagedoor/providers/dialogue"
)

// maxName is a length of function names that every model of the vendor takes. Longer ones are
// documented for some only.
const maxName = 64

// maxSuffix limits the number that is added to a name, with its underscore.
const maxSuffix = 8

// names gives every function of one request a name that the vendor takes. Different names stay
// different, and a name is the same in every request, so that prompt caches match.
type names struct {
	sent    map[toolName]string
	taken   map[string]bool
	next    map[string]int    // the number to try next, by the name that it follows
	renamed map[string]string // as sent -> the client's
}

// toolName is a function's name with its namespace, as the client knows it.
type toolName struct{ namespace, name string }

// upstreamName returns the name under which a function is sent. One that is not the client's own is noted
// in renamed.
func (n *names) upstreamName(namespace, name string) string {
	key := toolName{namespace, name}
	if s, ok := n.sent[key]; ok {
		return s
	}
	if n.sent == nil {
		n.next = map[string]int{}
		n.sent, n.taken = map[toolName]string{}, map[string]bool{}
	}
	s := legalName(dialogue.QualifiedName(namespace, name))
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

// legalName returns name in the vendor's alphabet, with "_" for other bytes. A name that is too
// long ends with its hash.
func legalName(name string) string {
	out := make([]byte, 0, len(name)+1)
	for i := 0; i < len(name); i++ {
		switch c := name[i]; {
		case letter(c):
			out = append(out, c)
		case '0' <= c && c <= '9' || c == '.' || c == ':' || c == '-':
			// A name must begin with a letter or an underscore.
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

// letter reports whether a name may begin with c.
func letter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' || c == '_' }
