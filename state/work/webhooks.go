package work

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"stagedoor/state"
	"stagedoor/state/journal"
	"stagedoor/state/share"
)

// Types of events that webhooks get.
const (
	EventVideoCompleted = "video.completed"
	EventVideoFailed    = "video.failed"
)

// Webhook says which events an endpoint gets. Its address and secret are known only to the sender
// and are not stored.
type Webhook struct {
	ID    string      // must not change while the endpoint is configured
	Owner state.Owner // owner of the subjects of its events; "" selects all owners
	// Types lists the events that the endpoint gets. Nil selects all.
	Types []string
	// Alerts is set if the endpoint gets alerts and no other events.
	Alerts bool
}

// gets reports whether the webhook is sent an owner's event. Webhooks for alerts get no events of
// clients.
func (w *Webhook) gets(owner state.Owner, event string) bool {
	return !w.Alerts && (w.Owner == "" || w.Owner == owner) && (w.Types == nil || slices.Contains(w.Types, event))
}

// DeliveryTTL is the time for which the gateway tries to deliver an event.
const DeliveryTTL = 72 * time.Hour

// Delivery is an event that is to be sent to one webhook.
type Delivery struct {
	ID      string `json:"id"`
	Webhook string `json:"webhook"`
	// Event is the event's id, which is the same for every webhook and every try.
	Event   string      `json:"event"`
	Type    string      `json:"type"`
	Subject string      `json:"subject"` // id of the object that the event is about
	Owner   state.Owner `json:"owner"`   // of the subject
	// Data is the JSON object of an alert that says what happened. Other events name only their subject.
	Data json.RawMessage `json:"data,omitempty"`

	Created time.Time `json:"created"`
	// Due is the time of the next try, and Tries counts those that failed.
	Due   time.Time `json:"due"`
	Tries int       `json:"tries,omitempty"`
	// Node is the process that sends it.
	Node state.Node `json:"node,omitempty"`
}

// Ends returns the time after which no further try is made.
func (d *Delivery) Ends() time.Time { return d.Created.Add(DeliveryTTL) }

const byDue = "due"

// deliveries holds the deliveries that wait for a webhook to accept them. byDue gives the next one of a webhook.
var deliveries = state.Table[Delivery]{
	Name: journal.Delivery,
	ID:   func(d *Delivery) string { return d.ID },
	// Deliveries stay a little longer than Ends, so that the sender can report that it gave up.
	Expires: func(d *Delivery) time.Time { return d.Ends().Add(time.Hour) },
	Indexes: map[string]state.Index[Delivery]{
		byDue: {Key: func(d *Delivery) []byte { return dueAt(d.Webhook, d.Due) }},
		byOwner: {Key: func(d *Delivery) []byte {
			return createdBy(d.Owner, d.Created)
		}},
	},
}

// dueAt returns a key of byDue, which sorts the deliveries of one webhook by the time of their next
// attempt.
func dueAt(webhook string, at time.Time) []byte {
	key := make([]byte, 0, len(webhook)+1+8+state.MaxID) // room for what memdb appends
	key = append(append(key, webhook...), 0)
	return binary.BigEndian.AppendUint64(key, uint64(max(at.UnixNano(), 0)))
}

// createdBy returns a key of an index by owner, which sorts by age.
func createdBy(owner state.Owner, at time.Time) []byte {
	key := make([]byte, 0, len(owner)+1+8+state.MaxID) // room for what memdb appends
	key = append(append(key, owner...), 0)
	return binary.BigEndian.AppendUint64(key, uint64(max(at.UnixNano(), 0)))
}

// outbox counts the waiting deliveries of each owner. The writer updates the counts while commands
// run, so that a command knows the effect of those before it.
type outbox struct {
	webhooks atomic.Pointer[[]Webhook] // endpoints and the events that each of them gets
	waiting  *share.Pool
	// surplus is called with each delivery that is dropped because too many wait. It must not
	// block.
	surplus atomic.Pointer[func(*Delivery)]
}

// SetWebhooks replaces the endpoints that get events from now on.
func SetWebhooks(s *state.State, all []Webhook) {
	state.MemoryOf[*memory](s).outbox.webhooks.Store(&all)
}

// MaxDeliveries sets the number of waiting deliveries of all owners. Beyond it, and beyond an
// owner's share of it, the oldest delivery of an owner is dropped for a new one. Each takes about 2
// KB of memory. The default is 10,000.
func MaxDeliveries(n int) Option { return func(m *memory) { m.outbox.waiting.Resize(int64(n)) } }

// WaitingDeliveries returns the pool of waiting deliveries, for metrics.
func WaitingDeliveries(s *state.State) *share.Pool {
	return state.MemoryOf[*memory](s).outbox.waiting
}

// OnSurplusDelivery sets the function that is called with each delivery that is dropped because too
// many wait. The writer calls it when the removal is durable, so it must not block.
func OnSurplusDelivery(s *state.State, report func(*Delivery)) {
	state.MemoryOf[*memory](s).outbox.surplus.Store(&report)
}

