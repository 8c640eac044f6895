package text

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"stagedoor/actors/background"
	"stagedoor/actors/engine"
	"stagedoor/actors/flow"
	"stagedoor/actors/ledger"
	"stagedoor/actors/telemetry"
	"stagedoor/actors/text"
	"stagedoor/actors/throttle"
	"stagedoor/http/accesslog"
	"stagedoor/http/attach"
	"stagedoor/http/auth"
	"stagedoor/http/dryrun"
	"stagedoor/http/envelope"
	"stagedoor/http/sse"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/memory"
	"stagedoor/providers/shapes"
	"stagedoor/state"
	"stagedoor/state/identity"
	"stagedoor/state/share"
	"stagedoor/state/work"
)

// Options configure Handlers.
type Options struct {
	Logger *slog.Logger
	Env    *dialogue.Env
	Auth   *auth.Authenticator
	// Requests runs the requests for text.
	Requests *text.Service
	// Catalog returns the current catalogue.
	Catalog func() *catalog.Catalog
	// Limits enforces the limits of keys.
	Limits *throttle.Keys
	// Shapes are the text shapes.
	Shapes []*shapes.Shape
	Store  *state.State
	// Ledger charges the users of keys for models that have a price.
	Ledger *ledger.Client
	// Flow, if not nil, keeps receipts of requests that cost nothing.
	Flow *flow.Registry
	// Metrics, if not nil, counts streams.
	Metrics *telemetry.Metrics
	// Watchers limits the streams of background responses, together with other requests
	// that watch. Nil means no limit.
	Watchers *share.Pool
	// Background runs background responses. Durable says that Store outlives the process,
	// so that the next process can continue them.
	Background *background.Registry
	Durable    bool
	// Heartbeat is the time after which a stream begins although it has no answer yet, with a heartbeat that keeps
	// proxies from closing the connection. A failure after it is an event and not a status. 0 means that a stream
	// begins with its answer.
	Heartbeat time.Duration
	// Attach, if not nil, keeps replies for clients that repeat, resume or leave their requests.
	Attach *attach.Service
	// Tasks has the handlers of tasks that are not about text.
	Tasks map[shapes.Task]http.HandlerFunc
}

// Handlers has the HTTP handlers of the text shapes. It is safe for concurrent use.
type Handlers struct {
	Options
	items itemIndex
}

// New returns Handlers.
func New(o Options) *Handlers {
	if o.Watchers == nil {
		o.Watchers = share.New(share.Watchers, 0, 1)
	}
	return &Handlers{Options: o, items: newItemIndex(maxItems)}
}

// Handle returns the handler of a route of a shape.
func (hs *Handlers) Handle(s *shapes.Shape, route shapes.Route) http.HandlerFunc {
	if s.Read != nil {
		return func(w http.ResponseWriter, r *http.Request) {
			in, task := s.Read(r)
			if other := hs.Tasks[task]; other != nil {
				other(w, r)
				return
			}
			hs.newRequestContext(s, w, r, in).serveTask(task)
		}
	}
	return func(w http.ResponseWriter, r *http.Request) {
		hs.newRequestContext(s, w, r, shapes.Params{Path: r.URL.Path, Header: r.Header}).serveTask(route.Task)
	}
}

// serveTask runs the task of the request's route.
func (rc *requestContext) serveTask(task shapes.Task) {
	switch task {
	case shapes.Generate:
		rc.serve()
	case shapes.Count:
		rc.count()
	default:
		rc.refuse(envelope.NotFound(rc.r.URL.Path, ""))
	}
}

// newRequestContext returns the context of a request of a shape. It is not inlined, because its temporaries would
// otherwise stay on the stack of each stream while it lasts.
//
//go:noinline
func (hs *Handlers) newRequestContext(s *shapes.Shape, w http.ResponseWriter, r *http.Request,
	in shapes.Params) *requestContext {
	rc := &requestContext{handlers: hs, shape: s, w: w, r: r, in: in}
	rc.attach()
	return rc
}

