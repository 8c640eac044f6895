package money

import (
	"time"

	"stagedoor/state"
	"stagedoor/state/budget"
	"stagedoor/state/journal"
)

// KeySpend holds what a key or another scope has spent, in micro-dollars. It includes settlements and
// not holds. Days and months are in UTC. The record outlives the key.
type KeySpend struct {
	Key      string `json:"key"`                // name of the scope, see budget.Scope.Name
	Account  string `json:"account,omitempty"`  // only for keys
	Requests int64  `json:"requests,omitempty"` // ended requests, charged or not
	Total    int64  `json:"total,omitempty"`
	// OfDay was spent on Day, and OfMonth in the month of Day. Use In to read them.
	OfDay   int64  `json:"of_day,omitempty"`
	OfMonth int64  `json:"of_month,omitempty"`
	Day     string `json:"day,omitempty"` // 2006-01-02
}

// In returns what was spent in the window that contains now. If the clock went back, it is the newest window, for which
// add counts as well.
func (s *KeySpend) In(w budget.Window, now time.Time) int64 {
	if w != budget.WindowDay && w != budget.WindowMonth {
		return s.Total
	}
	switch today := dayOf(now); {
	case w == budget.WindowDay && today <= s.Day:
		return s.OfDay
	case w == budget.WindowMonth && today[:len("2006-01")] <= s.month():
		return s.OfMonth
	}
	return 0
}

// add counts a request that ended today. If the clock went back, the request counts for the newest
// window, so that an older window does not open again.
func (s *KeySpend) add(r *Receipt, today string) {
	if today > s.Day {
		if s.OfDay = 0; today[:len("2006-01")] > s.month() {
			s.OfMonth = 0
		}
		s.Day = today
	}
	s.Requests += r.requests()
	s.Total += r.Charged
	s.OfDay += r.Charged
	s.OfMonth += r.Charged
}

// join adds what another key has spent. Sums of an earlier day or month are not added to those of a
// later one.
func (s *KeySpend) join(o *KeySpend) {
	if o.Day > s.Day {
		if s.OfDay = 0; o.month() > s.month() {
			s.OfMonth = 0
		}
		s.Day = o.Day
	}
	s.Requests += o.Requests
	s.Total += o.Total
	if o.Day == s.Day {
		s.OfDay += o.OfDay
	}
	if o.month() == s.month() {
		s.OfMonth += o.OfMonth
	}
}

// month returns the month of Day.
func (s *KeySpend) month() string {
	if s.Day == "" {
		return ""
	}
	return s.Day[:len("2006-01")]
}

// spends holds what each key has spent, for its budget. byAccount lists those of an account.
var spends = state.Table[KeySpend]{
	Name:   journal.Spend,
	ID:     func(s *KeySpend) string { return s.Key },
	Encode: (*KeySpend).encode,
	Indexes: map[string]state.Index[KeySpend]{
		byAccount: {Key: func(s *KeySpend) []byte { return state.TextKey(s.Account) }},
	},
}

// encode returns the record as JSON. It is written with every charge, so it does not use reflection.
func (s *KeySpend) encode() []byte {
	o := newJSONObject(192)
	o.text("key", s.Key)
	o.text("account", s.Account)
	o.number("requests", s.Requests)
	o.number("total", s.Total)
	o.number("of_day", s.OfDay)
	o.number("of_month", s.OfMonth)
	o.text("day", s.Day)
	return o.end()
}

// SpentByKey returns what a key has spent since its creation. The record of a key that has spent
// nothing is zero.
func SpentByKey(v state.View, key string) KeySpend {
	if r := spends.Get(v, key); r != nil {
		return r.Rec
	}
	return KeySpend{Key: key}
}

// SpentBy returns what a scope has spent. For a user it is the sum over the user's keys, so a new
// budget includes earlier spending.
func SpentBy(v state.View, scope budget.Scope) KeySpend { return (&tally{}).spentBy(v, scope) }
