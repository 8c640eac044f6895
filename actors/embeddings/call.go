package embeddings

import (
	"context"
	"errors"
	"io"
	"net/http"

	"stagedoor/actors/engine"
	"stagedoor/actors/recording"
	"stagedoor/actors/telemetry"
	"stagedoor/actors/throttle"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/memory"
	"stagedoor/providers/shapes"
	"stagedoor/providers/shapes/embeddings"
	"stagedoor/providers/upstream"
	"stagedoor/providers/vector"
)

const (
	// maxReply bounds the reply to one call. 2,048 vectors of 3,072 numbers are about 80 MB.
	maxReply = 128 << 20
	// holdBack bounds the bytes of a passed-through reply that are held until it ends. A failure up to then is an
	// error of the client's shape, and may lead to another attempt.
	holdBack = 256 << 10
)

var errTooLong = errors.New("a reply of more than 128 MiB")

// call is one call of an upstream.
type call struct {
	*attempt
	call   shapes.Call
	batch  vector.Batch
	reply  *vector.Reply
	memory memory.Claim // for what reply points into

	accepted bool // by the upstream
	usage    dialogue.Usage
	model    string // that the reply names
	counted  int64  // the gateway's own count of the input, once it is needed
}

// take records that the upstream has accepted the call, with the usage and the model that it has reported so far.
func (k *call) take(u dialogue.Usage, model string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.accepted, k.usage, k.model = true, u, model
}

// perform makes the call, calls read with its reply, and ends both. The key of the provider is judged by the
// reply (JudgeKey), so that one that is refused rests for a while. If read panics, traces and metrics have the
// call as a failure of the gateway.
func (k *call) perform(ctx context.Context, read func(r *upstream.Reply) error) (f *upstream.Failure) {
	c := k.c
	ctx, seen := k.beginCall(ctx)                  // of which read needs nothing
	f = engine.CallerFault(dialogue.Internal(nil)) // stands if what follows panics
	defer func() { k.endCall(seen, f) }()
	if k.svc.engine.Telemetry().Propagates(c.Provider.Name) {
		if k.call.Header == nil {
			k.call.Header = make(http.Header, 1)
		}
		telemetry.Inject(ctx, k.call.Header.Set)
	}
	key := c.Runtime.TakeKey(k.svc.env.Now(), c.Model)
	kept := recording.From(ctx).Call(&k.call)
	sent := k.call
	sent.Header = sent.Header.Clone()
	reply, err := c.Runtime.Client.Do(ctx, sent, k.dialect.Authorize, key)
	kept.Answered(reply, err)
	if err != nil {
		return engine.FailureOf(err)
	}
	defer reply.Close()
	c.Notice(reply)
	if f = k.refusal(reply); f == nil {
		k.take(dialogue.NoUsage, "")
		if err := read(reply); err != nil {
			f = k.failed(reply, err)
		}
	}
	c.Runtime.JudgeKey(key, c.Model, f, k.svc.env.Now())
	return f
}

// refusal returns the failure of a reply whose status is an error, or nil.
func (k *call) refusal(reply *upstream.Reply) *upstream.Failure {
	if reply.Status == http.StatusOK {
		return nil
	}
	body, err := reply.ReadAll(nil)
	if err != nil && len(body) == 0 {
		body = nil // the status is enough
	}
	decoded := k.dialect.DecodeError(reply.Status, reply.Header, body)
	return upstream.Refused(k.request.Inbound.Shape.Traits, reply.Status, reply.Header, decoded,
		k.c.Runtime.Secrets()...)
}

// failed returns the failure for an error that was met while a reply was read. A *dialogue.Error comes from
// the reply itself, which is then an error in the form of a success. Anything else is a failure of the
// connection.
func (k *call) failed(reply *upstream.Reply, err error) *upstream.Failure {
	var f *upstream.Failure
	var e *dialogue.Error
	switch {
	case errors.As(err, &f):
		return f
	case errors.As(err, &e):
		return k.refused(e)
	case errors.Is(err, errTooLong):
		return &upstream.Failure{Class: upstream.CallerFault, Err: dialogue.BadUpstream(err.Error())}
	}
	return reply.Failed(err)
}

// forward makes the only call and passes its reply on while it arrives. The tap puts the client's name of the
// model in place of the upstream's, if they differ, and reads the usage. Nothing is sent before the reply has
// ended or has more than holdBack bytes, and the last piece is sent after the money was settled.
func (k *call) forward(ctx context.Context) *upstream.Failure {
	name := ""
	if k.c.Model != k.request.Vectors.Model {
		name = k.request.Vectors.Model
	}
	return k.perform(ctx, func(reply *upstream.Reply) error {
		tap := vector.NewTap(k.dialect, name)
		var held []byte
		err := eachPiece(reply, func(piece []byte) (err error) {
			var bad *dialogue.Error
			if held, bad = tap.Next(held, piece); bad != nil {
				return bad
			}
			if len(held) > holdBack || k.sink.Committed() && len(held) > 0 {
				held, err = nil, asError(k.send(ctx, held, false))
			}
			return err
		})
		if err != nil {
			return err
		}
		if bad := tap.End(); bad != nil {
			return bad
		}
		k.take(tap.Usage(), tap.Model())
		if f := k.settle(ctx); f != nil {
			return f
		}
		return asError(k.send(ctx, held, true))
	})
}

