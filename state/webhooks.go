package state

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-memdb"

	"stagedoor/state/journal"
	"stagedoor/state/share"
)

// Types of events that webhooks tell of.
const (
	EventVideoCompleted = "video.completed"
	EventVideoFailed    = "video.failed"
)

// Webhook says whom to tell of what. Addresses and secrets are the sender's
// business: they are in no table.
type Webhook struct {
	ID    string // the same as long as it is the same place
	Owner Owner  // whose events; "": everybody's
	// Types are the events it is told of, nil: all.
	Types []string
}

func (w *Webhook) wants(owner Owner, event string) bool {
	return (w.Owner == "" || w.Owner == owner) && (w.Types == nil || slices.Contains(w.Types, event))
}

// SetWebhooks says who is told of what happens from now on.
func (s *State) SetWebhooks(all []Webhook) { s.webhooks.Store(&all) }

// DeliveryTTL is how long an event is tried to be delivered (wire/videos.md 6).
const DeliveryTTL = 72 * time.Hour

// Delivery is an event on its way to one webhook.
type Delivery struct {
	ID      string `json:"id"`
	Webhook string `json:"webhook"`
	// Event is the event's id: the same for every webhook and every try.
	Event   string `json:"event"`
	Type    string `json:"type"`
	Subject string `json:"subject"` // the id of what it is about
	Owner   Owner  `json:"owner"`   // of the subject

	Created time.Time `json:"created"`
	// Due is when to try next, Tries how often that was done.
	Due   time.Time `json:"due"`
	Tries int       `json:"tries,omitempty"`
}

// Ends is when nobody tries any more.
func (d *Delivery) Ends() time.Time { return d.Created.Add(DeliveryTTL) }

const byDue = "due"

var deliveries = table[Delivery]{
	durable: journal.Delivery,
	id:      func(d *Delivery) string { return d.ID },
	// A little later than Ends, so that the sender can say that it gave up.
	expires: func(d *Delivery) time.Time { return d.Ends().Add(time.Hour) },
	more: map[string]*memdb.IndexSchema{
		byDue: {Name: byDue, Indexer: index[Delivery](func(d *Delivery) []byte { return dueAt(d.Webhook, d.Due) })},
		byOwner: {Name: byOwner, Indexer: index[Delivery](func(d *Delivery) []byte {
			return createdBy(d.Owner, d.Created)
		})},
	},
}

func dueAt(webhook string, at time.Time) []byte {
	key := make([]byte, 0, len(webhook)+1+8+maxID) // room for what memdb appends
	key = append(append(key, webhook...), 0)
	return binary.BigEndian.AppendUint64(key, uint64(max(at.UnixNano(), 0)))
}

// createdBy is a key of the index by owner. It sorts by age.
func createdBy(owner Owner, at time.Time) []byte {
	key := make([]byte, 0, len(owner)+1+8+maxID) // room for what memdb appends
	key = append(append(key, owner...), 0)
	return binary.BigEndian.AppendUint64(key, uint64(max(at.UnixNano(), 0)))
}

// outbox counts the deliveries that wait, for their owners. The writer counts them while its
// commands run, so that a command knows what those before it left.
type outbox struct {
	waiting *share.Pool
	// surplus is called with each delivery that is given up because too many wait. It must
	// not wait.
	surplus atomic.Pointer[func(*Delivery)]
}

// MaxDeliveries bounds how many deliveries wait, of all owners. Beyond it, and beyond an owner's
// share of it, the oldest delivery of an owner is given up for a new one. Each costs about 2 KB
// of memory. The default is 10,000.
func MaxDeliveries(n int) Option { return func(s *State) { s.outbox.waiting.Resize(int64(n)) } }

// WaitingDeliveries returns the pool of deliveries that wait, for metrics.
func (s *State) WaitingDeliveries() *share.Pool { return s.outbox.waiting }

// OnSurplusDelivery has report called with each delivery that is given up because too many wait.
// It is called by the writer once the removal is durable, so it must not wait.
func (s *State) OnSurplusDelivery(report func(*Delivery)) { s.outbox.surplus.Store(&report) }

// count counts a change of a delivery.
func (o *outbox) count(c change) {
	if r, ok := c.before.(*row[Delivery]); ok {
		o.waiting.Give(string(r.rec.Owner), 1)
	}
	if r, ok := c.after.(*row[Delivery]); ok {
		o.waiting.Adopt(string(r.rec.Owner), 1)
	}
}

