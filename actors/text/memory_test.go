package text_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"stagedoor/actors/kit/kittest"
	"stagedoor/providers/dialogue/dialoguetest"
	"stagedoor/state/share"
)

// TestOneOwnerCannotTakeAllMemoryOfTranslations: an owner's requests that are being translated
// take half of the memory at most. The refusal of the next one names the pool, another
// owner's request is served, and the memory is free again when the requests have ended.
func TestOneOwnerCannotTakeAllMemoryOfTranslations(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		const mib = 1 << 20
		pool := share.New(share.Memory, 32*mib, 1)
		s.env.Memory = pool
		s.upstream("a", dialoguetest.Chat, stream(stall))
		ask := fmt.Sprintf(`{"model":"m","stream":true,"max_tokens":50,"messages":[{"role":"user","content":%q}]}`,
			strings.Repeat("a", mib))
		ctx, leave := context.WithCancel(t.Context())
		for range 5 { // of 3 MiB each
			go s.read(s.service.Begin(ctx, s.request(dialoguetest.Messages, ask)))
		}
		kittest.Quiesce()
		if held := pool.Held("key:key"); held < 15*mib || held > 16*mib {
			t.Errorf("the requests hold %d bytes, want three for each byte of their bodies", held)
		}
		got := s.ask(s.request(dialoguetest.Messages, ask))
		if got.status != 429 || got.err.Code != "memory_share_exceeded" || got.err.RetryAfter == 0 {
			t.Errorf("beyond its share: got %d %v", got.status, got.err)
		}
		s.fakes["a"].scripts = []script{goodChat()}
		other := s.request(dialoguetest.Messages, ask)
		other.Owner = "user:modest"
		if got := s.ask(other); got.status != 200 {
			t.Errorf("another owner: got %d %v", got.status, got.err)
		}
		leave()
		kittest.Quiesce()
		if pool.Used() != 0 {
			t.Errorf("%d bytes are left when all requests have ended", pool.Used())
		}
	})
}
