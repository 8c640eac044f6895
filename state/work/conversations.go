package work

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"stagedoor/state"
	"stagedoor/state/journal"
	"stagedoor/state/share"
)

// Limits of one conversation. A response in progress may exceed them with the items that it adds.
const (
	MaxConversationItems = 10_000
	MaxConversationBytes = MaxChainBytes
)

// maxConversations is the number of conversations of all owners. Each takes about 1 KB of memory.
const maxConversations = 200_000

var (
	// ErrConversationInUse says that a response is using the conversation, or that others change its items.
	ErrConversationInUse = errors.New("the conversation is in use")
	// ErrConversationFull says that a conversation has MaxConversationItems or MaxConversationBytes.
	ErrConversationFull = errors.New("the conversation is full")
	// ErrNoItem says that a conversation has no item with an id.
	ErrNoItem = errors.New("there is no such item")
)

// DuplicateItemError refuses an item whose id another item of the conversation has.
type DuplicateItemError struct{ ID string }

// Error implements error.
func (e *DuplicateItemError) Error() string {
	return fmt.Sprintf("there are two items with the id %q", e.ID)
}

// Conversation describes a conversation. It is held in memory. Items and metadata are read from
// disk. A conversation is kept until its owner deletes it.
type Conversation struct {
	ID      string      `json:"id"`
	Owner   state.Owner `json:"owner"`
	Created time.Time   `json:"created"`
	Items   int         `json:"items"` // number of items
	Bytes   int64       `json:"bytes"` // of items and metadata
	// MetadataSize is the part of Bytes that is metadata.
	MetadataSize int64 `json:"metadata_size"`
	// Next is the position of the next item. The position of a deleted item is not reused.
	Next uint64 `json:"next"`
	// Deleted counts the deleted items, so that Next and Deleted together change with every change of the items.
	Deleted uint64 `json:"deleted,omitempty"`
	// Page is the value of "page" in the metadata, or "" if that is long. The pages of the gateway list by it.
	Page string `json:"page,omitempty"`
}

// byPage has the conversations with a Page.
const byPage = "page"

// maxPage bounds what Page adds to the memory that a conversation takes.
const maxPage = 16

// conversations holds the headers of conversations; their items and metadata are in journal.Body. byOwner lists those
// of an owner by time. byPage lists those with a Page.
var conversations = state.Table[Conversation]{
	Name: journal.Conversation,
	ID:   func(c *Conversation) string { return c.ID },
	Indexes: map[string]state.Index[Conversation]{
		byOwner: {Key: func(c *Conversation) []byte { return createdBy(c.Owner, c.Created) }},
		byPage: {Key: func(c *Conversation) []byte {
			if c.Page == "" {
				return nil
			}
			return createdBy(onPage(c.Owner, c.Page), c.Created)
		}},
	},
}

// onPage returns what stands for an owner in keys of byPage.
func onPage(owner state.Owner, page string) state.Owner { return owner + "\x00" + state.Owner(page) }

// pageOf returns the Page of a conversation with the metadata.
func pageOf(metadata []byte) string {
	if page := gjson.GetBytes(metadata, "page").Str; len(page) <= maxPage {
		return page
	}
	return ""
}

// The keys of records that are only on disk. No id contains ":", so a response to which its provider gave the id of a
// conversation cannot have the same keys.
func metadataKey(id string) []byte { return []byte(id + ":") }

// itemKey returns the key of an item. It begins with the key of the conversation's metadata, so
// that one prefix has everything.
func itemKey(id string, position uint64) []byte {
	return binary.BigEndian.AppendUint64(metadataKey(id), position)
}

// conversationOf returns the conversation of a record that is only on disk, and whether the record
// is an item.
func conversationOf(key string) (id string, item, found bool) {
	id, position, found := strings.Cut(key, ":")
	return id, position != "", found
}

