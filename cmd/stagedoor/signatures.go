package main

import (
	"context"
	"log/slog"

	"stagedoor/state"
	"stagedoor/state/share"
	"stagedoor/state/work"
)

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

// compactionMakers implements dialogue.Makers in the state.
type compactionMakers struct {
	state  *state.State
	logger *slog.Logger
}

// Remember implements dialogue.Makers. If it fails, the conversation goes back to its maker only until the next
// restart, which is no reason to withhold the reply.
func (m compactionMakers) Remember(ctx context.Context, owner, made, maker string) {
	if err := work.RememberCompaction(ctx, m.state, state.Owner(owner), made, maker); err != nil && ctx.Err() == nil {
		m.logger.Warn("the maker of a compacted conversation was not stored", "target", maker, "cause", err)
	}
}

// MakerOf implements dialogue.Makers.
func (m compactionMakers) MakerOf(owner, made string) string {
	return work.CompactionMaker(m.state.View(), state.Owner(owner), made)
}
