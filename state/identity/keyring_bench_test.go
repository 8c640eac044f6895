package identity_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"testing"

	"stagedoor/state/journal"
)

// BenchmarkBytesPerKey prints the memory that a key takes in a state that has been opened: keys without a user, and
// keys of users with ten keys each.
func BenchmarkBytesPerKey(b *testing.B) {
	const n = 100_000
	for _, bench := range []struct {
		name string
		user func(i int) string
	}{
		{"no user", func(int) string { return "" }},
		{"ten per user", func(i int) string { return fmt.Sprint("user", i/10) }},
	} {
		b.Run(bench.name, func(b *testing.B) {
			for range b.N {
				b.ReportMetric(float64(bytesOfKeys(b, n, bench.user))/n, "B/key")
			}
		})
	}
}

// bytesOfKeys returns by how much the heap grows when a state with n keys is opened.
func bytesOfKeys(t testing.TB, n int, user func(i int) string) int64 {
	t.Helper()
	store, err := journal.OpenBolt(t.TempDir(), journal.Options{LowWater: -1})
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < n; i += 1000 {
		var batch journal.Batch
		for k := i; k < i+1000; k++ {
			key := newKey(t, k)
			key.User, key.Scopes = user(k), []string{"chat", "responses"}
			value, err := json.Marshal(key)
			if err != nil {
				t.Fatal(err)
			}
			batch.Ops = append(batch.Ops, journal.Op{Table: journal.Key, Key: []byte(key.ID), Value: value})
		}
		if _, err := store.Commit(ctx, []journal.Batch{batch}); err != nil {
			t.Fatal(err)
		}
	}
	before := heap()
	s := open(t, store, newClock().Now)
	grown := heap() - before
	s.Close()
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	return grown
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
