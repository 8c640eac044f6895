package money

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"stagedoor/state"
	"stagedoor/state/journal"
)

// UsageRow is usage and spending, summed over the fields that are empty. It includes every request
// that was sent to a provider, whether it has a price or not.
type UsageRow struct {
	Day     string `json:"day,omitempty"` // 2006-01-02, UTC: day on which the requests ended
	Account string `json:"account,omitempty"`
	Key     string `json:"key,omitempty"`   // id of the key
	Model   string `json:"model,omitempty"` // as the client requested it

	Requests     int64 `json:"requests"` // ended requests, charged or not
	InputTokens  int64 `json:"input_tokens"`
	CachedTokens int64 `json:"cached_input_tokens"` // of the input tokens
	OutputTokens int64 `json:"output_tokens"`
	Images       int64 `json:"images"`
	Seconds      int64 `json:"seconds"`
	Amount       int64 `json:"amount"` // charged, in micro-dollars
}

// Count adds the usage of a receipt.
func (u *UsageRow) Count(r *Receipt) {
	u.Add(&UsageRow{Requests: r.requests(), Amount: r.Charged, InputTokens: r.Usage.Input,
		CachedTokens: r.Usage.CacheRead, OutputTokens: r.Usage.Output, Images: r.Usage.Images,
		Seconds: r.Usage.Seconds})
}

// Add adds the numbers of another row.
func (u *UsageRow) Add(o *UsageRow) {
	u.Requests += o.Requests
	u.InputTokens += o.InputTokens
	u.CachedTokens += o.CachedTokens
	u.OutputTokens += o.OutputTokens
	u.Images += o.Images
	u.Seconds += o.Seconds
	u.Amount += o.Amount
}

// Per says by which fields the rows of a report are grouped.
type Per uint8

// The values of Per, which can be combined.
const (
	PerDay Per = 1 << iota
	PerAccount
	PerKey
	PerModel
)

// UsageQuery selects usage. An empty field selects all.
type UsageQuery struct {
	Account, Key, Model string
	// From and To are the first and the last day. The time of day is ignored. The range is at most
	// MaxUsageDays long.
	From, To time.Time
	Per      Per
}

const (
	// MaxUsageDays is the longest range of a query, in days.
	MaxUsageDays = 366
	// MaxUsageRows is the largest number of rows of a report. A longer one is ErrTooLarge.
	MaxUsageRows = 20_000
)

// QueryUsage returns the rows that q selects, by day, account, key and model. It reads from the
// durable store one record for each day, account, key and model, with one seek a day, so the report
// of one account costs no more if there are many others.
func QueryUsage(ctx context.Context, s *state.State, q UsageQuery) ([]UsageRow, error) {
	sums := map[UsageRow]*UsageRow{}
	if err := EachUsage(ctx, s, q, func(u *UsageRow) error { return q.sum(sums, u) }); err != nil {
		return nil, err
	}
	found := make([]UsageRow, 0, len(sums))
	for _, u := range sums {
		found = append(found, *u)
	}
	slices.SortFunc(found, func(a, b UsageRow) int {
		return cmp.Or(strings.Compare(a.Day, b.Day), strings.Compare(a.Account, b.Account),
			strings.Compare(a.Key, b.Key), strings.Compare(a.Model, b.Model))
	})
	return found, nil
}

// EachUsage calls yield with the records that q selects, one for each day, account, key and model, by day. It ignores
// q.Per. A report that sums them itself needs one pass for all its sums. yield must not call State, and its error ends
// the report.
func EachUsage(ctx context.Context, s *state.State, q UsageQuery, yield func(*UsageRow) error) error {
	days, err := q.days()
	if err != nil {
		return err
	}
	for _, day := range days {
		from, to := day+"\x00", day+"\x01"
		if q.Account != "" {
			from, to = from+q.Account+"\x00", from+q.Account+"\x01"
		}
		err := s.Range(ctx, journal.Usage, []byte(from), []byte(to), 0, func(rec journal.Record) error {
			// The key says whether the record is selected, so others need not be decoded.
			parts := strings.Split(string(rec.Key), "\x00")
			if len(parts) != 4 {
				return usageCorrupt(rec)
			}
			if (q.Key != "" && parts[2] != q.Key) || (q.Model != "" && parts[3] != q.Model) {
				return nil
			}
			var u UsageRow
			if json.Unmarshal(rec.Value, &u) != nil {
				return usageCorrupt(rec)
			}
			return yield(&u)
		})
		if err != nil {
			return fmt.Errorf("read usage: %w", err)
		}
	}
	return nil
}

// days returns the days of the query, both ends included. The error is state.ErrInvalid for a query that ends before it
// begins or has more than MaxUsageDays days.
func (q *UsageQuery) days() ([]string, error) {
	from, to := midnight(q.From), midnight(q.To)
	if to.Before(from) || to.Sub(from) > (MaxUsageDays-1)*24*time.Hour {
		return nil, fmt.Errorf("%w: usage from %s to %s", state.ErrInvalid, dayOf(from), dayOf(to))
	}
	var days []string
	for d := from; !d.After(to); d = d.AddDate(0, 0, 1) {
		days = append(days, dayOf(d))
	}
	return days, nil
}

