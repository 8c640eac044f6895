// Package password hashes and checks passwords with argon2id (decisions, Users:
// 19 MiB, two passes, one lane), a bounded number at a time: one hash costs some
// 20 ms and 19 MiB, so whoever could start many at once could stop the gateway.
//
// It is not for random secrets, which need no work (state.Hash), and it keeps
// nothing: what Hash returns is for its caller to store.
package password

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"golang.org/x/crypto/argon2"
)

// Limits of a Hasher.
const (
	Parallel = 2  // hashes at a time
	Queue    = 32 // calls that wait for their turn
)

// ErrBusy: too many wait already.
var ErrBusy = errors.New("too many passwords are being checked")

// Hasher hashes in turn. Any goroutine may use it; a process wants one.
type Hasher struct {
	slots chan struct{}
	calls atomic.Int64 // running and waiting
	dummy func() hash
}

// New returns an idle Hasher.
func New() *Hasher {
	return &Hasher{slots: make(chan struct{}, Parallel), dummy: sync.OnceValue(newDummy)}
}

// newDummy is a hash that no password has, to be compared with where there is
// none: drawn instead of computed, so that the first unknown user costs no more
// than the next.
func newDummy() hash {
	h := hash{cost: standard, salt: make([]byte, saltSize), sum: make([]byte, sumSize)}
	rand.Read(h.salt)
	rand.Read(h.sum)
	return h
}

// Hash returns a new salted hash of password as a PHC string. It waits for its
// turn: ErrBusy, or the cause of ctx.
func (h *Hasher) Hash(ctx context.Context, password string) (string, error) {
	fresh := hash{cost: standard, salt: make([]byte, saltSize)}
	rand.Read(fresh.salt)
	err := h.turn(ctx, func() { fresh.sum = fresh.of(password, sumSize) })
	if err != nil {
		return "", err
	}
	return fresh.String(), nil
}

// Verify tells whether stored is a hash of password. Where there is no user
// stored is "": the answer is no, after the same work as for one.
func (h *Hasher) Verify(ctx context.Context, stored, password string) (bool, error) {
	known := stored != ""
	want := h.dummy()
	if known {
		var err error
		if want, err = parse(stored); err != nil {
			return false, fmt.Errorf("stored password: %w", err)
		}
	}
	var same int
	err := h.turn(ctx, func() {
		same = subtle.ConstantTimeCompare(want.of(password, len(want.sum)), want.sum)
	})
	return err == nil && known && same == 1, err
}

// turn runs work when fewer than Parallel others run.
func (h *Hasher) turn(ctx context.Context, work func()) error {
	defer h.calls.Add(-1)
	if h.calls.Add(1) > Parallel+Queue {
		return ErrBusy
	}
	select {
	case h.slots <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-h.slots }()
	if ctx.Err() != nil {
		return context.Cause(ctx) // its turn came with the end
	}
	work()
	return nil
}

func (h *hash) of(password string, size int) []byte {
	return argon2.IDKey([]byte(password), h.salt, h.passes, h.memory, h.lanes, uint32(size))
}
