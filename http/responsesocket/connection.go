package responsesocket

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
	"github.com/sourcegraph/conc"

	"stagedoor/http/envelope"
	"stagedoor/http/live"
	"stagedoor/providers/dialogue"
)

const (
	maxLanes   = 32 // that have a name
	maxRunning = 16
	maxQueued  = 64
)

// connection is one WebSocket.
//
// The fields up to workers are set before serve and do not change. mu guards the fields below it. writing has
// a lock of its own, because a write may take as long as the client does not read.
type connection struct {
	handlers *Handlers
	limits   limits
	socket   *websocket.Conn
	upgrade  *http.Request
	owner    string
	id       string // the request id of the upgrade
	requests http.Handler

	ctx     context.Context // of all requests; ends with the connection
	cancel  context.CancelFunc
	workers conc.WaitGroup
	gone    chan struct{} // closed when nothing more is read
	ended   chan struct{} // has a value when a request may have ended
	closing atomic.Bool   // a close was sent: nothing more is sent, and what arrives is discarded

	writing  sync.Mutex // held while a message is written
	lastText atomic.Int64

	mu      sync.Mutex
	lanes   map[string]*lane
	queue   []*create // in the order of arrival, of all lanes
	running int
	created int             // the requests that were accepted
	refusal *dialogue.Error // set when no more requests are accepted
	clock   int             // counts what is remembered
}

// lane is a series of requests that run one after the other. The lane without a name is "".
type lane struct {
	name string
	busy bool
	last *remembered // the newest response that is not stored, or nil
}

func newConnection(hs *Handlers, socket *websocket.Conn, upgrade *http.Request, owner, id string,
	requests http.Handler) *connection {
	c := &connection{handlers: hs, limits: hs.limits, socket: socket, upgrade: upgrade, owner: owner, id: id,
		requests: requests, gone: make(chan struct{}), ended: make(chan struct{}, 1), lanes: make(map[string]*lane)}
	// The requests have traces and shares of their own, so they get none of the upgrade's context.
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// serve returns when the connection and all its requests have ended. life ends when the connection should.
// The deferred calls run in the reverse order: the requests are cancelled, then waited for, and then what the
// connection remembers is released.
func (c *connection) serve(life context.Context) {
	defer c.forgetAll()
	defer c.workers.Wait()
	defer c.cancel()
	c.workers.Go(func() {
		defer close(c.gone)
		c.read()
	})
	c.attend(life)
	c.refuseMore(dialogue.ClientClosed(nil), false)
	<-c.gone
	_ = c.socket.Close() // ends a write to a client that does not read
}

// end says how a connection ends that the client has not left.
type end struct {
	refusal *dialogue.Error // of requests that have not begun
	say     bool            // whether the refusal is sent, too
	code    int
	reason  string
}

// endOf returns how a connection ends whose context has ended with cause.
func endOf(cause error) *end {
	if errors.Is(cause, live.ErrDraining) {
		return &end{dialogue.ShuttingDown(cause), false, websocket.CloseServiceRestart, "the gateway is restarting"}
	}
	e := envelope.From(cause)
	if e.Status >= http.StatusInternalServerError {
		return &end{e, true, websocket.CloseInternalServerErr, "the gateway met an internal error"}
	}
	return &end{e, true, websocket.ClosePolicyViolation, "the API key may not be used any more"}
}

// tooOld ends a connection that has reached its age. The client may connect again.
var tooOld = &end{dialogue.BadRequest("websocket_connection_limit_reached",
	"the connection has reached its limit of 60 minutes, open another one"), true, websocket.CloseGoingAway,
	"the connection has reached its limit of 60 minutes"}

// attend returns when the client has left, or when the connection was closed for another reason. What runs then is
// finished first, and no more is begun.
func (c *connection) attend(life context.Context) {
	tick := time.NewTicker(c.limits.silence)
	defer tick.Stop()
	aged := c.limits.after(c.limits.age)
	var last *end
	var cut <-chan time.Time
	done := life.Done()
	for {
		if last != nil && c.idle() {
			if last.say {
				c.sendError("", last.refusal, nil)
			}
			c.sendClose(last.code, last.reason)
			return
		}
		select {
		case <-c.gone:
			return
		case <-done:
			done = nil
			last = endOf(context.Cause(life))
			c.refuseMore(last.refusal, true)
			if last.say { // the requests of a revoked key are ended elsewhere, and get little time for it
				cut = time.After(c.limits.linger)
			}
		case <-aged:
			if last == nil {
				last = tooOld
				c.refuseMore(last.refusal, true)
			}
		case <-cut:
			c.cancel()
		case <-c.ended:
		case <-tick.C:
			c.keepAlive()
		}
	}
}

// refuseMore refuses the requests that have not begun, and all later ones. If say is set, the client gets the
// error for each of those that wait.
func (c *connection) refuseMore(refusal *dialogue.Error, say bool) {
	c.mu.Lock()
	c.refusal = refusal
	waiting := c.queue
	c.queue = nil
	c.mu.Unlock()
	for _, cr := range waiting {
		cr.free()
		if say {
			c.sendError(cr.lane.name, refusal, nil)
		}
	}
}

// idle reports whether no request is running.
func (c *connection) idle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running == 0
}

