package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"stagedoor/cmd/stagedoor/sqlite"
	"stagedoor/state/statetest/pgserver"
)

// browse returns a function that reads pages of a gateway as a user who has signed in.
func (p *program) browse(user, password string) func(path string) string {
	p.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		p.t.Fatal(err)
	}
	browser := http.Client{Jar: jar}
	read := func(path string) string {
		p.t.Helper()
		res, err := browser.Get(p.URL + path)
		if err != nil {
			p.t.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			p.t.Fatal(err)
		}
		return string(text)
	}
	token := regexp.MustCompile(`name="token" value="([^"]+)"`).FindStringSubmatch(read("/signin"))[1]
	res, err := browser.PostForm(p.URL+"/signin", url.Values{"token": {token}, "username": {user},
		"password": {password}})
	if err != nil {
		p.t.Fatal(err)
	}
	res.Body.Close()
	return read
}

// TestARequestOnOneGatewayIsFoundOnTheOther, with the name of the gateway that served it, in the list, in both exports
// and by a search. What a recorded key sends is on the page of both gateways. While the database is away,
// requests go on, and the log says how many it lacks.
func TestARequestOnOneGatewayIsFoundOnTheOther(t *testing.T) {
	t.Parallel()
	server, dir := pgserver.Shared(t), directory(t)
	network := pgserver.NewProxy(t, server)
	database := network.URLOf(server.NewDatabase(t))
	const key = "sd-for-tests-only"
	gateway := func(node string) *program {
		file := write(t, filepath.Join(dir, node+".yaml"), fmt.Sprintf("data: %s\nlisten: 127.0.0.1:0\n"+
			"cluster: {store: %q, node: %s, serve: all, listen: '127.0.0.1:0'}\nkeys: [{key: %s, name: laptop}]\n"+
			"admin: {user: root, password: a long password}\ntelemetry: {metrics: {prometheus: true}}\n"+
			"providers: {s: {shape: sandbox}}\nmodels: {m: {targets: [{provider: s, model: m}]}}\n",
			filepath.Join(dir, node), database, node, key))
		return launch(t, dir, "serve", "--config", file)
	}
	one, two := gateway("gw-1"), gateway("gw-2")
	read := two.browse("root", "a long password")
	ask := func(p *program) {
		t.Helper()
		if got := p.ask(key, "m"); got != http.StatusOK {
			t.Errorf("a request is answered %d", got)
		}
	}
	ask(one)
	ask(two)
	two.await("both requests on one page", func() bool {
		page := read("/requests")
		return strings.Contains(page, ">gw-1<") && strings.Contains(page, ">gw-2<")
	})
	if lines := read("/requests.jsonl?q=node:gw-1"); strings.Count(lines, "\n") != 1 ||
		!strings.Contains(lines, `"node":"gw-1"`) {
		t.Errorf("the lines of gw-1: %s", lines)
	}
	if sheet := read("/requests.csv"); !strings.Contains(sheet, ",gw-1\n") || !strings.Contains(sheet, ",node\n") {
		t.Errorf("the sheet: %s", sheet)
	}

	// A key that is recorded by way of one gateway is recorded by the other one, which then keeps what was sent.
	seen, data := createKey(t, filepath.Join(dir, "gw-2"), "--name", "seen"), filepath.Join(dir, "gw-2")
	command(t, nil, "keys", "update", seen.ID, "--record-for", "1h", "--data", data).check(t, exitOK, "until", "")
	readOne := one.browse("root", "a long password")
	newest := regexp.MustCompile(`<th scope="row"><a href="(/requests/\d+)"`)
	var path string
	one.await("a recording", func() bool {
		one.ask(seen.Key, "m")
		found := newest.FindStringSubmatch(readOne("/requests?q=node:gw-1+key:seen"))
		if found != nil {
			path = found[1]
		}
		return found != nil && strings.Contains(readOne(path), "What was sent and answered</h2>")
	})
	if page := read(path); !strings.Contains(page, "What was sent and answered</h2>") {
		t.Errorf("the page of the other gateway: %s", page)
	}
	if text := read(path + "/recording.json"); !strings.Contains(text, `"attempts"`) {
		t.Errorf("the file of the other gateway: %s", text)
	}

	network.Set(pgserver.Cut)
	ask(one)
	one.await("a count of what is missing", func() bool {
		_, metrics := one.get("/metrics", key)
		return regexp.MustCompile(`stagedoor_request_log_requests_total\{[^}]*result="dropped"[^}]*\} [1-9]`).
			MatchString(metrics)
	})
	network.Set(pgserver.None)
	one.await("the database", func() bool { return one.ask(key, "m") == http.StatusOK })
	two.await("the log that goes on", func() bool {
		return strings.Count(read("/requests.jsonl?q=node:gw-1+key:laptop"), `"node":"gw-1"`) >= 2
	})
	for _, node := range []string{"gw-1", "gw-2"} {
		if _, err := os.Stat(filepath.Join(dir, node, sqlite.FileName)); !os.IsNotExist(err) {
			t.Errorf("%s has a log of its own: %v", node, err)
		}
	}
	one.stop()
	two.stop()
}