// requestContext is the state of one request in its handler. Its checks run in the order of
// decisions.md, so that a request that breaks several rules gets the error of the first.
type requestContext struct {
	handlers *Handlers
	shape    *shapes.Shape
	w        http.ResponseWriter
	r        *http.Request
	in       shapes.Params

	key           identity.Key
	keyGeneration uint64 // auth.Authenticator.KeyGeneration before the key was looked up
	body          *body
	payload       []byte // the body after changes of the gateway
	head          shapes.Head
	plan          []catalog.Candidate
	pass          *throttle.Pass
	record        *record        // nil unless the response is stored
	dry           *engine.DryRun // nil unless the client asks what would be sent
	generates     bool           // the request is for a reply of a model
	// translate has the shapes that the query of /v1/translate names; nil on any other route.
	translate *translation
	// failure was sent to the client in place of a reply, or at its end.
	failure    *dialogue.Error
	connection *Connection // nil unless the request arrived on a connection that remembers responses
	// claim counts what the request takes beyond its body and outside of its translation: what is stored.
	claim memory.Claim
	// turn is the use of a conversation, or nil, and input are the input items that it adds, as an array.
	turn  *work.Turn
	input []byte
}

// serve serves a request to a model. It runs the request with or without a record of its reply: the key, the model or
// the client decide whether it survives a lost connection.
func (rc *requestContext) serve() {
	defer func() { rc.pass.Release(0) }() // has no effect after the release in settle
	rc.generates = rc.translate == nil
	err := rc.admit()
	switch {
	case err != nil:
	case rc.dry != nil:
		defer rc.dry.End()
		rc.perform()
	case attach.Configured(&rc.key, rc.plan[0].OnDisconnect) != "" || attach.Wanted(rc.r):
		err = rc.serveKept()
	default:
		rc.perform()
	}
	if err != nil {
		rc.refuse(err)
		if rc.body != nil {
			rc.body.free()
		}
	}
}

// serveKept makes the reply and has it kept for clients that repeat or resume the request, or sends the reply that an
// earlier request with the same idempotency key got. After an error nothing was sent.
//
//go:noinline
func (rc *requestContext) serveKept() error {
	q := attach.Request{Key: &rc.key, Scope: rc.shape.Scope, Model: rc.head.Model,
		OnDisconnect: attach.Configured(&rc.key, rc.plan[0].OnDisconnect),
		Body:         func(h io.Writer) { _, _ = h.Write(rc.payload) }}
	run := func(w http.ResponseWriter, r *http.Request) *dialogue.Error {
		rc.w, rc.r = w, r
		rc.perform()
		return rc.failure
	}
	made, err := rc.handlers.Attach.Serve(rc.w, rc.r, q, run)
	if err == nil && !made {
		rc.note(nil)
		rc.body.free()
	}
	return err
}

// perform makes the reply to an admitted request.
func (rc *requestContext) perform() {
	if rc.shape.Traits.StoresReplies {
		rc.serveResponses()
		return
	}
	rc.run(rc.textRequest())
}

// admit runs all checks, before the request costs anything.
func (rc *requestContext) admit() error {
	if err := rc.read(); err != nil {
		return err
	}
	if err := rc.route(); err != nil {
		return err
	}
	if err := auth.Charge(rc.w, rc.pass, rc.estimate(), rc.handlers.Env.Now()); err != nil {
		return err
	}
	return rc.beginDry()
}

// read checks the key and its limits, and then reads the body. The caller releases
// rc.pass, also after an error.
func (rc *requestContext) read() error {
	if err := rc.identify(); err != nil {
		return err
	}
	pass, err := auth.Admit(rc.w, rc.r, rc.handlers.Limits, &rc.key, rc.handlers.Env.Now())
	if err != nil {
		return err
	}
	rc.pass = pass
	b, err := readBody(rc.w, rc.r)
	if err != nil {
		return err
	}
	rc.body, rc.payload = b, b.b
	if rc.translate != nil {
		if err := rc.findShape(); err != nil {
			return err
		}
	}
	if _, ok := rc.shape.Inbound.(shapes.SyntaxChecker); ok {
		return nil // check tests the syntax together with the rules
	}
	return fields.CheckBody(rc.payload, rc.shape.Members)
}

