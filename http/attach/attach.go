package attach

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"

	"stagedoor/actors/kept"
	"stagedoor/actors/throttle"
	"stagedoor/http/accesslog"
	"stagedoor/http/auth"
	"stagedoor/http/nodes"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/memory"
	"stagedoor/state"
	"stagedoor/state/identity"
	"stagedoor/state/share"
	"stagedoor/state/work"
)

// Options configure a Service.
type Options struct {
	Logger *slog.Logger
	Auth   *auth.Authenticator
	// Limits enforces the limits of keys on clients that resume. Watchers limits their connections, together with
	// other requests that watch.
	Limits   *throttle.Keys
	Watchers *share.Pool
	// Records keeps the replies of requests in flight and of those that ended shortly ago, and Store those for repeats.
	Records *kept.Registry
	Store   *state.State
	// Nodes are the other gateways, whose replies clients of this one may read, too, or nil.
	Nodes *nodes.Cluster
	// Memory counts stored replies while they are sent. Nil counts nothing.
	Memory memory.Pool
}

// Service keeps replies and serves them again. It is safe for concurrent use. A nil Service keeps nothing.
type Service struct{ Options }

// New returns a Service.
func New(o Options) *Service {
	s := &Service{o}
	if o.Nodes != nil {
		o.Nodes.Handle("GET /requests/{id}", s.serveNode)
		o.Nodes.Handle("GET /repeats", s.serveRepeat)
	}
	return s
}

// The headers of a request and of its reply.
const (
	keyHeader    = "Idempotency-Key"
	policyHeader = "X-On-Disconnect"
	// repeatedHeader marks a reply that was made for an earlier request, whose id is in originHeader.
	repeatedHeader = "Idempotent-Replayed"
	originHeader   = "X-Original-Request-Id"
	// keepsHeader says how many bytes of a reply are kept for further clients, at most.
	keepsHeader = "X-Stagedoor-Keeps"
)

// SurvivesRestart is the header that says whether a stream goes on when the gateway is restarted: true for background
// responses and for repeats of a stored reply.
const SurvivesRestart = "X-Survives-Restart"

var survives, perishes = []string{"true"}, []string{"false"}

// Survives returns the value of the header SurvivesRestart. It must not be modified.
func Survives(yes bool) []string {
	if yes {
		return survives
	}
	return perishes
}

// Wanted reports whether a client asks for anything that this package does.
func Wanted(r *http.Request) bool {
	return r.Header[keyHeader] != nil || r.Header["X-On-Disconnect"] != nil
}

// Configured returns the policy for a request that does not say its own: that of its key, or else of its model, or "".
func Configured(key *identity.Key, model string) string {
	return cmp.Or(key.OnDisconnect.String(), model)
}

// Key returns the idempotency key of a request, or "" without one. An error names the rule that the key breaks.
func Key(r *http.Request) (string, error) {
	const most = 255
	key := r.Header.Get(keyHeader)
	for _, c := range []byte(key) {
		if c < ' ' || c > '~' {
			return "", dialogue.Invalid(keyHeader, "must be printable ASCII")
		}
	}
	if len(key) > most {
		return "", dialogue.Invalid(keyHeader, fmt.Sprintf("must not be longer than %d characters", most))
	}
	return key, nil
}

// policies are the values of X-On-Disconnect.
var policies = map[string]kept.Policy{"cancel": kept.Cancel, "finish": kept.Finish, "detach": kept.Detach}

// policyOf returns what becomes of a request when its client leaves: what the client says, or else what its key or its
// model says. Without any of them, a request with an idempotency key finishes, because its client announces that it may
// ask again, and is charged once.
func policyOf(r *http.Request, key, configured string) (kept.Policy, error) {
	said := r.Header.Get(policyHeader)
	switch {
	case said == "" && configured != "":
		return policies[configured], nil
	case said == "" && key != "":
		return kept.Finish, nil
	case said == "":
		return kept.Cancel, nil
	}
	policy, known := policies[said]
	if !known {
		return 0, dialogue.Invalid(policyHeader, "must be cancel, finish or detach")
	}
	return policy, nil
}

// Request describes a request that was admitted.
type Request struct {
	Key          *identity.Key
	Scope, Model string
	// OnDisconnect is the policy of the configuration, which Configured returns, or "".
	OnDisconnect string
	// Body writes what identifies the request beside its path and query, such as its body. It is called if the request
	// has an idempotency key.
	Body func(io.Writer)
}

// Run makes the reply of a request. It returns the failure that the client got, or nil.
type Run func(w http.ResponseWriter, r *http.Request) *dialogue.Error

