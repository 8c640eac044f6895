package main

import (
	"sync"

	"stagedoor/state/share"
)

const (
	// maxSignatureSlots bounds how many signatures of tool calls are kept. A signature is used
	// within minutes, by the next turn of its conversation.
	maxSignatureSlots = 20_000
	// signatureSlot is how many bytes of a signature take one slot, so that all of them
	// together have at most 64 MiB.
	signatureSlot = 64 << 20 / maxSignatureSlots
)

// signatureCache implements dialogue.SignatureCache in memory. When it is full, the owner with
// most slots loses its oldest signature, so no owner pushes out the signatures of another. A
// conversation whose signature was pushed out goes on without a hint.
type signatureCache struct {
	mu     sync.Mutex
	byCall map[ownedCall]*signature
	slots  *share.Latest[*signature]
	most   int
}

// ownedCall is a call of an owner. Providers choose the ids of calls, so two owners may have
// calls of the same id.
type ownedCall struct{ owner, id string }

// signature is one signature, which takes one slot or several.
type signature struct {
	call ownedCall
	text string // "" once it was pushed out or replaced
}

func newSignatureCache(slots int) *signatureCache {
	return &signatureCache{
		byCall: make(map[ownedCall]*signature),
		slots:  share.NewLatest[*signature](slots),
		most:   slots,
	}
}

// Remember implements dialogue.SignatureCache. A signature that is larger than the cache is
// not kept.
func (c *signatureCache) Remember(owner, callID, text string) {
	s := &signature{call: ownedCall{owner, callID}, text: text}
	slots := 1 + (len(owner)+len(callID)+len(text))/signatureSlot
	if slots > c.most {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if before := c.byCall[s.call]; before != nil {
		before.text = "" // its slots are freed when their turn comes
	}
	c.byCall[s.call] = s
	for range slots {
		if old, full := c.slots.Add(owner, s); full {
			c.forget(old)
		}
	}
}

// forget removes a signature that has lost a slot.
func (c *signatureCache) forget(s *signature) {
	s.text = ""
	if c.byCall[s.call] == s {
		delete(c.byCall, s.call)
	}
}

// Recall implements dialogue.SignatureCache.
func (c *signatureCache) Recall(owner, callID string) (string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.byCall[ownedCall{owner, callID}]
	if s == nil {
		return "", false
	}
	return s.text, true
}
