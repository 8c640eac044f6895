package password

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/crypto/argon2"
)

const (
	saltSize = 16
	sumSize  = 32
)

// cost holds the work factors of a hash.
type cost struct {
	memory uint32 // KiB
	passes uint32
	lanes  uint8
}

var standard = cost{memory: 19 << 10, passes: 2, lanes: 1}

// most bounds what a stored hash may ask for.
var most = cost{memory: 256 << 10, passes: 16, lanes: 8}

// hash is a PHC string taken apart:
//
//	$argon2id$v=19$m=19456,t=2,p=1$<salt>$<sum>
type hash struct {
	cost
	salt, sum []byte
}

var errPHC = errors.New("not an argon2id hash")

// String returns the hash in the PHC string format, which names its own parameters.
func (h *hash) String() string {
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, h.memory, h.passes, h.lanes,
		base64.RawStdEncoding.EncodeToString(h.salt), base64.RawStdEncoding.EncodeToString(h.sum))
}

// parse reads a hash in the PHC string format. It accepts only argon2id in the present version.
func parse(s string) (hash, error) {
	parts := strings.Split(s, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" || parts[2] != "v="+strconv.Itoa(argon2.Version) {
		return hash{}, errPHC
	}
	var h hash
	var err error
	if h.cost, err = parseCost(parts[3]); err != nil {
		return hash{}, err
	}
	if h.salt, err = parseBytes(parts[4], 8, 64); err != nil {
		return hash{}, err
	}
	h.sum, err = parseBytes(parts[5], 16, 64)
	return h, err
}

// parseCost reads the parameters. They are bounded, because a hash that was put into the store by hand could
// otherwise take all memory at each sign-in.
func parseCost(s string) (cost, error) {
	fields := strings.Split(s, ",")
	names := [...]string{"m=", "t=", "p="}
	limits := [...]uint32{most.memory, most.passes, uint32(most.lanes)}
	if len(fields) != len(names) {
		return cost{}, errPHC
	}
	var values [len(names)]uint32
	for i, field := range fields {
		digits, ok := strings.CutPrefix(field, names[i])
		n, err := strconv.ParseUint(digits, 10, 32)
		if !ok || err != nil || n == 0 || uint32(n) > limits[i] {
			return cost{}, errPHC
		}
		values[i] = uint32(n)
	}
	return cost{memory: values[0], passes: values[1], lanes: uint8(values[2])}, nil
}

// parseBytes reads base64 of a bounded length.
func parseBytes(s string, least, most int) ([]byte, error) {
	b, err := base64.RawStdEncoding.DecodeString(s)
	if err != nil || len(b) < least || len(b) > most {
		return nil, errPHC
	}
	return b, nil
}
