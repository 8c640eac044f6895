package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strconv"
	"strings"
	"time"
)

// secretPrefix begins a signing secret. The key follows in base64.
const secretPrefix = "whsec_"

// Limits of a key, as Standard Webhooks recommends them.
const (
	minKey = 24
	maxKey = 64
)

// errSecret describes the form of a secret and does not repeat the given one.
var errSecret = errors.New(
	"expected whsec_ and then 24 to 64 random bytes in base64, for example what " +
		"printf 'whsec_%s' \"$(openssl rand -base64 32)\" prints",
)

// ParseSecret returns the key of a signing secret. The form is that of Standard Webhooks: "whsec_" and 24 to 64 bytes
// in base64. Anything else is refused with an error that does not repeat the secret, because the error is printed with
// the configuration.
func ParseSecret(secret string) (key []byte, err error) {
	text, ok := strings.CutPrefix(secret, secretPrefix)
	if !ok {
		return nil, errSecret
	}
	key, err = base64.StdEncoding.DecodeString(text)
	if err != nil || len(key) < minKey || len(key) > maxKey {
		return nil, errSecret
	}
	return key, nil
}

// signature returns the value of the header webhook-signature. It does not use the scheme's own library, because that
// offers a sender only this function, formats the whole body for it, and has no release beyond a snapshot.
func signature(key []byte, id string, at time.Time, body []byte) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id))
	mac.Write([]byte{'.'})
	mac.Write(strconv.AppendInt(nil, at.Unix(), 10))
	mac.Write([]byte{'.'})
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
