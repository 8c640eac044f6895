package money

import (
	"time"

	"stagedoor/state"
	"stagedoor/state/budget"
	"stagedoor/state/journal"
)

// KeySpend is what a key or another scope has spent, in micro-dollars: settled, not
// held. Days and months are of UTC. It outlives the key.
type KeySpend struct {
	Key      string `json:"key"`                // Scope.Name
	Account  string `json:"account,omitempty"`  // of a key
	Requests int64  `json:"requests,omitempty"` // that ended, charged or not
	Total    int64  `json:"total,omitempty"`
	// OfDay was spent on Day and OfMonth in Day's month; see In.
	OfDay   int64  `json:"of_day,omitempty"`
	OfMonth int64  `json:"of_month,omitempty"`
	Day     string `json:"day,omitempty"` // 2006-01-02
}

// In returns what was spent in the window that now is in.
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

// add counts a request that ended today. A clock that went back does not open an older window
// again: what is spent then belongs to the newest one.
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

// join adds what another key has spent. A sum of an older day or month does not count for the newer one.
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

func (s *KeySpend) month() string {
	if s.Day == "" {
		return ""
	}
	return s.Day[:len("2006-01")]
}

var spends = state.Table[KeySpend]{
	Name:   journal.Spend,
	ID:     func(s *KeySpend) string { return s.Key },
	Encode: (*KeySpend).encode,
	Indexes: map[string]state.Index[KeySpend]{
		byAccount: {Key: func(s *KeySpend) []byte { return state.TextKey(s.Account) }},
	},
}

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

// SpentByKey returns what a key has spent since it was made. A key that has spent nothing has a zero record.
func SpentByKey(v state.View, key string) KeySpend {
	if r := spends.Get(v, key); r != nil {
		return r.Rec
	}
	return KeySpend{Key: key}
}

// SpentByKeysOf lists what the keys of an account have spent since they were made. Keys that never spent anything are
// left out.
func SpentByKeysOf(v state.View, account string) []KeySpend {
	return spends.List(v, byAccount, state.TextKey(account))
}

// SpentBy returns what a scope has spent. For a user it is the sum of what the user's keys have spent, so a budget
// counts what was spent before it was set, too.
func SpentBy(v state.View, scope budget.Scope) KeySpend {
	if scope.Kind != budget.UserScope {
		return SpentByKey(v, scope.Name())
	}
	sum := KeySpend{Key: scope.Name()}
	for _, s := range SpentByKeysOf(v, scope.ID) {
		sum.join(&s)
	}
	return sum
}
