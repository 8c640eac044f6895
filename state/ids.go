package state

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"time"
)

// NewID returns an id: the prefix and then 48 hex digits, of which the first twelve are now in milliseconds, the next
// three a fraction of a millisecond, and the rest 132 random bits. Ids of later records sort behind earlier ones, which
// lists depend on and with which the durable store is fast. The error comes from random. No id is returned then,
// because an id that can be guessed would be worse than none.
func NewID(prefix string, now time.Time, random io.Reader) (string, error) {
	var b [2 + 6 + 18]byte
	binary.BigEndian.PutUint64(b[:], uint64(now.UnixMilli()))
	if _, err := io.ReadFull(random, b[8:]); err != nil {
		return "", fmt.Errorf("make id: %w", err)
	}
	fraction := uint16(now.UnixNano() % int64(time.Millisecond) << 12 / int64(time.Millisecond))
	binary.BigEndian.PutUint16(b[8:], fraction<<4|uint16(b[9]&0xf))
	id := make([]byte, 0, 64)
	return string(hex.AppendEncode(append(id, prefix...), b[2:])), nil
}

// MaxID is the longest id in bytes.
const MaxID = 128

// CheckID returns an error that wraps ErrInvalid unless id has 1 to MaxID bytes, all of them ASCII letters, digits or
// one of "_-.". Such an id can be a part of a durable key and a segment of a URL's path. It is not safe as the name of
// a file, because "." and ".." are accepted.
func CheckID(id string) error {
	if id == "" || len(id) > MaxID {
		return fmt.Errorf("%w: an id of %d bytes", ErrInvalid, len(id))
	}
	for _, c := range []byte(id) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-', c == '.':
		default:
			return fmt.Errorf("%w: id %q", ErrInvalid, id)
		}
	}
	return nil
}

// keyAccount begins the names of the accounts of keys without a user. No username does.
const keyAccount = "key:"

// KeyAccount returns the name of the account that holds the receipts of a key without a user.
func KeyAccount(key string) string { return keyAccount + key }

// IsKeyAccount reports whether an account has the name of an account of a key.
func IsKeyAccount(account string) bool { return strings.HasPrefix(account, keyAccount) }

// Owner names the party that a record belongs to. A record of another owner is not found.
type Owner string

// OwnerOf returns the user that a key belongs to, so that all keys of one user share their records, or the key itself.
func OwnerOf(keyID, user string) Owner {
	if user != "" {
		return Owner("user:" + user)
	}
	return Owner(KeyAccount(keyID))
}

// Account returns the name of the ledger's account of an owner.
func (o Owner) Account() string { return strings.TrimPrefix(string(o), "user:") }
