package tokens

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"strings"

	"stagedoor/state"
)

// kind is the prefix of a token. It tells people and secret scanners what they have found.
type kind string

// The kinds of tokens: authorization codes, access and refresh tokens, client secrets and ids, developer tokens,
// sessions, and links for passwords and invitations.
const (
	kindCode      kind = "ac_"
	kindAccess    kind = "at_"
	kindRefresh   kind = "rt_"
	kindSecret    kind = "as_"
	kindClient    kind = "ci_"
	kindDeveloper kind = "dt_"
	kindSession   kind = "se_"
	kindLink      kind = "li_"
)

const (
	entropy  = 32 // random bytes of every token
	familial = 16 // random bytes before them that a code and its refresh tokens share
	checkLen = 6  // letters of the checksum
)

// encoding is base64url without padding. It is strict, so that a token has one form only.
var encoding = base64.RawURLEncoding.Strict()

// format writes a token of prefix, bytes and checksum. The checksum is not secret. It lets malformed tokens be
// refused before a lookup.
func (k kind) format(raw []byte) string {
	body := string(k) + encoding.EncodeToString(raw)
	sum := checksum(body)
	return body + string(sum[:])
}

// parse returns the bytes of a token that format wrote, or nil for anything else.
func (k kind) parse(token string, size int) []byte {
	if !k.checks(token, size) {
		return nil
	}
	raw, err := encoding.DecodeString(token[len(k) : len(token)-checkLen])
	if err != nil || len(raw) != size { // the decoder skips line ends
		return nil
	}
	return raw
}

// checks reports whether a token has the right form and checksum. A lookup by the hash of the whole token needs no
// more.
func (k kind) checks(token string, size int) bool {
	if len(token) != len(k)+encoding.EncodedLen(size)+checkLen || !strings.HasPrefix(token, string(k)) {
		return false
	}
	end := len(token) - checkLen
	sum := checksum(token[:end])
	return token[end:] == string(sum[:])
}

// checksum returns the last characters of a token. With them, a mistyped token and text that only
// looks like one are recognised without a look-up.
func checksum(s string) (text [checkLen]byte) {
	var sum [4]byte
	binary.BigEndian.PutUint32(sum[:], crc32.ChecksumIEEE([]byte(s)))
	encoding.Encode(text[:], sum[:])
	return text
}

// family is the beginning of the code and of all refresh tokens of one grant. Its hash finds the grant for each
// generation, which distinguishes an old refresh token from an invented one. The store knows only the hash. The next
// token takes the family from the one that it replaces.
type family [familial]byte

// hash returns the hash by which a family of refresh tokens is stored.
func (f family) hash() state.Hash { return state.HashSecret(string(f[:])) }

// formatWith writes a token of the family.
func (k kind) formatWith(f family, random []byte) string {
	return k.format(append(f[:], random...))
}

// parseFamily returns the family of a refresh token, and false if the text is no token of the kind.
func (k kind) parseFamily(token string) (family, bool) {
	raw := k.parse(token, familial+entropy)
	if raw == nil {
		return family{}, false
	}
	return family(raw[:familial]), true
}

// hashOf returns the hash of a well-formed token without a family.
func (k kind) hashOf(token string) (state.Hash, bool) {
	if !k.checks(token, entropy) {
		return state.Hash{}, false
	}
	return state.HashSecret(token), true
}

// draw reads n random bytes. crypto/rand never fails, but the source of a test may end.
func draw(random io.Reader, n int) ([]byte, error) {
	raw := make([]byte, n)
	if _, err := io.ReadFull(random, raw); err != nil {
		return nil, fmt.Errorf("%w: draw a token: %w", ErrUnavailable, err)
	}
	return raw, nil
}

// mint returns a new token without a family.
func (k kind) mint(random io.Reader) (string, error) {
	raw, err := draw(random, entropy)
	if err != nil {
		return "", err
	}
	return k.format(raw), nil
}
