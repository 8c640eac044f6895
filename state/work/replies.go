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

// ReplyTTL bounds the time that a finished reply is kept for a repeat of its request.
const ReplyTTL = 24 * time.Hour

const (
	// replyUnit counts a small reply, so that the bytes of all replies bound their number, too. Each costs about 1.5 KB
	// of memory.
	replyUnit = 16 << 10
	// defaultReplies bounds the bytes of all replies until MaxReplyBytes changes it.
	defaultReplies = 1 << 30
)

// Reply is the finished reply to a request that was sent with an idempotency key. Its body is on disk.
type Reply struct {
	Owner state.Owner `json:"owner"`
	// Key is the hash of the idempotency key, and Asked that of what the request asks for.
	Key     state.Hash `json:"key"`
	Asked   state.Hash `json:"asked"`
	Request string     `json:"request"` // the id of the request that the reply was made for
	Status  int        `json:"status"`
	// Header has the headers that a repeat gets, too.
	Header http.Header `json:"header,omitempty"`
	Size   int64       `json:"size"` // of the body
	// Lost reports that the reply was too large to be kept. A repeat is then refused in place of being charged again.
	Lost    bool      `json:"lost,omitempty"`
	Created time.Time `json:"created"`
}

// replies has the headers of the replies. The body of each is in journal.ReplyBody, under the same id.
var replies = state.Table[Reply]{
	Name:    journal.Reply,
	ID:      func(r *Reply) string { return replyID(r.Owner, r.Key) },
	Expires: func(r *Reply) time.Time { return r.Created.Add(ReplyTTL) },
	Indexes: map[string]state.Index[Reply]{
		byOwner: {Key: func(r *Reply) []byte { return createdBy(r.Owner, r.Created) }},
	},
}

// replyID is a hash, because a client chooses its keys.
func replyID(owner state.Owner, key state.Hash) string {
	id := state.HashSecret(string(owner) + "\x00" + string(key[:]))
	return hex.EncodeToString(id[:])
}

func (r *Reply) cost() int64 { return max(r.Size, replyUnit) }

// FindReply returns the reply that an owner's request with an idempotency key got in the last ReplyTTL.
func FindReply(v state.View, owner state.Owner, key string) (Reply, bool) {
	r, found := replies.Get(v, replyID(owner, state.HashSecret(key))).Record()
	return r, found && v.Now().Before(r.Created.Add(ReplyTTL))
}

// ReadReplyBody returns the body of a reply, or state.ErrNotFound if it was removed a moment ago.
func ReadReplyBody(ctx context.Context, s *state.State, r *Reply) ([]byte, error) {
	rec, err := s.Get(ctx, journal.ReplyBody, []byte(replyID(r.Owner, r.Key)))
	if errors.Is(err, journal.ErrNotFound) {
		return nil, fmt.Errorf("reply of request %s: %w", r.Request, state.ErrNotFound)
	}
	return rec.Value, err
}

// PutReply keeps a reply in place of an earlier one with the same key. Created and Size are set. The oldest replies of
// the owner make room if its share is used up, and else those of the owner that has most. The body of a reply for which
// there is no room even then is not kept, and the reply is Lost.
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

// maxReplySurplus bounds how many replies one reply takes the place of.
const maxReplySurplus = 1024

// makeReplyRoom removes replies until r fits. It returns false if r does not fit then.
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

// MaxReplyBytes bounds the bytes of all finished replies that are kept, at once. Replies beyond it stay until they
// expire or make room for others. 0 means no bound.
func MaxReplyBytes(s *state.State, n int64) { StoredReplies(s).Resize(n) }

// StoredReplies returns the pool of the bytes of finished replies, for metrics.
func StoredReplies(s *state.State) *share.Pool { return state.MemoryOf[*memory](s).replies }

// countReply counts a change of a reply.
func (m *memory) countReply(before, after *Reply) {
	if before != nil {
		m.replies.Give(string(before.Owner), before.cost())
	}
	if after != nil {
		m.replies.Adopt(string(after.Owner), after.cost())
	}
}

// countReplies counts the replies that are kept when the state is opened.
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
		v.Report("%s/%q belongs to a reply that is not there", journal.ReplyBody, id)
	}
	return nil
}