// report reports a delivery that a commit gave up.
func (o *outbox) report(d *Delivery) {
	if report := o.surplus.Load(); report != nil {
		(*report)(d)
	}
}

// countDeliveries counts the deliveries that wait when the state is opened.
func (s *State) countDeliveries() {
	deliveries.from(s.snapshot(), byID, nil, func(r *row[Delivery]) bool {
		s.outbox.count(change{after: r})
		return true
	})
}

// maxSurplus bounds how many deliveries one new delivery replaces. A delivery replaces more than one after
// MaxDeliveries was lowered.
const maxSurplus = 16

// makeRoom gives up deliveries until there is room for another one of an owner: the owner's
// oldest ones if its share is used up, else those of the owner that has most.
func (tx *Tx) makeRoom(owner Owner) {
	for range maxSurplus {
		full := tx.outbox.waiting.Refusal(string(owner), 1)
		if full == nil {
			return
		}
		tx.OnCommit(func() { tx.outbox.waiting.CountRefusal(full) })
		from := string(owner)
		if !full.Share {
			from = tx.outbox.waiting.Largest()
		}
		oldest := deliveries.first(tx.mem, byOwner, terminated(from))
		if oldest == nil {
			return
		}
		deliveries.remove(tx, oldest)
		tx.OnCommit(func() { tx.outbox.report(&oldest.rec) })
	}
}

// announceVideo leaves a delivery for everybody who wants to know that v has
// ended. It is part of the command with which it ends, so it happens once and
// survives whatever the ending survives. A job that its provider refused at once is
// deleted by then: its client was told so, and never knew its id.
func (tx *Tx) announceVideo(v *Video, before *Video) error {
	if !v.Final() || !v.Deleted.IsZero() || before != nil && before.Final() || tx.webhooks == nil {
		return nil
	}
	event := EventVideoCompleted
	if v.Phase == VideoFailed {
		event = EventVideoFailed
	}
	for _, w := range *tx.webhooks {
		if !w.wants(v.Owner, event) {
			continue
		}
		// A job ends once, so its id makes the event's.
		id := "evt_" + strings.TrimPrefix(v.ID, "video_")
		d := Delivery{ID: id + "." + w.ID, Webhook: w.ID, Event: id, Type: event, Subject: v.ID,
			Owner: v.Owner, Created: tx.now, Due: tx.now}
		if err := checkID(d.ID); err != nil {
			return err
		}
		tx.makeRoom(d.Owner)
		if err := deliveries.put(tx, d); err != nil {
			return err
		}
	}
	return nil
}

// Deliveries calls yield with what is to be delivered to a webhook, what is due
// first first, until it says stop.
func (v View) Deliveries(webhook string, yield func(*Delivery) bool) {
	it, err := v.txn.LowerBound(deliveries.name(), byDue, dueAt(webhook, time.Unix(0, 0)))
	if err != nil {
		return
	}
	for raw := it.Next(); raw != nil; raw = it.Next() {
		rec := &raw.(*row[Delivery]).rec
		if rec.Webhook != webhook || !yield(rec) {
			return
		}
	}
}

// WatchDeliveries is a view together with a channel that is closed when there may
// be other deliveries.
func (s *State) WatchDeliveries() (View, <-chan struct{}) {
	txn := s.snapshot()
	it, err := txn.Get(deliveries.name(), byID, []byte(nil))
	if err != nil {
		return View{txn, s.now()}, nil // no such table or index, which schema() settles at start
	}
	return View{txn, s.now()}, it.WatchCh()
}

// PostponeDelivery counts a try that failed: the next one is at due.
func (s *State) PostponeDelivery(ctx context.Context, id string, due time.Time) error {
	return s.do(ctx, func(tx *Tx) error {
		r := deliveries.get(tx.mem, id)
		if r == nil {
			return fmt.Errorf("delivery %s: %w", id, ErrNotFound)
		}
		d := r.rec
		d.Due = due
		d.Tries++
		return deliveries.put(tx, d)
	})
}

// RemoveDelivery ends one that arrived or is given up. Doing it again changes
// nothing.
func (s *State) RemoveDelivery(ctx context.Context, id string) error {
	return s.do(ctx, func(tx *Tx) error {
		if r := deliveries.get(tx.mem, id); r != nil {
			deliveries.remove(tx, r)
		}
		return nil
	})
}
