package conformance

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"stagedoor/state/journal"
)

// Cluster makes the nodes under test. The nodes share one store: a Get on one of them sees what another one
// appended, while its position in the log changes only when it appends or reads entries.
type Cluster struct {
	// Join returns a node with a name. A node of the same name that joined before is fenced.
	Join func(name string) journal.Shared
	// Trim removes the entries of the log that no new node needs. It is nil for a store with one writer.
	Trim func()
}

// RunShared runs the suite of journal.Shared. Each test gets an empty store from newCluster. A store with one writer
// runs the part that needs no second node.
func RunShared(t *testing.T, newCluster func(testing.TB) Cluster) {
	for _, c := range []struct {
		name  string
		nodes int
		test  func(*testing.T, Cluster)
	}{
		{"an append at the end is a commit", 1, testAppendAtEnd},
		{"a view is one snapshot", 1, testSnapshotOfView},
		{"large records are kept, replaced and removed", 1, testLargeRecords},
		{"an append of nothing changes nothing", 1, testEmptyAppend},
		{"entries are what was appended", 2, testEntriesOfAppends},
		{"an append behind is refused without a trace", 2, testAppendBehind},
		{"a write without a condition is refused", 2, testWriteWithoutCondition},
		{"a turn keeps other nodes from appending", 2, testTurnExcludesOthers},
		{"a turn ends without an append", 2, testTurnWithoutAppend},
		{"a node with another's name fences it", 2, testSameNameFences},
		{"an expelled node cannot append", 2, testExpelledNode},
		{"a log that does not continue is found", 2, testForkedLog},
		{"a trimmed log is found", 2, testTrimmedLog},
		{"a commit of an outsider is an entry", 2, testCommitOfOutsider},
		{"nodes hear of each other's entries", 2, testChangedHint},
		{"appends of several nodes lose nothing", 3, testContendedAppends},
	} {
		t.Run(c.name, func(t *testing.T) {
			cluster := newCluster(t)
			if cluster.Trim != nil || c.nodes == 1 {
				c.test(t, cluster)
			}
		})
	}
}

// decided is the time that every append of the suite gives to its entries. It has nanoseconds, so that a
// store that rounds the time or puts that of its own clock in its place is found.
var decided = time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)

// join returns n nodes with the names a, b and so on, which are closed when the test ends.
func join(t testing.TB, c Cluster, n int) []journal.Shared {
	t.Helper()
	var all []journal.Shared
	for i := range n {
		node := c.Join(string(rune('a' + i)))
		t.Cleanup(func() {
			if err := node.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		})
		all = append(all, node)
	}
	return all
}

// head returns the position at the end of the log.
func head(t testing.TB, s journal.Shared) journal.Position {
	t.Helper()
	at, err := s.Head(ctx)
	if err != nil {
		t.Fatalf("Head: %v", err)
	}
	return at
}

// batch returns one batch of operations. It has the condition that every record of a hot table that they
// change is at revision rev, which is 0 for a record that does not exist. Cold tables need no condition. Log.Append
// needs none to be safe, because it holds the position of the node against the end of the log, but each batch has them
// (see there).
func batch(rev uint64, ops ...journal.Op) []journal.Batch {
	b := journal.Batch{Ops: ops}
	for _, op := range ops {
		if op.Table.Hot() {
			b.Pre = append(b.Pre, cond(op.Table, string(op.Key), rev))
		}
	}
	return []journal.Batch{b}
}

// appendTo appends batches at a position and returns the position after them. The test ends if the append fails.
func appendTo(t testing.TB, s journal.Shared, at journal.Position, batches []journal.Batch) journal.Position {
	t.Helper()
	next, err := s.Append(ctx, at, decided, batches)
	if err != nil {
		t.Fatalf("Append: %v", err)
	}
	return next
}

// describe returns an entry as a line to compare: its number, its node and its changes, sorted by table and key. The
// time of the entry is not in it.
func describe(e journal.Entry) string {
	var all []string
	for _, c := range e.Changes {
		line := fmt.Sprintf("%s/%s=%s@%d", c.Table, c.Key, c.Value, c.Rev)
		if c.Deleted {
			line = fmt.Sprintf("%s/%s deleted", c.Table, c.Key)
		}
		all = append(all, line)
	}
	slices.Sort(all)
	return fmt.Sprintf("%d by %s %v", e.LSN, e.Node, all)
}

