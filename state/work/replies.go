package work

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"time"

	"stagedoor/state"
	"stagedoor/state/journal"
	"stagedoor/state/share"
)

// ReplyTTL is the time for which a finished reply is kept for a repeat of its request.
const ReplyTTL = 24 * time.Hour

const (
	// replyUnit is the smallest size that a reply counts with, so that the limit of bytes also
	// limits the number of replies. Each takes about 1.5 KB of memory.
	replyUnit = 16 << 10
	// defaultReplies is the limit of the bytes of all replies unless MaxReplyBytes sets another.
	defaultReplies = 1 << 30
)

// Reply is the finished reply to a request with an idempotency key. Its body is on disk.
type Reply struct {
	Owner state.Owner `json:"owner"`
	// Key is the hash of the idempotency key, and Asked the hash of the request's content.
	Key     state.Hash `json:"key"`
	Asked   state.Hash `json:"asked"`
	Request string     `json:"request"` // id of the request that the reply was made for
	Status  int        `json:"status"`
	// Header holds the headers that a repeat gets as well.
	Header http.Header `json:"header,omitempty"`
	Size   int64       `json:"size"` // of the body
	// Lost says that the reply was too large to keep. A repeat is then refused, because sending the
	// request again would charge it again.
	Lost    bool      `json:"lost,omitempty"`
	Created time.Time `json:"created"`
}

// replies holds finished replies without their bodies, which are in journal.ReplyBody under the same ids. They are
// kept for repeats of their requests, for ReplyTTL. There is one for each owner and idempotency key.
var replies = state.Table[Reply]{
	Name:    journal.Reply,
	ID:      func(r *Reply) string { return replyID(r.Owner, r.Key) },
	Expires: func(r *Reply) time.Time { return r.Created.Add(ReplyTTL) },
	Indexes: map[string]state.Index[Reply]{
		byOwner: {Key: func(r *Reply) []byte { return createdBy(r.Owner, r.Created) }},
	},
}

// replyID returns a hash of owner and key, because clients choose the keys.
func replyID(owner state.Owner, key state.Hash) string {
	id := state.HashSecret(string(owner) + "\x00" + string(key[:]))
	return hex.EncodeToString(id[:])
}

// cost returns the bytes that a reply counts for, see replyUnit.
func (r *Reply) cost() int64 { return max(r.Size, replyUnit) }

// FindReply returns the reply that the owner's request with this idempotency key got in the last
// ReplyTTL.
func FindReply(v state.View, owner state.Owner, key string) (Reply, bool) {
	r, found := replies.Get(v, replyID(owner, state.HashSecret(key))).Record()
	return r, found && v.Now().Before(r.Created.Add(ReplyTTL))
}

// ReadReplyBody returns the body of a reply, or state.ErrNotFound if it was removed meanwhile.
func ReadReplyBody(ctx context.Context, s *state.State, r *Reply) ([]byte, error) {
	rec, err := s.Get(ctx, journal.ReplyBody, []byte(replyID(r.Owner, r.Key)))
	if errors.Is(err, journal.ErrNotFound) {
		return nil, fmt.Errorf("reply of request %s: %w", r.Request, state.ErrNotFound)
	}
	return rec.Value, err
}

// PutReply stores a reply and replaces an earlier one with the same key. It sets Created and Size.
// To make room it removes the oldest replies of the owner if the owner's share is used up, and
// otherwise those of the owner with most bytes. If there is no room even then, the body is not
// stored and the reply is Lost.
func PutReply(ctx context.Context, s *state.State, r Reply, body []byte) error {
	pool := StoredReplies(s)
	return state.Run(ctx, s, func(tx *state.Tx) error {
		r, body := r, body
		r.Created, r.Size = tx.Now(), int64(len(body))
		if !makeReplyRoom(tx, pool, &r) {
			r.Lost, r.Size, body = true, 0, nil
		}
		id := []byte(replyID(r.Owner, r.Key))
		tx.Op(journal.Op{Kind: journal.Put, Table: journal.ReplyBody, Key: id, Value: body})
		return replies.Put(tx, r)
	})
}

// maxReplySurplus is the number of replies that one reply may replace.
const maxReplySurplus = 1024

// makeReplyRoom removes replies until r fits, and returns false if it cannot make r fit.
func makeReplyRoom(tx *state.Tx, pool *share.Pool, r *Reply) bool {
	for range maxReplySurplus {
		full := pool.Refusal(string(r.Owner), r.cost())
		if full == nil {
			return true
		}
		from := string(r.Owner)
		if !full.Share {
			from = pool.Largest()
		}
		oldest := replies.First(tx.View(), byOwner, state.TextKey(from))
		if oldest == nil {
			tx.OnCommit(func() { pool.CountRefusal(full) })
			return false
		}
		removeReply(tx, oldest)
	}
	return false
}

// removeReply removes a reply with its body, which is in a table that is not in memory.
func removeReply(tx *state.Tx, r *state.Row[Reply]) {
	tx.Op(journal.Op{Kind: journal.Delete, Table: journal.ReplyBody, Key: []byte(replyID(r.Rec.Owner, r.Rec.Key))})
	replies.Remove(tx, r)
}

// sweepReplies removes the replies that have expired.
func sweepReplies(*state.State, int) func(*state.Tx, int) int {
	return func(tx *state.Tx, limit int) int {
		expired := replies.Expired(tx.View(), limit)
		for _, r := range expired {
			removeReply(tx, r)
		}
		return len(expired)
	}
}

// MaxReplyBytes sets the limit of the bytes of all stored replies at once. Replies beyond it stay
// until they expire or make room for others. 0 sets no limit.
func MaxReplyBytes(s *state.State, n int64) { StoredReplies(s).Resize(n) }

// StoredReplies returns the pool of the bytes of finished replies, for metrics.
func StoredReplies(s *state.State) *share.Pool { return state.MemoryOf[*memory](s).replies }

// countReply updates the pool for a change of a reply.
func (m *memory) countReply(before, after *Reply) {
	if before != nil {
		m.replies.Give(string(before.Owner), before.cost())
	}
	if after != nil {
		m.replies.Adopt(string(after.Owner), after.cost())
	}
}

// countReplies counts the stored replies when the state is opened.
func (m *memory) countReplies(s *state.State) {
	for r := range replies.All(s.View()) {
		m.countReply(nil, r)
	}
}

// verifyReplies compares the headers of replies with their bodies.
func verifyReplies(ctx context.Context, v *state.Verifier) error {
	sizes := map[string]int64{}
	err := v.State.Range(ctx, journal.ReplyBody, nil, nil, 0, func(rec journal.Record) error {
		sizes[string(rec.Key)] = int64(len(rec.Value))
		return nil
	})
	if err != nil {
		return err
	}
	for r := range replies.All(v.State.View()) {
		id := replyID(r.Owner, r.Key)
		if have, ok := sizes[id]; !ok || have != r.Size {
			v.Report("the body of reply %s has %d bytes of %d", id, have, r.Size)
		}
		delete(sizes, id)
	}
	for id := range sizes {
		v.Report("%s/%q belongs to a reply that does not exist", journal.ReplyBody, id)
	}
	return nil
}