// identify checks the key and that it has the shape's scope.
func (rc *requestContext) identify() error {
	rc.keyGeneration = rc.handlers.Auth.KeyGeneration()
	if rc.translate != nil {
		key, err := rc.handlers.Auth.Authenticate(rc.r, false)
		rc.key = key
		return err // findShape checks the scope
	}
	key, err := rc.handlers.Auth.Identify(rc.r, rc.shape.Scope, rc.shape.Traits.KeyInQuery)
	rc.key = key // kept after an error too, for the log
	return err
}

// route checks the body by the shape's rules and finds the model.
func (rc *requestContext) route() error {
	head, err := rc.check()
	if err != nil {
		return err
	}
	rc.head = head
	if err := rc.handlers.Auth.Permit(&rc.key, rc.r, "", head.Model); err != nil {
		return err
	}
	if rc.plan == nil {
		rc.plan = rc.handlers.planFor(head.Model)
	}
	if rc.plan == nil {
		return envelope.ModelNotFound(head.Model)
	}
	return nil
}

// check applies the shape's rules. If they find a mistake, a mistake in the JSON itself is reported
// first, because it is the cause.
func (rc *requestContext) check() (shapes.Head, error) {
	head, err := rc.shape.Check(rc.payload, rc.in)
	if err != nil {
		if bad := fields.CheckBody(rc.payload, rc.shape.Members); bad != nil {
			return head, bad
		}
	}
	head.MaxTokens = min(head.MaxTokens, mostTokens)
	return head, err
}

// planFor returns the candidates for a model in the order in which to try them, or nil if the model is
// not in the catalogue.
func (hs *Handlers) planFor(model string) []catalog.Candidate {
	entry, ok := hs.Catalog().Resolve(model)
	if !ok {
		return nil
	}
	return entry.Plan(pick)
}

// mostTokens is more than a model gives. Larger numbers of clients count as this one, because sums of them would
// overflow.
const mostTokens = 1 << 30

// estimate returns the tokens that the limits reserve for a request: one for every four bytes of the
// request, and the most that the client asks for in all answers of the reply.
func (rc *requestContext) estimate() int {
	asked := max(rc.head.MaxTokens, 0) * int64(max(rc.head.Choices(), rc.head.Answers))
	return int(min(int64(len(rc.payload)/4)+asked, mostTokens))
}

// mode returns the form in which the client wants the reply.
func (rc *requestContext) mode() shapes.Mode {
	switch {
	case !rc.head.Stream:
		return shapes.Whole
	case rc.in.Array:
		return shapes.Array
	default:
		return shapes.Stream
	}
}

// textRequest describes the request to actors/text.
func (rc *requestContext) textRequest() *text.Request {
	return &text.Request{
		ID: accesslog.RequestID(rc.w), Inbound: rc.shape, Mode: rc.mode(), In: rc.in, Head: rc.head, Body: rc.payload,
		Plan: rc.plan, Key: rc.key.ID, Owner: string(rc.owner()), KeyGeneration: rc.keyGeneration,
		Class: class(rc.head.ServiceTier,
			rc.head.Background),
		Tokens: rc.estimate(), Dry: rc.dry,
	}
}

// class returns the priority class of a request. Background responses have the lowest priority.
func class(tier string, background bool) int {
	if background {
		return throttle.Background
	}
	return throttle.ClassOf(tier)
}

// run runs the request and writes its reply.
func (rc *requestContext) run(q *text.Request) {
	rc.meter(q)
	reply := rc.handlers.Requests.Begin(rc.r.Context(), q)
	if rc.dry != nil {
		rc.writeDry(reply)
		return
	}
	rc.write(reply)
	rc.settle(reply)
}

