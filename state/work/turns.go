package work

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"stagedoor/state"
)

// Turn is the use of a conversation by one response. While it lasts nothing else changes the items. It is in memory
// only, so the end of the process ends it.
type Turn struct {
	// Conversation is as it was when the turn began.
	Conversation Conversation
	state        *state.State
	end          func()
}

// BeginTurn begins the use of a conversation by a response. The caller calls End. The error is ErrNotFound,
// ErrConversationInUse, ErrConversationFull or a *QuotaError.
func BeginTurn(s *state.State, id string, owner state.Owner) (*Turn, error) {
	if _, err := FindConversation(s.View(), id, owner); err != nil {
		return nil, err
	}
	m := state.MemoryOf[*memory](s)
	end, err := m.uses.begin(id, true)
	if err != nil {
		return nil, err
	}
	// The conversation is read again, because it may have changed before its use began.
	c, err := FindConversation(s.View(), id, owner)
	switch {
	case err != nil:
	case c.Items >= MaxConversationItems || c.Bytes >= MaxConversationBytes:
		err = ErrConversationFull
	default:
		err = m.kept.counted(m.kept.check(m.kept.of(owner), Kept{Bytes: 1}))
	}
	if err != nil {
		end()
		return nil, err
	}
	return &Turn{Conversation: c, state: s, end: end}, nil
}

// End ends the turn. It does nothing for a nil Turn, and when it is called again.
func (t *Turn) End() {
	if t != nil {
		t.end()
	}
}

// Items returns what a response of this turn adds to the conversation: its input and output. An item of the output
// whose id is taken, because its provider gives the same ids again, gets a new id. Items of a nil Turn are nil.
func (t *Turn) Items(ctx context.Context, input, output []json.RawMessage) ([]json.RawMessage, error) {
	if t == nil {
		return nil, nil
	}
	taken, err := findItems(ctx, t.state, &t.Conversation, output)
	if err != nil {
		return nil, fmt.Errorf("read conversation %s: %w", t.Conversation.ID, err)
	}
	for _, it := range input {
		taken[gjson.GetBytes(it, "id").Str] = true
	}
	items := append(make([]json.RawMessage, 0, len(input)+len(output)), input...)
	for _, it := range output {
		id := gjson.GetBytes(it, "id").Str
		if id == "" || taken[id] || len(id) > state.MaxID {
			prefix, _, _ := strings.Cut(id[:min(len(id), 16)], "_")
			if id, err = state.NewID(prefix+"_", t.state.Now(), rand.Reader); err != nil {
				return nil, err
			}
			if it, err = sjson.SetBytes(it, "id", id); err != nil {
				return nil, fmt.Errorf("an item of the output: %w", err)
			}
		}
		taken[id] = true
		items = append(items, it)
	}
	return items, nil
}

// Add adds items of Items to the conversation. It is for a response that is not stored; the items of one that is are
// added together with its end, see ResponseUpdate. Nothing is refused, because the answer has been given.
func (t *Turn) Add(ctx context.Context, items []json.RawMessage) error {
	c := &t.Conversation
	return state.Run(ctx, t.state, func(tx *state.Tx) error { return addTurn(tx, c.ID, c.Owner, items) })
}

// addTurn adds what a response adds to its conversation, unless the conversation is gone.
func addTurn(tx *state.Tx, id string, owner state.Owner, items []json.RawMessage) error {
	c, err := FindConversation(tx.View(), id, owner)
	if err != nil || len(items) == 0 {
		return nil
	}
	return c.add(tx, items)
}

// uses are the conversations in use.
type uses struct {
	mu sync.Mutex
	// by has for each conversation in use how many changes of its items are being made, or -1 for a turn.
	by map[string]int
}

// begin begins a turn, which excludes everything else, or a change of items, which excludes turns.
func (u *uses) begin(id string, turn bool) (end func(), err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if n := u.by[id]; n < 0 || turn && n > 0 {
		return nil, ErrConversationInUse
	}
	n := 1
	if turn {
		n = -1
	}
	u.by[id] += n
	return sync.OnceFunc(func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		if u.by[id] -= n; u.by[id] == 0 {
			delete(u.by, id)
		}
	}), nil
}
