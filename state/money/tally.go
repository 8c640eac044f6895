package money

import "stagedoor/state"

// tally collects what the postings of one command add to spends and usages. It is written once at
// the end of the command, so a batch of a thousand settlements of one key changes two records and
// not two thousand.
//
// Both are part of the commit of the settlement. They cannot be summed up from receipts on demand,
// because a budget is checked before every request, and a report of thirty days would read hundreds
// of thousands of receipts. The price is at most two small records for each batch, key and model.
type tally struct {
	day    string // of all postings
	spends []*KeySpend
	usages []*UsageRow

	// lastSpends is the result of spendsOf for the previous posting if its only scope was a key.
	lastSpends []*KeySpend

	// lastUsage is the row of the previous receipt, which had this key and model.
	lastUsage  *UsageRow
	key, model string
}

// add adds a receipt to the spending of its key and scopes and to the usage of its day.
func (t *tally) add(tx *state.Tx, r *Receipt) {
	if state.CheckID(r.Key) == nil {
		t.spend(tx, r.Key, r.Account).add(r, t.day)
	}
	for _, scope := range r.Scopes {
		t.spend(tx, scope, "").add(r, t.day)
	}
	t.usage(tx, r).Count(r)
}

// spend returns the changeable record of a scope.
func (t *tally) spend(tx *state.Tx, scope, account string) *KeySpend {
	if s := t.changedSpend(scope); s != nil {
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

// changedSpend returns the record of a scope if this command has changed it, or nil.
func (t *tally) changedSpend(scope string) *KeySpend {
	for _, s := range t.spends {
		if s.Key == scope {
			return s
		}
	}
	return nil
}

// spendsOf returns what the scopes of a settlement have spent, as Posted.Spends reports it. It
// returns nil for other postings.
func (t *tally) spendsOf(what *Posting) []*KeySpend {
	if what.Kind != Settle || what.Receipt == nil {
		return nil
	}
	r := what.Receipt
	if len(r.Scopes) == 0 && t.lastSpends != nil && t.lastSpends[0].Key == r.Key {
		return t.lastSpends // the usual case: a whole batch of settlements of one key
	}
	var all []*KeySpend
	if state.CheckID(r.Key) == nil {
		all = append(all, t.changedSpend(r.Key))
	}
	for _, scope := range r.Scopes {
		all = append(all, t.changedSpend(scope))
	}
	if len(all) == 1 && len(r.Scopes) == 0 {
		t.lastSpends = all
	}
	return all
}

// usage returns the changeable usage row for a receipt. It remembers the row, because the next
// receipt mostly has the same key and model.
func (t *tally) usage(tx *state.Tx, r *Receipt) *UsageRow {
	if t.lastUsage == nil || t.key != r.Key || t.model != r.Model {
		t.lastUsage = t.usageRow(tx, r)
		t.key, t.model = r.Key, r.Model
	}
	return t.lastUsage
}

// usageRow returns the changeable row for a receipt. It reads the stored row or makes a new one if
// this command has not changed it yet.
func (t *tally) usageRow(tx *state.Tx, r *Receipt) *UsageRow {
	name := UsageRow{Day: t.day, Account: r.Account, Key: usageName(r.Key), Model: usageName(r.Model)}
	if u := t.changedUsage(&name); u != nil {
		return u
	}
	fresh := usageOf(tx, name)
	if u := t.changedUsage(fresh); u != nil { // another model beyond the bound
		return u
	}
	t.usages = append(t.usages, fresh)
	return fresh
}

// changedUsage returns the row of that name if this command has changed it, or nil.
func (t *tally) changedUsage(name *UsageRow) *UsageRow {
	for _, u := range t.usages {
		if u.Model == name.Model && u.Key == name.Key && u.Account == name.Account && u.Day == name.Day {
			return u
		}
	}
	return nil
}

// CountUsage adds rows without a day to today's usage. It is for requests without a hold, which
// have no receipt in the ledger.
func CountUsage(tx *state.Tx, rows []UsageRow) error {
	day := dayOf(tx.Now())
	for i := range rows {
		name := UsageRow{
			Day: day, Account: rows[i].Account, Key: usageName(rows[i].Key), Model: usageName(rows[i].Model),
		}
		u := usageOf(tx, name)
		u.Add(&rows[i])
		if err := usages.Put(tx, *u); err != nil { // so that the limit of models counts it for the next row
			return err
		}
	}
	return nil
}

// write stores the collected records.
func (t *tally) write(tx *state.Tx) error {
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
