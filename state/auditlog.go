package state

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"stagedoor/state/journal"
)

// AuditQuery selects records of the audit log. The zero value of a field selects all.
type AuditQuery struct {
	Actor    string    // the name or the kind of the actor
	Action   string    // an action, or its beginning up to a point: key selects key.create
	Target   string    // the kind of the target, or a part of its id or name, in any case
	From, To time.Time // To is excluded
	Before   uint64    // only records with lower ids
}

// selects reports whether a record fits the query. An action also selects those that it begins, up to a dot.
func (q *AuditQuery) selects(r *AuditRecord) bool {
	if q.Actor != "" && !strings.EqualFold(q.Actor, r.Actor.Name) && q.Actor != string(r.Actor.Kind) {
		return false
	}
	if q.Action != "" && q.Action != r.Action && !strings.HasPrefix(r.Action, q.Action+".") {
		return false
	}
	part := strings.ToLower(q.Target)
	return part == "" || part == r.Target.Kind || strings.Contains(strings.ToLower(r.Target.ID), part) ||
		strings.Contains(strings.ToLower(r.Target.Name), part)
}

// auditChunk is the number of records that are read together.
const auditChunk = 256

// AuditLog yields the records of the audit log that a query selects, the newest first. It reads them from the store
// while the caller takes them, so that any number of them takes little memory, and holds no lock meanwhile. It ends
// with an error of the store or of ctx.
func (s *State) AuditLog(ctx context.Context, q AuditQuery) iter.Seq2[AuditRecord, error] {
	return func(yield func(AuditRecord, error) bool) {
		v := s.View()
		first, end := max(v.NumberFact(auditFirst), 1), v.NumberFact(auditLast)+1
		if q.Before != 0 {
			end = min(end, q.Before)
		}
		var err error
		if !q.To.IsZero() {
			end, err = s.auditSince(ctx, first, end, q.To)
		}
		if err == nil && !q.From.IsZero() {
			first, err = s.auditSince(ctx, first, end, q.From)
		}
		for err == nil && first < end {
			var chunk []AuditRecord
			from := max(first, end-min(end, auditChunk))
			chunk, err = s.auditChunk(ctx, from, end)
			for _, r := range slices.Backward(chunk) {
				if q.selects(&r) && !yield(r, nil) {
					return
				}
			}
			end = from
		}
		if err != nil {
			yield(AuditRecord{}, err)
		}
	}
}

// auditChunk returns the records from one id to before another one.
func (s *State) auditChunk(ctx context.Context, from, to uint64) (chunk []AuditRecord, err error) {
	err = s.Range(ctx, journal.Audit, SequenceKey(from), SequenceKey(to), 0, func(rec journal.Record) error {
		r, err := decodeAudit(rec)
		chunk = append(chunk, r)
		return err
	})
	return chunk, errors.Join(err, ctx.Err())
}

// decodeAudit reads a record of the log and checks that its key belongs to its number.
func decodeAudit(rec journal.Record) (r AuditRecord, err error) {
	err = json.Unmarshal(rec.Value, &r)
	if err == nil && !bytes.Equal(rec.Key, SequenceKey(r.ID)) {
		err = errors.New("another record's id")
	}
	if err != nil {
		reason := fmt.Sprintf("has %v", err)
		return r, &journal.CorruptError{Table: journal.Audit, Key: bytes.Clone(rec.Key), Reason: reason}
	}
	return r, nil
}

// auditSince returns the id of the first record from a time on, between first and end. The times of records never go
// back.
func (s *State) auditSince(ctx context.Context, first, end uint64, at time.Time) (uint64, error) {
	for first < end {
		middle := first + (end-first)/2
		rec, err := s.Get(ctx, journal.Audit, SequenceKey(middle))
		var r AuditRecord
		if err == nil {
			r, err = decodeAudit(rec)
		}
		switch {
		case err != nil && !errors.Is(err, journal.ErrNotFound):
			return 0, err
		case err != nil, r.At.Before(at): // a record that is missing was too old and has left meanwhile
			first = middle + 1
		default:
			end = middle
		}
	}
	return first, nil
}

// auditLeast is the age below which a record stays whatever number of records follow it. Without it, a user
// who makes very many small changes could push out the record of another change at once.
const auditLeast = 30 * 24 * time.Hour

// KeepAudit bounds the audit log from the next Sweep on: records older than keep leave, and the oldest ones beyond a
// number of records, unless they are younger than 30 days. 0 sets no bound, which is how the state is opened.
func (s *State) KeepAudit(keep time.Duration, records int64) {
	s.auditKeep.Store(int64(keep))
	s.auditRecords.Store(records)
}

// AuditKept returns for how long records stay, or 0 if they stay for ever.
func (s *State) AuditKept() time.Duration { return time.Duration(s.auditKeep.Load()) }

// sweepAudit removes the records that KeepAudit does not keep.
func sweepAudit(s *State, limit int) func(*Tx, int) int {
	v := s.View()
	first, last := max(v.NumberFact(auditFirst), 1), v.NumberFact(auditLast)
	keep, records := time.Duration(s.auditKeep.Load()), uint64(s.auditRecords.Load())
	end := first // of the records that leave
	// What cannot be read now stays until the next time.
	if records != 0 && last >= records && last-records+1 > first {
		if old, err := s.auditSince(context.Background(), first, last-records+1, v.Now().Add(-auditLeast)); err == nil {
			end = old
		}
	}
	if keep != 0 && end <= last {
		if old, err := s.auditSince(context.Background(), end, last+1, v.Now().Add(-keep)); err == nil {
			end = old
		}
	}
	return func(tx *Tx, limit int) int {
		if max(tx.View().NumberFact(auditFirst), 1) != first {
			return 0 // another node was faster
		}
		n := min(end-first, uint64(max(limit, 0)))
		if n == 0 || tx.PutNumberFact(auditFirst, first+n) != nil {
			return 0
		}
		for id := first; id < first+n; id++ {
			tx.Op(journal.Op{Kind: journal.Delete, Table: journal.Audit, Key: SequenceKey(id)})
		}
		return int(n)
	}
}

// checkAudit reports what is wrong with the audit log as a whole: a record that is missing was removed by another
// program.
func (v *Verifier) checkAudit() {
	view := v.State.View()
	first, last := max(view.NumberFact(auditFirst), 1), view.NumberFact(auditLast)
	for _, t := range v.result.Tables {
		if t.Table == journal.Audit && uint64(t.Records) != last+1-first {
			v.Report("the audit log has %d records, and not those from %d to %d", t.Records, first, last)
		}
	}
}

// Values returns the values of a change as encoding/json decodes them.
func (c *AuditChange) Values() (before, after any) {
	// The log has only valid JSON.
	_ = json.Unmarshal(c.Before, &before)
	_ = json.Unmarshal(c.After, &after)
	return before, after
}

// Texts returns the values of a change for people: a text without its quotes, "" for null, and JSON otherwise.
func (c *AuditChange) Texts() (before, after string) { return auditText(c.Before), auditText(c.After) }

// auditText returns a logged value as text: a string without its quotes, anything else as JSON.
func auditText(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text // null leaves it empty
	}
	return string(value)
}
