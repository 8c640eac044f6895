package text

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"stagedoor/actors/background"
	"stagedoor/actors/flow"
	"stagedoor/actors/ledger"
	"stagedoor/actors/telemetry"
	"stagedoor/actors/text"
	"stagedoor/actors/throttle"
	"stagedoor/http/accesslog"
	"stagedoor/http/auth"
	"stagedoor/http/envelope"
	"stagedoor/http/sse"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/shapes"
	"stagedoor/state"
	"stagedoor/state/share"
)

// Options are what the doors need of the house.
type Options struct {
	Logger *slog.Logger
	Env    *dialogue.Env
	Auth   *auth.Authenticator
	// Requests runs the requests for text.
	Requests *text.Service
	// Catalog is the one in force.
	Catalog func() *catalog.Catalog
	// Limits are the keys' own.
	Limits *throttle.Keys
	// Shapes are the text shapes.
	Shapes []*shapes.Shape
	Store  *state.State
	// Ledger charges the users of keys for models that have a price.
	Ledger *ledger.Client
	// Flow remembers requests that cost nothing, for their receipts; nil: nobody does.
	Flow *flow.Registry
	// Metrics count streams; nil: nobody does.
	Metrics *telemetry.Metrics
	// Watchers is the pool of streams of background responses, among others that
	// watch; nil: they are not bounded.
	Watchers *share.Pool
	// Background runs responses nobody waits for. Durable says that what Store
	// keeps is there for the next process, which then goes on with them.
	Background *background.Registry
	Durable    bool
}

// Doors are the handlers of the text shapes. Safe for concurrent use.
type Doors struct {
	Options
	items *itemIndex
}

// New makes the doors.
func New(o Options) *Doors {
	if o.Watchers == nil {
		o.Watchers = share.New(share.Watchers, 0, 1)
	}
	return &Doors{Options: o, items: newItemIndex(maxItems)}
}

// Handle returns the handler of a route of a shape.
func (d *Doors) Handle(s *shapes.Shape, route shapes.Route) http.HandlerFunc {
	if s.Read != nil {
		return func(w http.ResponseWriter, r *http.Request) {
			in, task := s.Read(r)
			d.visit(s, w, r, in).perform(task)
		}
	}
	return func(w http.ResponseWriter, r *http.Request) {
		d.visit(s, w, r, shapes.Params{Path: r.URL.Path, Header: r.Header}).perform(route.Task)
	}
}

// perform does what a request asks for.
func (v *visit) perform(task shapes.Task) {
	switch task {
	case shapes.Generate:
		v.serve()
	case shapes.Count:
		v.count()
	default:
		v.refuse(envelope.NotFound(v.r.URL.Path))
	}
}

// visit is not inlined: what building one takes would otherwise lie on the stack
// of every stream for as long as it lasts.
//
//go:noinline
func (d *Doors) visit(s *shapes.Shape, w http.ResponseWriter, r *http.Request, in shapes.Params) *visit {
	return &visit{doors: d, shape: s, w: w, r: r, in: in}
}

// visit is one request at its door. Its checks come in the order of
// decisions.md, so that whoever breaks several rules hears of the first.
type visit struct {
	doors *Doors
	shape *shapes.Shape
	w     http.ResponseWriter
	r     *http.Request
	in    shapes.Params

	key     state.Key
	era     uint64 // of the keys, before this one was looked up
	body    *body
	payload []byte // the body, or what became of it
	head    shapes.Head
	plan    []catalog.Candidate
	pass    *throttle.Pass
	record  *record // of a response that is stored; else nil
}

func (v *visit) serve() {
	defer func() { v.pass.Release(0) }() // unless it was released by what was used
	if err := v.admit(); err != nil {
		v.refuse(err)
		if v.body != nil {
			v.body.free()
		}
		return
	}
	if v.shape.Traits.StoresReplies {
		v.serveResponses()
		return
	}
	v.run(v.textRequest())
}

// admit performs every check there is before the request costs anything.
func (v *visit) admit() error {
	if err := v.read(); err != nil {
		return err
	}
	if err := v.route(); err != nil {
		return err
	}
	return auth.Charge(v.w, v.pass, v.estimate(), v.doors.Env.Now())
}

