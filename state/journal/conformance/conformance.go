// Package conformance is the one suite that every journal.Store passes. A new
// store calls Run from its test and is done when that is green. What only one
// kind of store can do (a lock on a file, a damaged page) is tested beside it.
//
// # Usage
//
// A test of a store calls Run with a function that makes an empty store, and RunShared as well if several processes may
// write the store. Each test of the suite opens a store of its own, so that one failure does not cause others, and the
// name of a subtest is the sentence of the contract that it holds the store to.
//
// # What is tested
//
//   - A commit has all of its effects or none, whichever of its batches fails. The writer of package state decides
//     commands again after a conflict, and it could not if a part of them had been applied.
//   - Revisions and positions count exactly what the contract says, because conditions compare them and nodes find by
//     them how far behind they are.
//   - Bytes are copied in both directions, because callers use their buffers again.
//   - A shared store refuses what was decided on an older state, and never lets two nodes under one name write.
//
// Random batches are compared with a map, which finds what no list of cases has. Power cuts and damaged files are not
// part of the suite: they differ for each kind of store (see powerloss_linux_test.go and package postgres).
package conformance

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"stagedoor/state/journal"
)

// Store makes the stores under test.
// New is called for every test, so that no test depends on what another one has written.
type Store struct {
	// New returns an empty store. The suite closes it.
	New func(testing.TB) journal.Store
	// Restore returns a store made of what Backup wrote. It is nil for a store that makes no backups.
	Restore func(testing.TB, io.Reader) journal.Store
}

// Run runs the suite.
func Run(t *testing.T, s Store) {
	for _, c := range []struct {
		name string
		test func(*testing.T, Store)
	}{
		{"records are kept and numbered", testRecords},
		{"every kind of value comes back", testKindsOfValues},
		{"what is not there is not found", testMissingRecords},
		{"a new record is the first of its key", testNewIsNoCondition},
		{"conditions decide", testConditions},
		{"a conflict leaves no trace", testConflict},
		{"later batches see earlier ones", testLaterBatchesSeeEarlier},
		{"prefixes are removed", testDeletePrefix},
		{"a table is emptied and filled in one commit", testRefilledTable},
		{"ranges are ordered and bounded", testRanges},
		{"load returns everything once", testLoad},
		{"mistakes are refused", testInvalidOperations},
		{"nothing is shared with callers", testCopiesOfBytes},
		{"concurrent writers lose nothing", testConcurrentWriters},
		{backupTest, testBackup},
		{"an export is the records", testExport},
		{"half an export is refused", testDamagedExports},
		{"a finished context stops", testCancelledContext},
		{"a closed store refuses", testClosedStore},
		{"it behaves like a map", testAgainstMap},
	} {
		if s.Restore != nil || c.name != backupTest {
			t.Run(c.name, func(t *testing.T) { c.test(t, s) })
		}
	}
}

const backupTest = "a backup is the store"

var ctx = context.Background()

// open returns an empty store, which is closed when the test ends.
func open(t testing.TB, s Store) journal.Store {
	t.Helper()
	store := s.New(t)
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return store
}

// put returns an operation that writes a record.
func put(table journal.Table, key, value string) journal.Op {
	return journal.Op{Kind: journal.Put, Table: table, Key: []byte(key), Value: []byte(value)}
}

// del returns an operation that removes a record.
func del(table journal.Table, key string) journal.Op {
	return journal.Op{Kind: journal.Delete, Table: table, Key: []byte(key)}
}

// cond returns the condition that a record has a revision, or that there is no such record if rev is 0.
func cond(table journal.Table, key string, rev uint64) journal.Cond {
	return journal.Cond{Table: table, Key: []byte(key), Rev: rev}
}

