// Package password hashes and checks passwords with argon2id (decisions, Users:
// 19 MiB, two passes, one lane), a bounded number at a time. One hash costs about
// 20 ms and 19 MiB, so a client that could start many at once could stop the gateway.
//
// It is not for random secrets, which need no work (state.Hash). It keeps nothing, so
// the caller stores what Hash returns.
//
// # Errors
//
// Hash and Verify return a *share.Refused of the pool "passwords" if the owner has its
// share of the places, or if all places are taken, and the cause of the end of ctx.
//
// # Format
//
// A stored hash is a PHC string: $argon2id$v=19$m=KiB,t=passes,p=lanes$salt$hash. The cost stands in it, so
// that a later version can raise the cost without making earlier hashes useless.
package password

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"fmt"
	"sync"

	"golang.org/x/crypto/argon2"

	"stagedoor/state/share"
)

// Limits of a Hasher.
const (
	Parallel = 2  // hashes at a time
	Queue    = 32 // calls that wait for their turn
)

// Hasher hashes Parallel passwords at a time. Any goroutine may use it. A process wants one.
type Hasher struct {
	cost   cost
	slots  chan struct{}
	places *share.Pool // of calls that run or wait
	dummy  func() hash
}

// New returns an idle Hasher.
func New() *Hasher { return newHasher(standard) }

// NewForTests returns an idle Hasher whose hashes take a thousandth of the time and protect nothing.
func NewForTests() *Hasher { return newHasher(cost{memory: 8, passes: 1, lanes: 1}) }

func newHasher(c cost) *Hasher {
	return &Hasher{
		cost:   c,
		slots:  make(chan struct{}, Parallel),
		places: share.New(share.Passwords, Parallel+Queue, 1),
		dummy:  sync.OnceValue(func() hash { return newDummy(c) }),
	}
}

// Places returns the pool of the calls that run or wait.
func (h *Hasher) Places() *share.Pool { return h.places }

// newDummy returns a hash that no password has. Verify compares with it where there is no
// stored hash. It is drawn at random and not computed, so that the first unknown user costs
// no more than the next.
func newDummy(c cost) hash {
	h := hash{cost: c, salt: make([]byte, saltSize), sum: make([]byte, sumSize)}
	rand.Read(h.salt)
	rand.Read(h.sum)
	return h
}

// Hash returns a new salted hash of password as a PHC string. It waits for a slot and counts for the owner while it
// waits and runs. The wait keeps many sign-ins at once from taking the machine's memory. The error is the cause of the
// end of ctx, or a *share.Refused if the owner has its share of the places or all are taken.
func (h *Hasher) Hash(ctx context.Context, owner, password string) (string, error) {
	fresh := hash{cost: h.cost, salt: make([]byte, saltSize)}
	rand.Read(fresh.salt)
	err := h.run(ctx, owner, func() { fresh.sum = fresh.of(password, sumSize) })
	if err != nil {
		return "", err
	}
	return fresh.String(), nil
}

// Verify reports whether stored is a hash of password. If stored is "", because there is no
// such user, it returns false after the same work. It counts for the owner as Hash does.
func (h *Hasher) Verify(ctx context.Context, owner, stored, password string) (bool, error) {
	known := stored != ""
	want := h.dummy()
	if known {
		var err error
		if want, err = parse(stored); err != nil {
			return false, fmt.Errorf("stored password: %w", err)
		}
	}
	var same int
	err := h.run(ctx, owner, func() {
		same = subtle.ConstantTimeCompare(want.of(password, len(want.sum)), want.sum)
	})
	return err == nil && known && same == 1, err
}

// run calls work when fewer than Parallel others run.
func (h *Hasher) run(ctx context.Context, owner string, work func()) error {
	if err := h.places.Take(owner, 1); err != nil {
		return err
	}
	defer h.places.Give(owner, 1)
	select {
	case h.slots <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-h.slots }()
	if ctx.Err() != nil {
		return context.Cause(ctx) // ctx ended as the slot became free
	}
	work()
	return nil
}

// of returns the sum of a password, of size bytes, with the salt and the cost of h.
func (h *hash) of(password string, size int) []byte {
	return argon2.IDKey([]byte(password), h.salt, h.passes, h.memory, h.lanes, uint32(size))
}
