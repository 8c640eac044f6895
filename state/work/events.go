package work

import (
	"bytes"
	"context"
	"errors"
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

// eventsAtOnce is the number of bytes of chunks from which on ReadEvents passes those that it has read.
const eventsAtOnce = 256 << 10

// errEnoughEvents ends the reading of chunks for now.
var errEnoughEvents = errors.New("enough chunks were read")

// ReadEvents calls fn with the chunks of the log that contain events after the sequence number after (-1 for all), in
// order. The first chunk may begin with earlier events. A log that was stored at once is one chunk. The response of
// another owner is state.ErrNotFound. An error of fn ends the reading and is returned.
//
// fn may wait for a client. The chunks are read before it is called, and the store is not in use meanwhile: a read that
// lasts keeps the file of the store from growing, and so holds up all commits.
func ReadEvents(ctx context.Context, s *state.State, id string, owner state.Owner, after int64,
	fn func(log []byte) error) error {
	if _, err := FindResponse(s.View(), id, owner); err != nil {
		return err
	}
	to := append([]byte(id), '/'+1)
	for from := eventsAfter(id, max(after, -1)+1); from != nil; {
		chunks, next, err := someEvents(ctx, s, from, to)
		if err != nil {
			return fmt.Errorf("read events of %s: %w", id, err)
		}
		for _, log := range chunks {
			if err := fn(log); err != nil {
				return err
			}
		}
		from = next
	}
	return nil
}

// someEvents returns the first chunks between two keys, and the key of the chunk that follows them, or nil.
func someEvents(ctx context.Context, s *state.State, from, to []byte) (chunks [][]byte, next []byte, err error) {
	size := 0
	err = s.Range(ctx, journal.Event, from, to, 0, func(rec journal.Record) error {
		if size >= eventsAtOnce {
			next = bytes.Clone(rec.Key)
			return errEnoughEvents
		}
		chunks = append(chunks, bytes.Clone(rec.Value))
		size += len(rec.Value)
		return nil
	})
	if errors.Is(err, errEnoughEvents) {
		err = nil
	}
	return chunks, next, err
}