// commit writes operations as one batch without conditions and returns its number. The test ends if the store
// refuses it.
func commit(t testing.TB, s journal.Store, ops ...journal.Op) journal.LSN {
	t.Helper()
	lsn, err := s.Commit(ctx, []journal.Batch{{Ops: ops}})
	if err != nil {
		t.Fatalf("Commit: %v", err)
	}
	return lsn
}

// expect checks the value and the revision of one record, or that there is no such record if rev is 0.
func expect(t testing.TB, s journal.Store, table journal.Table, key, value string, rev uint64) {
	t.Helper()
	rec, err := s.Get(ctx, table, []byte(key))
	if rev == 0 {
		if !errors.Is(err, journal.ErrNotFound) {
			t.Fatalf("Get %s/%s: got %q, %v, want ErrNotFound", table, key, rec.Value, err)
		}
		return
	}
	if err != nil || string(rec.Key) != key || string(rec.Value) != value || rec.Rev != rev {
		t.Fatalf("Get %s/%s: got %q rev %d, %v; want %q rev %d", table, key, rec.Value, rec.Rev, err, value, rev)
	}
}

// testRecords writes, overwrites and removes records. Revisions count the writes of a record since it was last
// absent, and the LSN counts commits that changed something.
func testRecords(t *testing.T, s Store) {
	store := open(t, s)
	first := commit(t, store, put(journal.Key, "a", "1"), put(journal.User, "a", "other table"))
	expect(t, store, journal.Key, "a", "1", 1)
	expect(t, store, journal.User, "a", "other table", 1)
	second := commit(t, store, put(journal.Key, "a", "2"), put(journal.Key, "a", "3"))
	expect(t, store, journal.Key, "a", "3", 3)
	commit(t, store, del(journal.Key, "a"), del(journal.Key, "never was"))
	expect(t, store, journal.Key, "a", "", 0)
	fourth := commit(t, store, put(journal.Key, "a", "again"))
	expect(t, store, journal.Key, "a", "again", 1)
	if first != 1 || second != 2 || fourth != 4 {
		t.Errorf("LSNs: got %d, %d, %d, want 1, 2, 4", first, second, fourth)
	}
	if lsn := commit(t, store); lsn != 4 {
		t.Errorf("a commit of nothing: got LSN %d, want 4", lsn)
	}
	if st := store.Stats(); st.LSN != 4 || st.Commits != 4 || st.Poisoned != nil || st.Size <= 0 {
		t.Errorf("Stats: got %+v", st)
	}
}

// testKindsOfValues stores values that a store might confuse with something else: an empty one, one with zero bytes,
// and one of a mebibyte, which a store may have to keep elsewhere.
func testKindsOfValues(t *testing.T, s Store) {
	store := open(t, s)
	for i, v := range []string{"", "\x00", "text", string(make([]byte, 5000)), string(bytes.Repeat([]byte{0xff}, 1<<20))} {
		key := fmt.Sprintf("k\x00%d\xff", i)
		commit(t, store, put(journal.Body, key, v))
		expect(t, store, journal.Body, key, v, 1)
	}
}

// testMissingRecords reads keys that are beginnings or continuations of the one that exists. A store that
// searches by prefix would find them.
func testMissingRecords(t *testing.T, s Store) {
	store := open(t, s)
	commit(t, store, put(journal.Key, "ab", "1"))
	for _, key := range []string{"a", "abc", "b"} {
		expect(t, store, journal.Key, key, "", 0)
	}
	expect(t, store, journal.User, "ab", "", 0)
}

// testNewIsNoCondition is about Op.New: the caller promises a new record, and the store does not check it.
// A store may use the promise to write faster. One that checked it would refuse commits that others
// accept.
func testNewIsNoCondition(t *testing.T, s Store) {
	store := open(t, s)
	op := put(journal.Ledger, "a", "1")
	op.New = true
	commit(t, store, op)
	expect(t, store, journal.Ledger, "a", "1", 1)
	commit(t, store, put(journal.Ledger, "a", "2"))
	expect(t, store, journal.Ledger, "a", "2", 2)
	commit(t, store, del(journal.Ledger, "a"), op, put(journal.Ledger, "a", "3"))
	expect(t, store, journal.Ledger, "a", "3", 2)
	_, err := store.Commit(ctx, []journal.Batch{{Pre: []journal.Cond{cond(journal.Ledger, "a", 0)}, Ops: []journal.Op{op}}})
	if !errors.Is(err, journal.ErrConflict) {
		t.Errorf("with a condition that does not hold: %v", err)
	}
}

