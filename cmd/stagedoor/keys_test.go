package main

import (
	"encoding/json"
	"net/http"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stagedoor/state/identity"
)

// created decodes the output of keys create --json.
type created struct{ ID, Key, Name string }

func createKey(t testing.TB, data string, args ...string) created {
	t.Helper()
	if data != "" {
		args = append(args, "--data", data)
	}
	r := command(t, nil, append([]string{"keys", "create", "--json"}, args...)...)
	var c created
	if err := json.Unmarshal([]byte(r.out), &c); err != nil || c.Key == "" {
		t.Fatalf("keys create printed %q and %q", r.out, r.errOut)
	}
	return c
}

func TestKeysActAtOnceOnARunningGateway(t *testing.T) {
	t.Parallel()
	data := filepath.Join(directory(t), "data")
	p := launch(t, filepath.Dir(data), "serve", "--listen", "127.0.0.1:0", "--data", data)
	first := p.key()

	all := createKey(t, data, "--name", "laptop")
	narrow := createKey(t, data, "--scope", "messages", "--name", "narrow")
	for key, want := range map[string]int{first: 200, all.Key: 200, narrow.Key: http.StatusForbidden, "sd-none": http.StatusUnauthorized} {
		if got := p.ask(key, "m"); got != want {
			t.Errorf("status %d, want %d", got, want)
		}
	}
	list := command(t, nil, "keys", "list", "--data", data)
	list.check(t, exitOK, all.ID+"  "+all.Key[:11]+"...  laptop  -     all       all     active", "")
	var rotated created
	r := command(t, nil, "keys", "rotate", all.ID, "--json", "--overlap", "1h", "--data", data)
	if err := json.Unmarshal([]byte(r.out), &rotated); err != nil || rotated.ID != all.ID || rotated.Key == all.Key {
		t.Errorf("keys rotate printed %q and %q", r.out, r.errOut)
	}
	for _, key := range []string{all.Key, rotated.Key} {
		if got := p.ask(key, "m"); got != http.StatusOK {
			t.Errorf("a secret of a rotated key is answered %d", got)
		}
	}
	audit := command(t, nil, "audit", "list", "--action", "key.change", "--data", data)
	audit.check(t, exitOK, "control_socket", "")
	command(t, nil, "keys", "revoke", all.ID, "--data", data).check(t, exitOK, "revoked "+all.ID+" (laptop)", "")
	if got := p.ask(all.Key, "m"); got != http.StatusUnauthorized {
		t.Errorf("the revoked key is answered %d", got)
	}
	command(t, nil, "keys", "revoke", "key_none", "--data", data).check(t, exitFailure, "", "there is no such key")
	p.stop()

	// What was made while it ran, and after it had stopped, is there at its next start.
	late := createKey(t, data)
	p = launch(t, filepath.Dir(data), "serve", "--listen", "127.0.0.1:0", "--data", data)
	if again := p.key(); again != first {
		t.Errorf("the second start printed %s, the first %s", again, first)
	}
	for key, want := range map[string]int{first: 200, late.Key: 200, narrow.Key: http.StatusForbidden, all.Key: http.StatusUnauthorized} {
		if got := p.ask(key, "m"); got != want {
			t.Errorf("after the restart: status %d, want %d", got, want)
		}
	}
	p.stop()
}

func TestKeysOfAStoppedGateway(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	command(t, nil, "keys", "list", "--data", data).check(t, exitStorage, "", "there is no data directory")
	command(t, nil, "keys", "create", "--data", data, "--user", "u").check(t, exitFailure, "", `there is no user "u"`)
	command(t, nil, "users", "create", "u", "--data", data).check(t, exitOK, "", "")
	k := createKey(t, data, "--name", "ci", "--scope", "chat,models", "--model", "gpt-*", "--rpm", "60", "--allow-ip",
		"127.0.0.0/8", "--expires-in", "1h", "--user", "u")
	list := command(t, nil, "keys", "list", "--json", "--data", data)
	var page struct {
		Data []struct {
			ID, Name, User, State string
			Scopes, Models        []string
			Limits                identity.Limits
			AllowIPs              []netip.Prefix `json:"allow_ips"`
			Created, Expires      time.Time
		}
	}
	if err := json.Unmarshal([]byte(list.out), &page); err != nil || len(page.Data) != 1 {
		t.Fatalf("%v: %s", err, list.out)
	}
	got := page.Data[0]
	if got.ID != k.ID || got.Name != "ci" || len(got.Scopes) != 2 || got.Models[0] != "gpt-*" || got.Limits.RPM != 60 || len(got.AllowIPs) != 1 || got.Expires.Sub(got.Created).Hours() != 1 || got.User != "u" || got.State != "active" {
		t.Errorf("the key is listed as %+v", got)
	}
	if strings.Contains(list.out, k.Key) || strings.Contains(list.out, "hash") {
		t.Errorf("the list shows what it must not:\n%s", list.out)
	}
	command(t, nil, "keys", "revoke", k.ID, "--data", data).check(t, exitOK, "revoked", "")
	command(t, nil, "keys", "list", "--data", data).check(t, exitOK, "ci    u     chat,models  gpt-*   revoked", "")
}

func TestKeysFindTheDataDirectoryInTheConfiguration(t *testing.T) {
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "f.yaml"), "data: "+dir+"/here\n")
	command(t, map[string]string{"STAGEDOOR_CONFIG": file}, "keys", "create").check(t, exitOK, "sd-",
		"This is key key_")
	command(t, nil, "keys", "list", "--data", dir+"/here").check(t, exitOK, "active", "")
}
