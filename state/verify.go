package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"stagedoor/state/journal"
)

// Verification is what Verify found.
type Verification struct {
	Tables   []TableSize
	Books    Books
	Problems []string // the first of them, at most MaxProblems
	More     int      // how many beyond those
}

// TableSize is how much a table holds.
type TableSize struct {
	Table   journal.Table
	Records int64
	Bytes   int64 // of keys and values
}

// MaxProblems bounds the problems that Verify names.
const MaxProblems = 100

// Sound tells that nothing is wrong.
func (v *Verification) Sound() bool { return len(v.Problems) == 0 }

func (v *Verification) find(format string, args ...any) {
	if len(v.Problems) == MaxProblems {
		v.More++
		return
	}
	v.Problems = append(v.Problems, fmt.Sprintf(format, args...))
}

// Verify reads a whole store and looks at every record (its checksum, its form,
// what it points at), and whether the ledger adds up to the balances. It changes
// nothing. Its error tells that it could not look; what it saw is in its result.
//
// Nobody may change the store meanwhile.
func Verify(ctx context.Context, store journal.Store) (Verification, error) {
	v := verifier{store: store}
	for _, t := range journal.Tables() {
		if err := v.table(ctx, t); err != nil {
			return v.Verification, err
		}
	}
	if !v.Sound() {
		return v.Verification, nil // what damaged records would tell is not worth hearing
	}
	s := newState(store, time.Now)
	if err := s.load(); err != nil {
		v.find("%v", err)
		return v.Verification, ctx.Err()
	}
	v.references(s.View())
	err := errors.Join(v.responses(ctx, s), v.terminals(ctx, s))
	if err != nil {
		return v.Verification, err
	}
	v.Books, err = s.CheckBooks(ctx)
	for _, problem := range parts(err) {
		if !errors.Is(problem, journal.ErrCorrupt) {
			return v.Verification, problem
		}
		v.find("%v", problem)
	}
	return v.Verification, nil
}

func parts(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	if err != nil {
		return []error{err}
	}
	return nil
}

type verifier struct {
	Verification
	store journal.Store
}

// table reads a table; behind a damaged record it goes on.
func (v *verifier) table(ctx context.Context, t journal.Table) error {
	size := TableSize{Table: t}
	var from []byte
	for {
		err := v.store.Range(ctx, t, from, nil, 0, func(r journal.Record) error {
			size.Records++
			size.Bytes += int64(len(r.Key) + len(r.Value))
			if problem := form(t, r); problem != "" {
				v.find("%s/%q %s", t, r.Key, problem)
			}
			return nil
		})
		var bad *journal.CorruptError
		if err != nil && !errors.As(err, &bad) {
			return err
		}
		if err != nil {
			v.find("%v", err)
		}
		if err == nil || bad.Key == nil {
			v.Tables = append(v.Tables, size)
			return nil
		}
		from = append(slices.Clone(bad.Key), 0)
	}
}

// form is what is wrong with a cold record alone. The hot ones are looked at by
// whoever loads them.
func form(t journal.Table, r journal.Record) string {
	var err error
	switch t {
	case journal.Ledger:
		_, err = decodePage(r)
	case journal.Folded:
		_, err = decodeCheckpoint(r)
	case journal.Receipt, journal.ByHash:
		if !isIndex(t, r) { // terminals looks where it leads
			err = ErrInvalid
		}
	case journal.Body:
		if !json.Valid(r.Value) {
			return "is not JSON"
		}
	}
	if err != nil {
		return "has a form that is not known"
	}
	return ""
}

// references looks for what is pointed at and is not there. Users and apps are
// never removed; grants go when they expire, after their tokens.
func (v *verifier) references(view View) {
	user := func(what string, id int64) {
		if _, ok := view.User(id); !ok {
			v.find("%s belongs to user %d, who is not there", what, id)
		}
	}
	app := func(what string, id int64) {
		if _, ok := view.App(id); !ok {
			v.find("%s belongs to app %d, which is not there", what, id)
		}
	}
	users.from(view.txn, byID, nil, func(r *row[User]) bool {
		if _, ok := view.Group(r.rec.Group); !ok && r.rec.Group != 0 {
			v.find("user %d is in group %d, which is not there", r.rec.ID, r.rec.Group)
		}
		return true
	})
	apps.from(view.txn, byID, nil, func(r *row[App]) bool { user(fmt.Sprintf("app %d", r.rec.ID), r.rec.Owner); return true })
	sessions.from(view.txn, byID, nil, func(r *row[Session]) bool { user("session "+r.rec.ID, r.rec.User); return true })
	developers.from(view.txn, byID, nil, func(r *row[DeveloperToken]) bool {
		user("developer token "+r.rec.ID, r.rec.User)
		return true
	})
	grants.from(view.txn, byID, nil, func(r *row[Grant]) bool {
		user("grant "+r.rec.ID, r.rec.User)
		app("grant "+r.rec.ID, r.rec.App)
		return true
	})
	consents.from(view.txn, byID, nil, func(r *row[Consent]) bool {
		what := fmt.Sprintf("the consent of user %d for app %d", r.rec.User, r.rec.App)
		user(what, r.rec.User)
		app(what, r.rec.App)
		return true
	})
	accessTokens.from(view.txn, byID, nil, func(r *row[AccessToken]) bool {
		if _, ok := view.Grant(r.rec.Grant); !ok && view.now.Before(r.rec.Expires) {
			v.find("access token %s belongs to grant %s, which is not there", r.rec.ID, r.rec.Grant)
		}
		return true
	})
}

