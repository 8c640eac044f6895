package dialogue

import (
	"crypto/sha256"
	"encoding/hex"
)

// RememberProof keeps that a model of a provider gave out a proof: a signature, or encrypted
// reasoning. Another provider of the same shape may refuse it, and so may another model.
func (e *Env) RememberProof(proof, provider, model string) {
	if proof != "" {
		e.Signatures.Remember(e.Owner, proofKey(proof), provider+"/"+model)
	}
}

// Accepts reports whether a proof in the history may be sent to a target: any may, until the
// upstream has refused one, and then those that this very model gave out.
func (e *Env) Accepts(t Target, proof string) bool {
	if !t.OwnReasoning {
		return true
	}
	maker, ok := e.Signatures.Recall(e.Owner, proofKey(proof))
	return ok && maker == t.Provider+"/"+t.Model
}

func proofKey(proof string) string {
	sum := sha256.Sum256([]byte(proof))
	return "proof:" + hex.EncodeToString(sum[:16])
}

// RememberThoughts keeps what the model thought before a call, for clients that did not ask to see
// it and whose shape has no other place for it.
func (e *Env) RememberThoughts(callID string, thoughts []Thinking) {
	for i := range thoughts {
		e.Signatures.Remember(e.Owner, thoughtKey(callID, i), e.Sealer.Seal(&thoughts[i]))
	}
}

// maxThoughts bounds how many thoughts are kept for one call.
const maxThoughts = 8

// RecallThoughts returns the thoughts that RememberThoughts got, as far as they have not been
// forgotten.
func (e *Env) RecallThoughts(callID string) (thoughts []Thinking) {
	for i := range maxThoughts {
		sealed, ok := e.Signatures.Recall(e.Owner, thoughtKey(callID, i))
		if !ok {
			return thoughts
		}
		if t, ok := e.Sealer.Open(sealed); ok {
			thoughts = append(thoughts, *t)
		}
	}
	return thoughts
}

func thoughtKey(callID string, i int) string { return "thought:" + string(rune('0'+i)) + ":" + callID }
