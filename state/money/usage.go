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

// UsageRow is what was used and spent, summed up over what its empty fields
// would tell apart. Every request that a provider was asked for is in it, priced or not.
type UsageRow struct {
	Day     string `json:"day,omitempty"` // 2006-01-02, UTC: when they ended
	Account string `json:"account,omitempty"`
	Key     string `json:"key,omitempty"`   // its id
	Model   string `json:"model,omitempty"` // as it was asked for

	Requests     int64 `json:"requests"` // that ended, charged or not
	InputTokens  int64 `json:"input_tokens"`
	CachedTokens int64 `json:"cached_input_tokens"` // of the input tokens
	OutputTokens int64 `json:"output_tokens"`
	Images       int64 `json:"images"`
	Seconds      int64 `json:"seconds"`
	Amount       int64 `json:"amount"` // charged, in micro-dollars
}

// Count adds a receipt.
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

// Per says what the rows of an answer tell apart.
type Per uint8

// The distinctions; they can be combined.
const (
	PerDay Per = 1 << iota
	PerAccount
	PerKey
	PerModel
)

// UsageQuery asks for usage. Empty fields do not restrict.
type UsageQuery struct {
	Account, Key, Model string
	// From and To are the first and the last day; the time of day does not
	// matter. At most MaxUsageDays.
	From, To time.Time
	Per      Per
}

const (
	// MaxUsageDays is how many days one query may be about.
	MaxUsageDays = 366
	// MaxUsageRows is how many rows an answer may have: ErrTooLarge beyond it.
	MaxUsageRows = 20_000
)

// QueryUsage answers q in the order of day, account, key and model. It reads a record
// for each day, account, key and model that it is about, from the durable store
// and at one seek a day, so that the usage of one account costs no more for there
// being others.
func QueryUsage(ctx context.Context, s *state.State, q UsageQuery) ([]UsageRow, error) {
	days, err := q.days()
	if err != nil {
		return nil, err
	}
	sums := map[UsageRow]*UsageRow{}
	for _, day := range days {
		from := day + "\x00"
		to := day + "\x01"
		if q.Account != "" {
			from, to = from+q.Account+"\x00", from+q.Account+"\x01"
		}
		err := s.Range(ctx, journal.Usage, []byte(from), []byte(to), 0, func(rec journal.Record) error {
			return q.sum(sums, rec)
		})
		if err != nil {
			return nil, fmt.Errorf("read usage: %w", err)
		}
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

// sum adds a record to the row that it belongs to.
func (q *UsageQuery) sum(sums map[UsageRow]*UsageRow, rec journal.Record) error {
	// The key is enough to know whether the record is wanted.
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
	name := UsageRow{}
	for _, f := range []struct {
		per  Per
		to   *string
		what string
	}{{PerDay, &name.Day, u.Day}, {PerAccount, &name.Account, u.Account}, {PerKey, &name.Key, u.Key}, {PerModel, &name.Model, u.Model}} {
		if q.Per&f.per != 0 {
			*f.to = f.what
		}
	}
	row := sums[name]
	if row == nil {
		if len(sums) == MaxUsageRows {
			return fmt.Errorf("usage in more than %d rows: %w", MaxUsageRows, state.ErrTooLarge)
		}
		fresh := name
		row = &fresh
		sums[name] = row
	}
	row.Add(&u)
	return nil
}

func usageCorrupt(rec journal.Record) error {
	return &journal.CorruptError{Table: journal.Usage, Key: slices.Clone(rec.Key), Reason: "is not a usage record"}
}

// usages are the records of the last two days; older ones are cold and in the
// durable store only, where they are most of what there is after a month.
var usages = state.Table[UsageRow]{
	Name:   journal.Usage,
	ID:     (*UsageRow).id,
	Encode: (*UsageRow).encode,
}

func (u *UsageRow) id() string { return u.Day + "\x00" + u.Account + "\x00" + u.Key + "\x00" + u.Model }

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
	// maxUsageModels bounds the records of an account's day: a glob in the
	// catalogue may let a client ask for names without end.
	maxUsageModels = 500
	// OtherModels is the name of the models beyond that.
	OtherModels  = "(other)"
	maxUsageName = 128
	// maxCool is how many old rows a new one pushes out.
	maxCool = 64
)

// usageName keeps a name that others chose to what may be part of a durable key.
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

// usageOf returns a copy of the record that u names, or u if there is none. The memory has all records of today and
// yesterday, and the state's time does not go back, so a record that is not there was never made.
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

// manyUsages reports whether n rows or more have ids that begin with prefix.
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

// unloadUsage takes rows of days before out of memory, a few at a time; they stay in
// the durable store.
func unloadUsage(tx *state.Tx, before string) {
	var old []*state.Row[UsageRow]
	usages.From(tx.View(), state.ByID, nil, func(r *state.Row[UsageRow]) bool {
		if r.Rec.Day >= before {
			return false
		}
		old = append(old, r)
		return len(old) < maxCool
	})
	for _, r := range old {
		usages.Unload(tx, r)
	}
}

// coldBefore is the first day whose rows are kept in memory.
func coldBefore(now time.Time) string { return dayOf(now.AddDate(0, 0, -1)) }

func dayOf(t time.Time) string { return t.UTC().Format(time.DateOnly) }

func midnight(t time.Time) time.Time {
	y, m, d := t.UTC().Date()
	return time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
}