// Serve answers a request: with the reply that an earlier request with its idempotency key got, or else by run. run is
// called at most once, on the goroutine of the caller. made reports whether it was. After an error nothing was sent.
func (s *Service) Serve(w http.ResponseWriter, r *http.Request, q Request, run Run) (made bool, err error) {
	if s == nil || q.OnDisconnect == "" && !Wanted(r) {
		run(w, r)
		return true, nil
	}
	key, err := Key(r)
	if err != nil {
		return false, err
	}
	policy, err := policyOf(r, key, q.OnDisconnect)
	if err != nil {
		return false, err
	}
	if key == "" && policy == kept.Cancel {
		run(w, r)
		return true, nil
	}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(r.Context()))
	defer cancel(context.Canceled)
	request := kept.Request{ID: accesslog.RequestID(w), Owner: state.OwnerOf(q.Key.ID, q.Key.User), Key: key,
		Scope: q.Scope, Model: q.Model, Policy: policy, Cancel: func() { cancel(context.Canceled) }}
	if key != "" {
		request.Asked = asked(r, q.Body)
		if found, err := s.repeatElsewhere(w, r, q.Key, &request); found || err != nil {
			return false, err
		}
	}
	var earlier work.Reply
	record, begun, err := s.Records.Begin(request, func() (found bool) {
		earlier, found = work.FindReply(s.Store.View(), request.Owner, key)
		return found
	})
	switch {
	case errors.Is(err, kept.ErrReused), err == nil && record == nil && !earlier.Asked.Equal(request.Asked):
		return false, dialogue.IdempotencyKeyReused("was used for another request")
	case err != nil:
		return false, err
	case record == nil:
		return false, s.repeatStored(w, r, &earlier)
	case !begun:
		defer record.Leave()
		repeats(w, record.ID())
		return false, s.follow(w, r, q.Key, record, 0, notKept)
	}
	s.record(w, r.WithContext(ctx), r.Context(), record, &request, run)
	return true, nil
}

// asked returns the hash of what a request asks for. The path counts, because one body may be sent to several routes,
// and so does the query, without the gateway key that it may have.
func asked(r *http.Request, body func(io.Writer)) state.Hash {
	query := r.URL.Query()
	query.Del("key")
	h := sha256.New()
	fmt.Fprintf(h, "%s\x00%s\x00", r.URL.Path, query.Encode())
	body(h)
	return state.Hash(h.Sum(nil))
}

// record runs a request whose reply is kept. client ends when the client's connection does, and r goes on after that if
// the policy wants it.
func (s *Service) record(w http.ResponseWriter, r *http.Request, client context.Context, record *kept.Record,
	q *kept.Request, run Run) {
	leave := sync.OnceFunc(record.Leave)
	var failure *dialogue.Error
	broken := true // stands if run panics
	defer func() {
		record.Close(broken)
		record.Release(!broken && s.store(r.Context(), record, q, failure))
		leave()
	}()
	stop := context.AfterFunc(client, leave)
	defer stop()
	t := &tee{ResponseWriter: w, record: record, leave: leave}
	t.events.ids = q.Policy == kept.Detach
	failure = run(t, r)
	broken = false
}

// store stores a reply for repeats after this process, and reports whether a repeat may have it. A failure that a
// retry can mend is not repeated.
func (s *Service) store(ctx context.Context, record *kept.Record, q *kept.Request, failure *dialogue.Error) bool {
	status, header, body, whole := record.Whole()
	if q.Key == "" || !repeatable(status, failure) {
		return false
	}
	reply := work.Reply{Owner: q.Owner, Key: state.HashSecret(q.Key), Asked: q.Asked, Request: q.ID, Status: status,
		Header: header, Lost: !whole}
	if err := work.PutReply(context.WithoutCancel(ctx), s.Store, reply, body); err != nil {
		s.Logger.Warn("reply not stored for repeats", "request_id", q.ID, "cause", err)
	}
	return true
}

// repeatable reports whether a repeat of a request would end as the request did. A stream that failed has a good
// status.
func repeatable(status int, failure *dialogue.Error) bool {
	if failure != nil && failure.Retry {
		return false
	}
	switch status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return true
	}
	return failure == nil && status >= 200 && status < 300
}

