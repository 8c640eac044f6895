package media

import (
	"context"
	"crypto/sha256"
	"hash"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/trace"

	"stagedoor/actors/engine"
	"stagedoor/actors/flow"
	"stagedoor/actors/images"
	"stagedoor/actors/meter"
	"stagedoor/actors/telemetry"
	"stagedoor/actors/throttle"
	"stagedoor/http/accesslog"
	"stagedoor/http/attach"
	"stagedoor/http/auth"
	"stagedoor/http/dryrun"
	"stagedoor/http/envelope"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/picture"
	"stagedoor/state/identity"
	"stagedoor/state/money"
)

// requestContext is the state of one request for pictures or videos in its handler. Its checks run in the
// order of decisions.md, so that a request that breaks several rules gets the error of the first:
// identify, enter, the rules of the shape, admit.
type requestContext struct {
	handlers *Handlers
	w        http.ResponseWriter
	r        *http.Request

	key           identity.Key
	keyGeneration uint64 // auth.Authenticator.KeyGeneration before the key was looked up
	request       *picture.Request
	plan          []catalog.Candidate
	pass          *throttle.Pass
	// price returns the price at a candidate if it depends on the request. If price is
	// nil, the catalogue has the price.
	price   func(*catalog.Candidate) *catalog.Price
	metered *meter.Picture // nil if the request costs nothing
	dry     *engine.DryRun // nil unless the client asks what would be sent
	// makes is the shape of a request for a picture or a video, or "". asked is the client's name of its model as far
	// as it is known.
	makes dialogue.Shape
	asked string
	// recorded ends the recording. It is nil before there may be one.
	recorded func()
	// sum is the hash of the body of a request whose reply may be kept for a repeat, or nil.
	sum hash.Hash
}

// newRequestContext returns the context of a request that was not identified yet.
func (hs *Handlers) newRequestContext(w http.ResponseWriter, r *http.Request,
	makes dialogue.Shape) *requestContext {
	rc := &requestContext{handlers: hs, w: w, r: r, makes: makes}
	if attach.Wanted(r) {
		rc.sum = sha256.New()
	}
	return rc
}

// attached makes the reply to an admitted request and has perform write it. If an earlier request had the same
// idempotency key, it sends the reply of that one.
func (rc *requestContext) attached(scope string, perform func(reply *images.Reply)) {
	q := attach.Request{Key: &rc.key, Scope: scope, Model: rc.request.Model,
		OnDisconnect: attach.Configured(&rc.key, rc.plan[0].OnDisconnect),
		Body:         func(h io.Writer) { _, _ = h.Write(rc.sum.Sum(nil)) }}
	run := func(w http.ResponseWriter, r *http.Request) *dialogue.Error {
		rc.w, rc.r = w, r
		reply := rc.begin()
		perform(reply)
		rc.finish(reply)
		return reply.Outcome().Err
	}
	made, err := rc.handlers.Attach.Serve(rc.w, rc.r, q, run)
	switch {
	case err != nil:
		rc.refuse(err)
	case !made:
		rc.note(nil)
	}
	if !made {
		rc.close()
	}
}

// identify checks the key and its scope. A request that makes something is recorded from here on, if its key is, and
// the caller calls endRecording.
func (rc *requestContext) identify(scope string) error {
	rc.keyGeneration = rc.handlers.Auth.KeyGeneration()
	key, err := rc.handlers.Auth.Identify(rc.r, scope, false)
	rc.key = key // kept after an error too, for the log
	if err == nil && rc.makes != "" {
		rc.w, rc.r, rc.recorded = rc.handlers.Recorder.Serve(rc.w, rc.r, rc.makes, accesslog.RequestID(rc.w), key.ID)
	}
	return err
}

// endRecording hands the exchange over if it is recorded. It is called after the reply was written.
func (rc *requestContext) endRecording() {
	if rc.recorded != nil {
		rc.recorded()
	}
}

// enter counts the request against the limits of its key that do not depend on the body. The caller
// releases rc.pass, also after a later error.
func (rc *requestContext) enter() error {
	pass, err := auth.Admit(rc.w, rc.r, rc.handlers.Limits, &rc.key, rc.handlers.Env.Now())
	rc.pass = pass
	return err
}