// accept puts a request into the queue, or returns the error that refuses it.
func (c *connection) accept(cr *create, stream string) *dialogue.Error {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.lanes[stream]
	switch {
	case c.refusal != nil:
		return c.refusal
	case l == nil && stream != "" && c.named() >= maxLanes:
		return dialogue.BadField("stream_id", "websocket_stream_limit_reached",
			"is the name of one lane too many: a connection may have "+strconv.Itoa(maxLanes))
	case len(c.queue) >= maxQueued:
		return dialogue.Refusal(http.StatusTooManyRequests, "websocket_queue_full",
			strconv.Itoa(maxQueued)+" requests of the connection wait already, wait until one of them begins")
	case l == nil:
		l = &lane{name: stream}
		c.lanes[stream] = l
	}
	c.created++
	cr.lane, cr.id = l, c.id+"-"+strconv.Itoa(c.created)
	c.queue = append(c.queue, cr)
	c.begin()
	return nil
}

// named returns the number of lanes that have a name. c.mu must be held.
func (c *connection) named() int {
	if c.lanes[""] != nil {
		return len(c.lanes) - 1
	}
	return len(c.lanes)
}

// begin starts the requests whose turn it is. c.mu must be held. Requests of a busy lane are passed over, so
// one slow lane does not hold up the others. Within a lane the order of arrival stays.
func (c *connection) begin() {
	for i := 0; i < len(c.queue) && c.running < maxRunning; {
		cr := c.queue[i]
		if cr.lane.busy {
			i++
			continue
		}
		c.queue = slices.Delete(c.queue, i, i+1)
		cr.lane.busy = true
		c.running++
		c.workers.Go(func() { c.run(cr) })
	}
}

// run serves one request and then starts those that waited for it. The lane becomes free in the same step in
// which the next requests begin, so that no place stays empty.
func (c *connection) run(cr *create) {
	w := &eventWriter{connection: c, create: cr, header: make(http.Header), number: -1}
	defer func() {
		cr.free()
		cr.drop()
		c.mu.Lock()
		cr.lane.busy = false
		c.running--
		c.begin()
		c.mu.Unlock()
		select {
		case c.ended <- struct{}{}:
		default:
		}
	}()
	r, err := c.request(c.ctx, cr)
	if err != nil {
		w.refuse(envelope.From(err))
		return
	}
	c.perform(w, cr.remembering(c).On(r))
	w.end()
}

// perform calls the server's handler. A reply that the server breaks off ends as a failed response.
func (c *connection) perform(w *eventWriter, r *http.Request) {
	defer func() {
		if reason := recover(); reason != nil && reason != http.ErrAbortHandler {
			panic(reason)
		}
	}()
	c.requests.ServeHTTP(w, r)
}
