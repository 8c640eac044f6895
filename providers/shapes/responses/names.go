package responses

import (
	"crypto/sha256"
	"encoding/hex"
)

// Limits of names and ids in this shape, in characters.
const (
	maxToolName = 64
	maxCallID   = 64
)

// names gives every tool a name that this shape takes: at most 64 letters, digits, "_" and "-".
// Different names stay different, and the same name is the same in every request, so that prompt
// caches match.
type names struct {
	sent     map[string]string // original -> sent
	original map[string]string // sent -> original, changed ones only
	used     map[string]bool   // as sent
}

// of returns the name under which a tool is sent.
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

// safeName returns name in the allowed alphabet, with "_" for other bytes.
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

// marked shortens s to limit bytes and ends it with a piece of the hash of whole, so that two long
// names with the same beginning stay different.
func marked(s, whole string, limit int) string {
	sum := sha256.Sum256([]byte(whole))
	mark := "_" + hex.EncodeToString(sum[:6])
	return s[:min(len(s), limit-len(mark))] + mark
}
