package dialogue

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"regexp"
	"strings"
)

// Sealer wraps data that an upstream wants back in the next turn (signatures, redacted or
// encrypted reasoning) in a string that a client of another shape sends back as it is. It
// opens only strings that a Sealer with the same secret made. It is safe for concurrent use.
type Sealer struct {
	key     [32]byte
	adopted map[string]string // codes of values that another Sealer made
}

var sealedValue = regexp.MustCompile(`sd1\.[a-z]*\.[\w-]+\.[\w-]+|c2QxL[\w+/=-]+`)

// Adopt makes s open the sealed values in text although another secret made them, and return the same values when it
// seals their content again. It is for replaying what another gateway has recorded, and is called before s is used.
func (s *Sealer) Adopt(text []byte) {
	if s.adopted == nil {
		s.adopted = make(map[string]string)
	}
	for _, v := range sealedValue.FindAll(text, -1) {
		if sealed := decoded(string(v)); strings.Count(sealed, ".") == 3 {
			cut := strings.LastIndexByte(sealed, '.')
			s.adopted[sealed[:cut]] = sealed[cut+1:]
		}
	}
}

// NewSealer returns a Sealer whose key is derived from secret. Gateways that serve the same
// conversations need the same secret.
func NewSealer(secret []byte) *Sealer {
	return &Sealer{key: sha256.Sum256(append([]byte("stagedoor seal v1:"), secret...))}
}

const (
	sealPrefix = "sd1."
	// encodedPrefix begins every value of SealBase64.
	encodedPrefix = "c2QxL"
)

// maxSealed bounds the input of Open. Upstreams have sent signatures of megabytes.
const maxSealed = 32 << 20

// Seal returns "sd1.<origin>.<payload>.<mac>". It has only letters, digits, '-', '_' and '.',
// so that every shape's field can carry it.
func (s *Sealer) Seal(t *Thinking) string {
	payload, _ := json.Marshal(t) // strings only: cannot fail
	body := sealPrefix + string(t.Origin) + "." + base64.RawURLEncoding.EncodeToString(payload)
	return body + "." + s.mac(body)
}

// SealBase64 returns the value of Seal in standard base64 with padding, for shapes whose clients
// decode the field that carries it.
func (s *Sealer) SealBase64(t *Thinking) string {
	return base64.StdEncoding.EncodeToString([]byte(s.Seal(t)))
}

// decoded returns the value of Seal that v is, or stands for in base64. Clients that decode a value
// may write it again in the URL-safe alphabet or without padding.
func decoded(v string) string {
	if !strings.HasPrefix(v, encodedPrefix) || len(v) > base64.StdEncoding.EncodedLen(maxSealed) {
		return v
	}
	plain, err := base64.RawURLEncoding.DecodeString(
		strings.NewReplacer("+", "-", "/", "_").Replace(strings.TrimRight(v, "=")))
	if err != nil {
		return v
	}
	return string(plain)
}

// Open returns the value that Seal or SealBase64 got, or false if v was not made with this secret
// or was changed.
func (s *Sealer) Open(v string) (*Thinking, bool) {
	v = decoded(v)
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

// Sealed reports whether v looks like the output of any gateway's Seal. Such a value must not
// be sent to an upstream.
func Sealed(v string) bool {
	return strings.HasPrefix(v, sealPrefix) || strings.HasPrefix(v, encodedPrefix)
}

// HasSeal reports whether JSON has a string that Sealed accepts. It is a cheap test for whether a
// body must be searched.
func HasSeal(text []byte) bool {
	return bytes.Contains(text, []byte(`"`+sealPrefix)) || bytes.Contains(text, []byte(`"`+encodedPrefix))
}

// mac returns the code that authenticates body.
func (s *Sealer) mac(body string) string {
	if code, ok := s.adopted[body]; ok {
		return code
	}
	m := hmac.New(sha256.New, s.key[:])
	m.Write([]byte(body))
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil)[:16])
}
