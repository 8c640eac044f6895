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

// Turn is the use of a conversation by one response. Until it ends, nothing else changes the items.
// It is held in memory only, so it also ends with the process.
type Turn struct {
	// Conversation is the conversation at the start of the turn.
	Conversation Conversation
	state        *state.State
	end          func()
}

// BeginTurn starts the use of a conversation by a response. The caller must call End. The error is
// ErrNotFound, ErrConversationInUse, ErrConversationFull or a *QuotaError.
func BeginTurn(ctx context.Context, s *state.State, id string, owner state.Owner) (*Turn, error) {
	if _, err := FindConversation(s.View(), id, owner); err != nil {
		return nil, err
	}
	m := state.MemoryOf[*memory](s)
	end, err := m.use(ctx, s, id, true)
	if err != nil {
		return nil, err
	}
	// The conversation is read again, because it may have changed before acquire.
	c, err := FindConversation(s.View(), id, owner)
	switch {
	case err != nil:
	case c.Items >= MaxConversationItems || c.Bytes >= MaxConversationBytes:
		err = ErrConversationFull
	default:
		err = m.kept.countRefusal(m.kept.check(m.kept.keptBy(owner), Kept{Bytes: 1}))
	}
	if err != nil {
		end()
		return nil, err
	}
	return &Turn{Conversation: c, state: s, end: end}, nil
}

// End ends the turn. It does nothing if the Turn is nil or has ended.
func (t *Turn) End() {
	if t != nil {
		t.end()
	}
}

// Items returns what a response of this turn adds to the conversation: its input and output. An
// item of the output gets a new id if its id is in use, because some providers repeat ids. Items of
// a nil Turn are nil.
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

// Add adds the result of Items to the conversation. Use it for a response that is not stored. The
// items of a stored one are added when it ends, see ResponseUpdate. Add refuses nothing, because
// the client has the answer already.
func (t *Turn) Add(ctx context.Context, items []json.RawMessage) error {
	c := &t.Conversation
	return state.Run(ctx, t.state, func(tx *state.Tx) error { return addTurn(tx, c.ID, c.Owner, items) })
}

// addTurn adds the items of a response to its conversation, unless the conversation was deleted.
func addTurn(tx *state.Tx, id string, owner state.Owner, items []json.RawMessage) error {
	c, err := FindConversation(tx.View(), id, owner)
	if err != nil || len(items) == 0 {
		return nil
	}
	return c.addItems(tx, items)
}

// use starts a use of a conversation as acquire does. The end of a response is visible a moment before its turn ends
// (see ResponseUpdate.Ends), and a client may begin the next turn in this moment. So a conversation in use is tried
// again once all that is visible has taken effect.
func (m *memory) use(ctx context.Context, s *state.State, id string, turn bool) (end func(), err error) {
	if end, err = m.uses.acquire(id, turn); err == nil {
		return end, nil
	}
	if state.Run(ctx, s, func(*state.Tx) error { return nil }) != nil {
		return nil, err
	}
	return m.uses.acquire(id, turn)
}

// uses lists the conversations in use.
type uses struct {
	mu sync.Mutex
	// by maps each conversation in use to the number of changes in progress, or to -1 for a turn.
	by map[string]int
}

// acquire starts a turn, which excludes everything else, or a change of items, which excludes
// turns. Call end to finish it.
func (u *uses) acquire(id string, turn bool) (end func(), err error) {
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