// testConditions commits a batch under each kind of condition. A condition that fails must change nothing.
func testConditions(t *testing.T, s Store) {
	for _, c := range []struct {
		name string
		rev  uint64
		key  string
		ok   bool
	}{
		{"absent and is", 0, "none", true},
		{"absent and is not", 0, "twice", false},
		{"the revision", 2, "twice", true},
		{"an old revision", 1, "twice", false},
		{"a revision of nothing", 1, "none", false},
		{"deleted", 1, "deleted", false},
		{"deleted, wanted absent", 0, "deleted", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			store := open(t, s)
			commit(t, store, put(journal.Key, "twice", "1"), put(journal.Key, "deleted", "1"))
			commit(t, store, put(journal.Key, "twice", "2"), del(journal.Key, "deleted"))
			_, err := store.Commit(ctx, []journal.Batch{{
				Pre: []journal.Cond{cond(journal.Key, c.key, c.rev)},
				Ops: []journal.Op{put(journal.Key, "written", "yes")},
			}})
			if got := err == nil; got != c.ok || (err != nil && !errors.Is(err, journal.ErrConflict)) {
				t.Fatalf("got %v, want ok %v", err, c.ok)
			}
			rev := uint64(0)
			if c.ok {
				rev = 1
			}
			expect(t, store, journal.Key, "written", "yes", rev)
		})
	}
}

// testConflict commits several batches of which one has a condition that fails. None of them may be applied, and the
// error names the batch, so that the writer can decide that one again.
func testConflict(t *testing.T, s Store) {
	store := open(t, s)
	commit(t, store, put(journal.Key, "kept", "1"))
	_, err := store.Commit(ctx, []journal.Batch{
		{Ops: []journal.Op{put(journal.Key, "before", "1"), del(journal.Key, "kept")}},
		{Pre: []journal.Cond{cond(journal.Key, "kept", 7)}, Ops: []journal.Op{put(journal.Key, "own", "1")}},
		{Ops: []journal.Op{put(journal.Key, "after", "1")}},
	})
	var ce *journal.ConflictError
	if !errors.As(err, &ce) || ce.Batch != 1 || ce.Have != 0 || string(ce.Cond.Key) != "kept" {
		t.Fatalf("got %#v, want a conflict in batch 1 on kept", err)
	}
	expect(t, store, journal.Key, "kept", "1", 1)
	for _, key := range []string{"before", "own", "after"} {
		expect(t, store, journal.Key, key, "", 0)
	}
	if lsn := commit(t, store, put(journal.Key, "x", "1")); lsn != 2 {
		t.Errorf("LSN after a conflict: got %d, want 2", lsn)
	}
}