// repeatStored answers a request with the stored reply to an earlier one.
func (s *Service) repeatStored(w http.ResponseWriter, r *http.Request, reply *work.Reply) error {
	if reply.Lost {
		return notKept()
	}
	claim := memory.NewClaim(s.Memory, string(reply.Owner))
	defer claim.End()
	if err := claim.Grow(reply.Size); err != nil {
		return dialogue.NoMemory(err)
	}
	body, err := work.ReadReplyBody(r.Context(), s.Store, reply)
	if err != nil {
		return dialogue.Unavailable("storage_unavailable",
			"the gateway cannot read the stored reply at the moment, try again later", retryStored, err)
	}
	repeats(w, reply.Request)
	carryTo(w.Header(), reply.Header)
	if isStream(reply.Header) {
		w.Header()[SurvivesRestart] = Survives(true)
	}
	w.WriteHeader(reply.Status)
	_, _ = w.Write(body) // a client that has left asks again
	return nil
}

// repeats marks a reply as that of an earlier request.
func repeats(w http.ResponseWriter, id string) {
	h := w.Header()
	h[repeatedHeader] = []string{"true"}
	h[originHeader] = []string{id}
	accesslog.Note(w, slog.String("repeats", id))
}

// notKept refuses a repeat whose reply is not there any more. Its request is not made again, because it was charged.
func notKept() *dialogue.Error {
	e := dialogue.Refusal(http.StatusConflict, "idempotent_reply_not_kept", keyHeader+
		": the request was made before, and its reply was too large to be kept: send it with another key")
	e.Param, e.NoRetry = keyHeader, true
	return e
}

// follow sends a client what a record has from an offset on, as it is made. After an error nothing was sent. dropped
// makes the error for a record that no longer has the bytes at the offset.
func (s *Service) follow(w http.ResponseWriter, r *http.Request, key *identity.Key, record *kept.Record, offset int64,
	dropped func() *dialogue.Error) error {
	ctx, leave := s.Auth.Watch(r, key)
	defer leave()
	begun, err := readRecord(ctx, record, offset, func(status int, header http.Header) {
		begin(w, status, header, offset > 0)
	}, func(p []byte) error { return send(w, p) })
	switch {
	case err == nil, errors.Is(err, errLeft):
		return nil
	case !begun && errors.Is(err, errDropped):
		return dropped()
	case !begun && ctx.Err() != nil && r.Context().Err() == nil:
		return context.Cause(ctx)
	}
	panic(http.ErrAbortHandler) // so that the client notices that its reply is cut off
}

// begin sends the status and the headers of a reply that was made for another client. resumed says that it is sent from
// the middle on.
func begin(w http.ResponseWriter, status int, header http.Header, resumed bool) {
	carryTo(w.Header(), header)
	if resumed {
		w.Header().Del("Content-Length")
	}
	w.WriteHeader(status)
}

// send writes and flushes a piece of a reply.
func send(w http.ResponseWriter, p []byte) error {
	if _, err := w.Write(p); err != nil {
		return err
	}
	return http.NewResponseController(w).Flush()
}

// Reasons for which a record cannot be read to its end.
var (
	errDropped = errors.New("the bytes that follow are no longer kept")
	errBroken  = errors.New("the reply is cut off")
	errLeft    = errors.New("the client has left")
)

// readRecord calls begin and then write with what a record has from an offset on, as it is made, until the reply ends.
// The error is one of those above or the cause of ctx.
func readRecord(ctx context.Context, record *kept.Record, offset int64, begin func(int, http.Header),
	write func([]byte) error) (begun bool, err error) {
	for {
		part := record.Read(offset)
		if part.Status != 0 && !part.Dropped && !begun {
			begin(part.Status, part.Header)
			begun = true
		}
		switch {
		case part.Dropped:
			return begun, errDropped
		case part.Ended && (part.Broken || !begun):
			return begun, errBroken
		case len(part.Bytes) > 0:
			if write(part.Bytes) != nil {
				return begun, errLeft
			}
			offset += int64(len(part.Bytes))
			continue
		case part.Ended:
			return begun, nil
		}
		select {
		case <-part.Changed:
		case <-ctx.Done():
			return begun, context.Cause(ctx)
		}
	}
}

// carried are the headers of a reply that a further client gets, too. Others are about the first client's connection or
// the limits of its key.
var carried = []string{"Content-Type", "Cache-Control", "X-Accel-Buffering", "X-Structured-Output-Degraded",
	"X-Stagedoor-Losses", "X-Stagedoor-Estimate", "X-Queue-Ms", SurvivesRestart, "Retry-After", "Retry-After-Ms",
	"X-Should-Retry", "Content-Length"}

// carryTo sets the carried headers of a reply.
func carryTo(to, from http.Header) {
	for _, name := range carried {
		if v := from[name]; v != nil {
			to[name] = v
		}
	}
}

// isStream reports whether headers are those of server-sent events.
func isStream(h http.Header) bool {
	return strings.HasPrefix(h.Get("Content-Type"), "text/event-stream")
}