// tail returns the entries after a position, and checks that their numbers have no gaps.
func tail(t testing.TB, s journal.Shared, at journal.Position) (all []journal.Entry) {
	t.Helper()
	err := s.Tail(ctx, at, func(e journal.Entry) error {
		if at.LSN++; e.LSN != at.LSN {
			t.Errorf("entry %d where %d follows", e.LSN, at.LSN)
		}
		all = append(all, e)
		return nil
	})
	if err != nil {
		t.Fatalf("Tail: %v", err)
	}
	return all
}

// describeAll returns the lines of describe for all entries.
func describeAll(entries []journal.Entry) (all []string) {
	for _, e := range entries {
		all = append(all, describe(e))
	}
	return all
}

// testAppendAtEnd appends where the log ends, with every kind of operation and several batches at once.
func testAppendAtEnd(t *testing.T, c Cluster) {
	a := join(t, c, 1)[0]
	at := head(t, a)
	at = appendTo(t, a, at, batch(0, put(journal.Key, "k", "1"), put(journal.Body, "b", "cold")))
	expect(t, a, journal.Key, "k", "1", 1)
	expect(t, a, journal.Body, "b", "cold", 1)
	if at.LSN != 1 {
		t.Errorf("position %d after the first append", at.LSN)
	}
	// Several batches, each of which sees those before it.
	at = appendTo(t, a, at, slices.Concat(
		batch(1, put(journal.Key, "k", "2"), put(journal.Key, "k", "3"), put(journal.Body, "b", "again")),
		batch(3, del(journal.Key, "k")), batch(0, put(journal.Key, "k", "new"), put(journal.Key, "l", "1")),
		[]journal.Batch{{Ops: []journal.Op{
			put(journal.Event, "p/1", "old"), put(journal.Event, "p0", "kept"),
			{Kind: journal.DeletePrefix, Table: journal.Event, Key: []byte("p/")}, put(journal.Event, "p/2", "after"),
		}}},
	))
	expect(t, a, journal.Key, "k", "new", 1)
	expect(t, a, journal.Key, "l", "1", 1)
	expect(t, a, journal.Body, "b", "again", 2)
	expect(t, a, journal.Event, "p/1", "", 0)
	expect(t, a, journal.Event, "p/2", "after", 1)
	expect(t, a, journal.Event, "p0", "kept", 1)
	appendTo(t, a, at, []journal.Batch{{Ops: []journal.Op{
		{Kind: journal.DeletePrefix, Table: journal.Event, Key: []byte("p/")}, put(journal.Event, "p/2", "first again"),
		del(journal.Body, "b"),
	}}})
	expect(t, a, journal.Event, "p/2", "first again", 1)
	expect(t, a, journal.Body, "b", "", 0)
	if got := keys(t, a, journal.Event, nil, nil, 0); !slices.Equal(got, []string{"p/2", "p0"}) {
		t.Errorf("events %q", got)
	}
}

// testSnapshotOfView changes records while a view reads them. The view must not see the change.
func testSnapshotOfView(t *testing.T, c Cluster) {
	a := join(t, c, 1)[0]
	at := appendTo(t, a, head(t, a), batch(0, put(journal.Key, "k", "1"), put(journal.Body, "b", "1")))
	n := 0
	err := a.View(ctx, func(r journal.Reader, seen journal.Position) error {
		// A store with one writer would wait for the view, so the change is only made in one that others write, too.
		if c.Trim != nil {
			if seen != at {
				t.Errorf("a view at %v, want %v", seen, at)
			}
			appendTo(t, a, at, batch(1, put(journal.Key, "k", "2"), put(journal.Body, "b", "2")))
		}
		rec, err := r.Get(ctx, journal.Body, []byte("b"))
		if err != nil || string(rec.Value) != "1" {
			t.Errorf("got %q, %v", rec.Value, err)
		}
		look := func(rec journal.Record) error {
			if n++; string(rec.Value) != "1" {
				t.Errorf("a later value in a view: %q", rec.Value)
			}
			return nil
		}
		if err := r.Range(ctx, journal.Key, nil, nil, 0, look); err != nil {
			return err
		}
		_, err = r.Load(ctx, []journal.Table{journal.Key, journal.Body},
			func(_ journal.Table, rec journal.Record) error { return look(rec) })
		return err
	})
	if err != nil || n != 3 {
		t.Errorf("%d records, %v", n, err)
	}
	wrong := errors.New("wrong")
	if err := a.View(ctx, func(journal.Reader, journal.Position) error { return wrong }); !errors.Is(err, wrong) {
		t.Errorf("got %v, want the error of fn", err)
	}
}

