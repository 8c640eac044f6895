package tokens

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
)

// sealSuccessor encrypts the tokens that replace old with a key derived from old. The store has the result and not
// the key, so that the store alone reveals no token.
func sealSuccessor(old string, f fresh) []byte {
	aead, err := successorBox(old)
	if err != nil {
		return nil // there is no grace then
	}
	plain := append(append([]byte(nil), f.access...), f.refresh...)
	return aead.Seal(nil, make([]byte, aead.NonceSize()), plain, f.family[:])
}

// openSuccessor decrypts the result of sealSuccessor.
func openSuccessor(old string, fam family, box []byte) (fresh, bool) {
	aead, err := successorBox(old)
	if err != nil {
		return fresh{}, false
	}
	plain, err := aead.Open(nil, make([]byte, aead.NonceSize()), box, fam[:])
	if err != nil || len(plain) != 2*entropy {
		return fresh{}, false
	}
	return fresh{family: fam, access: plain[:entropy], refresh: plain[entropy:]}, true
}

// successorBox returns the cipher for a token. Each key encrypts once, because a token has one successor, so the
// nonce may be constant.
func successorBox(old string) (cipher.AEAD, error) {
	key, err := hkdf.Key(sha256.New, []byte(old), nil, "stagedoor refresh successor", 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}
