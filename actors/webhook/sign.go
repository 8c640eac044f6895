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

// secretPrefix marks a signing secret; base64 of the key follows.
const secretPrefix = "whsec_"

// Bounds of a key, as Standard Webhooks recommends them.
const (
	minKey = 24
	maxKey = 64
)

// errSecret says what a secret must look like, and nothing of the one given.
var errSecret = errors.New("expected whsec_ and then 24 to 64 random bytes in base64, for example what printf 'whsec_%s' \"$(openssl rand -base64 32)\" prints")

// ParseSecret reads a signing secret.
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

// signature is the value of the header webhook-signature. It is made by hand: the
// scheme's own library offers this one function to a sender, formats the whole
// body to get at it, and has had no release that is more than a snapshot.
func signature(key []byte, id string, at time.Time, body []byte) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id))
	mac.Write([]byte{'.'})
	mac.Write(strconv.AppendInt(nil, at.Unix(), 10))
	mac.Write([]byte{'.'})
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