// testLaterBatchesSeeEarlier checks conditions on records that earlier batches of the same commit have written.
func testLaterBatchesSeeEarlier(t *testing.T, s Store) {
	store := open(t, s)
	_, err := store.Commit(ctx, []journal.Batch{
		{Pre: []journal.Cond{cond(journal.Key, "k", 0)}, Ops: []journal.Op{put(journal.Key, "k", "1")}},
		{Pre: []journal.Cond{cond(journal.Key, "k", 1)}, Ops: []journal.Op{put(journal.Key, "k", "2"), del(journal.Key, "k"), put(journal.Key, "k", "3")}},
		{Pre: []journal.Cond{cond(journal.Key, "k", 1)}, Ops: []journal.Op{put(journal.Key, "k", "4")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	expect(t, store, journal.Key, "k", "4", 2)
}

// testRefilledTable fills many pages of a table, and one commit empties them all and writes other records.
// The tables are those whose keys ascend, for which stores have faster ways to write, which must
// give the same records.
func testRefilledTable(t *testing.T, s Store) {
	for _, table := range []journal.Table{journal.Hold, journal.Ledger, journal.Receipt} {
		store := open(t, s)
		key := func(i int) string { return fmt.Sprintf("%08d", i) }
		var fill, swap []journal.Op
		for i := 1; i <= 500; i++ {
			fill = append(fill, put(table, key(i), string(make([]byte, 100))))
			swap = append(swap, del(table, key(i)))
		}
		commit(t, store, fill...)
		swap = append(swap, put(table, key(900), "behind"), put(table, key(900), "again"), put(table, key(0), "before"), put(table, key(500), "the last"))
		commit(t, store, swap...)
		commit(t, store, put(table, key(900), "later"), put(table, key(901), "appended"))
		expect(t, store, table, key(900), "later", 3)
		expect(t, store, table, key(901), "appended", 1)
		expect(t, store, table, key(0), "before", 1)
		expect(t, store, table, key(500), "the last", 1)
		expect(t, store, table, key(499), "", 0)
	}
}

// testDeletePrefix removes a range that takes several pages of a store, and writes into the range in the same
// commit. The neighbours of the range, b and c, must stay, and so must the record of another table.
func testDeletePrefix(t *testing.T, s Store) {
	store := open(t, s)
	var ops []journal.Op
	for i := range 2000 { // several pages
		ops = append(ops, put(journal.Event, fmt.Sprintf("b/%04d", i), "event"))
	}
	ops = append(ops, put(journal.Event, "a", "1"), put(journal.Event, "b", "2"), put(journal.Event, "c", "3"), put(journal.Body, "b/1", "4"))
	commit(t, store, ops...)
	commit(t, store, journal.Op{Kind: journal.DeletePrefix, Table: journal.Event, Key: []byte("b/")}, put(journal.Event, "b/new", "5"))
	if got, want := keys(t, store, journal.Event, nil, nil, 0), []string{"a", "b", "b/new", "c"}; !slices.Equal(got, want) {
		t.Errorf("left: got %q, want %q", got, want)
	}
	expect(t, store, journal.Body, "b/1", "4", 1)
}

// keys returns the keys that Range gives for the same arguments.
func keys(t testing.TB, s journal.Store, table journal.Table, from, to []byte, limit int) []string {
	t.Helper()
	var got []string
	err := s.Range(ctx, table, from, to, limit, func(r journal.Record) error {
		got = append(got, string(r.Key))
		return nil
	})
	if err != nil {
		t.Fatalf("Range: %v", err)
	}
	return got
}

// testRanges reads ranges with all kinds of bounds and limits, also those that are empty.
func testRanges(t *testing.T, s Store) {
	store := open(t, s)
	commit(t, store, put(journal.Ledger, "b", "2"), put(journal.Ledger, "d", "4"), put(journal.Ledger, "a", "1"), put(journal.Ledger, "c", "3"))
	for _, c := range []struct {
		from, to string
		limit    int
		want     string
	}{
		{"", "", 0, "abcd"}, {"b", "", 0, "bcd"}, {"", "c", 0, "ab"}, {"b", "d", 0, "bc"}, {"aa", "cc", 0, "bc"},
		{"", "", 2, "ab"}, {"b", "", 1, "b"}, {"x", "", 0, ""}, {"c", "b", 0, ""}, {"b", "b", 0, ""}, {"", "", 9, "abcd"},
	} {
		from, to := []byte(c.from), []byte(c.to)
		if c.to == "" {
			to = nil
		}
		var got string
		for _, k := range keys(t, store, journal.Ledger, from, to, c.limit) {
			got += k
		}
		if got != c.want {
			t.Errorf("Range %q to %q limit %d: got %q, want %q", c.from, c.to, c.limit, got, c.want)
		}
	}
	stop, n := errors.New("enough"), 0
	err := store.Range(ctx, journal.Ledger, nil, nil, 0, func(journal.Record) error { n++; return stop })
	if !errors.Is(err, stop) || n != 1 {
		t.Errorf("an error of fn: got %v after %d", err, n)
	}
	if err := store.Range(ctx, "no such table", nil, nil, 0, nil); !errors.Is(err, journal.ErrInvalid) {
		t.Errorf("Range of an unknown table: got %v, want ErrInvalid", err)
	}
}

// testLoad reads whole tables in the order in which they were asked for, each by its keys.
func testLoad(t *testing.T, s Store) {
	store := open(t, s)
	for i := range 3 {
		commit(t, store, put(journal.Key, fmt.Sprint("k", i), "v"), put(journal.User, fmt.Sprint("u", i), "w"), put(journal.Body, "cold", "x"))
	}
	var got []string
	lsn, err := store.Load(ctx, []journal.Table{journal.User, journal.Key, journal.Job}, func(table journal.Table, r journal.Record) error {
		got = append(got, fmt.Sprintf("%s/%s=%s@%d", table, r.Key, r.Value, r.Rev))
		return nil
	})
	want := []string{"user/u0=w@1", "user/u1=w@1", "user/u2=w@1", "key/k0=v@1", "key/k1=v@1", "key/k2=v@1"}
	if err != nil || lsn != 3 || !slices.Equal(got, want) {
		t.Errorf("Load: got %q at %d, %v; want %q at 3", got, lsn, err, want)
	}
	stop := errors.New("enough")
	if _, err := store.Load(ctx, []journal.Table{journal.Key}, func(journal.Table, journal.Record) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("an error of fn: got %v", err)
	}
	if _, err := store.Load(ctx, []journal.Table{"no such table"}, nil); !errors.Is(err, journal.ErrInvalid) {
		t.Errorf("Load of an unknown table: got %v, want ErrInvalid", err)
	}
}

// testInvalidOperations refuses operations that no store can do, with everything that was committed beside them.
func testInvalidOperations(t *testing.T, s Store) {
	store := open(t, s)
	long := string(make([]byte, journal.MaxKey+1))
	for name, b := range map[string]journal.Batch{
		"unknown table":     {Ops: []journal.Op{put("nowhere", "k", "v")}},
		"no key":            {Ops: []journal.Op{put(journal.Key, "", "v")}},
		"long key":          {Ops: []journal.Op{put(journal.Key, long, "v")}},
		"no prefix":         {Ops: []journal.Op{{Kind: journal.DeletePrefix, Table: journal.Key}}},
		"unknown kind":      {Ops: []journal.Op{{Kind: 9, Table: journal.Key, Key: []byte("k")}}},
		"condition, table":  {Pre: []journal.Cond{cond("nowhere", "k", 0)}},
		"condition, no key": {Pre: []journal.Cond{cond(journal.Key, "", 0)}},
	} {
		good := journal.Batch{Ops: []journal.Op{put(journal.Key, "good", "v")}}
		if _, err := store.Commit(ctx, []journal.Batch{good, b}); !errors.Is(err, journal.ErrInvalid) {
			t.Errorf("%s: got %v, want ErrInvalid", name, err)
		}
		expect(t, store, journal.Key, "good", "", 0)
	}
	if _, err := store.Get(ctx, "nowhere", []byte("k")); !errors.Is(err, journal.ErrInvalid) {
		t.Errorf("Get from an unknown table: got %v, want ErrInvalid", err)
	}
	commit(t, store, put(journal.Key, string(make([]byte, journal.MaxKey)), "the longest key"))
}

// testCopiesOfBytes changes bytes after they were handed over. The store must have copied them on both sides, because
// its callers use buffers again.
// A store that keeps the slices of its callers passes every other test and loses data in the
// gateway.
func testCopiesOfBytes(t *testing.T, s Store) {
	store := open(t, s)
	key, value := []byte("key"), []byte("value")
	if _, err := store.Commit(ctx, []journal.Batch{{Ops: []journal.Op{{Table: journal.Key, Key: key, Value: value}}}}); err != nil {
		t.Fatal(err)
	}
	key[0], value[0] = 'X', 'X'
	rec, err := store.Get(ctx, journal.Key, []byte("key"))
	if err != nil {
		t.Fatal(err)
	}
	rec.Value[0], rec.Key[0] = 'Y', 'Y'
	expect(t, store, journal.Key, "key", "value", 1)
}

// testConcurrentWriters counts with compare and set. Every successful commit must be counted once.
// It finds a store that checks a condition before it has the lock under which it writes.
func testConcurrentWriters(t *testing.T, s Store) {
	store := open(t, s)
	const writers, each = 8, 20
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				own := put(journal.Ledger, fmt.Sprintf("%d-%d", w, i), "x")
				for increment(t, store, own) {
				}
			}
		})
	}
	wg.Wait()
	rec, err := store.Get(ctx, journal.Meta, []byte("counter"))
	if err != nil || binary.BigEndian.Uint64(rec.Value) != writers*each || rec.Rev != writers*each {
		t.Errorf("counter: got %x rev %d, %v, want %d", rec.Value, rec.Rev, err, writers*each)
	}
	if n := len(keys(t, store, journal.Ledger, nil, nil, 0)); n != writers*each {
		t.Errorf("records: got %d, want %d", n, writers*each)
	}
}

