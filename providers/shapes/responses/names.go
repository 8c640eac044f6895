package responses

import (
	"crypto/sha256"
	"encoding/hex"
)

// Limits of names and ids in this shape.
const (
	maxToolName = 64
	maxCallID   = 64
)

// names turns the client's tool names into ones that this shape takes, letters,
// digits, _ and -, at most 64 of them, and remembers the way back. Different
// names stay different.
type names struct {
	sent     map[string]string // original -> sent
	original map[string]string // sent -> original, changed ones only
	used     map[string]bool   // as sent
}

func (n *names) of(name string) string {
	if sent, ok := n.sent[name]; ok {
		return sent
	}
	sent := safeName(name)
	if _, taken := n.original[sent]; taken || (sent != name && n.used[sent]) {
		sent = marked(sent, name, maxToolName)
	}
	if n.sent == nil {
		n.sent, n.used = map[string]string{}, map[string]bool{}
	}
	n.sent[name], n.used[sent] = sent, true
	if sent != name {
		if n.original == nil {
			n.original = map[string]string{}
		}
		n.original[sent] = name
	}
	return sent
}

func safeName(name string) string {
	b := []byte(name)
	for i, c := range b {
		if !isNameByte(c) {
			b[i] = '_'
		}
	}
	switch {
	case len(b) == 0:
		return "_"
	case len(b) > maxToolName:
		return marked(string(b), name, maxToolName)
	}
	return string(b)
}

func isNameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

// marked shortens s to limit and ends it with a mark of whole, so that two long
// names with one beginning do not meet.
func marked(s, whole string, limit int) string {
	sum := sha256.Sum256([]byte(whole))
	mark := "_" + hex.EncodeToString(sum[:6])
	return s[:min(len(s), limit-len(mark))] + mark
}
