package tokens

import (
	"context"
	"errors"
	"net/netip"

	"stagedoor/actors/kit"
	"stagedoor/state"
)

// identity is what a client says of itself: ClientCredentials with the secret
// hashed.
type identity struct {
	id     string
	secret state.Hash
	guess  bool // it sent a secret at all
	from   netip.Addr
}

func (c ClientCredentials) identity() *identity {
	return &identity{id: c.ID, secret: state.HashSecret(c.Secret), guess: c.Secret != "", from: c.From}
}

type (
	// deciding carries a command, to be answered when it is durable.
	deciding struct {
		kit.Reply[struct{}]
		ctx    context.Context
		client *identity // who must authenticate first; nil: nobody
		run    func(*state.Tx) error
		// refusal is the answer of a command that refuses and changes something.
		refusal error
	}
	// authenticating asks whether a client is who it says.
	authenticating struct {
		kit.Reply[state.App]
		client *identity
	}
	// admitting asks whether a login may be tried; it is to be settled then.
	admitting struct {
		kit.Reply[struct{}]
		subjects []subject
	}
	// settling tells how a login ended.
	settling struct {
		subjects []subject
		outcome  outcome
	}
)

// backlog bounds what the actor has not looked at yet.
const backlog = 4096

func (*deciding) Lane() kit.Lane       { return kit.LaneAcquire }
func (*authenticating) Lane() kit.Lane { return kit.LaneAcquire }
func (*admitting) Lane() kit.Lane      { return kit.LaneAcquire }
func (*settling) Lane() kit.Lane       { return kit.LaneRelease }

// IgnoreDeadLetterLogging marks a message that may find the actor gone.
func (*settling) IgnoreDeadLetterLogging() {}

// execute runs the command as the state's writer does, once or several times. Only the last run counts.
func (m *deciding) execute(tx *state.Tx) error {
	m.refusal = nil
	if m.ctx.Err() != nil {
		return context.Cause(m.ctx) // nobody waits for it any more
	}
	err := m.run(tx)
	if k, ok := err.(*kept); ok {
		m.refusal = k.refusal
		return nil
	}
	return err
}

// done answers, in the place of state's writer.
func (m *deciding) done(err error) {
	if err == nil {
		err = m.refusal
	}
	m.Resolve(struct{}{}, err)
}

// kept is what a command returns whose changes are to be kept although it
// refuses.
type kept struct{ refusal error }

func (k *kept) Error() string { return k.refusal.Error() }

// decide sends a command through the actor and returns what it returned, once
// that is durable.
func decide[T any](ctx context.Context, c *Client, client *identity, cmd func(*state.Tx) (T, error)) (T, error) {
	var result T
	m := &deciding{ctx: ctx, client: client}
	m.run = func(tx *state.Tx) (err error) {
		result, err = cmd(tx)
		return err
	}
	if _, err := kit.Ask(ctx, c.system, c.pid, m); err != nil {
		var none T
		return none, told(ctx, err)
	}
	return result, nil
}

// askAdmission asks the limiter to let a login in. It waits for the answer
// whatever becomes of ctx, it is a matter of microseconds: who left in between
// would not know whether there is something to settle.
func askAdmission(ctx context.Context, c *Client, subjects []subject) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if _, err := kit.Ask(context.WithoutCancel(ctx), c.system, c.pid, &admitting{subjects: subjects}); err != nil {
		return told(ctx, err)
	}
	return nil
}

// do is decide for commands without a result.
func do(ctx context.Context, c *Client, client *identity, cmd func(*state.Tx) error) error {
	_, err := decide(ctx, c, client, func(tx *state.Tx) (struct{}, error) { return struct{}{}, cmd(tx) })
	return err
}

// told makes one of this package's errors of any error. What the state refuses
// for reasons of its own is for the log.
func told(ctx context.Context, err error) error {
	var own *Error
	switch {
	case errors.As(err, &own):
		return err
	case ctx.Err() != nil && errors.Is(err, context.Cause(ctx)):
		return err
	case errors.Is(err, state.ErrExists):
		return ErrExists
	}
	return errors.Join(ErrUnavailable, err)
}
