// Package dialoguetest provides a dialogue.Env for tests of shapes and of their callers. Its
// clock stands still, its ids are counted, and its signatures are kept in a map or not at all.
package dialoguetest

import (
	"crypto/rand"
	"strconv"
	"strings"
	"time"

	"stagedoor/providers/dialogue"
)

// NewEnv returns an Env whose clock stands at unix, whose ids are id1, id2 and so on for the
// prefix "id", and whose signature cache keeps everything. Use it in one test at a time.
func NewEnv(unix int64, prefix string) *dialogue.Env {
	made := 0
	return &dialogue.Env{
		Now:        func() time.Time { return time.Unix(unix, 0) },
		ID:         func() string { made++; return prefix + strconv.Itoa(made) },
		Sealer:     dialogue.NewSealer([]byte("secret")),
		Signatures: SignatureMap{},
	}
}

// NewLiveEnv returns an Env with the clock of package time, random ids in lower case, and no signature cache. Several
// goroutines may use it at once.
func NewLiveEnv() *dialogue.Env {
	return &dialogue.Env{
		Now:        time.Now,
		ID:         func() string { return strings.ToLower(rand.Text()) },
		Sealer:     dialogue.NewSealer([]byte("secret")),
		Signatures: NoSignatures{},
	}
}

// SignatureMap is a dialogue.SignatureCache for one owner, without bounds. It is not safe for concurrent use.
type SignatureMap map[string]string

// Remember implements dialogue.SignatureCache.
func (v SignatureMap) Remember(_, callID, signature string) { v[callID] = signature }

// Recall implements dialogue.SignatureCache.
func (v SignatureMap) Recall(_, callID string) (signature string, ok bool) {
	signature, ok = v[callID]
	return signature, ok
}

// NoSignatures is a dialogue.SignatureCache that keeps nothing. It is safe for concurrent use.
type NoSignatures struct{}

// Remember implements dialogue.SignatureCache.
func (NoSignatures) Remember(_, _, _ string) {}

// Recall implements dialogue.SignatureCache.
func (NoSignatures) Recall(_, _ string) (string, bool) { return "", false }
