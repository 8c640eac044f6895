package datadir

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func environment(pairs map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		v, ok := pairs[name]
		return v, ok
	}
}

func TestCommandsThatFindNoGatewayNameTheOneThatRunsElsewhere(t *testing.T) {
	home, data := t.TempDir(), t.TempDir()
	env := environment(map[string]string{"XDG_RUNTIME_DIR": home, "XDG_DATA_HOME": home})
	flags := &Flags{env: env}
	want := func(text string) {
		t.Helper()
		path, err := flags.Path()
		switch {
		case text == "" && (err != nil || path != filepath.Join(home, "stagedoor")):
			t.Errorf("got %q, %v", path, err)
		case text != "" && (err == nil || !strings.Contains(err.Error(), text)):
			t.Errorf("got %q, %v, want an error with %q", path, err, text)
		}
	}
	want("")
	withdraw, err := Announce(env, Running{Data: data, Address: "http://127.0.0.1:8080\x1b[2J"})
	if err != nil {
		t.Fatal(err)
	}
	want("http://127.0.0.1:8080?[2J: reach it with --data " + data)
	withdrawMemory, err := Announce(env, Running{Data: "memory", Address: "http://127.0.0.1:9"})
	if err != nil {
		t.Fatal(err)
	}
	want("http://127.0.0.1:9: its state is in memory")
	explicit := Flags{env: env, data: filepath.Join(home, "named")}
	if path, err := explicit.Path(); err != nil || path != explicit.data {
		t.Errorf("a directory named by --data: %q, %v", path, err)
	}
	own, err := Announce(env, Running{Data: filepath.Join(home, "stagedoor"), Address: "http://127.0.0.1:10"})
	if err != nil {
		t.Fatal(err)
	}
	want("") // the one that is meant runs
	own()
	withdrawMemory()
	withdraw()
	want("")
}

func TestAGatewayIsFoundOnceInTheTemporaryDirectory(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	env := environment(nil) // as under sudo, where root looks at the directories of all users
	withdraw, err := Announce(env, Running{Data: "memory", Address: "http://127.0.0.1:8080"})
	if err != nil {
		t.Fatal(err)
	}
	defer withdraw()
	found := 0
	for _, r := range runningGateways(env) {
		if r.Address == "http://127.0.0.1:8080" {
			found++
		}
	}
	if found != 1 {
		t.Errorf("found %d times", found)
	}
}

func TestRunFilesOfDeadProcessesAndOfStrangersCountForNothing(t *testing.T) {
	home := t.TempDir()
	env := environment(map[string]string{"XDG_RUNTIME_DIR": home})
	withdraw, err := Announce(env, Running{Data: "memory", Address: "http://127.0.0.1:8080"})
	if err != nil {
		t.Fatal(err)
	}
	withdraw()
	dir := filepath.Join(home, "stagedoor")
	dead := filepath.Join(dir, "gateway-1.json") // no process holds it locked
	if err := os.WriteFile(dead, []byte(`{"data":"/srv","address":"http://127.0.0.1:1"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "gateway-2.json")); err != nil {
		t.Fatal(err)
	}
	if got := runningGateways(env); len(got) != 0 {
		t.Errorf("got %v", got)
	}
	if _, err := os.Stat(dead); !os.IsNotExist(err) {
		t.Errorf("the file of a dead process is still there: %v", err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := Announce(env, Running{Data: "memory"}); err == nil {
		t.Error("a run file was made where others may write")
	}
}
