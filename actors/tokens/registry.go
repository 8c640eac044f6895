package tokens

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"stagedoor/state"
	"stagedoor/state/identity"
)

// registry is the actor. Only Receive uses its fields. A restart loses the limiter's counts, which are its only
// state. The state has the commands in progress and answers them.
type registry struct {
	state   *state.State
	now     func() time.Time
	limiter *limiter
}

// Receive implements actor.Actor.
func (r *registry) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *deciding:
		r.decide(m)
	case *authenticating:
		m.Resolve(r.authenticate(m.client))
	case *admitting:
		r.admit(m)
	case *settling:
		r.limiter.finish(r.now(), m.outcome, m.subjects...)
	}
}

// decide submits a command, unless its client fails authentication. The command is not looked at then, so that a
// client cannot use up the code of another.
func (r *registry) decide(m *deciding) {
	if m.client != nil {
		app, err := r.authenticate(m.client)
		if err != nil {
			m.Resolve(struct{}{}, err)
			return
		}
		m.app = app.Name
	}
	if err := state.Submit(r.state, m.execute, m.done); err != nil {
		m.Resolve(struct{}{}, err)
	}
}

// authenticate returns the app of a client whose secret is right, and counts a wrong secret in the limiter. The failure
// of an unknown client counts only for its address, and a request without a secret is not a guess.
func (r *registry) authenticate(client *hashedCredentials) (identity.App, error) {
	app, err := authenticate(r.state.View(), client)
	if err == nil || !client.guess {
		return app, err
	}
	now, subjects := r.now(), []subject{addressSubject(bySecretAddress, client.from)}
	if app.ID != 0 {
		subjects = append(subjects, subject{byApp, client.id})
	}
	if wait := r.limiter.wait(now, subjects...); wait > 0 {
		return app, &Limited{RetryAfter: wait}
	}
	r.limiter.fail(now, subjects...)
	return app, err
}

// admit replies at once. It runs in the actor, so that attempts at the same time are counted one
// after the other.
func (r *registry) admit(m *admitting) {
	if wait := r.limiter.admit(r.now(), m.subjects...); wait > 0 {
		m.Resolve(struct{}{}, &Limited{RetryAfter: wait})
		return
	}
	m.Resolve(struct{}{}, nil)
}

// authenticate finds the app and compares its secret, in the same time for every result. With ErrInvalidClient it
// returns the app of the client id, if there is one.
func authenticate(v state.View, client *hashedCredentials) (identity.App, error) {
	app, ok := identity.FindAppByClientID(v, client.id)
	if good := app.Authenticates(client.secret, v.Now()); !good || !ok || !client.guess || !app.Disabled.IsZero() {
		return app, ErrInvalidClient
	}
	return app, nil
}