// settle releases what the request holds and records its outcome. It is not inlined, for the same
// reason as newRequestContext.
//
//go:noinline
func (rc *requestContext) settle(reply *text.Reply) {
	out := reply.Outcome()
	rc.record.close(&out)
	rc.failure = out.Err
	rc.pass.Release(used(&out))
	rc.note(&out)
	rc.trace(&out)
	if out.Err == nil && out.Attempts <= 1 {
		// After a failed attempt, a transport may still be reading the body.
		rc.body.free()
	}
}

// used returns the tokens that a request has used, or -1 if the upstream did not report any and the
// estimate is charged.
func used(out *text.Outcome) int {
	if out.Committed && out.Usage.InputTotal < 0 && out.Usage.OutputTotal < 0 {
		return -1
	}
	return int(dialogue.CountOrZero(out.Usage.InputTotal) + dialogue.CountOrZero(out.Usage.OutputTotal))
}

// write sends the chunks of a reply to the client.
func (rc *requestContext) write(reply *text.Reply) {
	first, out, ok := rc.first(reply)
	switch {
	case !ok: // there is no reply, or the client has left and reads nothing more
		rc.fail(out, envelope.From(nil))
		return
	case first.Err != nil:
		rc.headers(first.Meta)
		rc.fail(out, first.Err)
		for range reply.Chunks() {
		}
		return
	}
	rc.headers(first.Meta)
	if rc.mode() == shapes.Whole {
		rc.writeWhole(reply, first)
		return
	}
	if refused := rc.record.open(&first); refused != nil {
		first.Data.Free()
		rc.rest(reply, refused)
		rc.fail(out, refused)
		return
	}
	rc.writeStream(reply, out, first)
}

// first waits for the first chunk of a reply. If it takes longer than Options.Heartbeat, the stream begins without it
// and out is the stream. ok is false if the reply has no chunk or the client has left. A connection that remembers
// responses sends its own heartbeats, so that a failure keeps its status.
func (rc *requestContext) first(reply *text.Reply) (f text.Chunk, out *sse.Writer, ok bool) {
	mode := rc.mode()
	beat := rc.shape.Heartbeat(mode)
	if rc.handlers.Heartbeat <= 0 || beat == nil || rc.connection != nil {
		f, ok = <-reply.Chunks()
		return f, nil, ok
	}
	early := time.NewTimer(rc.handlers.Heartbeat)
	defer early.Stop()
	select {
	case f, ok = <-reply.Chunks():
		return f, nil, ok
	case <-early.C:
	}
	out = rc.begin()
	if err := out.Send(beat); err != nil {
		rc.rest(reply, err)
		return f, out, false
	}
	look := time.NewTicker(sse.LookEvery)
	defer look.Stop()
	f, ok = rc.next(reply, out, look, mode)
	return f, out, ok
}

// begin sends the headers of a stream.
func (rc *requestContext) begin() *sse.Writer {
	contentType := "text/event-stream"
	if rc.mode() == shapes.Array {
		contentType = "application/json"
	}
	rc.w.Header()[attach.SurvivesRestart] = attach.Survives(false)
	return sse.NewWriter(rc.w, contentType, rc.handlers.Env.Now)
}

// fail sends the error of a reply without a chunk: as a status, or as the shape's event in a stream that has begun.
func (rc *requestContext) fail(out *sse.Writer, err *dialogue.Error) {
	rc.turn.End() // before the client tries again
	if out == nil {
		rc.answer(err)
		return
	}
	var event []byte
	if rc.mode() == shapes.Array {
		request := &dialogue.Request{Inbound: rc.shape.Name, Traits: rc.shape.Traits}
		event = rc.shape.NewEmitter(request, shapes.Array, rc.handlers.Env).
			Emit(nil, &dialogue.Event{Kind: dialogue.EventError, Err: err})
	} else {
		event = rc.shape.NewTap(shapes.TapOptions{Stream: true}, rc.handlers.Env).Fail(nil, err)
	}
	_ = out.Send(event) // the stream is over either way
}

