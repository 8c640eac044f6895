package flow

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"stagedoor/actors/flow"
)

// pace is the shortest time between two messages to a watcher. Faster changes come in one message.
const pace = 500 * time.Millisecond

// Views that can be watched.
const (
	ViewRequests = "requests"
	ViewRequest  = "request"
	ViewActors   = "actors"
)

// Watcher sends one view at a time over a socket. It sends the whole view each time it differs from the last one.
// It implements live.Source for one goroutine.
type Watcher struct {
	overview *Overview
	ctx      context.Context
	message  watchMessage
	wrong    error // the error of the last message, which the client must get
	last     []byte
	next     bytes.Buffer
	lanes    joinedLanes
}

// watchMessage is a message of the client: {"type":"watch","view":"requests","filter":{...}}. One request is watched by
// its id and its gateway.
type watchMessage struct {
	Type   string `json:"type"`
	View   string `json:"view"`
	ID     string `json:"id"`
	Node   string `json:"node"` // its gateway, or empty for any
	Filter Filter `json:"filter"`
	// Lanes asks in the view of requests also for the picture of their lanes, of which only changes are sent.
	Lanes bool `json:"lanes"`
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
		Request *Detail `json:"request"` // nil if there is no such request, or no longer
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

// Watch returns a Watcher. It sends nothing until the client has chosen a view.
func (o *Overview) Watch(ctx context.Context) *Watcher {
	return &Watcher{overview: o, ctx: ctx, lanes: joinedLanes{own: lanes{overview: o}}}
}

// Receive implements live.Source.
func (w *Watcher) Receive(message []byte) {
	w.last = nil
	var next watchMessage
	if w.wrong = next.read(message); w.wrong == nil {
		w.message = next
	}
}

// read decodes what a page wants to watch. The error is sent to the page, so it names the member.
func (n *watchMessage) read(message []byte) error {
	if json.Unmarshal(message, n, json.RejectUnknownMembers(true)) != nil {
		return errors.New(`must be {"type":"watch","view":"...","filter":{...}}`)
	}
	if n.Type != "watch" {
		return errors.New("type: must be watch")
	}
	switch n.View {
	case ViewRequests, ViewActors:
	case ViewRequest:
		if n.ID == "" {
			return errors.New("id: must be that of a request")
		}
	default:
		return fmt.Errorf("view: must be one of %s, %s, %s", ViewRequests, ViewRequest, ViewActors)
	}
	return nil
}

// Next implements live.Source.
func (w *Watcher) Next(send func([]byte) error) (<-chan struct{}, error) {
	message := w.look()
	if message == nil && w.message.View == "" {
		return nil, nil
	}
	again := make(chan struct{})
	if message == nil {
		time.AfterFunc(pace, func() { close(again) })
		return again, nil
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
		return nil, nil // until the next message of the client
	}
	if w.message.Lanes && w.message.View == ViewRequests {
		w.next.Reset()
		if err := json.MarshalWrite(&w.next, w.lanes.next(w.ctx), anyBytes); err != nil {
			return nil, err
		}
		if err := send(w.next.Bytes()); err != nil {
			return nil, err
		}
	}
	time.AfterFunc(pace, func() { close(again) })
	return again, nil
}

// anyBytes writes broken characters as U+FFFD. Clients and upstreams choose names, and one name must not break the
// whole view.
var anyBytes = jsontext.AllowInvalidUTF8(true)

// look returns the message with the current view, or nil if none is chosen or it is unknown at the moment.
func (w *Watcher) look() any {
	if w.wrong != nil {
		return errorMessage{"error", w.wrong.Error()}
	}
	o := w.overview
	switch w.message.View {
	case ViewRequests:
		watcher := ""
		if w.message.Lanes {
			watcher = w.lanes.watcher()
		}
		active, recent, others := o.all(w.ctx, w.message.Filter, watcher)
		w.lanes.others = others
		return requestsMessage{ViewRequests, active, recent}
	case ViewRequest:
		message := requestMessage{Type: ViewRequest}
		d, err := o.Find(w.ctx, w.message.ID, w.message.Node)
		switch {
		case err == nil:
			message.Request = &d
		case !errors.Is(err, flow.ErrUnknown):
			return nil // the client keeps what it has until the gateway answers
		}
		return message
	case ViewActors:
		return actorsMessage{ViewActors, o.Actors()}
	}
	return nil
}