// sum adds a record to the row it belongs to.
func (q *UsageQuery) sum(sums map[UsageRow]*UsageRow, u *UsageRow) error {
	name := UsageRow{}
	for _, f := range []struct {
		per  Per
		to   *string
		what string
	}{{PerDay, &name.Day, u.Day}, {PerAccount, &name.Account, u.Account}, {PerKey, &name.Key, u.Key},
		{PerModel, &name.Model, u.Model}} {
		if q.Per&f.per != 0 {
			*f.to = f.what
		}
	}
	row := sums[name]
	if row == nil {
		if len(sums) == MaxUsageRows {
			return fmt.Errorf("usage in more than %d rows: %w", MaxUsageRows, state.ErrTooLarge)
		}
		row = new(name)
		sums[name] = row
	}
	row.Add(u)
	return nil
}

// usageCorrupt returns the error for a record that cannot be read.
func usageCorrupt(rec journal.Record) error {
	return &journal.CorruptError{Table: journal.Usage, Key: slices.Clone(rec.Key), Reason: "is not a usage record"}
}

// usages holds the daily sums of requests, tokens and money of each account, key and model. The rows of the last two
// days are in memory. Older rows, after a month most of them, are only in the durable store.
var usages = state.Table[UsageRow]{
	Name:   journal.Usage,
	ID:     (*UsageRow).id,
	Encode: (*UsageRow).encode,
}

// id begins with the day, so that the rows of a time are next to each other.
func (u *UsageRow) id() string { return u.Day + "\x00" + u.Account + "\x00" + u.Key + "\x00" + u.Model }

// encode returns the record as JSON, without reflection, because one is written for each account, key and model a
// second.
func (u *UsageRow) encode() []byte {
	o := newJSONObject(256)
	o.text("day", u.Day)
	o.text("account", u.Account)
	o.text("key", u.Key)
	o.text("model", u.Model)
	o.number("requests", u.Requests)
	o.number("input_tokens", u.InputTokens)
	o.number("cached_input_tokens", u.CachedTokens)
	o.number("output_tokens", u.OutputTokens)
	o.number("images", u.Images)
	o.number("seconds", u.Seconds)
	o.number("amount", u.Amount)
	return o.end()
}

const (
	// maxUsageModels is the number of models that are counted separately for an account and day. A
	// glob in the catalogue may let a client request any number of names.
	maxUsageModels = 500
	// OtherModels is the name under which further models are counted.
	OtherModels  = "(other)"
	maxUsageName = 128
	// maxUnload is the number of old rows that are unloaded when a new row is added.
	maxUnload = 64
)

// usageName returns name without the characters that must not be part of a durable key, and
// shortened. Names come from outside.
func usageName(name string) string {
	name = strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f {
			return '?'
		}
		return c
	}, strings.ToValidUTF8(name, "?"))
	if len(name) <= maxUsageName {
		return name
	}
	cut := maxUsageName
	for !utf8.RuneStart(name[cut]) {
		cut--
	}
	return name[:cut]
}

// usageOf returns a copy of the record that u names, or u if there is none. Once the account has maxUsageModels rows of
// the day, a further model is counted under OtherModels, and the record of that is returned. A new row also takes rows
// that have become cold out of memory.
func usageOf(tx *state.Tx, u UsageRow) *UsageRow {
	if r := usages.Get(tx.View(), u.id()); r != nil {
		u = r.Rec
		return &u
	}
	if manyUsages(tx.View(), u.Day+"\x00"+u.Account+"\x00", maxUsageModels) && u.Model != OtherModels {
		u.Model = OtherModels
		return usageOf(tx, u)
	}
	unloadUsage(tx, coldBefore(tx.Now()))
	return &u
}

// manyUsages reports whether at least n rows have ids that begin with prefix.
func manyUsages(v state.View, prefix string, n int) bool {
	usages.From(v, state.ByID, []byte(prefix), func(r *state.Row[UsageRow]) bool {
		if strings.HasPrefix(r.Rec.id(), prefix) {
			n--
		} else {
			return false
		}
		return n > 0
	})
	return n <= 0
}

// unloadUsage removes some rows of days before a day from memory. They stay in the durable store.
func unloadUsage(tx *state.Tx, before string) {
	var old []*state.Row[UsageRow]
	usages.From(tx.View(), state.ByID, nil, func(r *state.Row[UsageRow]) bool {
		if r.Rec.Day >= before {
			return false
		}
		old = append(old, r)
		return len(old) < maxUnload
	})
	for _, r := range old {
		usages.Unload(tx, r)
	}
}

// coldBefore returns the first day whose rows are kept in memory.
func coldBefore(now time.Time) string { return dayOf(now.AddDate(0, 0, -1)) }

// dayOf returns the day in UTC. All nodes must agree on it, whatever their time zones.
func dayOf(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// midnight returns the beginning of the day in UTC, in which days of usage are counted.
func midnight(t time.Time) time.Time {
	y, m, d := t.UTC().Date()
	return time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
}
