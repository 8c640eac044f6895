package work

import (
	"context"
	"encoding/binary"
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

// Webhook says which events an endpoint gets. Addresses and secrets are known to the sender only, and are in no table.
type Webhook struct {
	ID    string      // stays the same as long as the endpoint does
	Owner state.Owner // of the subjects of its events; "": all owners
	// Types are the events that it gets, or nil for all.
	Types []string
}

func (w *Webhook) gets(owner state.Owner, event string) bool {
	return (w.Owner == "" || w.Owner == owner) && (w.Types == nil || slices.Contains(w.Types, event))
}

// DeliveryTTL bounds the time in which the gateway tries to deliver an event (wire/videos.md 6).
const DeliveryTTL = 72 * time.Hour

// Delivery is an event on its way to one webhook.
type Delivery struct {
	ID      string `json:"id"`
	Webhook string `json:"webhook"`
	// Event is the event's id: the same for every webhook and every try.
	Event   string      `json:"event"`
	Type    string      `json:"type"`
	Subject string      `json:"subject"` // the id of what it is about
	Owner   state.Owner `json:"owner"`   // of the subject

	Created time.Time `json:"created"`
	// Due is the time of the next try, and Tries counts those that failed.
	Due   time.Time `json:"due"`
	Tries int       `json:"tries,omitempty"`
}

// Ends returns the time from which on no further try is made.
func (d *Delivery) Ends() time.Time { return d.Created.Add(DeliveryTTL) }

const byDue = "due"

var deliveries = state.Table[Delivery]{
	Name: journal.Delivery,
	ID:   func(d *Delivery) string { return d.ID },
	// They stay a little longer than Ends, so that the sender can report that it gave up.
	Expires: func(d *Delivery) time.Time { return d.Ends().Add(time.Hour) },
	Indexes: map[string]state.Index[Delivery]{
		byDue: {Key: func(d *Delivery) []byte { return dueAt(d.Webhook, d.Due) }},
		byOwner: {Key: func(d *Delivery) []byte {
			return createdBy(d.Owner, d.Created)
		}},
	},
}

func dueAt(webhook string, at time.Time) []byte {
	key := make([]byte, 0, len(webhook)+1+8+state.MaxID) // room for what memdb appends
	key = append(append(key, webhook...), 0)
	return binary.BigEndian.AppendUint64(key, uint64(max(at.UnixNano(), 0)))
}

// createdBy is a key of the index by owner. It sorts by age.
func createdBy(owner state.Owner, at time.Time) []byte {
	key := make([]byte, 0, len(owner)+1+8+state.MaxID) // room for what memdb appends
	key = append(append(key, owner...), 0)
	return binary.BigEndian.AppendUint64(key, uint64(max(at.UnixNano(), 0)))
}

// outbox counts the deliveries that wait, for their owners. The writer counts them while its commands run, so that a
// command knows how many those before it left.
type outbox struct {
	webhooks atomic.Pointer[[]Webhook] // the endpoints and which events each of them gets
	waiting  *share.Pool
	// surplus is called with each delivery that is given up because too many wait. It must not wait.
	surplus atomic.Pointer[func(*Delivery)]
}

// SetWebhooks replaces the endpoints that get the events from now on.
func SetWebhooks(s *state.State, all []Webhook) {
	state.MemoryOf[*memory](s).outbox.webhooks.Store(&all)
}

// MaxDeliveries bounds how many deliveries wait, of all owners. Beyond it, and beyond an owner's share of it, the
// oldest delivery of an owner is given up for a new one. Each costs about 2 KB of memory. The default is 10,000.
func MaxDeliveries(n int) Option { return func(m *memory) { m.outbox.waiting.Resize(int64(n)) } }

// WaitingDeliveries returns the pool of deliveries that wait, for metrics.
func WaitingDeliveries(s *state.State) *share.Pool {
	return state.MemoryOf[*memory](s).outbox.waiting
}

// OnSurplusDelivery has report called with each delivery that is given up because too many wait. The writer calls it
// once the removal is durable, so it must not wait.
func OnSurplusDelivery(s *state.State, report func(*Delivery)) {
	state.MemoryOf[*memory](s).outbox.surplus.Store(&report)
}

// count counts a change of a delivery.
func (o *outbox) count(before, after *Delivery) {
	if before != nil {
		o.waiting.Give(string(before.Owner), 1)
	}
	if after != nil {
		o.waiting.Adopt(string(after.Owner), 1)
	}
}

// report reports a delivery that a commit gave up.
func (o *outbox) report(d *Delivery) {
	if report := o.surplus.Load(); report != nil {
		(*report)(d)
	}
}

// countAll counts the deliveries that wait when the state is opened.
func (o *outbox) countAll(s *state.State) {
	for d := range deliveries.All(s.View()) {
		o.count(nil, d)
	}
}

// maxSurplus bounds how many deliveries one new delivery replaces. A delivery replaces more than one after
// MaxDeliveries was lowered.
const maxSurplus = 16

// makeRoom gives up deliveries until there is room for another one of an owner. They are the owner's oldest ones if its
// share is used up, and else those of the owner that has most.
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
		tx.OnCommit(func() { o.report(&oldest.Rec) })
	}
}

// announceVideo adds a delivery for each endpoint that gets the event that v has ended. It is part of the command with
// which v ends, so it happens once and is as durable as the end. A job that its provider refused at once is deleted by
// then. Its client got an error, and never knew the job's id.
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
		// A job ends once, so its id makes the event's.
		id := "evt_" + strings.TrimPrefix(v.ID, "video_")
		d := Delivery{ID: id + "." + w.ID, Webhook: w.ID, Event: id, Type: event, Subject: v.ID,
			Owner: v.Owner, Created: tx.Now(), Due: tx.Now()}
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

// Deliveries calls yield with the deliveries to a webhook, those that are due first coming first, until it returns
// false.
func Deliveries(v state.View, webhook string, yield func(*Delivery) bool) {
	deliveries.From(v, byDue, dueAt(webhook, time.Unix(0, 0)), func(r *state.Row[Delivery]) bool {
		return r.Rec.Webhook == webhook && yield(&r.Rec)
	})
}

// WatchDeliveries returns a view and a channel that is closed when there may be other deliveries.
func WatchDeliveries(s *state.State) (state.View, <-chan struct{}) {
	v := s.View()
	return v, deliveries.WatchUnder(v, state.ByID, nil)
}

// PostponeDelivery counts a try that failed. The next one is at due.
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

// RemoveDelivery removes a delivery that has arrived or is given up. Doing it again changes nothing.
func RemoveDelivery(ctx context.Context, s *state.State, id string) error {
	return state.Run(ctx, s, func(tx *state.Tx) error {
		if r := deliveries.Get(tx.View(), id); r != nil {
			deliveries.Remove(tx, r)
		}
		return nil
	})
}
