package state_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"testing"
	"time"

	"stagedoor/state"
	"stagedoor/state/identity"
	"stagedoor/state/journal"
	"stagedoor/state/money"
	"stagedoor/state/schema"
	"stagedoor/state/work"
)

// million is a store of a million records as a gateway of some months has them:
// a third of them hot.
var million = []struct {
	table  journal.Table
	n      int
	record func(n int) (key string, value any)
}{
	{journal.User, 10_000, func(n int) (string, any) {
		return fmt.Sprintf(
				"%019d",
				n+1,
			), identity.User{
				ID:       int64(n + 1),
				Username: fmt.Sprint("user", n),
				Email:    fmt.Sprintf("user%d@example.com", n),
				Status:   identity.UserActive,
				Created:  start,
			}
	}},
	{journal.Key, 20_000, func(n int) (string, any) {
		id := fmt.Sprintf("key_%012x%036x", n, n*7919)
		return id, identity.Key{
			ID:      id,
			Prefix:  "abcdefgh",
			Hash:    hash(n),
			Name:    "key",
			User:    fmt.Sprint(n/2 + 1),
			Scopes:  []string{"chat", "responses"},
			Enabled: true,
			Created: start,
		}
	}},
	{journal.Balance, 10_000, func(n int) (string, any) {
		return fmt.Sprint(
				n + 1,
			), money.Account{
				ID:      fmt.Sprint(n + 1),
				Credits: 1e9,
				Spent:   1e6,
				Last:    uint64(n + 1),
				Changed: start,
			}
	}},
	{journal.Grant, 60_000, func(n int) (string, any) {
		id := fmt.Sprintf("grt_%012x%036x", n, n*7919)
		return id, identity.Grant{
			ID:          id,
			User:        int64(n%10_000 + 1),
			App:         1,
			Scopes:      []string{"profile", "balance"},
			RedirectURI: "https://app.example.com/callback",
			Family:      hash(n),
			Code: identity.Code{
				Hash:      hash(n + 1e6),
				Challenge: "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
				Expires:   start,
				Used:      start,
			},
			Refresh: identity.Refresh{
				Generation: 3,
				Hash:       hash(n + 2e6),
				Issued:     start,
			},
			AuthTime: start,
			Created:  start,
			Expires:  start.AddDate(0, 3, n%30),
		}
	}},
	{journal.Token, 100_000, func(n int) (string, any) {
		id := fmt.Sprintf("acc_%012x%036x", n, n*7919)
		return id, identity.AccessToken{
			ID:      id,
			Hash:    hash(n),
			Grant:   fmt.Sprintf("grt_%012x%036x", n%60_000, n%60_000*7919),
			Scopes:  []string{"profile", "balance"},
			Created: start,
			Expires: start.Add(time.Duration(n) * time.Second),
		}
	}},
	{journal.Response, 150_000, func(n int) (string, any) {
		id := fmt.Sprintf("resp_%012x%036x", n, n*7919)
		return id, work.ResponseHeader{
			ID:        id,
			Owner:     "user:17",
			Model:     "gpt-5",
			Provider:  "openai",
			Status:    "completed",
			BodySize:  600,
			InputSize: 300,
			Created:   start,
			Expires:   start.Add(time.Duration(n) * time.Minute),
		}
	}},
	{journal.Body, 300_000, func(n int) (string, any) {
		return fmt.Sprintf(
				"resp_%012x%036x/%s",
				n/2,
				n/2*7919,
				[]string{"body", "input"}[n%2],
			), map[string]string{
				"text": fmt.Sprintf("%0600d", n),
			}
	}},
	{journal.Ledger, 200_000, func(n int) (string, any) {
		return string(
				sequence(n + 1),
			), money.Entry{
				Account: fmt.Sprint(n%10_000 + 1),
				Kind:    money.Settle,
				Amount:  100,
				Held:    200,
				Request: fmt.Sprintf("req_%048x", n),
				Model:   "gpt-5",
				At:      start,
			}
	}},
	{journal.Receipt, 150_000, func(n int) (string, any) {
		request := fmt.Sprintf("req_%048x", n)
		return request + "\x00" + fmt.Sprint(
				n%10_000+1,
			) + "\x00" + string(sequence(n+1)), money.Receipt{
				Request: request,
				Account: fmt.Sprint(n%10_000 + 1),
				Hold:    uint64(n + 1),
				Model:   "gpt-5",
				Prices: []money.PriceRow{
					{What: "input", Quantity: 1000, Price: 1, Per: 1e6},
				},
				Charged: 100,
				Reason:  "completed",
				Began:   start,
				Ended:   start,
			}
	}},
}

func sequence(n int) []byte {
	return []byte{0, 0, 0, 0, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}
}

// BenchmarkOpenMillion is the start of the state with a million records on disk.
func BenchmarkOpenMillion(b *testing.B) {
	dir := b.TempDir()
	store := openMillion(b, dir)
	defer store.Close()
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	b.ReportAllocs()
	b.ResetTimer()
	var s *state.State
	for range b.N {
		if s != nil {
			b.StopTimer()
			s.Close()
			s = nil
			runtime.GC()
			b.StartTimer()
		}
		var err error
		if s, err = schema.Open(store, func() time.Time { return start }); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	b.ReportMetric(float64(heap()-before)/(1<<20), "MiB-live")
	s.Close()
}

func openMillion(b *testing.B, dir string) *journal.Bolt {
	b.Helper()
	store, err := journal.OpenBolt(dir, journal.Options{LowWater: -1})
	if err != nil {
		b.Fatal(err)
	}
	for _, part := range million {
		var ops []journal.Op
		for n := range part.n {
			key, value := part.record(n)
			ops = append(ops, journal.Op{Table: part.table, Key: []byte(key), Value: encoded(b, value)})
			if len(ops) == 50_000 || n == part.n-1 {
				if _, err := store.Commit(ctx, []journal.Batch{{Ops: ops}}); err != nil {
					b.Fatal(err)
				}
				ops = ops[:0]
			}
		}
	}
	b.Logf("file of %d MiB", store.Stats().Size>>20)
	return store
}

func encoded(b *testing.B, v any) []byte {
	b.Helper()
	value, err := json.Marshal(v)
	if err != nil {
		b.Fatal(err)
	}
	return value
}
