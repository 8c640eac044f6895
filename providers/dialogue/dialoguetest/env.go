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
		Now:    func() time.Time { return time.Unix(unix, 0) },
		ID:     func() string { made++; return prefix + strconv.Itoa(made) },
		Sealer: dialogue.NewSealer([]byte("secret")),
		Vault:  Vault{},
	}
}

// Vault is a dialogue.Vault without bounds, for one test at a time.
type Vault map[string]string

// Remember implements dialogue.Vault.
func (v Vault) Remember(callID, signature string) { v[callID] = signature }

// Recall implements dialogue.Vault.
func (v Vault) Recall(callID string) (signature string, ok bool) {
	signature, ok = v[callID]
	return signature, ok
}

// NoVault is a dialogue.Vault that remembers nothing, for many requests at a time.
type NoVault struct{}

// Remember implements dialogue.Vault.
func (NoVault) Remember(string, string) {}

// Recall implements dialogue.Vault.
func (NoVault) Recall(string) (string, bool) { return "", false }