// writeWhole writes a reply that is one document.
func (rc *requestContext) writeWhole(reply *text.Reply, f text.Chunk) {
	h := rc.w.Header()
	h["Content-Type"] = jsonType
	h["Content-Length"] = []string{strconv.Itoa(len(f.Data.B))}
	rc.w.WriteHeader(http.StatusOK)
	_, err := rc.w.Write(f.Data.B)
	f.Data.Free()
	rc.rest(reply, err)
}

// rest discards the rest of a reply. If err is not nil, the client has left, and the reply is
// abandoned.
func (rc *requestContext) rest(reply *text.Reply, err error) {
	if err != nil {
		reply.Abandon()
	}
	for f := range reply.Chunks() {
		if f.Data != nil {
			f.Data.Free()
		}
	}
}

// writeStream sends a stream from its first chunk. out is nil unless the stream has begun.
func (rc *requestContext) writeStream(reply *text.Reply, out *sse.Writer, f text.Chunk) {
	mode := rc.mode()
	defer rc.handlers.Metrics.StreamOpened()()
	if out == nil {
		out = rc.begin()
	}
	beat := time.NewTicker(sse.LookEvery)
	defer beat.Stop()
	for {
		if f.Failed != nil {
			rc.record.fail(&f)
			rc.turn.End()
		}
		err := out.Send(f.Data.B)
		f.Data.Free()
		if err != nil {
			rc.rest(reply, err)
			return
		}
		var ok bool
		if f, ok = rc.next(reply, out, beat, mode); !ok {
			return
		}
	}
}

// next waits for a chunk and sends heartbeats meanwhile.
func (rc *requestContext) next(reply *text.Reply, out *sse.Writer, beat *time.Ticker,
	mode shapes.Mode) (text.Chunk, bool) {
	for {
		select {
		case f, ok := <-reply.Chunks():
			return f, ok
		case <-beat.C:
			if !out.Quiet() {
				continue
			}
			if b := rc.shape.Heartbeat(mode); b != nil && out.Send(b) != nil {
				rc.rest(reply, context.Canceled)
				return text.Chunk{}, false
			}
		}
	}
}

var jsonType = []string{"application/json"}

// headers sets the headers that report what the gateway did to the request.
func (rc *requestContext) headers(m *text.Meta) {
	h := rc.w.Header()
	if m == nil {
		return
	}
	if m.Degraded != "" {
		h["X-Structured-Output-Degraded"] = []string{m.Degraded}
	}
	if m.Losses != "" {
		h["X-Stagedoor-Losses"] = []string{m.Losses}
	}
	h["X-Queue-Ms"] = queueMs(m.Queued)
}

var noQueue = []string{"0"}

// queueMs returns the header value for a time in the queue.
func queueMs(d time.Duration) []string {
	if d < time.Millisecond {
		return noQueue
	}
	return []string{strconv.FormatInt(d.Milliseconds(), 10)}
}

// refuse writes the error of a request that was not sent to any provider. A request for a reply is in the log of
// requests then, too, unless it is a dry run.
func (rc *requestContext) refuse(err error) {
	rc.note(nil)
	rc.trace(nil)
	rc.answer(err)
	if dry, _ := dryrun.Wanted(rc.r); rc.generates && !dry {
		rc.handlers.Flow.Refused(flow.About{ID: accesslog.RequestID(rc.w), Shape: string(rc.shape.Name),
			Model: rc.head.Model, Key: rc.key.ID, Owner: string(rc.owner()), App: flow.AppOf(rc.r.Header),
			Stream: rc.head.Stream, Work: rc.head.Background}, rc.failure)
	}
}

// answer writes an error in the dialect of the shape.
func (rc *requestContext) answer(err error) {
	rc.failure = envelope.From(err)
	auth.Refuse(rc.w, rc.handlers.Logger, rc.shape.Envelope, err)
}