// read checks the key and its limits, and then reads the body. The caller releases
// v.pass, also after an error.
func (v *visit) read() error {
	if err := v.identify(); err != nil {
		return err
	}
	pass, err := auth.Admit(v.w, v.r, v.doors.Limits, &v.key, v.doors.Env.Now())
	if err != nil {
		return err
	}
	v.pass = pass
	b, err := readBody(v.w, v.r)
	if err != nil {
		return err
	}
	v.body, v.payload = b, b.b
	if _, ok := v.shape.Inbound.(shapes.SyntaxChecker); ok {
		return nil // in check, with the rules
	}
	return checkJSON(v.payload, v.shape.Members)
}

// identify checks the key and that it has the shape's scope.
func (v *visit) identify() error {
	v.era = v.doors.Auth.Era()
	key, err := v.doors.Auth.Identify(v.r, v.shape.Scope, v.shape.Traits.KeyInQuery)
	v.key = key // the log names it, too, if it may not do this
	return err
}

// route checks the body by the shape's rules and finds the model.
func (v *visit) route() error {
	head, err := v.check()
	if err != nil {
		return err
	}
	v.head = head
	if err := v.doors.Auth.Permit(&v.key, v.r, "", head.Model); err != nil {
		return err
	}
	if v.plan == nil {
		v.plan = v.doors.planFor(head.Model)
	}
	if v.plan == nil {
		return envelope.ModelNotFound(head.Model)
	}
	return nil
}

// check applies the shape's rules. A system role inside the conversation may be against them.
// The request is checked again without this rule if the catalogue says that its model takes such
// a role (decisions.md "Text shapes").
func (v *visit) check() (shapes.Head, error) {
	head, err := v.shape.Check(v.payload, v.in)
	if err != nil {
		if bad := checkJSON(v.payload, v.shape.Members); bad != nil {
			return head, bad
		}
	}
	var e *dialogue.Error
	if err == nil || !v.shape.Traits.SystemTurns || !errors.As(err, &e) || !strings.HasSuffix(e.Param, ".role") {
		return head, err
	}
	plan := v.doors.planFor(gjson.GetBytes(v.payload, "model").String())
	if plan == nil || !plan[0].Target(v.shape.Name).Caps.SystemTurns {
		return head, err
	}
	v.plan, v.in.SystemTurns = plan, true
	return v.shape.Check(v.payload, v.in)
}

// planFor is what to try for a model, nil if nobody serves it.
func (d *Doors) planFor(model string) []catalog.Candidate {
	entry, ok := d.Catalog().Resolve(model)
	if !ok {
		return nil
	}
	return entry.Plan(pick)
}

// estimate is what the limits reserve for a request: a token is about four
// bytes, and as many come back as were asked for.
func (v *visit) estimate() int {
	return len(v.payload)/4 + int(max(v.head.MaxTokens, 0))
}

func (v *visit) mode() shapes.Mode {
	switch {
	case !v.head.Stream:
		return shapes.Whole
	case v.in.Array:
		return shapes.Array
	default:
		return shapes.Stream
	}
}

// textRequest describes the request to actors/text.
func (v *visit) textRequest() *text.Request {
	return &text.Request{
		ID: accesslog.RequestID(v.w), Inbound: v.shape, Mode: v.mode(), In: v.in, Head: v.head, Body: v.payload,
		Plan: v.plan, Key: v.key.ID, Owner: string(v.owner()), Era: v.era, Class: class(v.head.ServiceTier,
			v.head.Background),
		Tokens: v.estimate(),
	}
}

// class is the priority class of a request: work nobody waits for goes last.
func class(tier string, background bool) int {
	if background {
		return throttle.Background
	}
	return throttle.ClassOf(tier)
}

// run runs the request and writes its reply.
func (v *visit) run(q *text.Request) {
	v.meter(q)
	reply := v.doors.Requests.Begin(v.r.Context(), q)
	v.write(reply)
	v.settle(reply)
}

