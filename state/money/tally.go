package money

import "stagedoor/state"

// tally is what the postings of one command add to spends and usages. It is
// written once at the command's end, so that a batch of a thousand settlements
// of one key changes two records and not two thousand.
//
// Both are kept in the commit of the settlement. They are not summed up from receipts when they are needed, because a
// budget is checked before every request, and a page of thirty days would read hundreds of thousands of receipts. The
// price is at most two small records a batch, key and model.
type tally struct {
	day    string // of all of them
	spends []*KeySpend
	usages []*UsageRow

	alone []*KeySpend // the answer to the posting before, if it was of a key alone

	// lately is where the receipt before was counted, of key and model.
	lately     *UsageRow
	key, model string
}

// add counts a receipt that was just written.
func (t *tally) add(tx *state.Tx, r *Receipt) {
	if state.CheckID(r.Key) == nil {
		t.spend(tx, r.Key, r.Account).add(r, t.day)
	}
	for _, scope := range r.Scopes {
		t.spend(tx, scope, "").add(r, t.day)
	}
	t.usage(tx, r).Count(r)
}

func (t *tally) spend(tx *state.Tx, scope, account string) *KeySpend {
	if s := t.spentBy(scope); s != nil {
		return s
	}
	s := &KeySpend{Key: scope}
	if have := spends.Get(tx.View(), scope); have != nil {
		*s = have.Rec
	}
	s.Account = account
	t.spends = append(t.spends, s)
	return s
}

func (t *tally) spentBy(scope string) *KeySpend {
	for _, s := range t.spends {
		if s.Key == scope {
			return s
		}
	}
	return nil
}

// spent returns what Posted has of the scopes of a posting.
func (t *tally) spent(what *Posting) []*KeySpend {
	if what.Kind != Settle || what.Receipt == nil {
		return nil
	}
	r := what.Receipt
	if len(r.Scopes) == 0 && t.alone != nil && t.alone[0].Key == r.Key {
		return t.alone // nearly always: one key settles a whole batch
	}
	var all []*KeySpend
	if state.CheckID(r.Key) == nil {
		all = append(all, t.spentBy(r.Key))
	}
	for _, scope := range r.Scopes {
		all = append(all, t.spentBy(scope))
	}
	if len(all) == 1 && len(r.Scopes) == 0 {
		t.alone = all
	}
	return all
}

func (t *tally) usage(tx *state.Tx, r *Receipt) *UsageRow {
	if t.lately == nil || t.key != r.Key || t.model != r.Model {
		t.lately = t.find(tx, r)
		t.key, t.model = r.Key, r.Model
	}
	return t.lately
}

func (t *tally) find(tx *state.Tx, r *Receipt) *UsageRow {
	name := UsageRow{Day: t.day, Account: r.Account, Key: usageName(r.Key), Model: usageName(r.Model)}
	if u := t.counted(&name); u != nil {
		return u
	}
	fresh := usageOf(tx, name)
	if u := t.counted(fresh); u != nil { // another model beyond the bound
		return u
	}
	t.usages = append(t.usages, fresh)
	return fresh
}

func (t *tally) counted(name *UsageRow) *UsageRow {
	for _, u := range t.usages {
		if u.Model == name.Model && u.Key == name.Key && u.Account == name.Account && u.Day == name.Day {
			return u
		}
	}
	return nil
}

// CountUsage adds rows without a day to the usage of today: of requests that nothing was held
// for, so that they have no receipt in the ledger.
func CountUsage(tx *state.Tx, rows []UsageRow) error {
	day := dayOf(tx.Now())
	for i := range rows {
		name := UsageRow{
			Day: day, Account: rows[i].Account, Key: usageName(rows[i].Key), Model: usageName(rows[i].Model),
		}
		u := usageOf(tx, name)
		u.Add(&rows[i])
		if err := usages.Put(tx, *u); err != nil { // before the next, which may be beyond the bound
			return err
		}
	}
	return nil
}

// keep writes what was counted.
func (t *tally) keep(tx *state.Tx) error {
	for _, s := range t.spends {
		if err := spends.Put(tx, *s); err != nil {
			return err
		}
	}
	for _, u := range t.usages {
		if err := usages.Put(tx, *u); err != nil {
			return err
		}
	}
	return nil
}
