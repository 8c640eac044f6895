package work

import (
	"context"
	"errors"

	"stagedoor/state"
)

// eraseBatch bounds what one commit erases, so that other commands do not wait long.
const eraseBatch = 100

// EraseOwner removes what is stored for an owner: responses, conversations, makers of compacted ones, replies that are
// kept for repeats, and the prompts of video jobs. The ledger and its receipts stay. The gateway deletes the videos at
// their providers afterwards (see ListVideoDeletions). EraseOwner returns the number of responses, conversations and
// jobs that it left because they are still at work.
//
// Call it once the owner can begin nothing new, and again after what was left has ended. Responses and jobs are gone
// for their readers at once, and the sweep removes them from the disk.
func EraseOwner(ctx context.Context, s *state.State, owner state.Owner) (left int, err error) {
	for _, c := range LatestConversations(s.View(), owner, "", Place{}, -1) {
		switch err := DeleteConversation(ctx, s, c.ID, owner); {
		case errors.Is(err, ErrConversationInUse):
			left++
		case err != nil && !errors.Is(err, state.ErrNotFound):
			return left, err
		}
	}
	var ids []string
	for _, h := range LatestResponses(s.View(), owner, -1) {
		ids = append(ids, h.ID)
	}
	n, err := eraseEach(ctx, s, ids, func(tx *state.Tx, id string) (bool, error) {
		h, err := FindResponse(tx.View(), id, owner)
		if err != nil {
			return true, nil // it was deleted meanwhile
		}
		if !h.Finished() {
			return false, nil
		}
		h.Expires = tx.Now()
		return true, responses.Put(tx, h)
	})
	if left += n; err != nil {
		return left, err
	}
	jobs, _ := ListVideos(s.View(), owner, VideoPage{Limit: -1})
	ids = ids[:0]
	for i := range jobs {
		ids = append(ids, jobs[i].ID)
	}
	n, err = eraseEach(ctx, s, ids, func(tx *state.Tx, id string) (bool, error) {
		v, ok := FindVideo(tx.View(), id, owner)
		if !ok {
			return true, nil
		}
		if !v.Final() {
			return false, nil
		}
		_, err := PutVideo(tx, v.erased(tx.Now()))
		return true, err
	})
	if left += n; err != nil {
		return left, err
	}
	if err := eraseRows(ctx, s, owner, &replies, removeReply); err != nil {
		return left, err
	}
	return left, eraseRows(ctx, s, owner, &compactions, compactions.Remove)
}

// eraseEach calls erase with each id, in commits of eraseBatch, and counts the ids for which it returns false.
func eraseEach(ctx context.Context, s *state.State, ids []string,
	erase func(*state.Tx, string) (done bool, err error)) (left int, err error) {
	for len(ids) > 0 {
		some := ids[:min(len(ids), eraseBatch)]
		ids = ids[len(some):]
		n, err := state.Do(ctx, s, func(tx *state.Tx) (n int, err error) {
			for _, id := range some {
				done, err := erase(tx, id)
				if err != nil {
					return n, err
				}
				if !done {
					n++
				}
			}
			return n, nil
		})
		if left += n; err != nil {
			return left, err
		}
	}
	return left, nil
}

// eraseRows removes the owner's rows of a table, which has them in the index byOwner.
func eraseRows[R any](ctx context.Context, s *state.State, owner state.Owner, t *state.Table[R],
	remove func(*state.Tx, *state.Row[R])) error {
	for {
		more, err := state.Do(ctx, s, func(tx *state.Tx) (bool, error) {
			all := t.Under(tx.View(), byOwner, state.TextKey(string(owner)))
			some := all[:min(len(all), eraseBatch)]
			for _, r := range some {
				remove(tx, r)
			}
			return len(some) < len(all), nil
		})
		if err != nil || !more {
			return err
		}
	}
}