// settle ends what the request holds. It is not inlined, for the same reason as
// Doors.visit.
//
//go:noinline
func (v *visit) settle(reply *text.Reply) {
	out := reply.Outcome()
	v.record.close(&out)
	v.pass.Release(used(&out))
	v.note(&out)
	v.trace(&out)
	if out.Err == nil && out.Attempts <= 1 {
		// Otherwise a transport may still be sending what nobody waits for.
		v.body.free()
	}
}

// used is what a request is charged with: below zero if the upstream did not
// tell and the estimate has to do.
func used(out *text.Outcome) int {
	if out.Committed && out.Usage.InputTotal < 0 && out.Usage.OutputTotal < 0 {
		return -1
	}
	return int(dialogue.CountOrZero(out.Usage.InputTotal) + dialogue.CountOrZero(out.Usage.OutputTotal))
}

// write sends frames to the client until there are none.
func (v *visit) write(reply *text.Reply) {
	first, ok := <-reply.Chunks()
	if !ok {
		v.answer(envelope.From(nil))
		return
	}
	if first.Err != nil {
		v.headers(first.Meta)
		v.answer(first.Err)
		for range reply.Chunks() {
		}
		return
	}
	v.headers(first.Meta)
	if v.mode() == shapes.Whole {
		v.writeWhole(reply, first)
		return
	}
	if refused := v.record.open(&first); refused != nil {
		first.Data.Free()
		v.rest(reply, refused)
		v.answer(refused)
		return
	}
	v.writeStream(reply, first)
}

func (v *visit) writeWhole(reply *text.Reply, f text.Chunk) {
	h := v.w.Header()
	h["Content-Type"] = jsonType
	h["Content-Length"] = []string{strconv.Itoa(len(f.Data.B))}
	v.w.WriteHeader(http.StatusOK)
	_, err := v.w.Write(f.Data.B)
	f.Data.Free()
	v.rest(reply, err)
}

// rest empties what is left of a reply whose client may have left.
func (v *visit) rest(reply *text.Reply, err error) {
	if err != nil {
		reply.Abandon()
	}
	for f := range reply.Chunks() {
		if f.Data != nil {
			f.Data.Free()
		}
	}
}

func (v *visit) writeStream(reply *text.Reply, f text.Chunk) {
	mode := v.mode()
	contentType := "text/event-stream"
	if mode == shapes.Array {
		contentType = "application/json"
	}
	defer v.doors.Metrics.StreamOpened()()
	out := sse.NewWriter(v.w, contentType, v.doors.Env.Now)
	beat := time.NewTicker(sse.LookEvery)
	defer beat.Stop()
	for {
		if f.Failed != nil {
			v.record.fail(&f)
		}
		err := out.Send(f.Data.B)
		f.Data.Free()
		if err != nil {
			v.rest(reply, err)
			return
		}
		var ok bool
		if f, ok = v.next(reply, out, beat, mode); !ok {
			return
		}
	}
}

// next waits for a frame, and keeps the line alive meanwhile.
func (v *visit) next(reply *text.Reply, out *sse.Writer, beat *time.Ticker, mode shapes.Mode) (text.Chunk, bool) {
	for {
		select {
		case f, ok := <-reply.Chunks():
			return f, ok
		case <-beat.C:
			if !out.Quiet() {
				continue
			}
			if b := v.shape.Heartbeat(mode); b != nil && out.Send(b) != nil {
				v.rest(reply, context.Canceled)
				return text.Chunk{}, false
			}
		}
	}
}

var jsonType = []string{"application/json"}

// headers tell what the gateway did to the request.
func (v *visit) headers(m *text.Meta) {
	h := v.w.Header()
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

func queueMs(d time.Duration) []string {
	if d < time.Millisecond {
		return noQueue
	}
	return []string{strconv.FormatInt(d.Milliseconds(), 10)}
}

// refuse answers a request that nobody was asked about.
func (v *visit) refuse(err error) {
	v.note(nil)
	v.trace(nil)
	v.answer(err)
}

// answer writes an error in the shape's dialect.
func (v *visit) answer(err error) {
	auth.Refuse(v.w, v.doors.Logger, v.shape.Envelope, err)
}
