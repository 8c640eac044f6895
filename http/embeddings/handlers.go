// Package embeddings has the handler of requests for embeddings, on the routes of both dialects: POST /v1/embeddings,
// and :embedContent and :batchEmbedContents below the models of generateContent. It checks, in the order of
// decisions.md, the key with its scope and limits, the body, the model and the tokens of the key, and then runs the
// request with actors/embeddings. A key needs the scope embeddings on all of these routes.
//
// # Usage
//
// The server passes Options and registers Handler for the routes of the Descriptor of each dialect. The handler needs
// no other state: limits, holds and retries belong to actors/engine, and the two dialects to the packages of their
// shapes (vector.Dialect).
//
// # Errors
//
// A request is refused as a whole, also if only one of its inputs breaks a rule, because the vendors do the same and
// clients match vectors with inputs by their place. Errors are written in the dialect of the route. A client that asks
// for a dry run gets the requests that would be sent (package dryrun).
package embeddings

import (
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"

	"go.opentelemetry.io/otel/trace"

	"stagedoor/actors/embeddings"
	"stagedoor/actors/engine"
	"stagedoor/actors/flow"
	"stagedoor/actors/ledger"
	"stagedoor/actors/meter"
	"stagedoor/actors/recording"
	"stagedoor/actors/telemetry"
	actorstext "stagedoor/actors/text"
	"stagedoor/actors/throttle"
	"stagedoor/http/accesslog"
	"stagedoor/http/attach"
	"stagedoor/http/auth"
	"stagedoor/http/dryrun"
	"stagedoor/http/envelope"
	"stagedoor/http/text"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/shapes"
	shape "stagedoor/providers/shapes/embeddings"
	"stagedoor/providers/vector"
	"stagedoor/state"
	"stagedoor/state/identity"
	"stagedoor/state/money"
)

// Options configure a handler.
type Options struct {
	Logger *slog.Logger
	Env    *dialogue.Env
	Auth   *auth.Authenticator
	// Requests runs the requests.
	Requests *embeddings.Service
	Dialects []*vector.Dialect
	// Catalog returns the current catalogue.
	Catalog func() *catalog.Catalog
	// Limits enforces the limits of keys.
	Limits *throttle.Keys
	// Ledger charges the users of keys for models that have a price.
	Ledger *ledger.Client
	// Attach, if not nil, keeps replies for clients that repeat or leave their requests.
	Attach *attach.Service
	// Flow has requests that were refused put into the log of requests. It may be nil.
	Flow *flow.Registry
	// Recorder keeps the requests of keys that are recorded. It may be nil.
	Recorder *recording.Recorder
}

// Handler returns the handler of the routes of all dialects.
func Handler(o Options) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		for _, d := range o.Dialects {
			if in, ok := d.Read(r); ok {
				(&requestContext{Options: &o, dialect: d, w: w, r: r, in: in}).serve()
				return
			}
		}
		envelope.Write(w, envelope.Plain, envelope.NotFound(r.URL.Path, ""))
	}
}

// requestContext is the state of one request in its handler.
type requestContext struct {
	*Options
	dialect *vector.Dialect
	w       http.ResponseWriter
	r       *http.Request
	in      shapes.Params

	key           identity.Key
	keyGeneration uint64 // auth.Authenticator.KeyGeneration before the key was looked up
	request       *vector.Request
	plan          []catalog.Candidate
	pass          *throttle.Pass
	dry           *engine.DryRun // nil unless the client asks what would be sent
	recorded      func()         // ends the recording; nil before there may be one
}

// serve checks the request and makes its reply, or sends the reply that an earlier request with the same idempotency
// key got.
func (rc *requestContext) serve() {
	defer func() { rc.pass.Release(0) }() // has no effect after the release below
	defer func() {
		if rc.recorded != nil {
			rc.recorded()
		}
	}()
	err := rc.admit()
	switch {
	case err != nil:
	case rc.dry != nil:
		err = rc.serveDry()
	default:
		q := attach.Request{Key: &rc.key, Scope: shape.Descriptor.Scope, Model: rc.request.Model,
			OnDisconnect: attach.Configured(&rc.key, rc.plan[0].OnDisconnect),
			Body:         func(h io.Writer) { _, _ = h.Write(rc.request.Body) }}
		var made bool
		if made, err = rc.Attach.Serve(rc.w, rc.r, q, rc.perform); !made && err == nil {
			rc.note(nil)
		}
	}
	if err == nil {
		return
	}
	rc.note(nil)
	rc.answer(err)
	if dry, _ := dryrun.Wanted(rc.r); !dry {
		about := flow.About{ID: accesslog.RequestID(rc.w), Shape: string(rc.dialect.Shape.Name), Key: rc.key.ID,
			Owner: rc.owner(), App: flow.AppOf(rc.r.Header)}
		if rc.request != nil {
			about.Model = rc.request.Model
		}
		rc.Flow.Refused(about, envelope.From(err))
	}
}

