package statetest_test

import (
	"testing"

	"stagedoor/state/journal"
	"stagedoor/state/journal/conformance"
	"stagedoor/state/statetest"
)

func TestClusterConforms(t *testing.T) {
	conformance.RunShared(t, func(testing.TB) conformance.Cluster {
		c := statetest.NewCluster()
		return conformance.Cluster{
			Join: func(name string) journal.Shared { return c.Join(name) },
			Trim: c.Trim,
		}
	})
}
