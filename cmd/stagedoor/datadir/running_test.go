package datadir

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stagedoor/http/admin"
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
	file := filepath.Join(t.TempDir(), "stagedoor.yaml")
	if err := os.WriteFile(file, []byte("data: "+home+"\nproviders: {p: {shape: sandbox}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	named := Flags{env: env, file: file}
	if path, err := named.Path(); err != nil || path != home {
		t.Errorf("a directory named by a file: %q, %v", path, err)
	}
	own, err := Announce(env, Running{Data: filepath.Join(home, "stagedoor"), Address: "http://127.0.0.1:10"})
	if err != nil {
		t.Fatal(err)
	}
	want("") // the one that is meant runs
	own()
	want("its state is in memory")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(filepath.Join(home, "stagedoor"), link); err != nil {
		t.Fatal(err)
	}
	linked, err := Announce(env, Running{Data: link, Address: "http://127.0.0.1:11"})
	if err != nil {
		t.Fatal(err)
	}
	want("") // the one that is meant runs, and was given another path
	linked()
	socket, err := net.Listen("unix", filepath.Join(home, "stagedoor", admin.SocketName))
	if err != nil {
		t.Fatal(err)
	}
	want("") // the one that is meant runs without a run file
	socket.Close()
	want("its state is in memory")
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

func TestRunFilesOfStrangersNeedADirectoryOfTheirOwn(t *testing.T) {
	home, foreign := t.TempDir(), "/"
	if os.Geteuid() == 0 {
		foreign = t.TempDir()
		if err := os.Chown(foreign, 1234, 1234); err != nil {
			t.Fatal(err)
		}
	}
	env := environment(map[string]string{"XDG_RUNTIME_DIR": home})
	for data, believed := range map[string]bool{home: true, foreign: false, filepath.Join(home, "none"): false,
		"memory": false} {
		withdraw, err := Announce(env, Running{Data: data, Address: "http://127.0.0.1:8080"})
		if err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(filepath.Join(home, "stagedoor", runPattern))
		if err != nil || len(files) != 1 {
			t.Fatalf("%v, %v", files, err)
		}
		if _, ok := readRunFile(files[0], ""); !ok {
			t.Errorf("%s: the own file is not believed", data)
		}
		r, ok := readRunFile(files[0], "1234")
		if ok != believed {
			t.Errorf("%s: believed %t, want %t", data, ok, believed)
		}
		if want := "belongs to the user 1234"; believed && !strings.Contains(r.reach(), want) {
			t.Errorf("%q, want %q", r.reach(), want)
		}
		withdraw()
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