// serveDry describes what would be sent. After an error nothing was sent to the client.
func (rc *requestContext) serveDry() error {
	defer rc.dry.End()
	for range rc.Requests.Begin(rc.r.Context(), rc.describe()).Pieces() {
	}
	if rc.dry.Err != nil {
		return rc.dry.Err
	}
	rc.note(nil)
	dryrun.Write(rc.w, rc.request.Model, rc.dry)
	return nil
}

// perform makes the reply to an admitted request and writes it. It returns the failure that the client got, or nil. A
// reply that is cut off after it began ends with the panic http.ErrAbortHandler, so that the client notices.
func (rc *requestContext) perform(w http.ResponseWriter, r *http.Request) *dialogue.Error {
	rc.w, rc.r = w, r
	reply := rc.Requests.Begin(rc.r.Context(), rc.describe())
	rc.write(reply)
	out := reply.Outcome()
	rc.pass.Release(int(dialogue.CountOrZero(out.Usage.InputTotal)))
	rc.note(&out)
	if out.Err != nil && out.Committed {
		panic(http.ErrAbortHandler) // so that the client notices that the reply is cut off
	}
	return out.Err
}

// admit runs all checks, before the request costs anything.
func (rc *requestContext) admit() (err error) {
	rc.keyGeneration = rc.Auth.KeyGeneration()
	// The key is kept after an error too, for the log.
	if rc.key, err = rc.Auth.Identify(rc.r, shape.Descriptor.Scope, rc.dialect.Shape.Traits.KeyInQuery); err != nil {
		return err
	}
	id := accesslog.RequestID(rc.w)
	rc.w, rc.r, rc.recorded = rc.Recorder.Serve(rc.w, rc.r, rc.dialect.Shape.Name, id, rc.key.ID)
	if rc.pass, err = auth.Admit(rc.w, rc.r, rc.Limits, &rc.key, rc.Env.Now()); err != nil {
		return err
	}
	body, err := text.ReadObject(rc.w, rc.r, rc.dialect.Shape.Members)
	if err != nil {
		return err
	}
	request, err := rc.dialect.Check(body, rc.in)
	if err != nil {
		return err
	}
	rc.request = request
	if err := rc.Auth.Permit(&rc.key, rc.r, "", request.Model); err != nil {
		return err
	}
	entry, ok := rc.Catalog().Resolve(request.Model)
	if !ok {
		return envelope.ModelNotFound(request.Model)
	}
	if rc.plan = rc.Requests.Plan(entry, rand.IntN); rc.plan == nil {
		return dialogue.Invalid("model", "makes no embeddings: none of its providers serves them")
	}
	if err := auth.Charge(rc.w, rc.pass, request.EstimateTokens(), rc.Env.Now()); err != nil {
		return err
	}
	rc.dry, err = dryrun.Begin(rc.r, rc.Env.Memory, rc.owner())
	return err
}

// owner returns who is charged with the memory of the request.
func (rc *requestContext) owner() string { return string(state.OwnerOf(rc.key.ID, rc.key.User)) }