// testLargeRecords crosses the size from which on a store may keep a value in another place, in both directions.
func testLargeRecords(t *testing.T, c Cluster) {
	a := join(t, c, 1)[0]
	at := head(t, a)
	for i, size := range []int{1 << 18, 1<<18 + 1, 3 << 20, 10} {
		value := bytes.Repeat([]byte{byte('a' + i)}, size)
		at = appendTo(t, a, at, batch(0, put(journal.Body, "b", string(value)), put(journal.Body, "c", "small")))
		expect(t, a, journal.Body, "b", string(value), uint64(i+1))
	}
	at = appendTo(t, a, at, batch(0, put(journal.Body, "b", string(make([]byte, 1<<20)))))
	if got := keys(t, a, journal.Body, []byte("b"), nil, 1); !slices.Equal(got, []string{"b"}) {
		t.Errorf("keys %q", got)
	}
	appendTo(t, a, at, []journal.Batch{{Ops: []journal.Op{del(journal.Body, "b")}}})
	expect(t, a, journal.Body, "b", "", 0)
}

// testEmptyAppend appends nothing. The log must not grow, because the position is then still its end.
func testEmptyAppend(t *testing.T, c Cluster) {
	a := join(t, c, 1)[0]
	at := appendTo(t, a, head(t, a), batch(0, put(journal.Key, "k", "1")))
	if next := appendTo(t, a, at, nil); next != at {
		t.Errorf("an append of nothing went from %v to %v", at, next)
	}
	appendTo(t, a, at, batch(1, put(journal.Key, "k", "2"))) // at is still the end of the log
}

// testEntriesOfAppends reads on another node what was appended. Records of cold tables are not in the entries: a node
// reads them from the store when it needs them.
func testEntriesOfAppends(t *testing.T, c Cluster) {
	nodes := join(t, c, 2)
	a, b := nodes[0], nodes[1]
	start := head(t, b)
	at := appendTo(t, a, start, batch(0, put(journal.Key, "k", "1"), put(journal.Body, "b", "cold")))
	second := slices.Concat(batch(1, put(journal.Key, "k", "2")), batch(0, put(journal.User, "u", "\x00")))
	at = appendTo(t, a, at, second)
	at = appendTo(t, a, at, batch(2, del(journal.Key, "k")))
	at = appendTo(t, a, at, batch(0, put(journal.Ledger, "cold only", "1")))
	got := tail(t, b, start)
	want := []string{"1 by a [key/k=1@1]", "2 by a [key/k=2@2 user/u=\x00@1]", "3 by a [key/k deleted]", "4 by a []"}
	if !slices.Equal(describeAll(got), want) {
		t.Errorf("got %q, want %q", describeAll(got), want)
	}
	for _, e := range got {
		if !e.At.Equal(decided) {
			t.Errorf("entry %d was decided at %v, want %v", e.LSN, e.At, decided)
		}
	}
	if last := got[len(got)-1].Position; last != at || head(t, b) != at {
		t.Errorf("the log ends at %v and %v, want %v", last, head(t, b), at)
	}
	if more := tail(t, b, at); len(more) > 0 {
		t.Errorf("entries behind the end: %q", describeAll(more))
	}
	enough := errors.New("enough")
	if err := b.Tail(ctx, start, func(journal.Entry) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("got %v, want the error of fn", err)
	}
}

// testAppendBehind appends on a node that has not seen the end of the log. It gets the entries that it lacks, a
// bounded number at a time.
func testAppendBehind(t *testing.T, c Cluster) {
	nodes := join(t, c, 2)
	a, b := nodes[0], nodes[1]
	start := head(t, a)
	at := start
	for i := range 600 {
		at = appendTo(t, a, at, batch(uint64(i), put(journal.Key, "k", fmt.Sprint(i))))
	}
	_, err := b.Append(ctx, start, decided, batch(0, put(journal.Key, "own", "1"), put(journal.Body, "own", "1")))
	behind, ok := errors.AsType[*journal.BehindError](err)
	if !ok || !errors.Is(err, journal.ErrDecideAgain) || len(behind.Entries) == 0 || !behind.More {
		t.Fatalf("got %v", err)
	}
	if got := describe(behind.Entries[0]); got != "1 by a [key/k=0@1]" {
		t.Errorf("the first newer entry is %q", got)
	}
	expect(t, b, journal.Key, "own", "", 0)
	expect(t, b, journal.Body, "own", "", 0)
	last := behind.Entries[len(behind.Entries)-1]
	rest := tail(t, b, last.Position)
	if n := len(behind.Entries) + len(rest); n != 600 || rest[len(rest)-1].Position != at {
		t.Errorf("%d newer entries, the last at %v, want 600 and %v", n, last.Position, at)
	}
	appendTo(t, b, at, batch(0, put(journal.Key, "own", "1")))
	expect(t, a, journal.Key, "own", "1", 1)
}