// PutConversation stores a new conversation with its metadata, which is a JSON object, and its
// first items. It sets Created if it is zero. The error may be a *QuotaError, a *share.Refused, or
// a *DuplicateItemError.
func PutConversation(ctx context.Context, s *state.State, c Conversation, metadata []byte,
	items []json.RawMessage) (Conversation, error) {
	if err := cmp.Or(state.CheckID(c.ID), checkItems(items)); err != nil {
		return c, err
	}
	if c.Owner == "" || !gjson.ParseBytes(metadata).IsObject() {
		return c, fmt.Errorf("%w: conversation %s", state.ErrInvalid, c.ID)
	}
	m := state.MemoryOf[*memory](s)
	var refused *share.Refused
	c, err := state.Do(ctx, s, func(tx *state.Tx) (Conversation, error) {
		c := c // the command may run twice
		if conversations.Get(tx.View(), c.ID) != nil {
			return c, fmt.Errorf("conversation %s: %w", c.ID, state.ErrExists)
		}
		more := Kept{Conversations: 1, Bytes: int64(len(metadata)) + sizeOf(items)}
		if err := m.kept.checkRoom(tx, c.Owner, more); err != nil {
			return c, err
		}
		if refused = m.conversations.Refusal(string(c.Owner), 1); refused != nil {
			return c, refused
		}
		if c.Created.IsZero() {
			c.Created = tx.Now()
		}
		c.putMetadata(tx, metadata)
		return c, c.addItems(tx, items)
	})
	m.conversations.CountRefusal(refused)
	return c, m.kept.countRefusal(err)
}

// checkItems returns an error unless every item is JSON and has an id of its own.
func checkItems(items []json.RawMessage) error {
	ids := make(map[string]bool, len(items))
	for _, it := range items {
		id := gjson.GetBytes(it, "id").Str
		switch {
		case id == "" || !json.Valid(it):
			return fmt.Errorf("%w: an item without an id", state.ErrInvalid)
		case ids[id]:
			return &DuplicateItemError{id}
		}
		ids[id] = true
	}
	return nil
}

// sizeOf returns the bytes of all items, which count against their owner's quota.
func sizeOf(items []json.RawMessage) (n int64) {
	for _, it := range items {
		n += int64(len(it))
	}
	return n
}

// putMetadata stores the metadata of a conversation and counts the difference in its size.
func (c *Conversation) putMetadata(tx *state.Tx, metadata []byte) {
	c.Bytes += int64(len(metadata)) - c.MetadataSize
	c.MetadataSize = int64(len(metadata))
	c.Page = pageOf(metadata)
	tx.Op(journal.Op{Kind: journal.Put, Table: journal.Body, Key: metadataKey(c.ID), Value: metadata})
}

// addItems appends items to the conversation and stores it.
func (c *Conversation) addItems(tx *state.Tx, items []json.RawMessage) error {
	tx.Grow(len(items) + 1)
	for _, it := range items {
		tx.Op(journal.Op{Kind: journal.Put, Table: journal.Body, Key: itemKey(c.ID, c.Next), Value: it})
		c.Next++
	}
	c.Items += len(items)
	c.Bytes += sizeOf(items)
	return conversations.Put(tx, *c)
}

// FindConversation returns a conversation of an owner without reading the disk. An unknown
// conversation and one of another owner are both ErrNotFound.
func FindConversation(v state.View, id string, owner state.Owner) (Conversation, error) {
	r := conversations.Get(v, id)
	if r == nil || r.Rec.Owner != owner {
		return Conversation{}, fmt.Errorf("conversation %q: %w", id, state.ErrNotFound)
	}
	return r.Rec, nil
}

// Place is the place of a conversation among those of its owner. It stays valid when the conversation is deleted.
type Place struct {
	created time.Time
	id      string
}

// Place returns the place of the conversation.
func (c *Conversation) Place() Place { return Place{c.Created, c.ID} }

// String returns the place as a text that ParsePlace reads.
func (p Place) String() string { return strconv.FormatInt(p.created.UnixNano(), 10) + "." + p.id }

// ParsePlace reads a place. The text "" is the one before the newest conversation. The place comes from a client, so
// any other text is state.ErrInvalid.
func ParsePlace(text string) (p Place, err error) {
	if text == "" {
		return p, nil
	}
	created, id, _ := strings.Cut(text, ".")
	nanos, err := strconv.ParseInt(created, 10, 64)
	if err != nil || state.CheckID(id) != nil {
		return p, fmt.Errorf("%w: not a place in a list of conversations", state.ErrInvalid)
	}
	return Place{time.Unix(0, nanos), id}, nil
}