// responses compares headers with what is kept beside them.
func (v *verifier) responses(ctx context.Context, s *State) error {
	sizes := map[string]int64{} // of bodies, inputs and requests
	err := v.store.Range(ctx, journal.Body, nil, nil, 0, func(r journal.Record) error {
		sizes[string(r.Key)] = int64(len(r.Value))
		return nil
	})
	if err != nil {
		return err
	}
	txn := s.snapshot()
	responses.from(txn, byID, nil, func(r *row[ResponseHeader]) bool {
		kept := map[string]int64{string(bodyKey(r.rec.ID)): r.rec.BodySize, string(inputKey(r.rec.ID)): r.rec.InputSize}
		if r.rec.RequestSize > 0 {
			kept[string(requestKey(r.rec.ID))] = r.rec.RequestSize
		}
		for key, want := range kept {
			if have, ok := sizes[key]; !ok || have != want {
				v.find("%s of response %s has %d bytes of %d", key[len(r.rec.ID)+1:], r.rec.ID, have, want)
			}
			delete(sizes, key)
		}
		return true
	})
	for key := range sizes {
		v.find("%s/%q belongs to a response that is not there", journal.Body, key)
	}
	return v.store.Range(ctx, journal.Event, nil, nil, 0, func(r journal.Record) error {
		id, _, ok := strings.Cut(string(r.Key), "/")
		if !ok || responses.get(txn, id) == nil {
			v.find("%s/%q belongs to a response that is not there", journal.Event, r.Key)
		}
		return nil
	})
}

// terminals compares the receipt tables with the ledger entries that it was written with. Keys of different entries
// differ, so where each terminal entry has its record and there are as many of both, there is no other record. A
// table of all keys in memory would take gigabytes for a large ledger.
func (v *verifier) terminals(ctx context.Context, s *State) error {
	records, ended := int64(0), int64(0)
	err := s.Ledger(ctx, 0, func(e Entry) error {
		if !e.ends() {
			return nil
		}
		key := receiptKey(e.Request, e.Account, e.Sequence)
		_, err := v.store.Get(ctx, receiptTable(key), key)
		if e.receipt == nil || errors.Is(err, journal.ErrNotFound) {
			v.find("ledger entry %d charged %d for request %s, and no receipt is found that says so", e.Sequence, e.Amount, e.Request)
			return nil
		}
		ended++
		return err
	})
	for _, t := range receiptTables {
		if err == nil {
			err = v.store.Range(ctx, t, nil, nil, 0, func(journal.Record) error { records++; return nil })
		}
	}
	if err != nil || records == ended {
		return err
	}
	for _, t := range receiptTables {
		if err := v.store.Range(ctx, t, nil, nil, 0, func(rec journal.Record) error {
			e, err := (&entryReader{state: s}).entry(ctx, sequenceOf(rec.Key[16:]))
			if errors.Is(err, journal.ErrNotFound) || err == nil && !e.indexedBy(rec.Key) {
				v.find("%s/%q has no ledger entry", t, rec.Key)
				return nil
			}
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

var receiptTables = []journal.Table{journal.Receipt, journal.ByHash}

// Backup writes a copy of the store to path while the state is in use, and
// returns its bytes. See journal.BackupFile.
func (s *State) Backup(ctx context.Context, path string) (int64, error) {
	return journal.BackupFile(ctx, s.store, path)
}

// BackupChanges writes what has changed since the backup of the path before. See journal.BackupChanges.
func (s *State) BackupChanges(ctx context.Context, path, before string) (journal.ChangesBackup, error) {
	return journal.BackupChanges(ctx, s.store, path, before)
}