// testWriteWithoutCondition refuses to write a hot record without a condition on its revision, because a node could
// then overwrite what it has not seen.
func testWriteWithoutCondition(t *testing.T, c Cluster) {
	a := join(t, c, 1)[0]
	at := head(t, a)
	_, err := a.Append(ctx, at, decided, []journal.Batch{{Ops: []journal.Op{put(journal.Key, "k", "1")}}})
	if !errors.Is(err, journal.ErrInvalid) || head(t, a) != at {
		t.Errorf("got %v, the log at %v", err, head(t, a))
	}
}

// testTurnExcludesOthers takes a turn, in which no other node can append. A node under contention would otherwise
// decide again and again.
func testTurnExcludesOthers(t *testing.T, c Cluster) {
	nodes := join(t, c, 2)
	a, b := nodes[0], nodes[1]
	start := head(t, a)
	first := appendTo(t, a, start, batch(0, put(journal.Key, "k", "1")))
	newer, mine, err := b.Turn(ctx, start)
	if err != nil || !mine || !slices.Equal(describeAll(newer), []string{"1 by a [key/k=1@1]"}) {
		t.Fatalf("Turn: %q, %t, %v", describeAll(newer), mine, err)
	}
	var other sync.WaitGroup
	other.Go(func() {
		_, err := a.Append(ctx, first, decided, batch(1, put(journal.Key, "k", "lost")))
		if !errors.Is(err, journal.ErrDecideAgain) {
			t.Errorf("the node without a turn: %v", err)
		}
	})
	second := appendTo(t, b, first, batch(1, put(journal.Key, "k", "won")))
	other.Wait()
	expect(t, a, journal.Key, "k", "won", 2)
	appendTo(t, a, second, batch(2, put(journal.Key, "k", "later"))) // the turn has ended
}

// testTurnWithoutAppend ends a turn by appending nothing.
func testTurnWithoutAppend(t *testing.T, c Cluster) {
	nodes := join(t, c, 2)
	a, b := nodes[0], nodes[1]
	at := head(t, a)
	for range 2 {
		if _, mine, err := b.Turn(ctx, at); err != nil || !mine {
			t.Fatalf("Turn: %t, %v", mine, err)
		}
	}
	appendTo(t, b, at, nil)
	appendTo(t, a, at, batch(0, put(journal.Key, "k", "1")))
}

// testSameNameFences starts a second process under the name of a running one. The first one can change nothing any
// more.
func testSameNameFences(t *testing.T, c Cluster) {
	old := c.Join("a")
	defer old.Close()
	at := appendTo(t, old, head(t, old), batch(0, put(journal.Key, "k", "1")))
	young := join(t, c, 1)[0]
	expectFenced(t, old, at)
	at = appendTo(t, young, at, batch(1, put(journal.Key, "k", "2")))
	expect(t, young, journal.Key, "k", "2", 2)
	old.Close() // does not end the epoch of the younger one
	appendTo(t, young, at, batch(2, put(journal.Key, "k", "3")))
}

// expectFenced checks that a node that was fenced or expelled gets ErrFenced for every write and changes nothing.
func expectFenced(t *testing.T, s journal.Shared, at journal.Position) {
	t.Helper()
	_, err := s.Append(ctx, at, decided, batch(0, put(journal.Key, "fenced", "1"), put(journal.Body, "fenced", "1")))
	if !errors.Is(err, journal.ErrFenced) {
		t.Errorf("Append: got %v, want ErrFenced", err)
	}
	_, err = s.Commit(ctx, []journal.Batch{{Ops: []journal.Op{put(journal.Key, "fenced", "1")}}})
	if !errors.Is(err, journal.ErrFenced) {
		t.Errorf("Commit: got %v, want ErrFenced", err)
	}
	if err := s.Members().Beat(ctx); !errors.Is(err, journal.ErrFenced) {
		t.Errorf("Beat: got %v, want ErrFenced", err)
	}
	if now := head(t, s); now != at {
		t.Errorf("the log went from %v to %v", at, now)
	}
	expect(t, s, journal.Body, "fenced", "", 0)
}

