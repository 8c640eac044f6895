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

// verify compares the records in memory with those that are only on disk: replies, bodies of responses, the items and
// metadata of conversations, and the events of responses.
func verify(ctx context.Context, v *state.Verifier) error {
	if err := verifyReplies(ctx, v); err != nil {
		return err
	}
	bodies, found, err := readBodies(ctx, v)
	if err != nil {
		return err
	}
	view := v.State.View()
	verifyResponses(v, view, bodies)
	verifyConversations(v, view, found)
	return v.State.Range(ctx, journal.Event, nil, nil, 0, func(r journal.Record) error {
		id, _, ok := strings.Cut(string(r.Key), "/")
		if !ok || responses.Get(view, id) == nil {
			v.Report("%s/%q belongs to a response that does not exist", journal.Event, r.Key)
		}
		return nil
	})
}

// readBodies returns the sizes of the bodies, inputs and requests of responses by their keys, and by id what the items
// and metadata of each conversation add up to.
func readBodies(ctx context.Context, v *state.Verifier) (bodies map[string]int64, found map[string]Conversation,
	err error) {
	bodies, found = make(map[string]int64), make(map[string]Conversation)
	err = v.State.Range(ctx, journal.Body, nil, nil, 0, func(r journal.Record) error {
		size := int64(len(r.Value))
		id, item, ok := conversationOf(string(r.Key))
		if !ok {
			bodies[string(r.Key)] = size
			return nil
		}
		c := found[id]
		if c.Bytes += size; item {
			c.Items++
		} else {
			c.MetadataSize = size
			c.Page = pageOf(r.Value)
		}
		found[id] = c
		return nil
	})
	return bodies, found, err
}

// verifyResponses reports responses whose bodies are missing or have another size, and bodies of no response. It
// removes from bodies those that it has found.
func verifyResponses(v *state.Verifier, view state.View, bodies map[string]int64) {
	for h := range responses.All(view) {
		kept := map[string]int64{string(bodyKey(h.ID)): h.BodySize, string(inputKey(h.ID)): h.InputSize}
		if h.RequestSize > 0 {
			kept[string(requestKey(h.ID))] = h.RequestSize
		}
		for key, want := range kept {
			if have, ok := bodies[key]; !ok || have != want {
				v.Report("%s of response %s has %d bytes of %d", key[len(h.ID)+1:], h.ID, have, want)
			}
			delete(bodies, key)
		}
	}
	for key := range bodies {
		v.Report("%s/%q belongs to a response that does not exist", journal.Body, key)
	}
}

// verifyConversations reports conversations whose records differ from what was found on disk, and items of no
// conversation. It removes from found those that it has compared.
func verifyConversations(v *state.Verifier, view state.View, found map[string]Conversation) {
	for c := range conversations.All(view) {
		have := found[c.ID]
		if have.Items != c.Items || have.Bytes != c.Bytes || have.MetadataSize != c.MetadataSize {
			v.Report("conversation %s has %d items and %d bytes of %d and %d",
				c.ID, have.Items, have.Bytes, c.Items, c.Bytes)
		}
		if have.Page != c.Page {
			v.Report("conversation %s is listed on page %q and not on %q", c.ID, c.Page, have.Page)
		}
		delete(found, c.ID)
	}
	for id := range found {
		v.Report("%s/%q belongs to a conversation that does not exist", journal.Body, id)
	}
}
