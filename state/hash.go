package state

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
)

// Hash is the SHA-256 of a secret: what is kept instead of it. A secret has 256
// random bits, so the hash needs neither salt nor work.
type Hash [sha256.Size]byte

// MarshalText writes hex digits. It never fails.
func (h Hash) MarshalText() ([]byte, error) {
	return hex.AppendEncode(nil, h[:]), nil
}

// UnmarshalText reads what MarshalText wrote.
func (h *Hash) UnmarshalText(text []byte) error {
	if len(text) != 2*len(h) {
		return fmt.Errorf("a hash of %d digits", len(text))
	}
	_, err := hex.Decode(h[:], text)
	return err
}

// Equal compares in constant time.
func (h *Hash) Equal(other Hash) bool { return subtle.ConstantTimeCompare(h[:], other[:]) == 1 }

// HashSecret is the hash under which a secret is found.
func HashSecret(secret string) Hash { return sha256.Sum256([]byte(secret)) }
