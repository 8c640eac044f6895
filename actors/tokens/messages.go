package tokens

import (
	"context"
	"errors"
	"net/netip"

	"stagedoor/actors/kit"
	"stagedoor/state"
	"stagedoor/state/identity"
)

// hashedCredentials is ClientCredentials with the secret hashed.
type hashedCredentials struct {
	id     string
	secret state.Hash
	guess  bool // the client sent a secret
	from   netip.Addr
}

// hashed replaces the secret by its hash, so that no message contains a secret.
func (c ClientCredentials) hashed() *hashedCredentials {
	return &hashedCredentials{id: c.ID, secret: state.HashSecret(c.Secret), guess: c.Secret != "", from: c.From}
}

type (
	// deciding carries a command. Its reply is sent when the command is durable.
	deciding struct {
		kit.Reply[struct{}]
		ctx    context.Context
		client *hashedCredentials // the client that must be authenticated first, or nil
		app    string             // the name of the client, once it is authenticated
		run    func(*state.Tx) error
		// refusal is the reply of a command that refuses and still changes something.
		refusal error
	}
	// authenticating asks for the app of a client whose secret is right.
	authenticating struct {
		kit.Reply[identity.App]
		client *hashedCredentials
	}
	// admitting asks whether a login may be tried. The caller then sends a settling message.
	admitting struct {
		kit.Reply[struct{}]
		subjects []subject
	}
	// settling reports the outcome of a login.
	settling struct {
		subjects []subject
		outcome  outcome
	}
)

// backlog is the number of messages that may wait for the actor.
const backlog = 4096

func (*deciding) Lane() kit.Lane       { return kit.LaneAcquire }
func (*authenticating) Lane() kit.Lane { return kit.LaneAcquire }
func (*admitting) Lane() kit.Lane      { return kit.LaneAcquire }
func (*settling) Lane() kit.Lane       { return kit.LaneRelease }

// IgnoreDeadLetterLogging implements kit's marker of messages that may arrive after the actor has ended.
func (*settling) IgnoreDeadLetterLogging() {}

// execute runs the command under the name of its caller, unless the caller has left. The state's writer calls it, once
// or several times, of which only the last run counts. The changes of a keptRefusal are committed, and done sends the
// refusal as the reply.
func (m *deciding) execute(tx *state.Tx) error {
	m.refusal = nil
	if m.ctx.Err() != nil {
		return context.Cause(m.ctx) // the caller has left
	}
	actor := state.ActorOf(m.ctx)
	if m.client != nil {
		actor = actor.As(state.ActorApp, m.app)
	}
	tx.ActAs(actor)
	err := m.run(tx)
	if k, ok := err.(*keptRefusal); ok {
		m.refusal = k.refusal
		return nil
	}
	return err
}

// done sends the reply. The state's writer calls it.
func (m *deciding) done(err error) {
	if err == nil {
		err = m.refusal
	}
	m.Resolve(struct{}{}, err)
}

// keptRefusal is the error of a command whose changes are committed although it refuses.
type keptRefusal struct{ refusal error }

func (k *keptRefusal) Error() string { return k.refusal.Error() }

// decide sends a command through the actor and returns its result once that is durable.
func decide[T any](ctx context.Context, c *Client, client *hashedCredentials,
	cmd func(*state.Tx) (T, error)) (T, error) {
	var result T
	m := &deciding{ctx: ctx, client: client}
	m.run = func(tx *state.Tx) (err error) {
		result, err = cmd(tx)
		return err
	}
	if _, err := kit.Ask(ctx, c.system, c.pid, m); err != nil {
		var none T
		return none, ownError(ctx, err)
	}
	return result, nil
}

// askAdmission asks the limiter to admit a login. It waits for the reply even if ctx ends, because a caller that
// left would not know whether it must report an outcome. The reply takes microseconds.
func askAdmission(ctx context.Context, c *Client, subjects []subject) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if _, err := kit.Ask(context.WithoutCancel(ctx), c.system, c.pid, &admitting{subjects: subjects}); err != nil {
		return ownError(ctx, err)
	}
	return nil
}

// do sends a command without a result through the actor, as decide does.
func do(ctx context.Context, c *Client, client *hashedCredentials, cmd func(*state.Tx) error) error {
	_, err := decide(ctx, c, client, func(tx *state.Tx) (struct{}, error) { return struct{}{}, cmd(tx) })
	return err
}

// ownError returns the error that callers of the Client get for err. An *Error of this package and the cause of ctx
// stay as they are. Any other error of the state becomes ErrUnavailable joined with err, which is for the log.
func ownError(ctx context.Context, err error) error {
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
