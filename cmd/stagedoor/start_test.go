package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"stagedoor/state"
	"stagedoor/state/identity"
	"stagedoor/state/journal"
	"stagedoor/state/ownership"
	"stagedoor/state/schema"
)

// launchAt runs the program without --data in a home directory and returns it with its environment.
func launchAt(t *testing.T, home string, args ...string) *program {
	t.Helper()
	t.Setenv("XDG_DATA_HOME", home)
	return launch(t, home, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
}

func TestStateAndFirstKeyAreKeptUntilTheKeyIsRevoked(t *testing.T) {
	home := directory(t)
	data := filepath.Join(home, "stagedoor")
	p := launchAt(t, home)
	first := p.key()
	line, rest, _ := strings.Cut(p.out.String(), "\n")
	if line != "Stagedoor keeps its state in "+data {
		t.Errorf("the first line is %q", line)
	}
	for _, want := range []string{"address  " + p.URL, "pages    " + p.URL + "/", "admin    " + p.URL + "/signin/link?link=", "on this computer, within 15 minutes", "key      " + first} {
		if !strings.Contains(rest, want) {
			t.Errorf("%q is not in\n%s", want, rest)
		}
	}
	info, err := os.Stat(filepath.Join(data, firstKeyName))
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("the file of the key: %v, %v", info, err)
	}
	p.stop()

	p = launchAt(t, home)
	if again := p.key(); again != first || p.ask(again, "sandbox") != 200 {
		t.Errorf("the second start printed %s, the first %s", again, first)
	}
	env := map[string]string{"XDG_DATA_HOME": home}
	id := strings.Fields(strings.Split(command(t, env, "keys", "list").out, "\n")[1])[0]
	command(t, env, "users", "create", "root", "--admin").check(t, exitOK, "", "password of root")
	command(t, env, "keys", "revoke", id).check(t, exitOK, "revoked", "")
	p.stop()

	p = launchAt(t, home)
	defer p.stop()
	for _, want := range []string{"admin    " + p.URL + "/admin\n", "key      make one with  stagedoor keys create\n"} {
		p.printed(want)
	}
	if _, err := os.Stat(filepath.Join(data, firstKeyName)); !os.IsNotExist(err) {
		t.Errorf("the file of the revoked key is still there: %v", err)
	}
}

// TestAContainerPrintsACommandInPlaceOfTheLink, because a browser never reaches it from its own machine.
func TestAContainerPrintsACommandInPlaceOfTheLink(t *testing.T) {
	image, err := os.ReadFile("../../Dockerfile")
	if err != nil || !regexp.MustCompile(`(?m)^ENV .*\b`+containerVariable+`=`).Match(image) {
		t.Errorf("the image does not set the variable %s: %v", containerVariable, err)
	}
	t.Setenv(containerVariable, "oci")
	p := launchAt(t, directory(t))
	defer p.stop()
	out := p.printed("make an administrator with  docker exec CONTAINER /stagedoor users create NAME --admin\n")
	if strings.Contains(out, "/signin/link") {
		t.Errorf("got\n%s", out)
	}
}

func TestPrintedLinkMakesAnAdministratorWhoIsSignedIn(t *testing.T) {
	p := launch(t, directory(t), "serve", "--listen", "127.0.0.1:0", "--data", "memory")
	defer p.stop()
	link := regexp.MustCompile(`http://\S+/signin/link\?link=\S+`).FindString(p.printed("key      "))
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := http.Client{Jar: jar}
	read := func(res *http.Response, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d, %v\n%s", res.Request.URL.Path, res.StatusCode, err, text)
		}
		return res.Request.URL.Path + " " + string(text)
	}
	page := read(browser.Get(link))
	form := url.Values{"username": {"boss"}, "new": {"a long password"}, "again": {"a long password"}}
	for _, name := range []string{"id", "token"} {
		field := regexp.MustCompile(`name="` + name + `" value="([^"]+)"`).FindStringSubmatch(page)
		if field == nil {
			t.Fatalf("no field %s in\n%s", name, page)
		}
		form.Set(name, field[1])
	}
	page = read(browser.PostForm(p.URL+"/signin/link", form))
	if !strings.HasPrefix(page, "/admin") || !strings.Contains(page, "boss") {
		t.Errorf("the browser is at %.2000s", page)
	}
	res, err := browser.Get(link)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusForbidden {
		t.Errorf("the link is answered %d again", res.StatusCode)
	}
}

