package soak

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"time"

	"stagedoor/http/admin"
	"stagedoor/http/adminapi"
	"stagedoor/state/identity"
)

// key is a gateway key as its operator knows it.
type key struct {
	id      string
	secret  string
	made    verdict
	ended   verdict // refused: it was not revoked
	off     verdict // refused: it is enabled
	counted bool    // a check has found it
}

// keeper makes and revokes gateway keys as the operator's commands do.
type keeper struct {
	soak   *soak
	random *rand.Rand
	keys   []*key
	fresh  int // index of the first key that no check has seen
}

// operate calls the control socket of the process under test. The error is errLost if the process died during the call,
// which may then have been carried out.
func (s *soak) operate(do func(c *admin.Client) error) error {
	err := do(s.control)
	var transport *url.Error
	if errors.As(err, &transport) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: %w", errLost, err)
	}
	return err
}

// keyPace leaves the processor to the others.
const keyPace = 10 * time.Millisecond

// step makes, switches, revokes or uses a key.
func (k *keeper) step(ctx context.Context) error {
	var err error
	switch n := k.random.IntN(10); {
	case n < 4 || len(k.keys) == 0:
		err = k.create(ctx)
	case n < 5:
		err = k.toggle(ctx, k.keys[k.random.IntN(len(k.keys))])
	case n < 7:
		err = k.revoke(ctx, k.keys[k.random.IntN(len(k.keys))])
	default:
		err = k.use(ctx, k.keys[k.random.IntN(len(k.keys))])
	}
	if err != nil {
		return err
	}
	return pause(ctx, time.Duration(k.random.Int64N(int64(keyPace))))
}

// create adds a key over the control socket.
func (k *keeper) create(ctx context.Context) error {
	secret, record, err := identity.NewKey(time.Now(), crand.Reader)
	if err != nil {
		return err
	}
	record.Name = "soak"
	one := &key{id: record.ID, secret: secret, ended: refused, off: refused}
	k.keys = append(k.keys, one)
	if err := k.soak.operate(func(c *admin.Client) error { return c.AddKey(ctx, record) }); err != nil {
		return k.unless(err, "create a key")
	}
	one.made = accepted
	return nil
}

// revoke revokes a key over the API of administration.
func (k *keeper) revoke(ctx context.Context, one *key) error {
	if !one.settled() || one.ended == accepted || one.off == accepted {
		return nil // a key that is off does not show whether it was revoked
	}
	one.ended = unknown
	err := k.soak.operate(func(c *admin.Client) error {
		return c.API().Do(ctx, http.MethodDelete, "/keys/"+one.id, nil, nil, &adminapi.Key{})
	})
	if err != nil {
		return k.unless(err, "revoke a key")
	}
	one.ended = accepted
	return nil
}

// settled reports whether everything is known of a key that was made. Only one fact of a key may be unknown at a time,
// because a single use decides it.
func (o *key) settled() bool {
	return o.made == accepted && o.ended != unknown && o.off != unknown
}

// toggle disables a key or enables it again.
func (k *keeper) toggle(ctx context.Context, one *key) error {
	if !one.settled() || one.ended == accepted {
		return nil
	}
	before := one.off
	one.off = unknown
	a, err := k.soak.gateway.administer(ctx, http.MethodPatch, "/keys/"+one.id,
		fmt.Sprintf(`{"enabled":%t}`, before == accepted))
	if err != nil {
		return err
	}
	if a.status != http.StatusOK {
		k.soak.wrong("change key %s: %s", one.id, &a)
	}
	one.off = accepted
	if before == accepted {
		one.off = refused
	}
	return nil
}

// unless returns errLost, which ends the turn of the writer, and notes any other error as a fault of the gateway.
func (k *keeper) unless(err error, what string) error {
	if errors.Is(err, errLost) {
		return err
	}
	k.soak.wrong("%s: %v", what, err)
	return nil
}

// use lists the models with a key, which costs nothing, and compares whether the key works with what is known of it.
// The one fact that may be unknown is decided by the answer.
func (k *keeper) use(ctx context.Context, one *key) error {
	a, err := k.soak.gateway.get(ctx, "/v1/models", one.secret)
	if err != nil {
		return err
	}
	works := a.status == http.StatusOK
	if !works && a.status != http.StatusUnauthorized {
		k.soak.wrong("key %s: %s", one.id, &a)
		return nil
	}
	for _, open := range []struct {
		fact *verdict
		done bool // if the key works
	}{{&one.made, works}, {&one.ended, !works}, {&one.off, !works}} {
		if *open.fact != unknown {
			continue
		}
		*open.fact = refused
		if open.done {
			*open.fact = accepted
		}
		k.soak.settled(open.done)
	}
	if want := one.made == accepted && one.ended == refused && one.off == refused; works != want {
		k.soak.wrong("key %s (created %v, revoked %v, disabled %v): %s", one.id, one.made == accepted,
			one.ended == accepted, one.off == accepted, &a)
	}
	return nil
}

// check uses the keys that no check has seen, those whose change is in doubt and a sample of the others.
func (k *keeper) check(ctx context.Context, all bool) error {
	from := k.fresh
	if all {
		from = 0
	}
	for _, one := range k.keys[from:] {
		known := one.made == accepted
		if err := k.use(ctx, one); err != nil {
			return err
		}
		if known && !one.counted {
			one.counted = true
			k.soak.found("keys")
		}
	}
	k.fresh = len(k.keys)
	for _, one := range k.keys[:from] {
		if one.ended == unknown || one.off == unknown || k.random.IntN(20) == 0 {
			if err := k.use(ctx, one); err != nil {
				return err
			}
		}
	}
	return nil
}
