package work

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/tidwall/gjson"

	"stagedoor/state"
)

// Bounds of a chain of responses.
const (
	MaxChain      = 1000
	MaxChainBytes = 32 << 20
)

// ErrChainTooLong says that a chain of responses exceeds MaxChain or MaxChainBytes.
var ErrChainTooLong = errors.New("the chain of responses is too long")

// ReadChain returns the items of the conversation that ends with the response id:
// input and then output of its first response, of the one that continued it, and
// so on (gateway.md 4.5, previous_response_id). The items are as they were
// stored.
//
// Where one of them is missing, because it was removed or has expired, it is
// ErrNotFound: an answer to half a conversation would be worse than none.
func ReadChain(ctx context.Context, s *state.State, id string, owner state.Owner) ([]json.RawMessage, error) {
	ids, err := ancestors(s, id, owner)
	if err != nil {
		return nil, err
	}
	var items []json.RawMessage
	size := 0
	for _, id := range ids {
		r, err := ReadResponse(ctx, s, id, owner)
		if err != nil {
			return nil, err
		}
		if r.Conversation != "" { // it is the first one
			if items, err = itemsBefore(ctx, s, &r.ResponseHeader); err != nil {
				return nil, err
			}
			size = int(sizeOf(items))
		}
		for _, list := range []gjson.Result{gjson.ParseBytes(r.Input), gjson.GetBytes(r.Body, "output")} {
			for _, item := range list.Array() {
				items = append(items, json.RawMessage(item.Raw))
				size += len(item.Raw)
			}
		}
		if size > MaxChainBytes {
			return nil, fmt.Errorf("%d bytes up to %s: %w", size, id, ErrChainTooLong)
		}
	}
	return items, nil
}

// itemsBefore returns the items of the conversation that a response belongs to, up to those that the response added. A
// conversation that was deleted is ErrNotFound.
func itemsBefore(ctx context.Context, s *state.State, h *ResponseHeader) ([]json.RawMessage, error) {
	if _, err := FindConversation(s.View(), h.Conversation, h.Owner); err != nil {
		return nil, err
	}
	return ReadAllItems(ctx, s, h.Conversation, h.Position)
}

// ancestors returns id and those before it, first one first. Headers tell, so a
// chain that is too long costs no reading.
func ancestors(s *state.State, id string, owner state.Owner) ([]string, error) {
	v := s.View()
	var ids []string
	for at := id; at != ""; {
		if len(ids) == MaxChain {
			return nil, fmt.Errorf("more than %d responses before %s: %w", MaxChain, id, ErrChainTooLong)
		}
		h, err := FindResponse(v, at, owner)
		if err != nil {
			return nil, err
		}
		ids = append(ids, at)
		at = h.Previous
	}
	slices.Reverse(ids)
	return ids, nil
}
