package work

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"stagedoor/state"
	"stagedoor/state/journal"
)

// checkBodyRecord returns an error unless a record of journal.Body is JSON.
func checkBodyRecord(r journal.Record) error {
	if !json.Valid(r.Value) {
		return errors.New("is not JSON")
	}
	return nil
}

// verify compares the records in memory with those that are only on disk.
func verify(ctx context.Context, v *state.Verifier) error {
	if err := verifyReplies(ctx, v); err != nil {
		return err
	}
	sizes := map[string]int64{}                // of bodies, inputs and requests
	conversed := make(map[string]Conversation) // what the items and metadata of conversations add up to
	err := v.State.Range(ctx, journal.Body, nil, nil, 0, func(r journal.Record) error {
		size := int64(len(r.Value))
		id, item, found := conversationOf(string(r.Key))
		if !found {
			sizes[string(r.Key)] = size
			return nil
		}
		c := conversed[id]
		if c.Bytes += size; item {
			c.Items++
		} else {
			c.MetadataSize = size
			c.Page = pageOf(r.Value)
		}
		conversed[id] = c
		return nil
	})
	if err != nil {
		return err
	}
	view := v.State.View()
	for h := range responses.All(view) {
		kept := map[string]int64{string(bodyKey(h.ID)): h.BodySize, string(inputKey(h.ID)): h.InputSize}
		if h.RequestSize > 0 {
			kept[string(requestKey(h.ID))] = h.RequestSize
		}
		for key, want := range kept {
			if have, ok := sizes[key]; !ok || have != want {
				v.Report("%s of response %s has %d bytes of %d", key[len(h.ID)+1:], h.ID, have, want)
			}
			delete(sizes, key)
		}
	}
	for key := range sizes {
		v.Report("%s/%q belongs to a response that does not exist", journal.Body, key)
	}
	for c := range conversations.All(view) {
		have := conversed[c.ID]
		if have.Items != c.Items || have.Bytes != c.Bytes || have.MetadataSize != c.MetadataSize {
			v.Report("conversation %s has %d items and %d bytes of %d and %d",
				c.ID, have.Items, have.Bytes, c.Items, c.Bytes)
		}
		if have.Page != c.Page {
			v.Report("conversation %s is listed on page %q and not on %q", c.ID, c.Page, have.Page)
		}
		delete(conversed, c.ID)
	}
	for id := range conversed {
		v.Report("%s/%q belongs to a conversation that does not exist", journal.Body, id)
	}
	return v.State.Range(ctx, journal.Event, nil, nil, 0, func(r journal.Record) error {
		id, _, ok := strings.Cut(string(r.Key), "/")
		if !ok || responses.Get(view, id) == nil {
			v.Report("%s/%q belongs to a response that does not exist", journal.Event, r.Key)
		}
		return nil
	})
}