func TestOperatorsResetPasswordsAndMakeLinksOfUsers(t *testing.T) {
	home := directory(t)
	env := map[string]string{"XDG_DATA_HOME": home}
	command(t, env, "users", "create", "anna").check(t, exitOK, "", "password of anna")
	command(t, env, "users", "link", "anna").check(t, exitFailure, "", "no gateway runs on this data directory")
	command(t, env, "users", "update", "anna", "--reset-password").check(t, exitOK, "", "new password of anna")
	command(t, env, "users", "update", "anna", "--reset-password",
		"--password-stdin").check(t, exitUsage, "", "exclude")
	p := launchAt(t, home)
	defer p.stop()
	command(t, env, "users", "link", "anna").check(t, exitOK, p.URL+"/signin/link?link=", "It works once, until")
	command(t, env, "users", "link", "bob").check(t, exitFailure, "", "no such user")
	command(t, env, "users", "update", "anna", "--disabled").check(t, exitOK, "changed user anna", "")
	command(t, env, "users", "link", "anna").check(t, exitFailure, "", "the user is disabled")
}

func TestDeletingAUserErasesWhatIsStoredAndLeavesTheBooks(t *testing.T) {
	home := directory(t)
	env := map[string]string{"XDG_DATA_HOME": home}
	p := launchAt(t, home)
	command(t, env, "users", "create", "anna", "--email", "anna@example.com").check(t, exitOK, "", "")
	command(t, env, "credits", "add", "anna", "5").check(t, exitOK, "5.00", "")
	key := strings.TrimSpace(command(t, env, "keys", "create", "--user", "anna").out)
	res := p.post("/v1/responses", key, `{"model":"sandbox","input":"hi"}`, "x-sandbox", "pace=max")
	var stored struct{ ID string }
	if err := json.NewDecoder(res.Body).Decode(&stored); err != nil || stored.ID == "" {
		t.Fatalf("%v %+v", err, stored)
	}
	var made struct{ Data []struct{ URL string } }
	res = p.post("/v1/images/generations", key, `{"model":"sandbox","prompt":"a cat","response_format":"url"}`)
	if err := json.NewDecoder(res.Body).Decode(&made); err != nil || len(made.Data) != 1 {
		t.Fatalf("%v %+v", err, made)
	}
	fetch := func(want int) {
		t.Helper()
		res, err := http.Get(made.Data[0].URL)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("the picture is answered %d", res.StatusCode)
		}
	}
	fetch(http.StatusOK)
	command(t, env, "users", "delete", "anna").check(t, exitUsage, "", "give --yes")
	command(t, env, "users", "delete", "anna", "--yes").check(t, exitOK, "erased user anna (1)", "")
	fetch(http.StatusNotFound)
	if status := p.ask(key, "sandbox"); status != http.StatusUnauthorized {
		t.Errorf("the key is answered %d", status)
	}
	command(t, env, "credits", "list").check(t, exitOK, "anna", "")
	command(t, env, "users", "list").check(t, exitOK, "erased", "")
	shown := command(t, env, "users", "show", "anna")
	shown.check(t, exitOK, "status       erased", "")
	if strings.Contains(shown.out, "example.com") {
		t.Errorf("the address is still there:\n%s", shown.out)
	}
	command(t, env, "users", "create", "anna").check(t, exitFailure, "", "username: is taken")
	p.stop()
	command(t, env, "state", "verify").check(t, exitOK, "nothing is wrong", "")
}

func TestCommandsDoNotWriteIntoAnotherStoreThanThatOfTheGatewayThatRuns(t *testing.T) {
	home := directory(t)
	t.Setenv("XDG_RUNTIME_DIR", home)
	p := launch(t, home, "serve", "--listen", "127.0.0.1:0", "--data", "memory")
	env := map[string]string{"XDG_DATA_HOME": home}
	command(t, env, "users", "create", "anna").check(t, exitFailure, "", p.URL+": its state is in memory")
	if _, err := os.Stat(filepath.Join(home, "stagedoor", "stagedoor.db")); !os.IsNotExist(err) {
		t.Errorf("a store was made: %v", err)
	}
	p.stop()
	command(t, env, "users", "create", "anna").check(t, exitOK, "", "password of anna")
}