// testExpelledNode expels a node in its epoch. An expulsion from another epoch, which an operator read before a
// restart, does nothing.
func testExpelledNode(t *testing.T, c Cluster) {
	nodes := join(t, c, 2)
	a, b := nodes[0], nodes[1]
	at := appendTo(t, b, head(t, b), batch(0, put(journal.Key, "k", "1")))
	all, err := a.Members().List(ctx)
	if err != nil || len(all) != 2 || all[0].Node != "a" || !all[0].Live || all[1].Node != "b" || !all[1].Live {
		t.Fatalf("List: %+v, %v", all, err)
	}
	if done, err := a.Members().Expel(ctx, "b", all[1].Epoch+1); done || err != nil {
		t.Errorf("expelled from another epoch: %t, %v", done, err)
	}
	if err := b.Members().Beat(ctx); err != nil {
		t.Errorf("Beat: %v", err)
	}
	epochs := func() map[string]uint64 {
		t.Helper()
		epochs, err := a.Members().Epochs(ctx)
		if err != nil {
			t.Fatalf("Epochs: %v", err)
		}
		return epochs
	}
	name, epoch, several := b.Members().Self()
	if name != "b" || epoch != all[1].Epoch || !several || len(epochs()) != 2 || epochs()["b"] != epoch {
		t.Errorf("Self: %s in %d, several: %t. Epochs: %v", name, epoch, several, epochs())
	}
	if done, err := a.Members().Expel(ctx, "b", all[1].Epoch); !done || err != nil {
		t.Errorf("Expel: %t, %v", done, err)
	}
	if _, going := epochs()["b"]; going || len(epochs()) != 1 {
		t.Errorf("Epochs after b was expelled: %v", epochs())
	}
	expectFenced(t, b, at)
	appendTo(t, a, at, batch(1, put(journal.Key, "k", "2")))
}

// testForkedLog uses positions that never were in this log, as a node has them whose database was replaced by a
// backup.
func testForkedLog(t *testing.T, c Cluster) {
	nodes := join(t, c, 2)
	a, b := nodes[0], nodes[1]
	start := head(t, a)
	first := appendTo(t, a, start, batch(0, put(journal.Key, "k", "1")))
	second := appendTo(t, a, first, batch(1, put(journal.Key, "k", "2")))
	for name, at := range map[string]journal.Position{
		"other tag at the beginning": {LSN: start.LSN, Tag: start.Tag + 1},
		"other tag in the middle":    {LSN: first.LSN, Tag: first.Tag + 1},
		"other tag at the end":       {LSN: second.LSN, Tag: second.Tag + 1},
		"beyond the end":             {LSN: second.LSN + 1, Tag: second.Tag},
	} {
		_, err := b.Append(ctx, at, decided, batch(2, put(journal.Key, "k", "3")))
		if !errors.Is(err, journal.ErrForked) {
			t.Errorf("%s: Append: got %v, want ErrForked", name, err)
		}
		if err := b.Tail(ctx, at, func(journal.Entry) error { return nil }); !errors.Is(err, journal.ErrForked) {
			t.Errorf("%s: Tail: got %v, want ErrForked", name, err)
		}
		if _, _, err := b.Turn(ctx, at); !errors.Is(err, journal.ErrForked) {
			t.Errorf("%s: Turn: got %v, want ErrForked", name, err)
		}
	}
	appendTo(t, a, second, batch(2, put(journal.Key, "k", "3"))) // no turn is left
}

// testTrimmedLog uses a position from which the entries were removed. A node that far behind must read everything
// again.
func testTrimmedLog(t *testing.T, c Cluster) {
	nodes := join(t, c, 2)
	a, b := nodes[0], nodes[1]
	start := head(t, a)
	at := appendTo(t, a, start, batch(0, put(journal.Key, "k", "1")))
	at = appendTo(t, a, at, batch(1, put(journal.Key, "k", "2")))
	tail(t, b, start)
	tail(t, b, at) // says that b has applied all, as a did with its own appends
	c.Trim()
	_, err := b.Append(ctx, start, decided, batch(0, put(journal.Key, "k", "3")))
	if !errors.Is(err, journal.ErrForked) {
		t.Errorf("Append: got %v, want ErrForked", err)
	}
	if err := b.Tail(ctx, start, func(journal.Entry) error { return nil }); !errors.Is(err, journal.ErrForked) {
		t.Errorf("Tail: got %v, want ErrForked", err)
	}
	at = appendTo(t, b, at, batch(2, put(journal.Key, "k", "3")))
	if got := tail(t, a, journal.Position{LSN: at.LSN, Tag: at.Tag}); len(got) > 0 {
		t.Errorf("entries behind the end: %q", describeAll(got))
	}
}

