package chat

import (
	"crypto/sha256"
	"encoding/hex"

	"stagedoor/providers/dialogue"
)

// maxName is the vendor's limit of a tool's name, in characters. Other shapes allow 128.
const maxName = 64

// names gives every tool a name that chat upstreams take, [A-Za-z0-9_-]{1,64}. A name that has to
// change gets a piece of its hash, so that two long names with the same beginning stay apart and
// the same tool has the same name in every request. The client's own name goes to Request.Renamed.
type names struct {
	req  *dialogue.Request
	sent map[string]string // original, with namespace -> sent
	used map[string]bool   // as sent
}

// of returns the name under which a tool is sent.
func (n *names) of(namespace, name string) string {
	full := dialogue.QualifiedName(namespace, name)
	if sent, ok := n.sent[full]; ok {
		return sent
	}
	sent := legal(full)
	if sent != full || n.used[sent] {
		sum := sha256.Sum256([]byte(full))
		sent = sent[:min(len(sent), maxName-9)] + "_" + hex.EncodeToString(sum[:4])
	}
	if n.sent == nil {
		n.sent, n.used = make(map[string]string), make(map[string]bool)
	}
	n.sent[full], n.used[sent] = sent, true
	if sent != name {
		if n.req.Renamed == nil {
			n.req.Renamed = make(map[string]string)
		}
		n.req.Renamed[sent] = name
	}
	return sent
}

// legal returns name in the vendor's alphabet, with "_" for other bytes, and cut to maxName.
func legal(name string) string {
	b := []byte(name[:min(len(name), maxName)])
	for i, c := range b {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-':
		default:
			b[i] = '_'
		}
	}
	if len(b) == 0 {
		return "_"
	}
	return string(b)
}
