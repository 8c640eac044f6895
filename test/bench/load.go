package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// The shapes a client may speak here.
const (
	chatShape     = "chat"
	messagesShape = "messages"
)

// A load is what one client asks for, again and again. The same load is given to the gateway and to each
// floor, so that their figures can be compared.
type load struct {
	shape   string
	model   string // the order to the fake provider
	request int    // bytes of the request, about
	tokens  int    // of the stream; 0: a whole reply
}

// path returns the path of the shape.
func (l load) path() string {
	if l.shape == messagesShape {
		return "/v1/messages"
	}
	return "/v1/chat/completions"
}

// body returns a request of about the wanted length.
func (l load) body() []byte {
	prompt := strings.Repeat("lorem ipsum ", max(1, (l.request-150)/12))
	return fmt.Appendf(nil, `{"model":%q,"max_tokens":1000,"stream":%v,"messages":[{"role":"user","content":%q}]}`,
		l.model, l.tokens > 0, prompt)
}

// newClient is a client with connections enough for all loops.
func newClient(n int) *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: n, DisableCompression: true}}
}

// once asks once, reads the reply to its end and checks that it is complete. Lag is
// called with how long each token was on its way.
func (l load) once(ctx context.Context, client *http.Client, url string, body []byte, lag func(time.Duration)) error {
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, url+l.path(), bytes.NewReader(body))
	if err != nil {
		return err
	}
	q.Header.Set("Content-Type", "application/json")
	if l.shape == messagesShape {
		q.Header.Set("x-api-key", benchKey)
	} else {
		q.Header.Set("Authorization", "Bearer "+benchKey)
	}
	response, err := client.Do(q)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 300)) // for the message only
		return fmt.Errorf("status %d: %s", response.StatusCode, text)
	}
	want := max(1, l.tokens) // a whole reply has one stamp
	got, err := readStamps(response.Body, lag)
	if err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("got %d tokens, want %d", got, want)
	}
	return nil
}

// readStamps reads to the end and counts the provider's stamps. No shape changes text, so it works on all of
// them. A stamp is @, the provider's time in nanoseconds and a semicolon, and each token has one.
func readStamps(r io.Reader, lag func(time.Duration)) (n int, err error) {
	in := bufio.NewReaderSize(r, 8<<10)
	for {
		if _, err := in.ReadSlice('@'); err != nil {
			switch {
			case errors.Is(err, bufio.ErrBufferFull):
				continue
			case errors.Is(err, io.EOF):
				return n, nil
			}
			return n, err
		}
		digits, err := in.ReadSlice(';')
		if err != nil {
			return n, fmt.Errorf("a stamp without end: %w", err)
		}
		at, err := strconv.ParseInt(string(digits[:len(digits)-1]), 10, 64)
		if err != nil {
			return n, fmt.Errorf("a stamp that is none: %w", err)
		}
		n++
		lag(time.Since(time.Unix(0, at)))
	}
}

// closedLoop keeps a number of clients asking, one request each at a time. The next request of a client
// begins when its last one has ended, so a slower target gets fewer requests and no queue builds up.
func (l load) closedLoop(ctx context.Context, t *target, o options) (result, error) {
	client, body := newClient(o.clients), l.body()
	defer client.CloseIdleConnections()
	var counting atomic.Bool
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	over := make(chan struct{}) // closed when clients shall finish what they are at
	samples := make([][]time.Duration, o.clients)
	var wait sync.WaitGroup
	for i := range o.clients {
		wait.Go(func() {
			for !closed(over) {
				begun := time.Now()
				if err := l.once(ctx, client, t.url, body, func(time.Duration) {}); err != nil {
					fail(err) // the first one counts
					return
				}
				if counting.Load() {
					samples[i] = append(samples[i], time.Since(begun))
				}
			}
		})
	}
	r, err := observe(ctx, t.pid, o, &counting)
	close(over)
	wait.Wait()
	if err := errors.Join(err, context.Cause(ctx)); err != nil {
		return result{}, err
	}
	return r.summed(samples), nil
}

// closed reports whether a channel is closed.
func closed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// observe waits for the warm-up, then measures for the time asked for. The figures are those of the process
// pid: its processor time between two looks and its resident memory at the end.
func observe(ctx context.Context, pid int, o options, counting *atomic.Bool) (result, error) {
	if err := sleep(ctx, o.warm); err != nil {
		return result{}, err
	}
	before, err := processorTime(pid)
	if err != nil {
		return result{}, err
	}
	begun := time.Now()
	counting.Store(true)
	err = sleep(ctx, o.measure)
	counting.Store(false)
	took := time.Since(begun)
	if err != nil {
		return result{}, err
	}
	after, err := processorTime(pid)
	if err != nil {
		return result{}, err
	}
	rss, err := memory(pid)
	return result{took: took, processor: after - before, memory: rss}, err
}

// sleep waits, or returns the cause of the end of ctx.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// hold opens many slow streams and looks at what they cost while all are open. The memory of one stream is
// the difference to the memory before, divided by the streams.
func (l load) hold(ctx context.Context, t *target, streams int) (result, error) {
	client, body := newClient(streams), l.body()
	defer client.CloseIdleConnections()
	// One stream before, so that what a target allocates once is not counted.
	if err := l.once(ctx, client, t.url, body, func(time.Duration) {}); err != nil {
		return result{}, err
	}
	base, err := memory(t.pid)
	if err != nil {
		return result{}, err
	}
	begun, lags, failures := time.Now(), make([][]time.Duration, streams), make([]error, streams)
	used, err := processorTime(t.pid)
	if err != nil {
		return result{}, err
	}
	var wait sync.WaitGroup
	for i := range streams {
		wait.Go(func() {
			failures[i] = l.once(ctx, client, t.url, body, func(d time.Duration) { lags[i] = append(lags[i], d) })
		})
	}
	// The provider sends a token each half second, so all are open by now and none is
	// near its end.
	sampled := sleep(ctx, 4*time.Second)
	held, err := memory(t.pid)
	wait.Wait()
	if err := errors.Join(append(failures, sampled, err)...); err != nil {
		return result{}, err
	}
	after, err := processorTime(t.pid)
	if err != nil {
		return result{}, err
	}
	r := result{took: time.Since(begun), processor: after - used, memory: held,
		perStream: (held - base) / int64(streams)}
	return r.summed(lags), nil
}