// testCommitOfOutsider commits without a position, as the commands for the state do, and appends after it.
func testCommitOfOutsider(t *testing.T, c Cluster) {
	nodes := join(t, c, 2)
	a, b := nodes[0], nodes[1]
	start := head(t, a)
	commit(t, a, put(journal.Key, "x/1", "1"), put(journal.Key, "x/2", "1"), put(journal.Key, "y", "1"))
	at := appendTo(t, b, head(t, b), batch(1, put(journal.Key, "y", "2")))
	commit(t, a, journal.Op{Kind: journal.DeletePrefix, Table: journal.Key, Key: []byte("x/")},
		put(journal.Key, "x/2", "new"), put(journal.Key, "y", "3"))
	_, err := b.Append(ctx, at, decided, batch(2, put(journal.Key, "y", "lost")))
	if !errors.Is(err, journal.ErrDecideAgain) {
		t.Errorf("behind a commit: %v", err)
	}
	// What the entries come to is what the store has.
	have := map[string]string{}
	for _, e := range tail(t, b, start) {
		for _, c := range e.Changes {
			if delete(have, string(c.Key)); !c.Deleted {
				have[string(c.Key)] = fmt.Sprintf("%s@%d", c.Value, c.Rev)
			}
		}
	}
	if want := map[string]string{"x/2": "new@1", "y": "3@3"}; fmt.Sprint(have) != fmt.Sprint(want) {
		t.Errorf("entries come to %v, want %v", have, want)
	}
	if got := keys(t, b, journal.Key, nil, nil, 0); !slices.Equal(got, []string{"x/2", "y"}) {
		t.Errorf("keys %q", got)
	}
	expect(t, b, journal.Key, "x/2", "new", 1)
	expect(t, b, journal.Key, "y", "3", 3)
}

// testChangedHint waits for the hint that the log has grown.
func testChangedHint(t *testing.T, c Cluster) {
	nodes := join(t, c, 2)
	a, b := nodes[0], nodes[1]
	at := head(t, a)
	for n := uint64(0); n < 3; n++ {
		next := appendTo(t, a, at, batch(n, put(journal.Key, "k", "v")))
		for seen := at; seen != next; { // a hint may be of the entry before
			<-b.Changed()
			for _, e := range tail(t, b, seen) {
				seen = e.Position
			}
		}
		at = next
	}
}

// testContendedAppends counts on several nodes, each of which reads at its position and appends there.
func testContendedAppends(t *testing.T, c Cluster) {
	const each = 30
	nodes := join(t, c, 3)
	start := head(t, nodes[0]) // before any of them appends, since count is 0 there only
	var wg sync.WaitGroup
	for i, node := range nodes {
		at, count := start, uint64(0)
		apply := func(entries []journal.Entry) {
			for _, e := range entries {
				for _, c := range e.Changes {
					if string(c.Key) == "count" {
						count = c.Rev
					}
				}
				at = e.Position
			}
		}
		wg.Go(func() {
			for done := 0; done < each; {
				value := string(binary.BigEndian.AppendUint64(nil, count+1))
				next, err := node.Append(ctx, at, decided, slices.Concat(
					batch(count, put(journal.Key, "count", value)),
					batch(0, put(journal.Ledger, fmt.Sprint(count), fmt.Sprint(i))),
				))
				behind, lost := errors.AsType[*journal.BehindError](err)
				switch {
				case err == nil:
					done, at, count = done+1, next, count+1
				case lost:
					apply(behind.Entries)
					if behind.More {
						break
					}
					newer, _, err := node.Turn(ctx, at)
					if err != nil {
						t.Errorf("Turn: %v", err)
						return
					}
					apply(newer)
				default:
					t.Errorf("Append: %v", err)
					return
				}
			}
		})
	}
	wg.Wait()
	rec, err := nodes[0].Get(ctx, journal.Key, []byte("count"))
	if err != nil || rec.Rev != 3*each || binary.BigEndian.Uint64(rec.Value) != 3*each {
		t.Errorf("counted to revision %d, %x, %v; want %d", rec.Rev, rec.Value, err, 3*each)
	}
	if n := len(keys(t, nodes[0], journal.Ledger, nil, nil, 0)); n != 3*each {
		t.Errorf("%d records, want %d", n, 3*each)
	}
}