// admit runs the checks that need the parsed request: the model, the key's limit of tokens, and room for
// the pictures if the reply has addresses of them.
func (rc *requestContext) admit() error {
	rc.request.Owner = string(rc.owner())
	if err := rc.admitTo(rc.request.Model, rc.estimate()); err != nil || rc.request.Inline {
		return err
	}
	return rc.handlers.Content.Room(rc.owner())
}

// admitTo checks the model and charges the estimated tokens.
func (rc *requestContext) admitTo(model string, tokens int) error {
	if err := rc.handlers.Auth.Permit(&rc.key, rc.r, "", model); err != nil {
		return err
	}
	if rc.plan == nil {
		rc.plan = rc.handlers.planFor(model)
	}
	if rc.plan == nil {
		return envelope.ModelNotFound(model)
	}
	return auth.Charge(rc.w, rc.pass, tokens, rc.handlers.Env.Now())
}

// short cuts text of a client for a message or a log line.
func short(s string) string {
	const most = 128
	return strings.ToValidUTF8(s[:min(len(s), most)], "")
}

// estimate returns the tokens that the limits reserve: one for every four bytes of the prompt. The tokens
// of a picture are known only afterwards.
func (rc *requestContext) estimate() int { return len(rc.request.Prompt)/4 + 1 }

// begin starts the request. The caller must call finish, even if the client has left.
func (rc *requestContext) begin() *images.Reply {
	return rc.handlers.Images.Begin(
		rc.r.Context(),
		&images.Request{ID: accesslog.RequestID(rc.w), Picture: rc.request, Header: rc.r.Header,
			Plan: rc.plan, Key: rc.key.ID, Owner: string(rc.owner()), KeyGeneration: rc.keyGeneration,
			Class:  throttle.Normal,
			Tokens: rc.estimate(), Meter: rc.meter(), Dry: rc.dry, Keep: rc.keep},
	)
}

// serveDry serves a request whose client asks what would be sent. It reports whether that is so; otherwise it has done
// nothing.
func (rc *requestContext) serveDry() bool {
	dry, err := dryrun.Begin(rc.r, rc.handlers.Env.Memory, string(rc.owner()))
	if dry == nil && err == nil {
		return false
	}
	defer rc.close()
	if err != nil {
		rc.refuse(err)
		return true
	}
	defer dry.End()
	rc.dry = dry
	rc.begin().Outcome() // waits for the end
	rc.note(nil)
	if dry.Err != nil {
		rc.answer(dry.Err)
	} else {
		dryrun.Write(rc.w, rc.request.Model, dry)
	}
	return true
}

// meter returns the Meter that charges the key's user (decisions, Users and money), or nil if the key has
// no user or no candidate has a price.
func (rc *requestContext) meter() images.Meter {
	price := rc.price
	if price == nil {
		now := rc.handlers.Env.Now()
		price = func(c *catalog.Candidate) *catalog.Price { return c.Rates(now) }
	}
	priced := func(c catalog.Candidate) bool { return !price(&c).Zero() }
	account := rc.key.Charged()
	if account == "" || rc.handlers.Ledger == nil || !slices.ContainsFunc(rc.plan, priced) {
		return nil
	}
	rc.metered = meter.NewPicture(
		rc.handlers.Ledger,
		meter.PictureRequest{ID: accesslog.RequestID(rc.w), Account: account, Key: rc.key.ID,
			Picture: rc.request, Price: price, Dry: rc.dry},
	)
	return rc.metered
}

// keep stores a picture and returns its signed address.
func (rc *requestContext) keep(_ context.Context, mediaType string, content io.Reader) (string, error) {
	return rc.handlers.Content.Keep(rc.r, rc.owner(), mediaType, content)
}

// finish waits for the end of the request, releases what it holds and logs its outcome.
func (rc *requestContext) finish(reply *images.Reply) {
	out := reply.Outcome()
	used := -1
	switch {
	case out.Err != nil:
		used = 0
	case out.Usage != nil:
		used = int(out.Usage.Input() + out.Usage.Output())
	}
	rc.pass.Release(used)
	rc.close()
	rc.count(out)
	rc.note(out)
}

