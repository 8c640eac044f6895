// Package recording keeps the exchanges of a key while an operator looks for a fault: the client's bytes, the
// upstream's bytes, their times, and everything else that the translation depended on. stagedoor/actors/replay runs a
// recording through the translators of the present version.
//
// # Concurrency
//
// A Recorder may be used by any goroutine. While nothing is recorded, Begin costs one atomic load. A sink hands
// exchanges to its writer over a bounded queue. A writer that is too slow never delays a request: exchanges that do not
// fit are dropped and counted.
//
// # Usage
//
// Requests for text call Begin, and all other requests Serve.
//
// Start returns a Recording of one key, which Write writes as a file for stagedoor/actors/replay. StartKeeper keeps the
// exchanges of the keys for which that is switched on, for the pages of their requests. A key may have both.
//
// # Format
//
// A recording has one JSON object on each line: a Header, then Exchanges in the order in which they ended, then an
// Ending. A recording without an Ending was cut off.
package recording

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"

	"stagedoor/providers/dialogue"
)

const (
	// queued bounds the exchanges that wait for the writer.
	queued = 32
	// room bounds the bytes of all exchanges of a recording that run or wait for the writer.
	room = 32 << 20
	// most bounds the recordings at a time.
	most = 4
)

// Version is the version of the format.
const Version = 1

// Header is the first line of a recording.
type Header struct {
	Recording int       `json:"stagedoor_recording"` // Version
	Key       string    `json:"key"`                 // the id of the key
	Began     time.Time `json:"began"`
}

// Ending is the last line of a recording.
type Ending struct {
	// End says why the recording ended: "time", "size" or "stopped".
	End       string `json:"end"`
	Exchanges int64  `json:"exchanges"`
	// Dropped counts the exchanges that did not fit, and Unfinished the others that are missing: they had not ended.
	Dropped    int64 `json:"dropped"`
	Unfinished int64 `json:"unfinished"`
}

// Exchange is one request with its reply.
type Exchange struct {
	ID       string    `json:"id"` // of the request
	Began    time.Time `json:"began"`
	Millis   int64     `json:"ms"` // until the end
	Client   Client    `json:"client"`
	Attempts []Attempt `json:"attempts"`
	Reply    Reply     `json:"reply"`
	// IDs and Times, in Unix nanoseconds, are those that the translation took, in this order. Signatures has the
	// thought signatures that it remembered from earlier requests.
	IDs        []string          `json:"ids,omitempty"`
	Times      []int64           `json:"times,omitempty"`
	Signatures map[string]string `json:"signatures,omitempty"`
	// Shortened says that a Keeper has cut bodies, whose ends say so.
	Shortened bool `json:"shortened,omitempty"`
}

// Client has the request as the client sent it.
type Client struct {
	Shape  dialogue.Shape `json:"shape"`
	Mode   uint8          `json:"mode"` // shapes.Mode
	Path   string         `json:"path"`
	Model  string         `json:"model,omitempty"` // from the path
	Stream bool           `json:"stream,omitempty"`
	Array  bool           `json:"array,omitempty"`
	Header http.Header    `json:"headers"`
	Body   Bytes          `json:"body"`
	// Translate, ReplyID and Previous are those of actors/text.Request.
	Translate bool   `json:"translate,omitempty"`
	ReplyID   string `json:"reply_id,omitempty"`
	Previous  string `json:"previous,omitempty"`
	// Owner is the owner of the key, to whom summaries of conversations are bound.
	Owner string `json:"owner,omitempty"`
}

// Attempt is one attempt at a target.
type Attempt struct {
	Target    dialogue.Target `json:"target"`
	Simulated bool            `json:"simulated,omitempty"`
	// Untouched says that the reply passed through. Tight is that of actors/text.Meter.
	Untouched bool   `json:"untouched,omitempty"`
	Tight     bool   `json:"tight,omitempty"`
	Calls     []Call `json:"calls"`
	// Amended says that the attempt failed and the next one sends the request otherwise.
	Amended bool `json:"amended,omitempty"`
}