// increment adds 1 to the counter if it has not changed since it was read, and runs own in the same commit. It reports
// whether another writer was faster, so that the caller tries again.
func increment(t *testing.T, store journal.Store, own journal.Op) (again bool) {
	rec, err := store.Get(ctx, journal.Meta, []byte("counter"))
	n := uint64(0)
	if err == nil {
		n = binary.BigEndian.Uint64(rec.Value)
	}
	_, err = store.Commit(ctx, []journal.Batch{{
		Pre: []journal.Cond{cond(journal.Meta, "counter", rec.Rev)},
		Ops: []journal.Op{put(journal.Meta, "counter", string(binary.BigEndian.AppendUint64(nil, n+1))), own},
	}})
	if err != nil && !errors.Is(err, journal.ErrConflict) {
		t.Errorf("Commit: %v", err)
		return false
	}
	return err != nil
}

// testBackup restores a backup that was made while the store went on.
func testBackup(t *testing.T, s Store) {
	store := open(t, s)
	commit(t, store, put(journal.Key, "a", "1"), put(journal.Body, "\x00\xff", ""))
	commit(t, store, put(journal.Key, "a", "2"))
	var copied bytes.Buffer
	if err := store.Backup(ctx, &copied); err != nil {
		t.Fatal(err)
	}
	commit(t, store, put(journal.Key, "a", "later"))
	restored := s.Restore(t, &copied)
	defer restored.Close()
	expect(t, restored, journal.Key, "a", "2", 2)
	expect(t, restored, journal.Body, "\x00\xff", "", 1)
	if lsn := commit(t, restored, put(journal.Key, "b", "1")); lsn != 3 {
		t.Errorf("LSN after restoring: got %d, want 3", lsn)
	}
}

