package work

import (
	"context"
	"fmt"

	"stagedoor/state"
	"stagedoor/state/journal"
)

// appendEvents stores one chunk of the event log under the number of its last event. The chunks
// with events after n are then exactly those with keys above n.
func appendEvents(tx *state.Tx, h *ResponseHeader, last int64, log []byte) error {
	if last < 0 || (h.EventSize > 0 && last <= h.LastEvent) {
		return fmt.Errorf("%w: events up to %d behind %d", state.ErrInvalid, last, h.LastEvent)
	}
	h.LastEvent = last
	h.EventSize += int64(len(log))
	if h.EventSize > MaxEventBytes {
		return fmt.Errorf("the events of response %s: %w", h.ID, state.ErrTooLarge)
	}
	tx.Op(journal.Op{Kind: journal.Put, Table: journal.Event, Key: eventsAfter(h.ID, last), Value: log})
	return nil
}

// ReadEvents calls fn with the chunks of the log that contain events after the sequence number after (-1 for all), in
// order. The first chunk may begin with earlier events. A chunk is valid until fn returns, and fn must not call State.
// The response of another owner is state.ErrNotFound. An error of fn ends the reading and is returned.
func ReadEvents(ctx context.Context, s *state.State, id string, owner state.Owner, after int64,
	fn func(log []byte) error) error {
	if _, err := FindResponse(s.View(), id, owner); err != nil {
		return err
	}
	from, to := eventsAfter(id, max(after, -1)+1), append([]byte(id), '/'+1)
	err := s.Range(ctx, journal.Event, from, to, 0, func(rec journal.Record) error { return fn(rec.Value) })
	if err != nil {
		return fmt.Errorf("read events of %s: %w", id, err)
	}
	return nil
}