// Call is one call of an upstream.
type Call struct {
	Millis int64       `json:"ms"` // after the beginning of the exchange
	Path   string      `json:"path"`
	Query  string      `json:"query,omitempty"`
	Header http.Header `json:"headers,omitempty"`
	Body   Bytes       `json:"body"`
	// Status is 0 if no reply came.
	Status      int         `json:"status"`
	ReplyMillis int64       `json:"reply_ms"`
	ReplyHeader http.Header `json:"reply_headers,omitempty"`
	ReplyBody   Bytes       `json:"reply_body"`
	// Cut is the error that ended the reply, or that no reply came for.
	Cut string `json:"cut,omitempty"`
}

// Reply has the reply as the client got it.
type Reply struct {
	// Body has the reply without Failure, the last piece of a stream that failed.
	Body    Bytes `json:"body"`
	Failure Bytes `json:"failure,omitempty"`
	// Status and Error are those of a request that failed before its reply began.
	Status   int    `json:"status,omitempty"`
	Error    Bytes  `json:"error,omitempty"`
	Losses   string `json:"losses,omitempty"`
	Degraded string `json:"degraded,omitempty"`
	// Partial says that the exchange ended for a reason outside of it, such as a client that left, so that the reply
	// may lack its end.
	Partial bool `json:"partial,omitempty"`
}

// Bytes are a JSON string if they are text in UTF-8, else an object with the member base64.
type Bytes []byte

// MarshalJSON implements json.Marshaler.
func (b Bytes) MarshalJSON() ([]byte, error) {
	if utf8.Valid(b) {
		return json.Marshal(string(b))
	}
	return json.Marshal(map[string][]byte{"base64": b})
}

// UnmarshalJSON implements json.Unmarshaler.
func (b *Bytes) UnmarshalJSON(text []byte) error {
	var s string
	if jsonv2.Unmarshal(text, &s) == nil {
		*b = Bytes(s)
		return nil
	}
	var o struct {
		Base64 []byte `json:"base64"`
	}
	err := jsonv2.Unmarshal(text, &o)
	*b = o.Base64
	return err
}

// Errors of Recorder.Start.
var (
	ErrBusy = errors.New("this key is being recorded already")
	ErrMany = errors.New("as many keys as possible are being recorded: end one of the recordings first")
)

// sink holds the exchanges that wait for one writer, and counts those that do not fit.
type sink struct {
	out     chan *Draft
	room    atomic.Int64 // bytes that are left
	dropped atomic.Int64
	begun   atomic.Int64 // exchanges
}

// open makes the sink ready for exchanges. It is called before the sink is given to a Recorder.
func (s *sink) open() {
	s.out = make(chan *Draft, queued)
	s.room.Store(room)
}

// target is a sink that takes the exchanges of a key that begin before a time, or all of them if that is zero.
type target struct {
	to    *sink
	until time.Time
}

// faithful reports whether a replay is made from what the sink gets.
func (t target) faithful() bool { return t.until.IsZero() }

// Recorder knows what is recorded. The zero value records nothing.
type Recorder struct {
	mu     sync.Mutex // of the fields below, and of writing active
	files  map[string]*Recording
	keeper *sink
	kept   map[string]time.Time // keys, and until when the keeper keeps them

	active atomic.Pointer[map[string][]target]
}

// Begin returns a Draft that collects an exchange of a key, or nil if the key is not recorded. All methods of a nil
// Draft do nothing.
func (r *Recorder) Begin(key string) *Draft {
	active := r.active.Load()
	if active == nil {
		return nil
	}
	return newDraft(key, (*active)[key])
}

