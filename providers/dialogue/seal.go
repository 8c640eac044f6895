package dialogue

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"
)

// Sealer wraps what an upstream wants back in the next turn (signatures,
// redacted or encrypted reasoning) into a string that another shape's client
// carries for it, and opens only what it sealed itself. Safe for concurrent use.
type Sealer struct{ key [32]byte }

// NewSealer derives its key from secret. Gateways that shall understand each
// other's carriers need the same secret.
func NewSealer(secret []byte) *Sealer {
	return &Sealer{key: sha256.Sum256(append([]byte("stagedoor seal v1:"), secret...))}
}

const sealPrefix = "sd1."

// maxSealed bounds what Open will look at. Signatures of megabytes were seen.
const maxSealed = 32 << 20

// Seal returns "sd1.<origin>.<payload>.<mac>", all of it base64url or plain
// letters, so that it survives every shape's carrier field.
func (s *Sealer) Seal(t *Thinking) string {
	payload, _ := json.Marshal(t) // strings only: cannot fail
	body := sealPrefix + string(t.Origin) + "." + base64.RawURLEncoding.EncodeToString(payload)
	return body + "." + s.mac(body)
}

// Open returns what Seal was given, or false if v is not one of this sealer's
// seals: foreign, forged or damaged.
func (s *Sealer) Open(v string) (*Thinking, bool) {
	if s == nil || !strings.HasPrefix(v, sealPrefix) || len(v) > maxSealed {
		return nil, false
	}
	cut := strings.LastIndexByte(v, '.')
	if !hmac.Equal([]byte(v[cut+1:]), []byte(s.mac(v[:cut]))) {
		return nil, false
	}
	parts := strings.Split(v[:cut], ".")
	if len(parts) != 3 {
		return nil, false
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil {
		return nil, false
	}
	t := new(Thinking)
	if json.Unmarshal(payload, t) != nil || t.Origin != Shape(parts[1]) {
		return nil, false
	}
	return t, true
}

// Sealed reports whether v looks like a seal of any gateway. Such a value must
// not be sent to an upstream, whoever sealed it.
func Sealed(v string) bool { return strings.HasPrefix(v, sealPrefix) }

func (s *Sealer) mac(body string) string {
	m := hmac.New(sha256.New, s.key[:])
	m.Write([]byte(body))
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil)[:16])
}
