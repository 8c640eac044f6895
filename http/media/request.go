package media

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strconv"

	"go.opentelemetry.io/otel/trace"

	"stagedoor/actors/images"
	"stagedoor/actors/meter"
	"stagedoor/actors/telemetry"
	"stagedoor/actors/throttle"
	"stagedoor/http/accesslog"
	"stagedoor/http/auth"
	"stagedoor/http/envelope"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/picture"
	"stagedoor/state"
)

// visit is one request for pictures at its door. Its checks come in the order of
// decisions.md, so that whoever breaks several rules hears of the first:
// identify, enter, what the shape says, admit.
type requestContext struct {
	handlers *Handlers
	w        http.ResponseWriter
	r        *http.Request

	key     state.Key
	era     uint64 // of the keys, before this one was looked up
	request *picture.Request
	plan    []catalog.Candidate
	pass    *throttle.Pass
	// price is what a candidate charges, where that depends on the request; nil:
	// what the catalogue says.
	price   func(*catalog.Candidate) *catalog.Price
	metered *meter.Picture // nil: the request costs nothing
}

// identify checks key and scope.
func (rc *requestContext) identify(scope string) error {
	rc.era = rc.handlers.Auth.Era()
	key, err := rc.handlers.Auth.Identify(rc.r, scope, false)
	rc.key = key // the log names it, too, if it may not do this
	return err
}

// enter counts the request against its key's limits that do not depend on its body.
// The caller releases v.pass, also after a later error.
func (rc *requestContext) enter() error {
	pass, err := auth.Admit(rc.w, rc.r, rc.handlers.Limits, &rc.key, rc.handlers.Env.Now())
	rc.pass = pass
	return err
}

// admit performs what is left to check once the request is known: its model, the
// key's limit of tokens, and room for the pictures if they are to have addresses.
func (rc *requestContext) admit() error {
	rc.request.Owner = string(rc.owner())
	if err := rc.admitTo(rc.request.Model, rc.estimate()); err != nil || rc.request.Inline {
		return err
	}
	return rc.handlers.Content.Room(rc.owner())
}

// admitTo admits a request to a model. What it takes is estimated in tokens.
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

// short cuts what a client sent to what a message or log line can bear.
func short(s string) string {
	const most = 128
	return s[:min(len(s), most)]
}

// estimate is what the limits reserve: a token is about four bytes. What a
// picture takes is known only afterwards.
func (rc *requestContext) estimate() int { return len(rc.request.Prompt)/4 + 1 }

// begin starts the request. finish must follow, whatever becomes of the client.
func (rc *requestContext) begin() *images.Reply {
	return rc.handlers.Images.Begin(rc.r.Context(), &images.Request{ID: accesslog.RequestID(rc.w), Picture: rc.request, Header: rc.r.Header,
		Plan: rc.plan, Key: rc.key.ID, Owner: string(rc.owner()), Era: rc.era, Class: throttle.Normal, Tokens: rc.estimate(), Meter: rc.meter(), Keep: rc.keep})
}

// meter has the key's user charged (decisions, Users and money). Keys that belong
// to nobody and models without a price cost nothing.
func (rc *requestContext) meter() images.Meter {
	price := rc.price
	if price == nil {
		price = func(c *catalog.Candidate) *catalog.Price { return c.Price }
	}
	priced := func(c catalog.Candidate) bool { return !price(&c).Zero() }
	account := rc.key.Charged()
	if account == "" || rc.handlers.Ledger == nil || !slices.ContainsFunc(rc.plan, priced) {
		return nil
	}
	rc.metered = meter.NewPicture(rc.handlers.Ledger, meter.PictureRequest{ID: accesslog.RequestID(rc.w), Account: account, Key: rc.key.ID,
		Picture: rc.request, Price: price})
	return rc.metered
}

// keep makes a picture available under an address of the gateway's own.
func (rc *requestContext) keep(_ context.Context, mediaType string, content io.Reader) (string, error) {
	return rc.handlers.Content.Keep(rc.r, rc.owner(), mediaType, content)
}

