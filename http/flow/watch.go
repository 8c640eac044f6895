package flow

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// pace is how often a watcher is told. What changes faster is told once.
const pace = 500 * time.Millisecond

// What can be watched.
const (
	ViewRequests  = "requests"
	ViewRequest   = "request"
	ViewProviders = "providers"
	ViewActors    = "actors"
)

// Watcher pushes one view at a time over a socket: the whole of what is shown, when
// it is another than before. It is a live.Source, and one goroutine calls it.
type Watcher struct {
	overview *Overview
	ctx      context.Context
	wish     wish
	wrong    error // what the client said and must hear of
	last     []byte
	next     bytes.Buffer
}

// wish is what a client says: {"type":"watch","view":"requests","filter":{...}}. One
// request is watched by its id.
type wish struct {
	Type   string `json:"type"`
	View   string `json:"view"`
	ID     string `json:"id"`
	Filter Filter `json:"filter"`
}

// Messages to the client.
type (
	requestsMessage struct {
		Type   string    `json:"type"`
		Active Active    `json:"active"`
		Recent []Request `json:"recent"`
	}
	requestMessage struct {
		Type    string  `json:"type"`
		Request *Detail `json:"request"` // nil: there is none, or none any more
	}
	providersMessage struct {
		Type      string     `json:"type"`
		Providers []Provider `json:"providers"`
	}
	actorsMessage struct {
		Type   string `json:"type"`
		Actors Actors `json:"actors"`
	}
	errorMessage struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}
)

// Watch makes a Watcher, which watches nothing until it is told what.
func (o *Overview) Watch(ctx context.Context) *Watcher { return &Watcher{overview: o, ctx: ctx} }

// Hear implements live.Source.
func (w *Watcher) Hear(message []byte) {
	w.last = nil
	var next wish
	if w.wrong = next.read(message); w.wrong == nil {
		w.wish = next
	}
}

func (n *wish) read(message []byte) error {
	if json.Unmarshal(message, n, json.RejectUnknownMembers(true)) != nil {
		return errors.New(`must be {"type":"watch","view":"...","filter":{...}}`)
	}
	if n.Type != "watch" {
		return errors.New("type: must be watch")
	}
	switch n.View {
	case ViewRequests, ViewProviders, ViewActors:
	case ViewRequest:
		if n.ID == "" {
			return errors.New("id: must be that of a request")
		}
	default:
		return fmt.Errorf("view: must be one of %s, %s, %s, %s", ViewRequests, ViewRequest, ViewProviders, ViewActors)
	}
	return nil
}

// Next implements live.Source.
func (w *Watcher) Next(send func([]byte) error) (<-chan struct{}, error) {
	message := w.look()
	if message == nil {
		return nil, nil
	}
	w.next.Reset()
	if err := json.MarshalWrite(&w.next, message, anyBytes); err != nil {
		return nil, err
	}
	if !bytes.Equal(w.next.Bytes(), w.last) {
		if err := send(w.next.Bytes()); err != nil {
			return nil, err
		}
		w.last = append(w.last[:0], w.next.Bytes()...)
	}
	if w.wrong != nil {
		return nil, nil // until the client says something else
	}
	again := make(chan struct{})
	time.AfterFunc(pace, func() { close(again) })
	return again, nil
}

// anyBytes has broken characters written as U+FFFD: clients and upstreams choose
// names, and one of them must not take the whole view away.
var anyBytes = jsontext.AllowInvalidUTF8(true)

// look is what is to be shown; nil: nothing yet.
func (w *Watcher) look() any {
	if w.wrong != nil {
		return errorMessage{"error", w.wrong.Error()}
	}
	o := w.overview
	switch w.wish.View {
	case ViewRequests:
		return requestsMessage{ViewRequests, o.Active(w.ctx, w.wish.Filter), o.Recent(w.wish.Filter)}
	case ViewRequest:
		message := requestMessage{Type: ViewRequest}
		if d, ok := o.Request(w.wish.ID); ok {
			message.Request = &d
		}
		return message
	case ViewProviders:
		return providersMessage{ViewProviders, o.Providers(w.ctx)}
	case ViewActors:
		return actorsMessage{ViewActors, o.Actors()}
	}
	return nil
}
