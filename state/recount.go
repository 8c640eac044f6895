package state

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"stagedoor/state/journal"
)

// recount makes usage and spends from the receipts of a file that was written
// before there were any. Since then every receipt comes with its usage, in one
// commit, so receipts without any usage are the sign of such a file. It runs
// before the tables are loaded and before anybody may write.
func (s *State) recount(ctx context.Context) error {
	for _, t := range []journal.Table{journal.Usage, journal.Spend} {
		if some, err := s.some(ctx, t); some || err != nil {
			return err
		}
	}
	rows := map[string]*UsageRow{}
	count := func(r *Receipt) {
		u := &UsageRow{Day: dayOf(r.Ended), Account: r.Account, Key: usageName(r.Key), Model: usageName(r.Model)}
		if have := rows[u.id()]; have != nil {
			u = have
		}
		rows[u.id()] = u
		u.Count(r)
	}
	carried := false
	err := s.store.Range(ctx, journal.Receipt, nil, nil, 0, func(rec journal.Record) error {
		if carrier(rec) != 0 {
			carried = true
			return nil
		}
		r, err := decodeReceipt(rec)
		count(&r)
		return err
	})
	if err == nil && carried {
		err = s.Ledger(ctx, 0, func(e Entry) error {
			if e.receipt != nil {
				count(e.receipt)
			}
			return nil
		})
	}
	if err != nil || len(rows) == 0 {
		return err
	}
	_, err = s.store.Commit(ctx, []journal.Batch{{Ops: recounted(rows)}})
	if err != nil {
		return fmt.Errorf("count old receipts: %w", err)
	}
	return nil
}

func (s *State) some(ctx context.Context, t journal.Table) (bool, error) {
	some := false
	err := s.store.Range(ctx, t, nil, nil, 1, func(journal.Record) error { some = true; return nil })
	return some, err
}

// recounted are the records of usage, and of spends, which they add up to.
func recounted(rows map[string]*UsageRow) []journal.Op {
	var all []*UsageRow
	for _, u := range rows {
		all = append(all, u)
	}
	slices.SortFunc(all, func(a, b *UsageRow) int {
		return cmp.Or(strings.Compare(a.Day, b.Day), strings.Compare(a.id(), b.id()))
	})
	var ops []journal.Op
	byKey := map[string]*KeySpend{}
	for _, u := range all {
		ops = append(ops, journal.Op{Kind: journal.Put, Table: journal.Usage, Key: []byte(u.id()), Value: u.encode()})
		if checkID(u.Key) != nil {
			continue
		}
		k := byKey[u.Key]
		if k == nil {
			k = &KeySpend{Key: u.Key}
			byKey[u.Key] = k
		}
		k.Account = u.Account
		k.add(u.Amount, u.Day)
		k.Requests += u.Requests - 1
	}
	for _, k := range byKey {
		ops = append(ops, journal.Op{Kind: journal.Put, Table: journal.Spend, Key: []byte(k.Key), Value: k.encode()})
	}
	return ops
}
