package messages

import (
	"strconv"

	"stagedoor/providers/dialogue"
)

// maxToolName is the vendor's limit, in characters of its alphabet.
const maxToolName = 128

// names gives every tool a name and every call an id that the shape allows
// ([a-zA-Z0-9_-]), no two the same. It is deterministic, so that the beginning
// of a conversation stays the same from turn to turn and can be cached.
type names struct {
	req   *dialogue.Request
	sent  map[string]string // the client's, qualified -> as sent
	taken claims
	ids   claims
}

// newNames returns the names for one request. Names that the vendor takes as they are get claimed
// first, so that a name which must be changed never takes one of them away.
func newNames(req *dialogue.Request) *names {
	n := &names{req: req, sent: map[string]string{}, taken: newClaims(), ids: newClaims()}
	for _, t := range req.Tools {
		// A name that needs no change keeps itself, wherever it stands.
		if full := dialogue.QualifiedName(t.Namespace, t.Name); full == safe(full, maxToolName) {
			n.tool(t.Namespace, t.Name)
		}
	}
	return n
}

// tool returns the name under which a tool is sent. If that is not the client's own name, it
// records the pair in Request.Renamed, so that the reply gets the client's name again.
func (n *names) tool(namespace, name string) string {
	full := dialogue.QualifiedName(namespace, name)
	if sent, ok := n.sent[full]; ok {
		return sent
	}
	sent := n.taken.unique(safe(full, maxToolName), maxToolName)
	n.sent[full] = sent
	if sent != name {
		if n.req.Renamed == nil {
			n.req.Renamed = map[string]string{}
		}
		n.req.Renamed[sent] = name
	}
	return sent
}

// call returns the id under which a call is sent. Clients may use an id again in a later turn, but
// the vendor refuses that, so the second gets a number: "call_1", "call_1_2".
func (n *names) call(id string) string {
	return n.ids.unique(safe(id, len(id)), len(id)+maxSuffix)
}

// safe returns s in the vendor's alphabet and cut to limit bytes. A name that already fits is
// returned without a copy, which is nearly every name.
func safe(s string, limit int) string {
	if s == "" {
		return "unnamed"
	}
	for i := range len(s) {
		if !allowed(s[i]) || i >= limit {
			return rewritten(s, limit)
		}
	}
	return s
}

// rewritten returns s with each character that the vendor refuses replaced, cut to limit.
func rewritten(s string, limit int) string {
	b := make([]byte, 0, min(len(s), limit))
	for _, r := range s {
		if len(b) == limit {
			break
		}
		if r < 0x80 && allowed(byte(r)) {
			b = append(b, byte(r))
		} else {
			b = append(b, '_')
		}
	}
	return string(b)
}

// allowed reports whether names of tools may have c.
func allowed(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

// claims is a set of words of which no two may be the same.
type claims struct {
	taken map[string]bool
	// next is the number to try next, by the word that it follows. Without it a word
	// that occurs often would try all its numbers each time.
	next map[string]int
}

func newClaims() claims { return claims{taken: map[string]bool{}, next: map[string]int{}} }

// maxSuffix limits the number that is added to a word, with its underscore.
const maxSuffix = 8

// unique claims s, or s with the first number that makes it new.
func (c claims) unique(s string, limit int) string {
	claimed := s
	if c.taken[s] {
		base := s[:max(min(len(s), limit-maxSuffix), 0)]
		i := max(c.next[base], 2)
		for claimed = base + "_" + strconv.Itoa(i); c.taken[claimed]; claimed = base + "_" + strconv.Itoa(i) {
			i++
		}
		c.next[base] = i + 1
	}
	c.taken[claimed] = true
	return claimed
}