// asError returns f as an error that is nil if f is.
func asError(f *upstream.Failure) error {
	if f == nil {
		return nil
	}
	return f
}

// eachPiece reads a reply to its end. The slice that f gets is only valid during the call. An error of f ends
// the reading and is returned as it is.
func eachPiece(reply *upstream.Reply, f func(piece []byte) error) error {
	body, err := reply.Body()
	if err != nil {
		return err
	}
	buf, total := make([]byte, 32<<10), 0
	for {
		n, err := body.Read(buf)
		if total += n; total > maxReply {
			return errTooLong
		}
		if bad := f(buf[:n]); bad != nil {
			return bad
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// join makes all calls and writes the reply that their vectors give. The first call has the permit p. The
// claims on memory end with it: the vectors of a reply are slices of its body, which must stay until they are
// written.
func (a *attempt) join(ctx context.Context, p *throttle.Permit) *upstream.Failure {
	defer func() {
		for _, k := range a.calls {
			k.memory.End()
		}
	}()
	source, f := a.source(ctx, p)
	if f != nil {
		return f
	}
	a.note()
	err := vector.Write(a.request.Inbound, a.request.Vectors, source, a.outcome.Usage,
		func() error { return asError(a.settle(ctx)) },
		func(data []byte, last bool) error { return asError(a.send(ctx, data, last)) })
	var failed *upstream.Failure
	if err == nil || errors.As(err, &failed) {
		return failed
	}
	return a.refused(err)
}

// source makes all calls and returns where their vectors are. The Source must be called with rising numbers
// of inputs, which is what vector.Write does.
func (a *attempt) source(ctx context.Context, p *throttle.Permit) (vector.Source, *upstream.Failure) {
	if a.dialect == nil {
		return a.simulated(ctx)
	}
	f := engine.Calls(ctx, len(a.calls), func(ctx context.Context, i int) *upstream.Failure {
		k, permit := a.calls[i], p
		if i > 0 {
			permit = nil
		}
		return a.c.Call(ctx, permit, func() (int, *upstream.Failure) {
			f := k.readWhole(ctx)
			return int(dialogue.CountOrZero(k.usage.InputTotal)), f
		})
	})
	if f != nil {
		return nil, f
	}
	r, k := a.request.Vectors, 0
	return func(dst []byte, i int) ([]byte, error) { // in order of the inputs
		for i >= a.calls[k].batch.To {
			k++
		}
		return r.Form(dst, i, a.calls[k].reply.Vectors[i-a.calls[k].batch.From], a.dialect)
	}, nil
}

// simulated lets the embedded sandbox answer.
func (a *attempt) simulated(ctx context.Context) (vector.Source, *upstream.Failure) {
	k := a.calls[0]
	k.usage = dialogue.NoUsage
	ctx, seen := k.beginCall(ctx)
	source, usage, err := a.svc.simulate(ctx, a.request.Vectors, a.request.Header)
	var f *upstream.Failure
	switch {
	case ctx.Err() != nil:
		f = engine.Cancelled(ctx)
	case err != nil:
		f = a.refused(err)
	default:
		k.take(usage, "")
	}
	k.endCall(seen, f)
	return source, f
}

// readWhole makes one of several calls and keeps its vectors in the bytes of the reply.
func (k *call) readWhole(ctx context.Context) *upstream.Failure {
	k.memory = memory.NewClaim(k.svc.env.Memory, k.request.About.Owner)
	return k.perform(ctx, func(reply *upstream.Reply) error {
		var body []byte
		err := eachPiece(reply, func(piece []byte) error {
			if need := len(body) + len(piece); need > cap(body) {
				// The buffer doubles, so that all of them together take twice the last one.
				need = max(2*cap(body), need, int(min(reply.Length(), maxReply)))
				if err := k.memory.Grow(int64(need)); err != nil {
					return &upstream.Failure{Class: upstream.CallerFault, Err: dialogue.NoMemory(err)}
				}
				body = append(make([]byte, 0, need), body...)
			}
			body = append(body, piece...)
			return nil
		})
		if err != nil {
			return err
		}
		decoded, err := k.dialect.Decode(body, k.batch.Len())
		if err != nil {
			return err
		}
		k.reply = decoded
		k.take(decoded.Usage, decoded.Model)
		return nil
	})
}

// beginCall begins a call in traces and metrics.
func (k *call) beginCall(ctx context.Context) (context.Context, *telemetry.Call) {
	t := telemetry.Target{Operation: embeddings.Descriptor.Telemetry.Operation, Kind: telemetry.KindSandbox,
		Provider: k.c.Runtime.Spec.Name, Model: k.c.Model, Attempt: k.c.Number}
	if k.dialect != nil {
		t.Kind, t.Shape = k.dialect.Shape.Telemetry.Vendor, string(k.dialect.Shape.Name)
	}
	return k.c.Telemetry().BeginCall(ctx, t)
}

// endCall ends it.
func (k *call) endCall(c *telemetry.Call, f *upstream.Failure) {
	if c == nil {
		return
	}
	c.RecordUsage(k.usage)
	cost, failure := int64(0), ""
	if k.usage.InputTotal >= 0 {
		cost = k.c.Estimate(k.model, k.svc.env.Now()).Tokens(k.usage)
	}
	if f != nil {
		failure = throttle.KindOf(f.Class).String()
	}
	c.End(failure, cost)
}
