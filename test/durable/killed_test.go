package durable

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"stagedoor/test/harness"
)

// TestCommandsSeeWhatAKilledGatewayLeft: the newest changes are in the redo log only,
// and every command that works on the store knows them.
func TestCommandsSeeWhatAKilledGatewayLeft(t *testing.T) {
	data, out := t.TempDir(), t.TempDir()
	g := launch(t, harness.Binary(t), sandbox(data))
	var kept []string
	for range 5 {
		status, id, code := store(t, g, 1000)
		if status != http.StatusOK {
			t.Fatalf("got %d %s", status, code)
		}
		kept = append(kept, id)
	}
	if err := g.Kill(); err != nil {
		t.Fatal(err)
	}
	logs := func() []string {
		found, err := filepath.Glob(filepath.Join(data, "redo-*.log"))
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	if len(logs()) == 0 {
		t.Fatal("there is no redo log: nothing is tested")
	}
	read := func(name string) []byte {
		text, err := os.ReadFile(filepath.Join(out, name))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	backup := filepath.Join(out, "backup.db")
	does(t, "nothing is wrong", "state", "verify", "--data", data)
	does(t, "backed up", "state", "backup", backup, "--data", data)
	does(t, "nothing is wrong", "state", "verify", backup)
	does(t, "exported", "state", "export", filepath.Join(out, "killed"), "--data", data)
	does(t, "exported", "state", "export", filepath.Join(out, "copied"), "--from", backup)
	if len(logs()) == 0 {
		t.Error("a command that only reads removed the redo log")
	}
	does(t, "compacted", "state", "compact", "--data", data)
	does(t, "exported", "state", "export", filepath.Join(out, "compacted"), "--data", data)
	if left := logs(); len(left) != 0 {
		t.Errorf("compacting left %q", left)
	}
	for _, name := range []string{"copied", "compacted"} {
		if !bytes.Equal(read(name), read("killed")) {
			t.Errorf("the %s store has other records", name)
		}
	}
	for _, id := range kept {
		if !bytes.Contains(read("killed"), []byte(id)) {
			t.Errorf("%s was acknowledged and is not exported", id)
		}
	}
	g = launch(t, harness.Binary(t), sandbox(data))
	defer stop(t, g)
	for _, id := range kept {
		if status, reply := g.Ask(t, http.MethodGet, "/v1/responses/"+id, ""); status != http.StatusOK {
			t.Errorf("%s was acknowledged: %d %s", id, status, reply)
		}
	}
}