// testCancelledContext calls every method with a context that has ended.
func testCancelledContext(t *testing.T, s Store) {
	store := open(t, s)
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	_, commitErr := store.Commit(ctx, []journal.Batch{{Ops: []journal.Op{put(journal.Key, "k", "v")}}})
	_, getErr := store.Get(ctx, journal.Key, []byte("k"))
	rangeErr := store.Range(ctx, journal.Key, nil, nil, 0, nil)
	_, loadErr := store.Load(ctx, journal.Tables(), nil)
	for _, err := range []error{commitErr, getErr, rangeErr, loadErr, store.Backup(ctx, io.Discard)} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want context.Canceled", err)
		}
	}
	expect(t, store, journal.Key, "k", "", 0)
}

// testClosedStore calls every method of a closed store. Only Stats still works, because it is read during the stop.
func testClosedStore(t *testing.T, s Store) {
	store := open(t, s)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	_, commitErr := store.Commit(ctx, []journal.Batch{{Ops: []journal.Op{put(journal.Key, "k", "v")}}})
	_, getErr := store.Get(ctx, journal.Key, []byte("k"))
	rangeErr := store.Range(ctx, journal.Key, nil, nil, 0, nil)
	_, loadErr := store.Load(ctx, journal.Tables(), nil)
	for _, err := range []error{commitErr, getErr, rangeErr, loadErr, store.Backup(ctx, io.Discard)} {
		if !errors.Is(err, journal.ErrClosed) {
			t.Errorf("got %v, want ErrClosed", err)
		}
	}
	store.Stats()
}

