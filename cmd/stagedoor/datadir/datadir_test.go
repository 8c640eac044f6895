package datadir

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stagedoor/cmd/stagedoor/cli"
	"stagedoor/cmd/stagedoor/config"
	"stagedoor/http/admin"
	"stagedoor/state"
	"stagedoor/state/identity"
)

func TestDefaultIsBelowAnAbsoluteHomeOnly(t *testing.T) {
	for _, c := range []struct{ data, home, want string }{
		{"/data", "/home/me", "/data/stagedoor"},
		{"data", "/home/me", "/home/me/.local/share/stagedoor"},
		{"", "/home/me", "/home/me/.local/share/stagedoor"},
		{"data", "me", ""},
		{"", "", ""},
	} {
		env := environment(map[string]string{"XDG_DATA_HOME": c.data, "HOME": c.home})
		got, err := Default(env)
		if got != c.want || errors.Is(err, cli.ErrUsage) != (c.want == "") {
			t.Errorf("%q and %q: %q, %v", c.data, c.home, got, err)
		}
		if flag := Flag("/data/stagedoor", env); (flag == "") != (c.want == "/data/stagedoor") {
			t.Errorf("%q and %q: the flag is %q", c.data, c.home, flag)
		}
	}
}

func TestCommandsJoinAClusterUnderANameOfTheirOwn(t *testing.T) {
	file := filepath.Join(t.TempDir(), "stagedoor.yaml")
	const text = `data: /nowhere
providers: {p: {shape: sandbox}}
cluster: {store: "postgres://127.0.0.1:1/x", node: gateway, standby: true}
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f := &Flags{file: file, env: environment(nil)}
	one, err := f.commandNode()
	if err != nil {
		t.Fatal(err)
	}
	other, _ := f.commandNode()
	if one.Node == other.Node || !strings.HasPrefix(one.Node, "command-") {
		t.Errorf("the names are %q and %q", one.Node, other.Node)
	}
	if one.Standby || one.Serve != "" || one.Address != "" || one.Store == "" {
		t.Errorf("a command joins as %+v", one)
	}
	if _, err := f.FilesPath(); !errors.Is(err, cli.ErrUsage) {
		t.Errorf("files of a database: %v", err)
	}
	if _, err := OpenStore("memory", one, ""); !errors.Is(err, cli.ErrUsage) {
		t.Errorf("memory in a cluster: %v", err)
	}
}

func TestWithoutAClusterThereIsNoDatabase(t *testing.T) {
	f := &Flags{data: t.TempDir(), env: environment(nil)}
	if store, err := f.OpenShared(); store != nil || err != nil {
		t.Errorf("the store is %v, %v", store, err)
	}
	if _, err := f.OpenMembers(t.Context()); !errors.Is(err, cli.ErrUsage) {
		t.Errorf("the nodes: %v", err)
	}
	if path, err := f.FilesPath(); path != f.data || err != nil {
		t.Errorf("the path is %q, %v", path, err)
	}
	store, err := OpenStore("memory", config.Cluster{}, "")
	if err != nil || SharedStore(store) != nil {
		t.Errorf("a store in memory is shared, or %v", err)
	}
}

func TestACommandUsesTheDirectoryWhileNoGatewayDoes(t *testing.T) {
	f := &Flags{data: filepath.Join(t.TempDir(), "data"), env: environment(nil)}
	if err := f.RequireExisting(); !errors.Is(err, state.ErrUnavailable) {
		t.Errorf("a missing directory: %v", err)
	}
	running := func(*admin.Client) error { t.Error("a gateway was found"); return nil }
	failed := errors.New("the command failed")
	err := f.Use(running, func(s *state.State) error {
		return errors.Join(identity.SetAdminToken(AsCommand(t.Context()), s, state.Hash{1}), failed)
	})
	if !errors.Is(err, failed) {
		t.Fatalf("the first command: %v", err)
	}
	// The directory was closed after the failure, so it can be opened again, with what was committed.
	err = f.Use(running, func(s *state.State) error {
		if h, found := identity.FindAdminToken(s.View()); !found || h != (state.Hash{1}) {
			t.Errorf("the token is %v, %v", h, found)
		}
		return nil
	})
	if err = errors.Join(err, f.RequireExisting()); err != nil {
		t.Error(err)
	}
}

func TestASocketMustHaveAShortPath(t *testing.T) {
	const most = 103
	fits := "/" + strings.Repeat("d", most-2-len(admin.SocketName))
	if path, err := Socket(fits); err != nil || len(path) != most {
		t.Errorf("%d bytes: %v", len(path), err)
	}
	if _, err := Socket(fits + "d"); !errors.Is(err, state.ErrUnavailable) {
		t.Errorf("a longer path: %v", err)
	}
	if _, _, err := (&Flags{data: fits + "d", env: environment(nil)}).Dial(); err == nil {
		t.Error("a command reached a socket that cannot be")
	}
}
