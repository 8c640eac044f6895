package browser

import (
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/crypto/chacha20poly1305"
)

// Errors of sealed texts, besides ErrForged.
var (
	// ErrExpired says that a sealed text is genuine and too old.
	ErrExpired = errors.New("the sealed text has expired")
	// ErrTooLong says that a text would be too long to be opened, so it is not sealed.
	ErrTooLong = errors.New("the text is too long to be sealed")
)

const (
	// maxSealed bounds a sealed text, so that it fits into a form. The largest is a draft of the configuration.
	maxSealed    = 48 << 10
	sealedHeader = 8 + sha256.Size
)

// newBox returns the cipher of sealed texts. Its nonces are long enough to be drawn at
// random however many texts are sealed with one key.
func newBox(key []byte) (cipher.AEAD, error) {
	sub, err := hkdf.Key(sha256.New, key, nil, "stagedoor sealed pages", chacha20poly1305.KeySize)
	if err != nil {
		return nil, err
	}
	return chacha20poly1305.NewX(sub)
}

// Seal encrypts payload for one browser and one purpose, for as long as life. What a
// page has to remember between two requests travels in the browser this way, so that
// requests of strangers cannot push it out of the gateway's memory. A nil v binds the
// text to no browser. A text can be opened any number of times: where that matters,
// payload carries an id that the registry marks as used. It returns ErrTooLong
// for a payload of more than about 35 KB.
func (g *Guard) Seal(purpose string, v *Visitor, life time.Duration, payload any) (string, error) {
	body, err := json.Marshal(payload)
	if err != nil {
		return "", fmt.Errorf("seal %s: %w", purpose, err)
	}
	var nonce [chacha20poly1305.NonceSizeX]byte
	if _, err := io.ReadFull(g.options.Random, nonce[:]); err != nil {
		return "", fmt.Errorf("seal %s: %w", purpose, err)
	}
	binding := bindingHash(v)
	plain := binary.BigEndian.AppendUint64(nil, uint64(g.options.Now().Add(life).UnixMilli()))
	plain = append(append(plain, binding[:]...), body...)
	text := base64.RawURLEncoding.EncodeToString(g.box.Seal(nonce[:], nonce[:], plain, []byte(purpose)))
	if len(text) > maxSealed {
		return "", fmt.Errorf("seal %s: %w", purpose, ErrTooLong)
	}
	return text, nil
}

// Unseal reads what Seal wrote for the same purpose and the same browser into payload.
// It returns ErrForged or ErrExpired.
func (g *Guard) Unseal(purpose string, v *Visitor, text string, payload any) error {
	if len(text) > maxSealed {
		return ErrForged
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(raw) < chacha20poly1305.NonceSizeX {
		return ErrForged
	}
	nonce, sealed := raw[:chacha20poly1305.NonceSizeX], raw[chacha20poly1305.NonceSizeX:]
	plain, err := g.box.Open(nil, nonce, sealed, []byte(purpose))
	if err != nil || len(plain) < sealedHeader {
		return ErrForged
	}
	binding := bindingHash(v)
	if v != nil && v.binding == "" || subtle.ConstantTimeCompare(plain[8:sealedHeader], binding[:]) != 1 {
		return ErrForged
	}
	if g.options.Now().UnixMilli() >= int64(binary.BigEndian.Uint64(plain)) {
		return ErrExpired
	}
	if err := json.Unmarshal(plain[sealedHeader:], payload); err != nil {
		return ErrForged // sealed by another release
	}
	return nil
}

// NewID returns a random id for the payload of a sealed text.
func (g *Guard) NewID() (string, error) {
	var raw [16]byte
	if _, err := io.ReadFull(g.options.Random, raw[:]); err != nil {
		return "", fmt.Errorf("draw an id: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(raw[:]), nil
}

// bindingHash returns the hash of what a sealed value is bound to. Nil stands for a value that is bound to no
// visitor.
func bindingHash(v *Visitor) [sha256.Size]byte {
	if v == nil {
		return [sha256.Size]byte{}
	}
	return sha256.Sum256([]byte(v.binding))
}
