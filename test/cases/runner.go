package cases

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// A Runner plays cases against running gateways, one per upstream shape, each of
// which sends every model to the Upstream of that shape.
type Runner struct {
	Key       string           // the client's key, which all gateways accept
	Gateways  map[Shape]string // base addresses
	Upstreams map[Shape]*Upstream
}

// A Reply is what a client received.
type Reply struct {
	Status  int
	Header  http.Header
	Body    []byte
	Aborted bool // the connection ended in the middle of the body
}

// Play runs a case with its follow-ups and returns what does not hold, or nothing if all of it does. Cases of one
// upstream shape must not be played at the same time, because an Upstream has the script of one exchange.
func (r *Runner) Play(c Case) []string {
	previous, bad := r.exchange(&c, &c.Exchange, nil)
	for i := range c.Then {
		if previous == nil {
			return append(bad, "no client response to follow up")
		}
		next, wrong := r.exchange(&c, &c.Then[i], previous)
		for _, w := range wrong {
			bad = append(bad, fmt.Sprintf("then[%d]: %s", i, w))
		}
		previous = next
	}
	return bad
}

// exchange plays one exchange and returns the reply as a follow-up quotes it. previous is that of the exchange before.
func (r *Runner) exchange(c *Case, x *Exchange, previous any) (any, []string) {
	request, err := echo(generate(x.Request), previous)
	if err != nil {
		return nil, []string{err.Error()}
	}
	upstream := r.Upstreams[c.Upstream]
	upstream.play(x)
	reply, err := r.send(c, x, request)
	if err != nil {
		return nil, []string{"request: " + err.Error()}
	}
	bad := x.checkUpstream(c, upstream.seen())
	view, wrong := x.checkOutcomes(c, request, reply)
	return view, append(bad, wrong...)
}

// send asks the gateway as a client of the case's shape.
func (r *Runner) send(c *Case, x *Exchange, body json.RawMessage) (*Reply, error) {
	url := r.Gateways[c.Upstream] + c.Inbound.Path(c.Model, x.streamed())
	q, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	Authorize(q, c.Inbound, r.Key)
	// A connection per request and no transparent compression: nothing of the
	// client's library stands between the bytes and the rules.
	client := http.Client{
		Timeout:   30 * time.Second,
		Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true},
	}
	response, err := client.Do(q)
	if err != nil {
		return nil, err
	}
	return ReadReply(response), nil
}

// Authorize sets the headers with which a client of a shape sends its key.
func Authorize(q *http.Request, shape Shape, key string) {
	q.Header.Set("Content-Type", "application/json")
	if shape == Messages {
		q.Header.Set("x-api-key", key)
		q.Header.Set("anthropic-version", "2023-06-01")
		return
	}
	q.Header.Set("Authorization", "Bearer "+key)
	if shape == Gemini {
		q.Header.Set("x-goog-api-key", key)
	}
}

// ReadReply reads a response to its end and closes it.
func ReadReply(response *http.Response) *Reply {
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return &Reply{Status: response.StatusCode, Header: response.Header, Body: body, Aborted: err != nil}
}
