package responsesocket

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/gorilla/websocket"

	"stagedoor/http/accesslog"
	"stagedoor/http/auth"
	"stagedoor/http/envelope"
	"stagedoor/http/live"
	"stagedoor/http/overload"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/shapes/responses"
	"stagedoor/state"
	"stagedoor/state/identity"
	"stagedoor/state/share"
)

// Options configure Handlers.
type Options struct {
	Logger *slog.Logger
	Auth   *auth.Authenticator
	// Live opens the WebSockets, limits them together with other clients that watch, and drains them.
	Live *live.Handlers
	// Memory bounds the bytes of messages that wait and of responses that are remembered.
	Memory *share.Pool
	// Enabled, if not nil, reports whether WebSockets are accepted. If not, clients get a 426 and use HTTP.
	Enabled func() bool
}

// limits are the times and numbers of a connection. Tests shorten them.
type limits struct {
	age      time.Duration // after which a connection takes no more requests
	silence  time.Duration // after which a running response sends a heartbeat
	patience time.Duration // in which a byte must arrive; several pings may get lost
	accept   time.Duration // in which the client must take a message
	linger   time.Duration // in which the client must answer a close
	message  int64         // bytes of the largest message
	after    func(time.Duration) <-chan time.Time
}

var defaults = limits{
	age: time.Hour, silence: 15 * time.Second, patience: 100 * time.Second, accept: 15 * time.Second,
	linger: 2 * time.Second, message: maxMessage, after: time.After,
}

// Handlers serves WebSockets. It is safe for concurrent use.
type Handlers struct {
	options Options
	limits  limits
}

// New returns Handlers.
func New(o Options) *Handlers { return &Handlers{options: o, limits: defaults} }

// Wanted reports whether a request asks for a WebSocket.
func Wanted(r *http.Request) bool { return r.ProtoMajor == 1 && websocket.IsWebSocketUpgrade(r) }

// Serve serves a GET /v1/responses that asks for a WebSocket, until its connection has ended. The key is checked before
// the upgrade. requests serves each response.create as a request of its own.
func (hs *Handlers) Serve(w http.ResponseWriter, r *http.Request, requests http.Handler) {
	o := &hs.options
	if o.Enabled != nil && !o.Enabled() {
		w.Header().Set("Connection", "close")
		w.Header().Set("Upgrade", "websocket")
		auth.Refuse(w, o.Logger, envelope.Plain, dialogue.Refusal(http.StatusUpgradeRequired, "websocket_disabled",
			"WebSockets are switched off here, use POST /v1/responses"))
		return
	}
	key, err := hs.identify(r)
	if key.ID != "" {
		accesslog.Note(w, slog.String("key", key.ID))
	}
	if err != nil {
		auth.Refuse(w, o.Logger, envelope.Plain, err)
		return
	}
	owner := state.OwnerOf(key.ID, key.User)
	header := http.Header{"X-Request-Id": {accesslog.RequestID(w)}}
	if offered := websocket.Subprotocols(r); len(offered) > 0 {
		header.Set("Sec-Websocket-Protocol", offered[0]) // some clients insist on an answer
	}
	still := func() error { return hs.still(r, owner) }
	socket, life, leave, ok := o.Live.Open(w, r, live.Watcher{Owner: owner, Still: still}, header)
	if !ok {
		return
	}
	defer leave()
	c := newConnection(hs, socket, r, string(owner), accesslog.RequestID(w), requests)
	c.serve(life)
	accesslog.Note(w, slog.Int("creates", c.created))
}

// identify finds the key of a request and checks that it may open a connection. The key is returned together with
// an error if it is known.
func (hs *Handlers) identify(r *http.Request) (identity.Key, error) {
	key, err := hs.options.Auth.Identify(r, responses.Shape.Scope, false)
	if err == nil {
		err = hs.options.Live.SameOrigin(r)
	}
	if err == nil {
		err = overload.Claim(r.Context(), state.OwnerOf(key.ID, key.User))
	}
	return key, err
}

// still returns an error if the key of a connection may not be used for it any more.
func (hs *Handlers) still(r *http.Request, owner state.Owner) error {
	key, err := hs.options.Auth.Authenticate(r, false)
	if err == nil {
		err = hs.options.Auth.Permit(&key, r, responses.Shape.Scope, "")
	}
	if err == nil && state.OwnerOf(key.ID, key.User) != owner {
		err = dialogue.Refusal(http.StatusUnauthorized, "invalid_api_key", "the API key belongs to another user now")
	}
	return err
}

// request returns the HTTP request for a message. It carries the headers of the upgrade, so that it is authenticated
// and traced as the connection is.
func (c *connection) request(ctx context.Context, cr *create) (*http.Request, error) {
	method, path := http.MethodPost, "/v1/responses"
	if cr.attach != "" {
		method, path = http.MethodGet, "/v1/requests/"+url.PathEscape(cr.attach)+"/events"
	}
	r, err := http.NewRequestWithContext(ctx, method, path, cr)
	if err != nil {
		return nil, err
	}
	r.Header = c.upgrade.Header.Clone()
	for _, name := range perMessage {
		r.Header.Del(name)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Request-Id", cr.id)
	if cr.key != "" {
		r.Header.Set("Idempotency-Key", cr.key)
	}
	if cr.trace != "" {
		r.Header.Set("Traceparent", cr.trace)
	}
	r.ContentLength, r.RequestURI = int64(len(cr.body)), r.URL.RequestURI()
	r.Host, r.RemoteAddr, r.TLS = c.upgrade.Host, c.upgrade.RemoteAddr, c.upgrade.TLS
	return r, nil
}

// perMessage are headers that belong to one HTTP message or to one request. The headers of the upgrade must not
// repeat them for each request: an Idempotency-Key would make all of them the same.
var perMessage = []string{"Connection", "Upgrade", "Sec-Websocket-Key", "Sec-Websocket-Version",
	"Sec-Websocket-Protocol", "Sec-Websocket-Extensions", "Content-Length", "Content-Encoding", "Transfer-Encoding",
	"Te", "Expect", "Range",
	"Idempotency-Key", "Last-Event-Id", "X-Dry-Run"}