// LatestConversations returns at most limit conversations of an owner, newest first, without reading the disk: those
// with a Page, or all if page is "", that come after a place, or all if that is the zero value.
func LatestConversations(v state.View, owner state.Owner, page string, after Place, limit int) (latest []Conversation) {
	index, list := byOwner, owner
	if page != "" {
		index, list = byPage, onPage(owner, page)
	}
	begin := state.TextKey(string(list))
	if after.id != "" {
		begin = createdBy(list, after.created)
	}
	conversations.Back(v, index, append(begin, 0xff), func(r *state.Row[Conversation]) bool {
		if len(latest) == limit || r.Rec.Owner != owner || page != "" && r.Rec.Page != page {
			return false
		}
		// Those of one moment are in the order of their ids.
		if after.id == "" || !r.Rec.Created.Equal(after.created) || r.Rec.ID < after.id {
			latest = append(latest, r.Rec)
		}
		return true
	})
	return latest
}

// ReadMetadata returns the metadata of a conversation. The conversation of another owner is state.ErrNotFound.
func ReadMetadata(ctx context.Context, s *state.State, id string, owner state.Owner) (json.RawMessage, error) {
	if _, err := FindConversation(s.View(), id, owner); err != nil {
		return nil, err
	}
	return readBody(ctx, s, metadataKey(id))
}

// SetMetadata replaces the metadata of a conversation. The conversation of another owner is state.ErrNotFound. A
// *QuotaError means that the owner's share has no room for what is more than before.
func SetMetadata(ctx context.Context, s *state.State, id string, owner state.Owner,
	metadata []byte) (Conversation, error) {
	m := state.MemoryOf[*memory](s)
	c, err := state.Do(ctx, s, func(tx *state.Tx) (Conversation, error) {
		c, err := FindConversation(tx.View(), id, owner)
		if err != nil {
			return c, err
		}
		if err := m.kept.checkRoom(tx, owner, Kept{Bytes: max(int64(len(metadata))-c.MetadataSize, 0)}); err != nil {
			return c, err
		}
		c.putMetadata(tx, metadata)
		return c, conversations.Put(tx, c)
	})
	return c, m.kept.countRefusal(err)
}

// ReadItems calls fn with the items of a conversation before a position, oldest first. An item is
// valid until fn returns, and fn must not call State. An error of fn stops the reading and is
// returned.
func ReadItems(ctx context.Context, s *state.State, id string, before uint64, fn func(item []byte) error) error {
	return s.Range(ctx, journal.Body, itemKey(id, 0), itemKey(id, before), 0, func(r journal.Record) error {
		return fn(r.Value)
	})
}

// ReadAllItems returns the items of a conversation before a position, oldest first.
func ReadAllItems(ctx context.Context, s *state.State, id string, before uint64) (items []json.RawMessage, err error) {
	err = ReadItems(ctx, s, id, before, func(item []byte) error {
		items = append(items, bytes.Clone(item))
		return nil
	})
	return items, err
}

// AddItems adds items with ids of their own to a conversation. The error may be a *QuotaError, a *DuplicateItemError,
// ErrConversationFull or ErrConversationInUse.
func AddItems(ctx context.Context, s *state.State, id string, owner state.Owner,
	items []json.RawMessage) (Conversation, error) {
	if err := checkItems(items); err != nil {
		return Conversation{}, err
	}
	m := state.MemoryOf[*memory](s)
	c, err := m.changeItems(ctx, s, id, owner, func(c *Conversation) (func(*state.Tx) error, error) {
		if c.Items+len(items) > MaxConversationItems || c.Bytes+sizeOf(items) > MaxConversationBytes {
			return nil, ErrConversationFull
		}
		taken, err := findItems(ctx, s, c, items)
		if err != nil {
			return nil, err
		}
		for _, it := range items {
			if id := gjson.GetBytes(it, "id").Str; taken[id] {
				return nil, &DuplicateItemError{id}
			}
		}
		return func(tx *state.Tx) error {
			if err := m.kept.checkRoom(tx, owner, Kept{Bytes: sizeOf(items)}); err != nil {
				return err
			}
			return c.addItems(tx, items)
		}, nil
	})
	return c, m.kept.countRefusal(err)
}

// findItems returns which ids of items are ids of items of the conversation.
func findItems(ctx context.Context, s *state.State, c *Conversation,
	items []json.RawMessage) (taken map[string]bool, err error) {
	ids := make(map[string]bool, len(items))
	for _, it := range items {
		ids[gjson.GetBytes(it, "id").Str] = true
	}
	taken = make(map[string]bool)
	err = ReadItems(ctx, s, c.ID, c.Next, func(item []byte) error {
		if id := gjson.GetBytes(item, "id").Str; ids[id] {
			taken[id] = true
		}
		return nil
	})
	return taken, err
}

