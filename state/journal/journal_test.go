package journal_test

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"stagedoor/state/journal"
	"stagedoor/state/journal/conformance"
)

func TestBoltConforms(t *testing.T) { boltConforms(t, journal.Options{LowWater: -1}) }

// TestBusyBoltConforms: with a log that turns, and a checkpoint, every few commits.
func TestBusyBoltConforms(t *testing.T) { boltConforms(t, journal.Busy) }

func boltConforms(t *testing.T, o journal.Options) {
	open := func(t testing.TB, dir string) journal.Store {
		s, err := journal.OpenBolt(dir, o)
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

// A store with one writer keeps the part of the contract of shared stores that needs no second node.
func TestOneWriterConforms(t *testing.T) {
	one := func(store journal.Store) conformance.Cluster {
		return conformance.Cluster{Join: func(string) journal.Shared { return journal.Alone(store) }}
	}
	t.Run("bolt", func(t *testing.T) {
		conformance.RunShared(t, func(t testing.TB) conformance.Cluster {
			store, err := journal.OpenBolt(t.TempDir(), journal.Options{LowWater: -1})
			if err != nil {
				t.Fatal(err)
			}
			return one(store)
		})
	})
	t.Run("memory", func(t *testing.T) {
		conformance.RunShared(t, func(testing.TB) conformance.Cluster { return one(journal.NewMemory()) })
	})
}
