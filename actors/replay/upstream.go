package replay

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"stagedoor/actors/recording"
	"stagedoor/providers/dialogue"
	providers "stagedoor/providers/upstream"
)

// upstream answers calls with the recorded replies, and compares the calls with the recorded ones.
type upstream struct {
	mu    sync.Mutex
	calls []recording.Call
	used  []bool
	found []string // differences
}

var errNoReply = errors.New("the recording has no reply")

// answer answers a call with the reply to the recorded call that is the same, or else to the next one. Calls
// of one request run concurrently, so their order says nothing. A changed body matches no recorded call, and
// then the first unused one is taken, with which it is compared.
func (u *upstream) answer(s providers.Sent) (*http.Response, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.used == nil {
		u.used = make([]bool, len(u.calls))
	}
	at := -1
	for i := range u.calls {
		if !u.used[i] && (at < 0 || bytes.Equal(u.calls[i].Body, s.Body)) {
			at = i
			if bytes.Equal(u.calls[i].Body, s.Body) {
				break
			}
		}
	}
	if at < 0 {
		u.found = append(u.found, "there is a call of the upstream that was not made before")
		return nil, errNoReply
	}
	u.used[at] = true
	c := &u.calls[at]
	u.compare(at, c, &s)
	if c.Status == 0 {
		return nil, errors.New(c.Cut)
	}
	h := c.ReplyHeader.Clone()
	h.Del("Content-Encoding") // the body has been inflated
	var body io.Reader = bytes.NewReader(c.ReplyBody)
	if c.Cut != "" {
		body = io.MultiReader(body, cut{c.Cut})
	}
	return &http.Response{StatusCode: c.Status, Header: h, Body: io.NopCloser(body), ContentLength: -1}, nil
}

// compare adds the differences between a call and the recorded one to u.found. u.mu must be held.
func (u *upstream) compare(at int, c *recording.Call, s *providers.Sent) {
	what := fmt.Sprintf("call %d of the upstream", at+1)
	address := func(path, query string) []byte { return []byte(strings.TrimSuffix(path+"?"+query, "?")) }
	u.found = append(u.found, difference("address of "+what, address(c.Path, c.Query), address(s.Path, s.Query))...)
	u.found = append(u.found, difference("body of "+what, c.Body, s.Body)...)
	for name, values := range c.Header {
		u.found = append(u.found, difference("header "+name+" of "+what, []byte(strings.Join(values, ", ")),
			[]byte(strings.Join(s.Header[name], ", ")))...)
	}
}

// differences returns how the calls differ from the recorded ones.
func (u *upstream) differences() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	for i := range u.calls {
		if i >= len(u.used) || !u.used[i] {
			u.found = append(u.found, fmt.Sprintf("call %d of the upstream is not made any more", i+1))
		}
	}
	return u.found
}

// cut is the end of a reply that was cut off.
type cut struct{ why string }

// Read implements io.Reader.
func (c cut) Read([]byte) (int, error) { return 0, errors.New(c.why) }

// newEnv returns an Env that gives out what the recording has. When that is used up, times stand still and
// ids are counted. Seals in the recording were made with the key of the gateway that recorded them. Adopt
// lets the replay accept them without that key.
func newEnv(x *recording.Exchange) *dialogue.Env {
	var mu sync.Mutex
	ids, times, made := x.IDs, x.Times, 0
	now := x.Began
	e := &dialogue.Env{Sealer: dialogue.NewSealer([]byte("replay")), Signatures: signatures(x.Signatures)}
	e.Sealer.Adopt(x.Client.Body)
	e.Sealer.Adopt(x.Reply.Body)
	for _, remembered := range x.Signatures {
		e.Sealer.Adopt([]byte(remembered))
	}
	e.Now = func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		if len(times) > 0 {
			now, times = time.Unix(0, times[0]), times[1:]
		}
		return now
	}
	e.ID = func() string {
		mu.Lock()
		defer mu.Unlock()
		if len(ids) > 0 {
			id := ids[0]
			ids = ids[1:]
			return id
		}
		made++
		return fmt.Sprintf("replayed%024d", made)
	}
	return e
}

// signatures are those that the exchange recalled from earlier ones. Its own are not recalled.
type signatures map[string]string

// Remember implements dialogue.SignatureCache.
func (signatures) Remember(_, _, _ string) {}

// Recall implements dialogue.SignatureCache.
func (s signatures) Recall(_, call string) (signature string, ok bool) {
	signature, ok = s[call]
	return signature, ok
}
