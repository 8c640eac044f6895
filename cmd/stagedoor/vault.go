package main

import "sync"

// vaultSize bounds how many call signatures are remembered. One is used within
// minutes of being made, by the next turn of its conversation.
const (
	vaultSize  = 20_000
	vaultBytes = 64 << 20
)

// vault implements dialogue.SignatureCache in memory: two generations of a map, the
// older of which is dropped when the younger is full. What it forgets costs a
// conversation a hint, not its life.
type vault struct {
	mu         sync.Mutex
	young, old map[string]string
	most       int
	bytes      int
}

func newVault(most int) *vault { return &vault{young: make(map[string]string), most: most} }

// Remember implements dialogue.SignatureCache.
func (v *vault) Remember(callID, signature string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.young) >= v.most/2 || v.bytes >= vaultBytes/2 {
		v.old, v.young, v.bytes = v.young, make(map[string]string), 0
	}
	v.young[callID] = signature
	v.bytes += len(callID) + len(signature)
}

// Recall implements dialogue.SignatureCache.
func (v *vault) Recall(callID string) (string, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if s, ok := v.young[callID]; ok {
		return s, true
	}
	s, ok := v.old[callID]
	return s, ok
}
