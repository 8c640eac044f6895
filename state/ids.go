package state

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"time"
)

// NewID makes an id: the prefix, then 48 hex digits, of which the first twelve
// are now in milliseconds and the rest are 144 random bits. Ids of later records
// sort behind, which is what the durable store is fast with.
func NewID(prefix string, now time.Time, random io.Reader) (string, error) {
	var b [2 + 6 + 18]byte
	binary.BigEndian.PutUint64(b[:], uint64(now.UnixMilli()))
	if _, err := io.ReadFull(random, b[8:]); err != nil {
		return "", fmt.Errorf("make id: %w", err)
	}
	id := make([]byte, 0, 64)
	return string(hex.AppendEncode(append(id, prefix...), b[2:])), nil
}

const MaxID = 128

// CheckID keeps ids to what may be part of a durable key of several parts and of
// a path.
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
