package identity

import (
	"fmt"
	"io"
	"math/big"
	"strings"
	"time"

	"stagedoor/state"
)

// SecretPrefix is the prefix of every key that the gateway creates.
const SecretPrefix = "sd-"

const (
	secretDigits = 43 // 62^43 > 2^256
	shownDigits  = 8
)

// NewSecret returns a new secret: SecretPrefix and 256 random bits in letters and digits only, so that a double click
// selects all of it. prefix is the part that is shown in lists. The secret is not stored: hash finds the key, and
// prefix gives away 48 of the 256 bits. The error comes from random.
func NewSecret(random io.Reader) (secret, prefix string, hash state.Hash, err error) {
	var bits [32]byte
	if _, err := io.ReadFull(random, bits[:]); err != nil {
		return "", "", state.Hash{}, fmt.Errorf("make secret: %w", err)
	}
	digits := new(big.Int).SetBytes(bits[:]).Text(62)
	digits = strings.Repeat("0", secretDigits-len(digits)) + digits
	secret = SecretPrefix + digits
	return secret, digits[:shownDigits], state.HashSecret(secret), nil // 208 bits stay unknown
}

// NewKey returns an enabled, unrestricted key with a new id, and its secret. Show the secret to the
// owner and do not store it.
func NewKey(now time.Time, random io.Reader) (secret string, k Key, err error) {
	id, err := state.NewID("key_", now, random)
	if err != nil {
		return "", Key{}, err
	}
	secret, prefix, hash, err := NewSecret(random)
	if err != nil {
		return "", Key{}, err
	}
	return secret, Key{ID: id, Prefix: prefix, Hash: hash, Created: now, Enabled: true}, nil
}