// TestFilesMadeByRootBelongToTheOwnerOfTheDataDirectory is about another owner only if it runs as root.
func TestFilesMadeByRootBelongToTheOwnerOfTheDataDirectory(t *testing.T) {
	data := filepath.Join(directory(t), "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	uid := os.Geteuid()
	if uid == 0 {
		uid = 65534
		if err := os.Chown(data, uid, uid); err != nil {
			t.Fatal(err)
		}
	}
	p := launch(t, data, "serve", "--listen", "127.0.0.1:0", "--data", data)
	createKey(t, data)
	command(t, nil, "state", "backup", filepath.Join(data, "copy.db"), "--data", data).check(t, exitOK, "backed up", "")
	check := func() {
		t.Helper()
		names := map[string]bool{}
		err := filepath.WalkDir(data, func(path string, e os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := e.Info()
			if err != nil {
				return err
			}
			names[e.Name()] = true
			if u, _, _ := ownership.Of(info); int(u) != uid {
				t.Errorf("%s belongs to %d, want %d", path, u, uid)
			}
			return nil
		})
		if err != nil || !names["stagedoor.db"] || !names[firstKeyName] || !names["copy.db"] || !names["content"] {
			t.Errorf("%v, %v", names, err)
		}
	}
	check()
	p.stop()
	check()
	command(t, nil, "doctor", "--offline", "--data", data).check(t, exitOK, "owner", "")
	if os.Geteuid() != 0 {
		return // nothing can be made wrong
	}
	if err := os.Chown(filepath.Join(data, "stagedoor.db"), 0, 0); err != nil {
		t.Fatal(err)
	}
	r := command(t, nil, "doctor", "--offline", "--data", data)
	r.check(t, exitFailure, "stagedoor.db belongs to root", "")
	r.check(t, exitFailure, "chown -R 65534:65534 "+data, "")
}

func TestWithoutAHomeDirectoryServeAsksForADataDirectory(t *testing.T) {
	command(t, map[string]string{"HOME": "relative"}, "serve").check(t, exitUsage, "", "give --data DIRECTORY")
	command(t, nil, "users", "list").check(t, exitUsage, "", "give --data DIRECTORY")
}

func TestFirstKeyIsMadeOnceAndSurvivesADeathBeforeItWasStored(t *testing.T) {
	data := t.TempDir()
	s, err := schema.Open(journal.NewMemory(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	find := func(keysInFile bool) *firstKey {
		t.Helper()
		k, err := findFirstKey(t.Context(), s, data, keysInFile)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	if k := find(true); k != nil {
		t.Errorf("a key was made beside those of the configuration: %v", k)
	}
	if err := writeFirstKey(filepath.Join(data, firstKeyName), "sd-lost"); err != nil {
		t.Fatal(err)
	}
	made := find(false)
	if made == nil || made.secret == "sd-lost" {
		t.Fatalf("made %v", made)
	}
	if again := find(false); again == nil || *again != *made {
		t.Errorf("again %v, want %v", again, made)
	}
	disable := func(enabled bool) {
		t.Helper()
		_, err := identity.ChangeKey(t.Context(), s, made.id, func(k *identity.Key) error {
			k.SetEnabled(enabled, identity.PartyOperator)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	disable(false)
	if k := find(false); k != nil {
		t.Errorf("a disabled key is shown: %v", k)
	}
	disable(true)
	if k := find(false); k == nil || k.secret != made.secret {
		t.Errorf("enabled again: %v", k)
	}
	if entries, err := os.ReadDir(data); err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v %v", entries, err)
	}
}

func TestFirstKeyIsShownToThisMachineWhileThereIsNoUser(t *testing.T) {
	s, err := schema.Open(journal.NewMemory(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	g := &gateway{state: s}
	r := httptest.NewRequest("GET", "http://localhost:8080/", nil)
	r.RemoteAddr = "127.0.0.1:4000"
	want := func(what, key string) {
		t.Helper()
		if got := g.firstKeyFor(r); got != key {
			t.Errorf("%s: got %q, want %q", what, got, key)
		}
	}
	want("without a first key", "")
	first, err := findFirstKey(t.Context(), s, "memory", false)
	if err != nil {
		t.Fatal(err)
	}
	g.first.Store(first)
	want("from this machine", first.secret)
	r.RemoteAddr = "192.0.2.1:4000"
	want("from another machine", "")
	r.RemoteAddr = "127.0.0.1:4000"
	r.Header.Set("X-Forwarded-For", "192.0.2.1")
	want("through a proxy", "")
	r.Header.Del("X-Forwarded-For")
	user := identity.User{Username: "anna", Status: identity.UserActive}
	err = state.Run(t.Context(), s, func(tx *state.Tx) error {
		_, err := identity.AddUser(tx, user)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	want("with a user", "")
}