// count updates the pool for a change of a delivery.
func (o *outbox) count(before, after *Delivery) {
	if before != nil {
		o.waiting.Give(string(before.Owner), 1)
	}
	if after != nil {
		o.waiting.Adopt(string(after.Owner), 1)
	}
}

// reportSurplus reports a dropped delivery.
func (o *outbox) reportSurplus(d *Delivery) {
	if report := o.surplus.Load(); report != nil {
		(*report)(d)
	}
}

// countAll counts the stored deliveries when the state is opened.
func (o *outbox) countAll(s *state.State) {
	for d := range deliveries.All(s.View()) {
		o.count(nil, d)
	}
}

// maxSurplus is the number of deliveries that one new delivery may replace. It is more than one
// only after MaxDeliveries was lowered.
const maxSurplus = 16

// makeRoom drops deliveries until there is room for another one of an owner: the owner's oldest
// ones if its share is used up, and otherwise those of the owner with most.
func (o *outbox) makeRoom(tx *state.Tx, owner state.Owner) {
	for range maxSurplus {
		full := o.waiting.Refusal(string(owner), 1)
		if full == nil {
			return
		}
		tx.OnCommit(func() { o.waiting.CountRefusal(full) })
		from := string(owner)
		if !full.Share {
			from = o.waiting.Largest()
		}
		oldest := deliveries.First(tx.View(), byOwner, state.TextKey(from))
		if oldest == nil {
			return
		}
		deliveries.Remove(tx, oldest)
		tx.OnCommit(func() { o.reportSurplus(&oldest.Rec) })
	}
}

// announceVideo adds a delivery for each endpoint that gets the event that v has ended. It is part
// of the command that ends v, so it happens once and is as durable as the end. No event is sent for
// a job that its provider refused at once: the job is deleted by then, and its client got an error
// and never knew the id.
func announceVideo(tx *state.Tx, v *Video, before *Video) error {
	if !v.Final() || !v.Deleted.IsZero() || before != nil && before.Final() {
		return nil
	}
	o := &state.MemoryOf[*memory](tx).outbox
	webhooks := o.webhooks.Load()
	if webhooks == nil {
		return nil
	}
	event := EventVideoCompleted
	if v.Phase == VideoFailed {
		event = EventVideoFailed
	}
	for _, w := range *webhooks {
		if !w.gets(v.Owner, event) {
			continue
		}
		// A job ends once, so the id of the event is derived from the id of the job.
		id := "evt_" + strings.TrimPrefix(v.ID, "video_")
		d := Delivery{ID: id + "." + w.ID, Webhook: w.ID, Event: id, Type: event, Subject: v.ID,
			Owner: v.Owner, Created: tx.Now(), Due: tx.Now(), Node: tx.Node()}
		if err := state.CheckID(d.ID); err != nil {
			return err
		}
		o.makeRoom(tx, d.Owner)
		if err := deliveries.Put(tx, d); err != nil {
			return err
		}
	}
	return nil
}

// Deliveries calls yield with the deliveries to a webhook, in the order in which they are due,
// until yield returns false.
func Deliveries(v state.View, webhook string, yield func(*Delivery) bool) {
	deliveries.From(v, byDue, dueAt(webhook, time.Unix(0, 0)), func(r *state.Row[Delivery]) bool {
		return r.Rec.Webhook == webhook && yield(&r.Rec)
	})
}

// WatchDeliveries returns a view and a channel that is closed when the deliveries change.
func WatchDeliveries(s *state.State) (state.View, <-chan struct{}) {
	v := s.View()
	return v, deliveries.WatchUnder(v, state.ByID, nil)
}

// TakeOverDeliveries makes this process the one that sends the deliveries of processes that have ended. It takes them
// in parts, so an error leaves some of them with this process; the others are taken by the next call.
func TakeOverDeliveries(ctx context.Context, s *state.State, ended func(state.Node) bool) error {
	var left []string
	for d := range deliveries.All(s.View()) {
		if ended(d.Node) && d.Node != s.Node() {
			left = append(left, d.ID)
		}
	}
	for part := range slices.Chunk(left, takenAtOnce) {
		err := state.Run(ctx, s, func(tx *state.Tx) (err error) {
			for _, id := range part {
				if r := deliveries.Get(tx.View(), id); r != nil && ended(r.Rec.Node) {
					d := r.Rec
					d.Node = tx.Node()
					err = errors.Join(err, deliveries.Put(tx, d))
				}
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// PostponeDelivery counts a failed try and sets the time of the next one.
func PostponeDelivery(ctx context.Context, s *state.State, id string, due time.Time) error {
	return state.Run(ctx, s, func(tx *state.Tx) error {
		r := deliveries.Get(tx.View(), id)
		if r == nil {
			return fmt.Errorf("delivery %s: %w", id, state.ErrNotFound)
		}
		d := r.Rec
		d.Due = due
		d.Tries++
		return deliveries.Put(tx, d)
	})
}

// RemoveDelivery removes a delivery that was made or given up. Removing it again changes nothing.
func RemoveDelivery(ctx context.Context, s *state.State, id string) error {
	return state.Run(ctx, s, func(tx *state.Tx) error {
		if r := deliveries.Get(tx.View(), id); r != nil {
			deliveries.Remove(tx, r)
		}
		return nil
	})
}