// DeleteItem deletes an item of a conversation. It has to read the items, because their ids are inside their text. The
// error is state.ErrNotFound for the conversation, ErrNoItem for the item, and ErrConversationInUse while a response
// adds items.
func DeleteItem(ctx context.Context, s *state.State, id string, owner state.Owner, item string) (Conversation, error) {
	m := state.MemoryOf[*memory](s)
	return m.changeItems(ctx, s, id, owner, func(c *Conversation) (func(*state.Tx) error, error) {
		var key []byte
		size := int64(0)
		err := s.Range(ctx, journal.Body, itemKey(id, 0), itemKey(id, c.Next), 0, func(r journal.Record) error {
			if key == nil && gjson.GetBytes(r.Value, "id").Str == item {
				key, size = append(key, r.Key...), int64(len(r.Value))
			}
			return nil
		})
		if err == nil && key == nil {
			err = fmt.Errorf("item %q of conversation %s: %w", item, id, ErrNoItem)
		}
		return func(tx *state.Tx) error {
			tx.Op(journal.Op{Kind: journal.Delete, Table: journal.Body, Key: key})
			c.Items--
			c.Deleted++
			c.Bytes -= size
			return conversations.Put(tx, *c)
		}, err
	})
}

// changeItems runs the command that prepare returns for a conversation. It prepares it again if the
// items have changed meanwhile. prepare does all reading from disk, so that other commands can run
// in the meantime.
func (m *memory) changeItems(ctx context.Context, s *state.State, id string, owner state.Owner,
	prepare func(c *Conversation) (func(*state.Tx) error, error)) (Conversation, error) {
	end, err := m.use(ctx, s, id, false)
	if err != nil {
		return Conversation{}, err
	}
	defer end()
	const tries = 20 // a try fails only if another change has succeeded
	for range tries {
		c, err := FindConversation(s.View(), id, owner)
		if err != nil {
			return c, err
		}
		prepared := c
		change, err := prepare(&prepared)
		if err != nil {
			return c, err
		}
		changed, err := state.Do(ctx, s, func(tx *state.Tx) (Conversation, error) {
			now, err := FindConversation(tx.View(), id, owner)
			if err != nil {
				return now, err
			}
			if now.Next != c.Next || now.Deleted != c.Deleted {
				return now, errItemsChanged
			}
			prepared = now // also on the second run of the command
			return now, change(tx)
		})
		if !errors.Is(err, errItemsChanged) {
			if err == nil {
				changed = prepared
			}
			return changed, err
		}
	}
	return Conversation{}, ErrConversationInUse
}

// errItemsChanged says that a command was prepared for other items.
var errItemsChanged = errors.New("the items have changed")

// DeleteConversation removes a conversation with its items. The error is state.ErrNotFound, or ErrConversationInUse
// while a response adds items, which would otherwise write into what is gone.
func DeleteConversation(ctx context.Context, s *state.State, id string, owner state.Owner) error {
	m := state.MemoryOf[*memory](s)
	end, err := m.use(ctx, s, id, false)
	if err != nil {
		return err
	}
	defer end()
	return state.Run(ctx, s, func(tx *state.Tx) error {
		c, err := FindConversation(tx.View(), id, owner)
		if err != nil {
			return err
		}
		tx.Op(journal.Op{Kind: journal.DeletePrefix, Table: journal.Body, Key: metadataKey(c.ID)})
		conversations.Remove(tx, conversations.Get(tx.View(), c.ID))
		return nil
	})
}

// ConversationPool returns the pool of conversations, for metrics.
func ConversationPool(s *state.State) *share.Pool { return state.MemoryOf[*memory](s).conversations }

// countConversation updates the pool for a change that a running command makes.
func (m *memory) countConversation(_ *state.Tx, before, after *Conversation) {
	if before != nil {
		m.conversations.Give(string(before.Owner), 1)
	}
	if after != nil {
		m.conversations.Adopt(string(after.Owner), 1)
	}
}

// countConversations counts the stored conversations when the state is opened.
func (m *memory) countConversations(s *state.State) {
	for c := range conversations.All(s.View()) {
		m.countConversation(nil, nil, c)
		m.kept.apply((*Conversation)(nil), c)
	}
}
