package journal_test

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"stagedoor/state/journal"
	"stagedoor/state/journal/conformance"
)

func TestBoltConforms(t *testing.T) {
	open := func(t testing.TB, dir string) journal.Store {
		s, err := journal.OpenBolt(dir, journal.Options{LowWater: -1})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	conformance.Run(t, conformance.Store{
		New: func(t testing.TB) journal.Store { return open(t, t.TempDir()) },
		Restore: func(t testing.TB, r io.Reader) journal.Store {
			dir := t.TempDir()
			data, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, journal.FileName), data, 0o600); err != nil {
				t.Fatal(err)
			}
			return open(t, dir)
		},
	})
}

func TestMemoryConforms(t *testing.T) {
	conformance.Run(t, conformance.Store{
		New: func(testing.TB) journal.Store { return journal.NewMemory() },
		Restore: func(t testing.TB, r io.Reader) journal.Store {
			m, err := journal.ReadMemory(r)
			if err != nil {
				t.Fatal(err)
			}
			return m
		},
	})
}