// count counts the usage of a request that held no money.
func (rc *requestContext) count(out *images.Outcome) {
	if rc.handlers.Ledger == nil || rc.metered != nil && rc.metered.Held() {
		return
	}
	tokens := out.Usage.Tokens()
	rc.handlers.Ledger.CountUsage(money.UsageRow{
		Account:      identity.AccountOf(&rc.key),
		Key:          rc.key.ID,
		Model:        rc.request.Model,
		Requests:     1,
		Images:       int64(out.Delivered),
		InputTokens:  dialogue.CountOrZero(tokens.InputTotal),
		CachedTokens: dialogue.CountOrZero(tokens.CacheRead),
		OutputTokens: dialogue.CountOrZero(tokens.OutputTotal),
	})
}

// close removes the client's files.
func (rc *requestContext) close() {
	if rc.request == nil {
		return
	}
	if err := rc.request.Close(); err != nil {
		rc.handlers.Logger.Warn("upload not removed", "request_id", accesslog.RequestID(rc.w), "cause", err)
	}
}

// headers sets the headers that report what the gateway did to the request.
func (rc *requestContext) headers(m *images.Meta) {
	h := rc.w.Header()
	if m.Losses != "" {
		h.Set("X-Stagedoor-Losses", m.Losses)
	}
	h.Set("X-Queue-Ms", strconv.FormatInt(m.Queued.Milliseconds(), 10))
}

// refuse writes the error of a request that was not sent to any provider. A request for a picture or a video is in the
// log of requests then, too, unless it is a dry run.
func (rc *requestContext) refuse(err error) {
	rc.note(nil)
	rc.answer(err)
	if dry, _ := dryrun.Wanted(rc.r); rc.makes == "" || dry {
		return
	}
	if rc.request != nil {
		rc.asked = rc.request.Model
	}
	rc.handlers.Flow.Refused(flow.About{ID: accesslog.RequestID(rc.w), Shape: string(rc.makes), Model: rc.asked,
		Key: rc.key.ID, Owner: string(rc.owner()), App: flow.AppOf(rc.r.Header)}, envelope.From(err))
}

// answer writes an error.
func (rc *requestContext) answer(err error) {
	auth.Refuse(rc.w, rc.handlers.Logger, envelope.Plain, err)
}

// note adds the key, shape, model and outcome to the request's line in the log. out is nil for a request
// that was not begun.
func (rc *requestContext) note(out *images.Outcome) {
	rc.trace(out)
	if out != nil && out.Err != nil {
		accesslog.Outcome(rc.w, out.Err.Status) // for metrics, also if no line is written
	}
	if !accesslog.Wanted(rc.w) {
		return
	}
	accesslog.Note(rc.w, slog.String("key", rc.key.ID))
	if rc.request != nil {
		accesslog.Note(rc.w, slog.String("shape", string(rc.request.Inbound)),
			slog.String("model", short(rc.request.Model)), slog.String("operation", string(rc.request.Operation)),
			slog.Bool("stream", rc.request.Stream))
	}
	if out == nil {
		return
	}
	accesslog.Note(rc.w, slog.String("provider", out.Provider), slog.Duration("queued", out.Queued),
		slog.Int("attempts", out.Attempts), slog.Int("images", out.Delivered))
	if out.Err != nil && out.Committed { // otherwise answer has noted it
		accesslog.Note(rc.w, slog.String("error", telemetry.ErrorName(out.Err)))
	}
	if out.Losses != "" {
		accesslog.Note(rc.w, slog.String("losses", out.Losses))
	}
}

// trace sets the same attributes on the request's span.
func (rc *requestContext) trace(out *images.Outcome) {
	span := trace.SpanFromContext(rc.r.Context())
	if !span.IsRecording() || rc.request == nil {
		return
	}
	span.SetAttributes(telemetry.Shape.String(string(rc.request.Inbound)),
		telemetry.RequestModel.String(short(rc.request.Model)), telemetry.KeyID.String(rc.key.ID))
	if out == nil {
		return
	}
	span.SetAttributes(telemetry.Provider.String(out.Provider), telemetry.Attempts.Int(out.Attempts))
	if out.Err != nil && out.Err.Status >= http.StatusInternalServerError {
		telemetry.Fail(span, telemetry.ErrorName(out.Err))
	}
}

// writeJSON sends a JSON document.
func writeJSON(w http.ResponseWriter, body []byte) error {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(http.StatusOK)
	_, err := w.Write(body)
	return err
}
