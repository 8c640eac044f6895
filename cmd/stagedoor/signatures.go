package main

import "stagedoor/state/share"

const (
	// maxSignatureSlots bounds how many signatures of tool calls are kept. A signature is used
	// within minutes, by the next turn of its conversation.
	maxSignatureSlots = 20_000
	// signatureSlot bounds the bytes of a signature that take one slot, so that all of them
	// together have at most 64 MiB.
	signatureSlot = 64 << 20 / maxSignatureSlots
)

// signatureCache implements dialogue.SignatureCache in memory. A conversation whose signature was
// pushed out continues without that hint.
type signatureCache struct{ byCall *share.Cache[string] }

func newSignatureCache(slots int) signatureCache {
	return signatureCache{share.NewCache[string](slots, 0, nil)}
}

// Remember implements dialogue.SignatureCache. A signature that is larger than the cache is
// not kept.
func (c signatureCache) Remember(owner, callID, text string) {
	c.byCall.Put(owner, callID, text, 1+(len(owner)+len(callID)+len(text))/signatureSlot)
}

// Recall implements dialogue.SignatureCache.
func (c signatureCache) Recall(owner, callID string) (string, bool) {
	return c.byCall.Get(owner, callID)
}
