// Package dialoguetest is what tests of shapes, and of what drives them, need of
// the world: an environment whose time stands and whose ids are counted, and
// memories of signatures. It is for tests only.
package dialoguetest

import (
	"strconv"
	"time"

	"stagedoor/providers/dialogue"
)

// NewEnv returns an environment whose clock stands, whose ids are id1, id2 and so
// on for the prefix id, and whose vault remembers everything.
func NewEnv(unix int64, prefix string) *dialogue.Env {
	made := 0
	return &dialogue.Env{
		Now:        func() time.Time { return time.Unix(unix, 0) },
		ID:         func() string { made++; return prefix + strconv.Itoa(made) },
		Sealer:     dialogue.NewSealer([]byte("secret")),
		Signatures: SignatureMap{},
	}
}

// SignatureMap is a dialogue.SignatureCache without bounds, for one test at a time.
type SignatureMap map[string]string

// Remember implements dialogue.SignatureCache.
func (v SignatureMap) Remember(callID, signature string) { v[callID] = signature }

// Recall implements dialogue.SignatureCache.
func (v SignatureMap) Recall(callID string) (signature string, ok bool) {
	signature, ok = v[callID]
	return signature, ok
}

// NoSignatures is a dialogue.SignatureCache that remembers nothing, for many requests at a time.
type NoSignatures struct{}

// Remember implements dialogue.SignatureCache.
func (NoSignatures) Remember(string, string) {}

// Recall implements dialogue.SignatureCache.
func (NoSignatures) Recall(string) (string, bool) { return "", false }