// describe describes the request to actors/embeddings.
func (rc *requestContext) describe() *embeddings.Request {
	id := accesslog.RequestID(rc.w)
	q := &embeddings.Request{
		About: flow.About{ID: id, Shape: string(rc.dialect.Shape.Name), Model: rc.request.Model, Key: rc.key.ID,
			Owner: rc.owner(), App: flow.AppOf(rc.r.Header), KeyGeneration: rc.keyGeneration},
		Inbound: rc.dialect, Vectors: rc.request, Header: rc.r.Header, Plan: rc.plan,
		Tokens: rc.request.EstimateTokens(), Class: throttle.Normal, Dry: rc.dry,
	}
	if rc.Ledger == nil {
		return q
	}
	held := func() bool { return false }
	now := rc.Env.Now()
	priced := func(c catalog.Candidate) bool { return c.MayCharge(now) }
	if account := rc.key.Charged(); account != "" && slices.ContainsFunc(q.Plan, priced) {
		// There is no output, for which the meter takes a maximum of one token.
		m := meter.NewText(rc.Ledger, rc.Env.Now, meter.Request{ID: id, Account: account, Key: rc.key.ID,
			Model: rc.request.Model, Body: rc.request.Body, Tokens: int64(q.Tokens), MaxTokens: 1, Choices: 1,
			Dry: rc.dry})
		q.Meter, held = m, m.Held
	}
	if rc.dry != nil {
		return q
	}
	q.Ended = func(out *actorstext.Outcome) {
		if !held() {
			rc.Ledger.CountUsage(money.UsageRow{Account: identity.AccountOf(&rc.key), Key: rc.key.ID,
				Model: rc.request.Model, Requests: 1, InputTokens: dialogue.CountOrZero(out.Usage.InputTotal)})
		}
	}
	return q
}

// write sends the pieces of a reply to the client, or the error of a reply without any. It returns when the reply has
// ended, also if the client has left.
func (rc *requestContext) write(reply *embeddings.Reply) {
	first := true
	for p := range reply.Pieces() {
		if first {
			rc.headers(&p)
			first = false
		}
		if _, err := rc.w.Write(p.Data); err != nil {
			reply.Abandon()
			for range reply.Pieces() {
			}
			return
		}
	}
	if first {
		out := reply.Outcome()
		rc.headers(&embeddings.Piece{Meta: out.Meta})
		rc.answer(out.Err)
	}
}

// headers sets the headers that report what the gateway did to the request.
func (rc *requestContext) headers(p *embeddings.Piece) {
	h := rc.w.Header()
	if p.Meta.Losses != "" {
		h.Set("X-Stagedoor-Losses", p.Meta.Losses)
	}
	if p.Estimated {
		h.Set("X-Stagedoor-Estimate", "tokens")
	}
	h.Set("X-Queue-Ms", strconv.FormatInt(p.Meta.Queued.Milliseconds(), 10))
	if p.Data == nil {
		return
	}
	h.Set("Content-Type", "application/json")
	if p.Last {
		h.Set("Content-Length", strconv.Itoa(len(p.Data)))
	}
}

// answer writes an error in the dialect of the client.
func (rc *requestContext) answer(err error) { auth.Refuse(rc.w, rc.Logger, rc.dialect.Envelope, err) }

// note adds the key, model and outcome to the request's line in the log and to its span. out is nil for a request that
// was not begun.
func (rc *requestContext) note(out *actorstext.Outcome) {
	if out != nil && out.Err != nil {
		accesslog.Outcome(rc.w, out.Err.Status) // for metrics, also if no line is written
	}
	model := ""
	if rc.request != nil {
		model = dialogue.ShortName(rc.request.Model)
	}
	accesslog.Note(rc.w, slog.String("shape", string(rc.dialect.Shape.Name)), slog.String("model", model),
		slog.String("key", rc.key.ID))
	span := trace.SpanFromContext(rc.r.Context())
	span.SetAttributes(telemetry.Shape.String(string(rc.dialect.Shape.Name)), telemetry.RequestModel.String(model),
		telemetry.KeyID.String(rc.key.ID))
	if out == nil {
		return
	}
	accesslog.Note(rc.w, slog.String("provider", out.Provider), slog.Duration("queued", out.Queued),
		slog.Int("attempts", out.Attempts), slog.Bool("untouched", out.Untouched),
		slog.Int64("input_tokens", dialogue.CountOrZero(out.Usage.InputTotal)))
	span.SetAttributes(telemetry.Provider.String(out.Provider), telemetry.Attempts.Int(out.Attempts),
		telemetry.Untouched.Bool(out.Untouched), telemetry.QueueWait.Float64(out.Queued.Seconds()))
	if out.Losses != "" {
		accesslog.Note(rc.w, slog.String("losses", out.Losses))
	}
	if out.Err == nil {
		return
	}
	if out.Committed { // otherwise answer has noted it
		accesslog.Note(rc.w, slog.String("error", telemetry.ErrorName(out.Err)))
	}
	if out.Committed || out.Err.Status >= http.StatusInternalServerError {
		telemetry.Fail(span, telemetry.ErrorName(out.Err))
	}
}