// finish gives back what the request holds, once it is over, and tells the log.
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

// count counts a request that nothing was held for.
func (rc *requestContext) count(out *images.Outcome) {
	if rc.handlers.Ledger == nil || rc.metered != nil && rc.metered.Held() {
		return
	}
	tokens := out.Usage.Tokens()
	rc.handlers.Ledger.CountUsage(state.UsageRow{Account: state.AccountOf(&rc.key), Key: rc.key.ID, Model: rc.request.Model, Requests: 1, Images: int64(out.Delivered),
		InputTokens: dialogue.CountOrZero(tokens.InputTotal), CachedTokens: dialogue.CountOrZero(tokens.CacheRead), OutputTokens: dialogue.CountOrZero(tokens.OutputTotal)})
}

// close gives back the client's files.
func (rc *requestContext) close() {
	if rc.request == nil {
		return
	}
	if err := rc.request.Close(); err != nil {
		rc.handlers.Logger.Warn("upload not removed", "request_id", accesslog.RequestID(rc.w), "cause", err)
	}
}

// headers tell what the gateway did to the request.
func (rc *requestContext) headers(m *images.Meta) {
	h := rc.w.Header()
	if m.Losses != "" {
		h.Set("X-Stagedoor-Losses", m.Losses)
	}
	h.Set("X-Queue-Ms", strconv.FormatInt(m.Queued.Milliseconds(), 10))
}

// refuse answers a request that nobody was asked about.
func (rc *requestContext) refuse(err error) {
	rc.note(nil)
	rc.answer(err)
}

// answer writes an error.
func (rc *requestContext) answer(err error) {
	auth.Refuse(rc.w, rc.handlers.Logger, envelope.Plain, err)
}

// note adds what the door knows to the line of the request. out is nil for one
// that was not begun.
func (rc *requestContext) note(out *images.Outcome) {
	rc.trace(out)
	if out != nil && out.Err != nil {
		accesslog.Outcome(rc.w, out.Err.Status) // metrics ask for it whatever is logged
	}
	if !accesslog.Wanted(rc.w) {
		return
	}
	accesslog.Note(rc.w, slog.String("key", rc.key.ID))
	if rc.request != nil {
		accesslog.Note(rc.w, slog.String("shape", string(rc.request.Inbound)), slog.String("model", short(rc.request.Model)),
			slog.String("operation", string(rc.request.Operation)), slog.Bool("stream", rc.request.Stream))
	}
	if out == nil {
		return
	}
	accesslog.Note(rc.w, slog.String("provider", out.Provider), slog.Duration("queued", out.Queued), slog.Int("attempts", out.Attempts),
		slog.Int("images", out.Delivered))
	if out.Err != nil && out.Committed { // else answer has said so
		accesslog.Note(rc.w, slog.String("error", telemetry.ErrorName(out.Err)))
	}
	if out.Losses != "" {
		accesslog.Note(rc.w, slog.String("losses", out.Losses))
	}
}

// trace adds the same to the request's span.
func (rc *requestContext) trace(out *images.Outcome) {
	span := trace.SpanFromContext(rc.r.Context())
	if !span.IsRecording() || rc.request == nil {
		return
	}
	span.SetAttributes(telemetry.Shape.String(string(rc.request.Inbound)), telemetry.RequestModel.String(short(rc.request.Model)),
		telemetry.KeyID.String(rc.key.ID))
	if out == nil {
		return
	}
	span.SetAttributes(telemetry.Provider.String(out.Provider), telemetry.Attempts.Int(out.Attempts))
	if out.Err != nil && out.Err.Status >= http.StatusInternalServerError {
		telemetry.Fail(span, telemetry.ErrorName(out.Err))
	}
}

// writeJSON sends a document.
func writeJSON(w http.ResponseWriter, body []byte) error {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(http.StatusOK)
	_, err := w.Write(body)
	return err
}
