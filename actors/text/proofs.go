package text

import (
	"bytes"
	"strings"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/shapes"
)

// hasProof reports whether a body that was sent has a proof of reasoning. A client that changes between models of one
// shape sends the reasoning of both. A compacted conversation is no proof, because it is never left out.
func (a *attempt) hasProof(sent []byte) bool {
	proofs := 0
	for _, name := range a.shape.Proofs {
		proofs += bytes.Count(sent, []byte(`"`+name+`"`))
	}
	if shape, compacts := a.shape.Inbound.(shapes.Compacting); compacts {
		proofs -= len(shape.Compactions(sent))
	}
	return proofs > 0
}

// namesReasoning reports whether a refusal is about reasoning in the history. The vendors' texts
// differ and change, but they name the member or the block.
func namesReasoning(message string) bool {
	message = strings.ToLower(message)
	for _, word := range []string{"signature", "thinking", "encrypted", "reasoning", "thought"} {
		if strings.Contains(message, word) {
			return true
		}
	}
	return false
}

// keepCompactions remembers the target as the maker of the compacted conversation in a piece of its reply. Of several,
// only the last is remembered, because a further request is routed by its last one, and each costs a commit.
func (a *attempt) keepCompactions(data []byte) {
	if a.shape == nil {
		return // the sandbox answers
	}
	if shape, compacts := a.shape.Inbound.(shapes.Compacting); compacts {
		if made := shape.Compactions(data); len(made) > 0 {
			a.env.RememberCompaction(a.unbounded, made[len(made)-1], a.c.Provider.Name, a.c.Model)
		}
	}
}

// keepProofs remembers which model made the proofs in a piece of its reply.
func (u *passthrough) keepProofs(data []byte) {
	u.keepCompactions(data)
	for _, name := range u.shape.Proofs {
		key := `"` + name + `"`
		for rest := data; ; {
			_, after, found := bytes.Cut(rest, []byte(key))
			if !found {
				break
			}
			rest = after
			value := bytes.TrimLeft(bytes.TrimLeft(after, " "), ":")
			if value = bytes.TrimLeft(value, " "); len(value) > 1 && value[0] == '"' {
				if end := bytes.IndexByte(value[1:], '"'); end >= 0 {
					u.env.RememberProof(string(value[1:1+end]), u.c.Provider.Name, u.c.Model)
				}
			}
		}
	}
}

// keepProofs remembers which model made the proofs of a part of its reply.
func (t *translated) keepProofs(ev *dialogue.Event) {
	if t.c == nil || t.c.Provider == nil {
		return
	}
	if len(ev.Opaque) > 0 {
		t.keepCompactions(ev.Opaque)
	}
	provider, model := t.c.Provider.Name, t.c.Model
	t.env.RememberProof(ev.Signature, provider, model)
	if th := ev.Thinking; th != nil {
		for _, proof := range []string{th.Signature, th.Redacted, th.Encrypted} {
			t.env.RememberProof(proof, provider, model)
		}
	}
}
