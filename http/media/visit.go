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
type visit struct {
	doors *Doors
	w     http.ResponseWriter
	r     *http.Request

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
func (v *visit) identify(scope string) error {
	v.era = v.doors.Auth.Era()
	key, err := v.doors.Auth.Identify(v.r, scope, false)
	v.key = key // the log names it, too, if it may not do this
	return err
}

// enter counts the request against its key's limits that do not depend on its body.
// The caller releases v.pass, also after a later error.
func (v *visit) enter() error {
	pass, err := auth.Admit(v.w, v.r, v.doors.Limits, &v.key, v.doors.Env.Now())
	v.pass = pass
	return err
}

// admit performs what is left to check once the request is known: its model, the
// key's limit of tokens, and room for the pictures if they are to have addresses.
func (v *visit) admit() error {
	if err := v.admitTo(v.request.Model, v.estimate()); err != nil || v.request.Inline {
		return err
	}
	return v.doors.Content.Room(v.owner())
}

// admitTo admits a request to a model. What it takes is estimated in tokens.
func (v *visit) admitTo(model string, tokens int) error {
	if err := v.doors.Auth.Permit(&v.key, v.r, "", model); err != nil {
		return err
	}
	if v.plan == nil {
		v.plan = v.doors.planFor(model)
	}
	if v.plan == nil {
		return envelope.ModelNotFound(model)
	}
	return auth.Charge(v.w, v.pass, tokens, v.doors.Env.Now())
}

// short cuts what a client sent to what a message or log line can bear.
func short(s string) string {
	const most = 128
	return s[:min(len(s), most)]
}

// estimate is what the limits reserve: a token is about four bytes. What a
// picture takes is known only afterwards.
func (v *visit) estimate() int { return len(v.request.Prompt)/4 + 1 }

// begin starts the request. finish must follow, whatever becomes of the client.
func (v *visit) begin() *images.Reply {
	return v.doors.Images.Begin(v.r.Context(), &images.Request{ID: accesslog.RequestID(v.w), Picture: v.request, Header: v.r.Header,
		Plan: v.plan, Key: v.key.ID, Owner: string(v.owner()), Era: v.era, Class: throttle.Normal, Tokens: v.estimate(), Meter: v.meter(), Keep: v.keep})
}

// meter has the key's user charged (decisions, Users and money). Keys that belong
// to nobody and models without a price cost nothing.
func (v *visit) meter() images.Meter {
	price := v.price
	if price == nil {
		price = func(c *catalog.Candidate) *catalog.Price { return c.Price }
	}
	priced := func(c catalog.Candidate) bool { return !price(&c).Zero() }
	account := v.key.Charged()
	if account == "" || v.doors.Ledger == nil || !slices.ContainsFunc(v.plan, priced) {
		return nil
	}
	v.metered = meter.NewPicture(v.doors.Ledger, meter.PictureRequest{ID: accesslog.RequestID(v.w), Account: account, Key: v.key.ID,
		Picture: v.request, Price: price})
	return v.metered
}

// keep makes a picture available under an address of the gateway's own.
func (v *visit) keep(_ context.Context, mediaType string, content io.Reader) (string, error) {
	return v.doors.Content.Keep(v.r, v.owner(), mediaType, content)
}

// finish gives back what the request holds, once it is over, and tells the log.
func (v *visit) finish(reply *images.Reply) {
	out := reply.Outcome()
	used := -1
	switch {
	case out.Err != nil:
		used = 0
	case out.Usage != nil:
		used = int(out.Usage.Input() + out.Usage.Output())
	}
	v.pass.Release(used)
	v.close()
	v.count(out)
	v.note(out)
}

// count counts a request that nothing was held for.
func (v *visit) count(out *images.Outcome) {
	if v.doors.Ledger == nil || v.metered != nil && v.metered.Held() {
		return
	}
	tokens := out.Usage.Tokens()
	v.doors.Ledger.CountUsage(state.UsageRow{Account: state.AccountOf(&v.key), Key: v.key.ID, Model: v.request.Model, Requests: 1, Images: int64(out.Delivered),
		InputTokens: dialogue.CountOrZero(tokens.InputTotal), CachedTokens: dialogue.CountOrZero(tokens.CacheRead), OutputTokens: dialogue.CountOrZero(tokens.OutputTotal)})
}

// close gives back the client's files.
func (v *visit) close() {
	if v.request == nil {
		return
	}
	if err := v.request.Close(); err != nil {
		v.doors.Logger.Warn("upload not removed", "request_id", accesslog.RequestID(v.w), "cause", err)
	}
}

// headers tell what the gateway did to the request.
func (v *visit) headers(m *images.Meta) {
	h := v.w.Header()
	if m.Losses != "" {
		h.Set("X-Stagedoor-Losses", m.Losses)
	}
	h.Set("X-Queue-Ms", strconv.FormatInt(m.Queued.Milliseconds(), 10))
}

// refuse answers a request that nobody was asked about.
func (v *visit) refuse(err error) {
	v.note(nil)
	v.answer(err)
}

// answer writes an error.
func (v *visit) answer(err error) {
	auth.Refuse(v.w, v.doors.Logger, envelope.Plain, err)
}

// note adds what the door knows to the line of the request. out is nil for one
// that was not begun.
func (v *visit) note(out *images.Outcome) {
	v.trace(out)
	if out != nil && out.Err != nil {
		accesslog.Outcome(v.w, out.Err.Status) // metrics ask for it whatever is logged
	}
	if !accesslog.Wanted(v.w) {
		return
	}
	accesslog.Note(v.w, slog.String("key", v.key.ID))
	if v.request != nil {
		accesslog.Note(v.w, slog.String("shape", string(v.request.Inbound)), slog.String("model", short(v.request.Model)),
			slog.String("operation", string(v.request.Operation)), slog.Bool("stream", v.request.Stream))
	}
	if out == nil {
		return
	}
	accesslog.Note(v.w, slog.String("provider", out.Provider), slog.Duration("queued", out.Queued), slog.Int("attempts", out.Attempts),
		slog.Int("images", out.Delivered))
	if out.Err != nil && out.Committed { // else answer has said so
		accesslog.Note(v.w, slog.String("error", telemetry.ErrorName(out.Err)))
	}
	if out.Losses != "" {
		accesslog.Note(v.w, slog.String("losses", out.Losses))
	}
}

// trace adds the same to the request's span.
func (v *visit) trace(out *images.Outcome) {
	span := trace.SpanFromContext(v.r.Context())
	if !span.IsRecording() || v.request == nil {
		return
	}
	span.SetAttributes(telemetry.Shape.String(string(v.request.Inbound)), telemetry.RequestModel.String(short(v.request.Model)),
		telemetry.KeyID.String(v.key.ID))
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
