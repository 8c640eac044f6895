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

// Limits of a chain of responses: their number, and the bytes of their items.
const (
	MaxChain      = 1000
	MaxChainBytes = 32 << 20
)

// ErrChainTooLong says that a chain of responses exceeds MaxChain or MaxChainBytes.
var ErrChainTooLong = errors.New("the chain of responses is too long")

// ReadChain returns the items of the conversation that ends with response id: the input and then
// the output of its first response, then those of the response that continued it, and so on. If the
// first response was made in a stored conversation, the items before it come first. ReadChain
// serves previous_response_id. The items are as they were stored.
//
// If one of the responses was removed or has expired, the error is ErrNotFound, because continuing
// half a conversation would give a wrong answer.
func ReadChain(ctx context.Context, s *state.State, id string, owner state.Owner) ([]json.RawMessage, error) {
	chain, err := ancestors(s, id, owner)
	if err != nil {
		return nil, err
	}
	var items []json.RawMessage
	size := 0
	for i := range chain {
		id := chain[i].ID
		r, err := ReadResponse(ctx, s, id, owner)
		if err != nil {
			return nil, err
		}
		if r.Conversation != "" { // only the first response of a chain has one
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

// ChainBytes returns about how many bytes ReadChain has in memory at a time for this response, without reading the
// disk. It has the same errors.
func ChainBytes(s *state.State, id string, owner state.Owner) (n int64, err error) {
	chain, err := ancestors(s, id, owner)
	if err != nil {
		return 0, err
	}
	v := s.View()
	for i := range chain {
		h := &chain[i]
		n += h.BodySize + h.InputSize
		if h.Conversation != "" {
			c, err := FindConversation(v, h.Conversation, owner)
			if err != nil {
				return 0, err
			}
			n += c.Bytes
		}
	}
	// ReadChain ends at a response with which the items are longer than MaxChainBytes.
	return min(n, MaxChainBytes+MaxResponseBytes), nil
}

// ancestors returns the headers of the chain that ends with id, first one first. It does not read the disk, so a
// chain that is too long costs no disk access.
func ancestors(s *state.State, id string, owner state.Owner) ([]ResponseHeader, error) {
	v := s.View()
	var chain []ResponseHeader
	for at := id; at != ""; {
		if len(chain) == MaxChain {
			return nil, fmt.Errorf("more than %d responses before %s: %w", MaxChain, id, ErrChainTooLong)
		}
		h, err := FindResponse(v, at, owner)
		if err != nil {
			return nil, err
		}
		chain = append(chain, h)
		at = h.Previous
	}
	slices.Reverse(chain)
	return chain, nil
}
