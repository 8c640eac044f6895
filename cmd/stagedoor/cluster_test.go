package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stagedoor/state/journal"
	"stagedoor/state/statetest/pgserver"
)

// A gateway with cluster.store keeps everything in the database: what was acknowledged is there after a kill, also for
// a gateway with another, empty data directory, and a store in files can be moved into it.
func TestStateInPostgresSurvivesAKill(t *testing.T) {
	t.Parallel()
	server := pgserver.New(t, "fsync=off")
	dir := directory(t)
	old, exported, file := filepath.Join(dir, "old"), filepath.Join(dir, "export"), filepath.Join(dir, "gateway.yaml")
	moved := createKey(t, old)
	command(t, nil, "state", "export", exported, "--data", old).check(t, exitOK, "exported", "")
	configure := func(data string) {
		text := fmt.Sprintf("data: %s\ncluster: {store: %q, node: gw-1}\nlisten: 127.0.0.1:0\n"+
			"providers: {s: {shape: sandbox}}\nmodels: {m: {targets: [{provider: s, model: m}]}}\n",
			filepath.Join(dir, data), server.URL())
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	configure("first")
	command(t, nil, "state", "import", exported, "--config", file).check(t, exitOK, "imported", "")
	command(t, nil, "state", "import", exported, "--config", file).check(t, exitFailure, "", "has records already")

	p := launch(t, dir, "serve", "--config", file)
	made := createKey(t, "", "--config", file)
	command(t, nil, "keys", "revoke", moved.ID, "--config", file).check(t, exitOK, "revoked", "")
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-p.exit

	configure("second")
	p = launch(t, dir, "serve", "--config", file)
	if got := p.ask(made.Key, "m"); got != http.StatusOK {
		t.Errorf("a key that was made before the kill is answered %d", got)
	}
	if got := p.ask(moved.Key, "m"); got != http.StatusUnauthorized {
		t.Errorf("a key that was revoked before the kill is answered %d", got)
	}
	server.Crash()
	p.await("degraded", func() bool {
		res, err := http.Get(p.URL + "/readyz")
		if err != nil {
			return false
		}
		defer res.Body.Close()
		text, _ := io.ReadAll(res.Body)
		return res.StatusCode == http.StatusOK && strings.Contains(string(text), "database_unreachable")
	})
	if err := server.Run(); err != nil {
		t.Fatal(err)
	}
	command(t, nil, "keys", "revoke", made.ID, "--config", file).check(t, exitOK, "revoked", "")
	if got := p.ask(made.Key, "m"); got != http.StatusUnauthorized {
		t.Errorf("a key that was revoked after the database came back is answered %d", got)
	}
	command(t, nil, "state", "backup", filepath.Join(dir, "backup"), "--config", file).
		check(t, exitFailure, "", "tools of its database")
	p.stop()

	late := createKey(t, "", "--config", file) // by a command alone, since no gateway runs
	command(t, nil, "keys", "list", "--config", file).check(t, exitOK, late.ID, "")
	command(t, nil, "state", "verify", "--config", file).check(t, exitOK, "nothing is wrong", "")
	command(t, nil, "state", "compact", "--config", file).check(t, exitUsage, "", "in the database")
	for _, data := range []string{"first", "second"} {
		if _, err := os.Stat(filepath.Join(dir, data, journal.FileName)); !os.IsNotExist(err) {
			t.Errorf("there is a store in the data directory %s: %v", data, err)
		}
	}
	if strings.Contains(p.errOut.String(), server.URL()) {
		t.Error("the log has the URL of the database")
	}
}

// The two gateways of deploy/compose-cluster.yaml serve on one database, and make its administrator once.
func TestTheComposeFileOfAClusterHasTwoGatewaysThatServe(t *testing.T) {
	server, dir := pgserver.Shared(t), directory(t)
	const store = "postgres://stagedoor:${POSTGRES_PASSWORD}@db/stagedoor"
	content := composed(t, "compose-cluster.yaml")
	if !strings.Contains(content, store) {
		t.Fatalf("the configuration has another database:\n%s", content)
	}
	file := filepath.Join(dir, "gateway.yaml")
	database := server.URLOf(server.NewDatabase(t))
	content = strings.NewReplacer(store, database, `":7900"`, `"127.0.0.1:0"`).Replace(content)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GATEWAY_ADMIN", "anna")
	t.Setenv("GATEWAY_ADMIN_PASSWORD", "the first password")
	var both []*program
	for _, node := range []string{"gw-1", "gw-2"} {
		t.Setenv("NODE", node)
		both = append(both, launch(t, dir, "serve", "--config", file, "--listen", "127.0.0.1:0",
			"--data", filepath.Join(dir, node)))
	}
	command(t, nil, "users", "show", "anna", "--data", filepath.Join(dir, "gw-2"), "--json").
		check(t, exitOK, `"admin": true`, "")
	key := createKey(t, filepath.Join(dir, "gw-1"))
	second := both[1]
	second.await("the key of the other", func() bool { return second.ask(key.Key, "sandbox") == http.StatusOK })
	for _, p := range both {
		p.stop()
	}
}