// cell is a record in the map of testAgainstMap.
type cell struct {
	value string
	rev   uint64
}

// testAgainstMap compares the store with a map under random batches.
func testAgainstMap(t *testing.T, s Store) {
	rapid.Check(t, func(rt *rapid.T) {
		store := s.New(t)
		defer store.Close()
		want := map[string]cell{}
		rt.Repeat(map[string]func(*rapid.T){
			"commit": func(rt *rapid.T) {
				after, batches, ok := maps.Clone(want), []journal.Batch(nil), true
				for range rapid.IntRange(1, 3).Draw(rt, "batches") {
					b, met := drawBatch(rt, after)
					batches, ok = append(batches, b), ok && met
				}
				_, err := store.Commit(ctx, batches)
				if (err == nil) != ok {
					rt.Fatalf("Commit: got %v, want ok %v", err, ok)
				}
				if ok {
					want = after
				}
			},
			"": func(rt *rapid.T) {
				got := map[string]cell{}
				_ = store.Range(ctx, journal.Key, nil, nil, 0, func(r journal.Record) error {
					got[string(r.Key)] = cell{string(r.Value), r.Rev}
					return nil
				})
				if fmt.Sprint(got) != fmt.Sprint(want) {
					rt.Fatalf("got %v, want %v", got, want)
				}
			},
		})
	})
}

// drawBatch returns a random batch and applies its operations to after. met reports whether its condition, if it has
// one, holds before them.
func drawBatch(rt *rapid.T, after map[string]cell) (b journal.Batch, met bool) {
	key := rapid.StringMatching(`[ab]{1,3}`)
	met = true
	if rapid.Bool().Draw(rt, "conditional") {
		k, rev := key.Draw(rt, "k"), rapid.Uint64Range(0, 2).Draw(rt, "rev")
		b.Pre = append(b.Pre, cond(journal.Key, k, rev))
		met = after[k].rev == rev
	}
	for range rapid.IntRange(0, 3).Draw(rt, "ops") {
		op := put(journal.Key, key.Draw(rt, "k"), rapid.StringN(0, 4, -1).Draw(rt, "v"))
		op.Kind = rapid.SampledFrom([]journal.OpKind{journal.Put, journal.Put, journal.Delete,
			journal.DeletePrefix}).Draw(rt, "kind")
		b.Ops = append(b.Ops, op)
		switch op.Kind {
		case journal.Put:
			after[string(op.Key)] = cell{string(op.Value), after[string(op.Key)].rev + 1}
		case journal.Delete:
			delete(after, string(op.Key))
		case journal.DeletePrefix:
			maps.DeleteFunc(after, func(k string, _ cell) bool { return bytes.HasPrefix([]byte(k), op.Key) })
		}
	}
	return b, met
}
