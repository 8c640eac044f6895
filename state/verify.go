package state

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"stagedoor/state/journal"
)

// Verification is the result of Verify.
type Verification struct {
	Tables   []TableSize
	Problems []string // the first of them, at most MaxProblems
	More     int      // how many beyond those
}

// TableSize counts the records of a table and their bytes.
type TableSize struct {
	Table   journal.Table
	Records int64
	Bytes   int64 // of keys and values
}

// MaxProblems bounds the problems that Verify names.
const MaxProblems = 100

// Sound reports whether nothing is wrong.
func (v *Verification) Sound() bool { return len(v.Problems) == 0 }

// Verifier gives the Verify of a module the loaded state, which takes no commands, and takes its findings.
type Verifier struct {
	State  *State
	result *Verification
}

// Report adds a problem to the result.
func (v *Verifier) Report(format string, args ...any) {
	if len(v.result.Problems) == MaxProblems {
		v.result.More++
		return
	}
	v.result.Problems = append(v.result.Problems, fmt.Sprintf(format, args...))
}

// Verify reads a whole store and looks at every record: its checksum, its form and, as the modules say, whether it fits
// the others. If a record is damaged, the modules are not asked, because they would then report what is not wrong.
// Verify changes nothing, and the store must not change meanwhile. An error says that not all could be read, and the
// result has what was found until then.
func Verify(ctx context.Context, store journal.Store, modules ...Module) (result Verification, err error) {
	v := &Verifier{result: &result}
	checks := map[journal.Table]func(journal.Record) error{journal.Audit: func(r journal.Record) error {
		_, err := decodeAudit(r)
		return err
	}}
	for _, m := range modules {
		maps.Copy(checks, m.Checks)
	}
	for _, t := range journal.Tables() {
		if err := v.table(ctx, store, t, checks[t]); err != nil {
			return result, err
		}
	}
	if !result.Sound() {
		return result, nil
	}
	s := newState(store, time.Now, modules)
	if err := s.load(); err != nil {
		v.Report("%v", err)
		return result, ctx.Err()
	}
	v.State = s
	v.checkAudit()
	for _, m := range modules {
		if m.Verify == nil {
			continue
		}
		if err := m.Verify(ctx, v); err != nil {
			return result, err
		}
	}
	return result, nil
}

// table reads a table and goes on behind a damaged record.
func (v *Verifier) table(ctx context.Context, store journal.Store, t journal.Table,
	check func(journal.Record) error) error {
	size := TableSize{Table: t}
	var from []byte
	for {
		err := store.Range(ctx, t, from, nil, 0, func(r journal.Record) error {
			size.Records++
			size.Bytes += int64(len(r.Key) + len(r.Value))
			if check != nil {
				if err := check(r); err != nil {
					v.Report("%s/%q %v", t, r.Key, err)
				}
			}
			return nil
		})
		var bad *journal.CorruptError
		if err != nil && !errors.As(err, &bad) {
			return err
		}
		if err != nil {
			v.Report("%v", err)
		}
		if err == nil || bad.Key == nil {
			v.result.Tables = append(v.result.Tables, size)
			return nil
		}
		from = append(slices.Clone(bad.Key), 0)
	}
}