// Start records the exchanges of a key that begin from now on. The caller calls Write, which ends the recording. The
// error is ErrBusy if the key is being recorded already, and ErrMany beyond the bound, because every recording may hold
// exchanges in memory.
func (r *Recorder) Start(key string) (*Recording, error) {
	rec := &Recording{recorder: r, key: key, began: time.Now(), ended: make(chan struct{})}
	rec.open()
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.files[key] != nil:
		return nil, ErrBusy
	case len(r.files) >= most:
		return nil, ErrMany
	case r.files == nil:
		r.files = map[string]*Recording{}
	}
	r.files[key] = rec
	r.activate()
	return rec, nil
}

// Stop ends the recording of a key, whose Write then writes what is left. It reports whether there was one.
func (r *Recorder) Stop(key string) (found bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rec := r.files[key]
	if rec == nil {
		return false
	}
	close(rec.ended)
	delete(r.files, key)
	r.activate()
	return true
}

// keep sets the keeper and the keys whose exchanges it takes, each with the time until which it takes new ones.
func (r *Recorder) keep(keeper *sink, until map[string]time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keeper, r.kept = keeper, until
	r.activate()
}

// activate publishes, for Begin, which sinks take the exchanges of which keys. It is called after each change of the
// recordings. r.mu must be held.
func (r *Recorder) activate() {
	next := map[string][]target{}
	for key, rec := range r.files {
		next[key] = append(next[key], target{to: &rec.sink})
	}
	for key, until := range r.kept {
		next[key] = append(next[key], target{r.keeper, until})
	}
	if len(next) == 0 {
		r.active.Store(nil)
		return
	}
	r.active.Store(&next)
}

// Recording is one recording of a key.
type Recording struct {
	sink
	recorder *Recorder
	key      string
	began    time.Time
	ended    chan struct{} // closed by Recorder.Stop
}

// Write writes the recording to w until ctx ends, d has passed or limit bytes are reached. A line is written at once
// and then flushed. Afterwards the key is not recorded any more. The error is that of w.
func (r *Recording) Write(ctx context.Context, w io.Writer, flush func() error, d time.Duration, limit int64) error {
	defer r.stop()
	over := time.NewTimer(d)
	defer over.Stop()
	written := int64(0)
	put := func(v any, within int64) (fits bool, err error) {
		line, err := json.Marshal(v)
		if err != nil || written+int64(len(line)) >= within {
			return false, err
		}
		n, err := w.Write(append(line, '\n'))
		written += int64(n)
		return true, errors.Join(err, flush())
	}
	if _, err := put(Header{Version, r.key, r.began}, limit); err != nil {
		return err
	}
	e := Ending{}
	keep := func(d *Draft) error {
		defer r.room.Add(d.size)
		d.redactOnce()
		fits, err := put(&d.x, limit-reserve)
		if fits {
			e.Exchanges++
		} else {
			r.dropped.Add(1)
			e.End = endSize
		}
		return err
	}
	for e.End == "" {
		select {
		case d := <-r.out:
			if err := keep(d); err != nil {
				return err
			}
		case <-over.C:
			e.End = "time"
		case <-ctx.Done():
			e.End = "stopped"
		case <-r.ended:
			e.End = "stopped"
		}
	}
	r.stop()
	for len(r.out) > 0 {
		if err := keep(<-r.out); err != nil {
			return err
		}
	}
	e.Dropped = r.dropped.Load()
	e.Unfinished = max(r.begun.Load()-e.Exchanges-e.Dropped, 0)
	_, err := put(e, limit+reserve)
	return err
}

// reserve is the room for the last line.
const reserve = 512

// endSize is the end of a recording that has reached its size.
const endSize = "size"

// stop takes the recording off the list, unless another one with the same key has replaced it.
func (r *Recording) stop() {
	r.recorder.mu.Lock()
	defer r.recorder.mu.Unlock()
	if r.recorder.files[r.key] == r {
		delete(r.recorder.files, r.key)
		r.recorder.activate()
	}
}
