package journal_test

import (
	"bytes"
	"context"
	"testing"

	"stagedoor/state/journal"
)

// TestMemoryKeepsEmptyValues: also in what is made of its backup.
func TestMemoryKeepsEmptyValues(t *testing.T) {
	ctx := context.Background()
	m := journal.NewMemory()
	if _, err := m.Commit(ctx, []journal.Batch{{Ops: []journal.Op{{Table: journal.Receipt, Key: []byte("a")}, {Table: journal.Receipt, Key: []byte("b"), Value: []byte{}}}}}); err != nil {
		t.Fatal(err)
	}
	var backup, text bytes.Buffer
	if err := m.Backup(ctx, &backup); err != nil {
		t.Fatal(err)
	}
	restored, err := journal.ReadMemory(&backup)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := journal.Export(ctx, restored, &text); err != nil {
		t.Fatal(err)
	}
	exported := text.String()
	copied := journal.NewMemory()
	if _, err := journal.Fill(ctx, copied, &text); err != nil {
		t.Fatalf("%v, of\n%s", err, exported)
	}
	for _, key := range []string{"a", "b"} {
		if rec, err := copied.Get(ctx, journal.Receipt, []byte(key)); err != nil || rec.Value == nil || len(rec.Value) != 0 {
			t.Errorf("%s: got %v, %v, want an empty value", key, rec.Value, err)
		}
	}
}
