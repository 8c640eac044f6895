package dialogue

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"stagedoor/providers/memory"
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
	return e.MakerOf(proof) == t.Provider+"/"+t.Model
}

// MakerOf returns the provider and the model that gave out a proof, with a slash in between, or "" if it is not known.
func (e *Env) MakerOf(proof string) string {
	maker, _ := e.Signatures.Recall(e.Owner, proofKey(proof))
	return maker
}

// Makers remembers which targets compacted conversations, in a store that survives the process.
type Makers interface {
	// Remember keeps the maker of what was made of an owner's conversation. It returns when that is durable, or failed.
	Remember(ctx context.Context, owner, made, maker string)
	// MakerOf returns the maker, or "" if it is not known.
	MakerOf(owner, made string) string
}

// RememberCompaction keeps that a model of a provider compacted a conversation to the text made, which only that model
// can read. It is called before the client gets the text, and costs a commit the first time.
func (e *Env) RememberCompaction(ctx context.Context, made, provider, model string) {
	e.RememberProof(made, provider, model)
	if maker := provider + "/" + model; e.Makers != nil && e.Makers.MakerOf(e.Owner, made) != maker {
		e.Makers.Remember(ctx, e.Owner, made, maker)
	}
}

// CompactedBy returns the provider and the model that compacted a conversation, as MakerOf does, also after a restart.
func (e *Env) CompactedBy(made string) string {
	if e.Makers == nil {
		return e.MakerOf(made)
	}
	return cmp.Or(e.MakerOf(made), e.Makers.MakerOf(e.Owner, made))
}

// proofKey returns a short key for a proof, which may be many kilobytes long.
func proofKey(proof string) string {
	sum := sha256.Sum256([]byte(proof))
	return "proof:" + hex.EncodeToString(sum[:16])
}

// maxThoughts bounds how many thoughts are kept for one call.
const maxThoughts = 8

// RememberThoughts keeps what the model thought before a call, for clients that do not send it back with the call: they
// did not ask to see it, or drop what their SDK does not know. Of many thoughts it keeps the first.
func (e *Env) RememberThoughts(callID string, thoughts []Thinking) {
	if len(thoughts) == 0 || e.Sealer == nil {
		return
	}
	thoughts = thoughts[:min(len(thoughts), maxThoughts)]
	seals := make([]string, len(thoughts))
	for i := range thoughts {
		seals[i] = e.Sealer.Seal(&thoughts[i])
	}
	e.Signatures.Remember(e.Owner, thoughtsPrefix+callID, strings.Join(seals, " "))
}

// ThoughtRecall recalls the thoughts before the calls of one request. It bounds what a small request can make the
// gateway unseal: the thoughts of each call are recalled once, however often the request repeats its id, and all of
// them together take no more than the request's translation is counted for, or leastRecall if that is more.
type ThoughtRecall struct {
	env  *Env
	seen map[string]bool
	left int64 // bytes of seals that may still be recalled
}

// leastRecall is the number of bytes of seals that even the smallest request may recall.
const leastRecall = 1 << 20

// NewThoughtRecall returns the ThoughtRecall of a request with this body.
func (e *Env) NewThoughtRecall(body []byte) ThoughtRecall {
	return ThoughtRecall{env: e, seen: make(map[string]bool), left: max(leastRecall, memory.OfTranslation(body))}
}

// Before returns the thoughts that RememberThoughts got for a call. It returns none if they have been forgotten, were
// returned before, or are more than the request may still recall.
func (r *ThoughtRecall) Before(callID string) (thoughts []Thinking) {
	seals, ok := r.env.Signatures.Recall(r.env.Owner, thoughtsPrefix+callID)
	if !ok || r.seen[callID] || int64(len(seals)) > r.left {
		return nil
	}
	r.seen[callID] = true
	r.left -= int64(len(seals))
	for _, sealed := range strings.Fields(seals) {
		if t, ok := r.env.Sealer.Open(sealed); ok {
			thoughts = append(thoughts, *t)
		}
	}
	return thoughts
}

const thoughtsPrefix = "thoughts:"
