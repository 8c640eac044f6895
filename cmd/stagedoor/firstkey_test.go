package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"stagedoor/state"
	"stagedoor/state/identity"
	"stagedoor/state/schema"
	"stagedoor/state/statetest"
)

// TestGatewaysThatStartTogetherMakeOneFirstKey: the second one has not heard of the key when it looks for one.
func TestGatewaysThatStartTogetherMakeOneFirstKey(t *testing.T) {
	cluster := statetest.NewCluster()
	cluster.Silence()
	open := func(name string) *state.State {
		s, err := schema.Open(cluster.Join(name), time.Now)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	a, b := open("a"), open("b")
	first, err := findFirstKey(t.Context(), a, t.TempDir(), false)
	if err != nil || first == nil {
		t.Fatalf("the first gateway made %v, %v", first, err)
	}
	data := t.TempDir()
	if second, err := findFirstKey(t.Context(), b, data, false); second != nil || err != nil {
		t.Errorf("the second gateway made %v, %v", second, err)
	}
	if _, err := os.Stat(filepath.Join(data, firstKeyName)); !os.IsNotExist(err) {
		t.Errorf("the second gateway has a file of a key that does not exist: %v", err)
	}
	if keys := identity.ListKeys(b.View(), identity.KeyFilter{}); len(keys) != 1 || keys[0].ID != first.id {
		t.Errorf("the keys are %v", keys)
	}
}
