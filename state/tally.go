package state

// tally is what the postings of one command add to spends and usages. It is
// written once at the command's end, so that a batch of a thousand settlements
// of one key changes two records and not two thousand.
//
// Both are kept in the commit of the settlement instead of being summed up from
// receipts when somebody asks: a budget asks before every request, and a page of
// thirty days would read hundreds of thousands of receipts. The price is at most
// two small records a batch, key and model.
type tally struct {
	day    string // of all of them
	spends []*KeySpend
	usages []*UsageRow

	// lately is where the receipt before was counted, of key and model.
	lately     *UsageRow
	key, model string
}

// add counts a receipt that was just written.
func (t *tally) add(tx *Tx, r *Receipt) error {
	if checkID(r.Key) == nil {
		t.spend(tx, r).add(r.Charged, t.day)
	}
	u, err := t.usage(tx, r)
	if err != nil {
		return err
	}
	u.Count(r)
	return nil
}

func (t *tally) spend(tx *Tx, r *Receipt) *KeySpend {
	if s := t.spentBy(r.Key); s != nil {
		return s
	}
	s := &KeySpend{Key: r.Key}
	if have := spends.get(tx.mem, r.Key); have != nil {
		*s = have.rec
	}
	s.Account = r.Account
	t.spends = append(t.spends, s)
	return s
}

func (t *tally) spentBy(key string) *KeySpend {
	for _, s := range t.spends {
		if s.Key == key {
			return s
		}
	}
	return nil
}

// spent is what Posted tells of the key of a posting.
func (t *tally) spent(what *Posting) *KeySpend {
	if what.Kind != Settle || what.Receipt == nil || checkID(what.Receipt.Key) != nil {
		return nil
	}
	return t.spentBy(what.Receipt.Key)
}

func (t *tally) usage(tx *Tx, r *Receipt) (u *UsageRow, err error) {
	if t.lately == nil || t.key != r.Key || t.model != r.Model {
		if t.lately, err = t.find(tx, r); err != nil {
			return nil, err
		}
		t.key, t.model = r.Key, r.Model
	}
	return t.lately, nil
}

func (t *tally) find(tx *Tx, r *Receipt) (*UsageRow, error) {
	name := UsageRow{Day: t.day, Account: r.Account, Key: usageName(r.Key), Model: usageName(r.Model)}
	if u := t.counted(&name); u != nil {
		return u, nil
	}
	fresh, err := tx.usage(name)
	if err != nil {
		return nil, err
	}
	if u := t.counted(fresh); u != nil { // another model beyond the bound
		return u, nil
	}
	t.usages = append(t.usages, fresh)
	return fresh, nil
}

func (t *tally) counted(name *UsageRow) *UsageRow {
	for _, u := range t.usages {
		if u.Model == name.Model && u.Key == name.Key && u.Account == name.Account && u.Day == name.Day {
			return u
		}
	}
	return nil
}

// keep writes what was counted.
func (t *tally) keep(tx *Tx) error {
	for _, s := range t.spends {
		if err := spends.put(tx, *s); err != nil {
			return err
		}
	}
	for _, u := range t.usages {
		if err := usages.put(tx, *u); err != nil {
			return err
		}
	}
	return nil
}
