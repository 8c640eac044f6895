package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"stagedoor/cmd/stagedoor/config"
)

// serving is a file that serves one model from one provider of the sandbox.
func serving(model, provider string) string {
	return fmt.Sprintf("listen: \"127.0.0.1:0\"\ndata: memory\nlog: {level: info}\nkeys: [{key: \"file:secret\", name: n}]\n"+
		"providers: {%s: {shape: sandbox}}\nmodels: {%s: {targets: [{provider: %s, model: x}]}}\n", provider, model,
		provider)
}

// configured starts the gateway on a file, with the key "one".
func configured(t *testing.T) (*program, string) {
	t.Helper()
	t.Parallel()
	dir := directory(t)
	write(t, filepath.Join(dir, "secret"), "one\n")
	file := write(t, filepath.Join(dir, "etc", "f.yaml"), serving("a", "p"))
	return launch(t, dir, "serve", "--config", filepath.Join("etc", "f.yaml")), file
}

func TestChangedFileIsPutInForce(t *testing.T) {
	p, file := configured(t)
	if got := p.ask("one", "a"); got != 200 {
		t.Fatalf("status %d", got)
	}
	write(t, file, serving("b", "q"))
	p.await("model b", func() bool { return p.ask("one", "b") == 200 })
	p.logged("changed=\"+providers.q -providers.p +models.b -models.a\"")
	if got := p.ask("one", "a"); got != http.StatusNotFound {
		t.Errorf("the model that is gone is answered %d", got)
	}
	p.stop()
}

func TestFileWithMistakesChangesNothingAndIsReported(t *testing.T) {
	p, file := configured(t)
	write(t, file, strings.Replace(serving("b", "q"), "shape: sandbox", "shape: sandcastle", 1)+"more: 1\n")
	p.logged("configuration unchanged: the file has mistakes")
	p.logged(`etc/f.yaml:5:`)
	p.logged(`etc/f.yaml:7:1: more: is not known`)
	for model, want := range map[string]int{"a": 200, "b": http.StatusNotFound} {
		if got := p.ask("one", model); got != want {
			t.Errorf("model %s is answered %d, want %d", model, got, want)
		}
	}
	// The next good one counts again.
	write(t, file, serving("b", "q"))
	p.await("model b", func() bool { return p.ask("one", "b") == 200 })
	p.stop()
}

// TestABrokenFileShowsUntilItIsMended in /readyz, in the metric, and on the pages of administrators only, whether the
// mistake is in the configuration or in another file that it names.
func TestABrokenFileShowsUntilItIsMended(t *testing.T) {
	t.Parallel()
	dir := directory(t)
	secret := write(t, filepath.Join(dir, "secret"), "one\n")
	good := serving("a", "p") + "telemetry: {metrics: {prometheus: true}}\n" +
		"admin: {user: root, password: a long password}\n"
	file := write(t, filepath.Join(dir, "f.yaml"), good)
	p := launch(t, dir, "serve", "--config", "f.yaml")
	defer p.stop()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := http.Client{Jar: jar}
	read := func(path string) string {
		t.Helper()
		res, err := browser.Get(p.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("%s is answered %d, %v", path, res.StatusCode, err)
		}
		return string(text)
	}
	token := regexp.MustCompile(`name="token" value="([^"]+)"`).FindStringSubmatch(read("/signin"))[1]
	res, err := browser.PostForm(p.URL+"/signin", url.Values{"token": {token}, "username": {"root"},
		"password": {"a long password"}})
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	check := func(mistake string) {
		t.Helper()
		broken := mistake != ""
		if got := strings.Contains(read("/readyz"), "configuration_broken"); got != broken {
			t.Errorf("/readyz says %t", got)
		}
		want := fmt.Sprintf(`(?m)^stagedoor_configuration_broken(\{.*\})? %d$`, map[bool]int{true: 1}[broken])
		if text := read("/metrics"); !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("the metrics do not have %s", want)
		}
		for _, path := range []string{"/admin/users", "/live", "/topup?account=own"} {
			page := read(path)
			if got := strings.Contains(page, "would not start"); got != broken || !strings.Contains(page, mistake) {
				t.Errorf("%s says that the gateway would not start: %t", path, got)
			}
		}
	}
	count := func(text string, n int) {
		t.Helper()
		p.await(text, func() bool { return strings.Count(p.errOut.String(), text) == n })
	}
	check("")
	write(t, file, good+"more: 1\n")
	count("configuration unchanged", 1)
	check(": more: is not known")
	write(t, file, good+"# mended\n")
	count("configuration read again", 1)
	check("")
	if err := os.Remove(secret); err != nil {
		t.Fatal(err)
	}
	p.signal(syscall.SIGHUP)
	count("configuration unchanged", 2)
	check("no such file")
	write(t, secret, "one\n")
	count("configuration read again", 2) // without a signal
	check("")
}

// TestAMistakeIsRetriedQuietly shows that attempts at the same mistakes are no lines of the log.
func TestAMistakeIsRetriedQuietly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*retryEvery+time.Second)
		defer cancel()
		rereads, retries := 0, 0
		f := &follower{}
		f.follow(ctx, slog.New(slog.DiscardHandler), func() { rereads++ }, func() { retries++ })
		if rereads != 0 || retries != 10 {
			t.Errorf("read again %d times, retried %d times, want 0 and 10", rereads, retries)
		}
	})
	var log strings.Builder
	g := &gateway{logger: slog.New(slog.NewTextHandler(&log, nil))}
	a := &app{}
	a.Env = func(string) (string, bool) { return "", false }
	o := &overrides{file: filepath.Join(t.TempDir(), "missing.yaml")}
	a.retry(t.Context(), g, o)
	if log.String() != "" {
		t.Errorf("a configuration without mistakes is retried: %s", log.String())
	}
	_ = a.reconfigure(t.Context(), g, o, nil)
	first := log.String()
	a.retry(t.Context(), g, o)
	if first == "" || log.String() != first || len(g.mistakes()) != 1 {
		t.Errorf("the log has %q and then %q", first, log.String())
	}
}

func TestFileThatIsGoneOrEmptyChangesNothing(t *testing.T) {
	p, file := configured(t)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	p.logged("expected a readable file: no such file or directory")
	write(t, file, "# soon\n")
	p.logged("neither keys nor providers nor models")
	if got := p.ask("one", "a"); got != 200 {
		t.Errorf("status %d", got)
	}
	if n := strings.Count(p.errOut.String(), "no such file"); n != 1 {
		t.Errorf("the file that is gone was reported %d times", n)
	}
	p.stop()
}

// TestLogBesideTheFileDoesNotHideItsChange: a file that grows in the directory all the
// time, as a log does.
func TestLogBesideTheFileDoesNotHideItsChange(t *testing.T) {
	p, file := configured(t)
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for tick := time.NewTicker(settleTime / 8); ; {
			select {
			case <-done:
				tick.Stop()
				return
			case now := <-tick.C:
				if err := os.WriteFile(filepath.Join(filepath.Dir(file), "log"), []byte(now.String()), 0o600); err != nil {
					t.Error(err)
				}
			}
		}
	})
	write(t, file, serving("b", "q"))
	p.await("model b", func() bool { return p.ask("one", "b") == 200 })
	close(done)
	wg.Wait()
	p.stop()
}

// TestTurnedLinkIsAChange: orchestrators keep each version in a directory of its own.
func TestTurnedLinkIsAChange(t *testing.T) {
	dir := directory(t)
	write(t, filepath.Join(dir, "secret"), "one\n")
	write(t, filepath.Join(dir, "etc", "..1", "f.yaml"), serving("a", "p"))
	write(t, filepath.Join(dir, "etc", "..2", "f.yaml"), serving("b", "p"))
	link := func(to, at string) {
		t.Helper()
		if err := errors.Join(os.Symlink(to, filepath.Join(dir, "etc", "new")), os.Rename(filepath.Join(dir, "etc", "new"), filepath.Join(dir, "etc", at))); err != nil {
			t.Fatal(err)
		}
	}
	link("..1", "..data")
	link(filepath.Join("..data", "f.yaml"), "f.yaml")
	p := launch(t, dir, "serve", "--config", filepath.Join("etc", "f.yaml"))
	link("..2", "..data")
	p.await("model b", func() bool { return p.ask("one", "b") == 200 })
	p.stop()
}

func TestHangupReadsSecretsAgain(t *testing.T) {
	p, file := configured(t)
	write(t, filepath.Join(filepath.Dir(filepath.Dir(file)), "secret"), "two\n")
	p.signal(syscall.SIGHUP)
	p.await("the new key", func() bool { return p.ask("two", "a") == 200 })
	if got := p.ask("one", "a"); got != http.StatusUnauthorized {
		t.Errorf("the old key is answered %d", got)
	}
	p.stop()
}

func TestWarningsOfTheFileAreCountedInTheLog(t *testing.T) {
	p, file := configured(t)
	p.logged("the configuration may not be as it was meant; stagedoor config check shows why\" warnings=1")
	write(t, file, strings.Replace(serving("b", "q"), "name: n", "name: n, models: [a, b]", 1))
	p.logged("shows why\" warnings=2") // a short key, and no model a
	p.stop()
}

func TestSettingsThatNeedARestartAreNamed(t *testing.T) {
	p, file := configured(t)
	write(t, file, strings.Replace(serving("b", "p"), "127.0.0.1:0", "127.0.0.1:1", 1))
	p.logged("take effect with the next start")
	p.await("model b", func() bool { return p.ask("one", "b") == 200 })
	p.stop()
}

func TestKeyOfAnUnknownUserIsReported(t *testing.T) {
	p, file := configured(t)
	write(t, file, strings.Replace(serving("b", "p"), "name: n", "name: n, user: missing", 1))
	p.logged(`msg="a key of the configuration names a user that there is not" key=n user=missing`)
	p.await("model b", func() bool { return p.ask("one", "b") == 200 })
	p.stop()
}

// TestAutoAuthorizeChangesAtOnce: an operator who forbids it does not want to stop
// streams for it; what else is about the authorization service waits.
func TestAutoAuthorizeChangesAtOnce(t *testing.T) {
	before := &config.Config{OAuth: config.OAuth{AutoAuthorize: "login", Issuer: "https://a.example.com"}}
	after := &config.Config{OAuth: config.OAuth{AutoAuthorize: "never", TopUpURL: "https://pay.example.com/",
		Issuer: "https://a.example.com"}}
	if names := fixed(before, after); len(names) != 0 {
		t.Errorf("these wait for a start: %v", names)
	}
	after.OAuth.Issuer = "https://b.example.com"
	if names := fixed(before, after); len(names) != 1 || names[0] != "oauth" {
		t.Errorf("these wait for a start: %v", names)
	}
	if got := before.OAuth.With(&after.OAuth); got.AutoAuthorize != "never" || got.Issuer != "https://a.example.com" {
		t.Errorf("in force is %+v", got)
	}
}

func TestRequestsGoOnWhileTheConfigurationChanges(t *testing.T) {
	p, file := configured(t)
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if got := p.ask("one", "a"); got != 200 {
					t.Errorf("status %d", got)
					return
				}
			}
		})
	}
	for i := range 10 {
		// The provider's limits change each time.
		text := strings.Replace(serving("a", "p"), "shape: sandbox",
			fmt.Sprintf("shape: sandbox, limits: {concurrency: %d}", 10+i), 1)
		write(t, file, text)
		p.signal(syscall.SIGHUP)
		p.await("reading again", func() bool { return strings.Count(p.errOut.String(), "configuration read again") > i })
	}
	close(done)
	wg.Wait()
	p.stop()
}

// TestAnEditOfTheFileDuringAChangeIsStillRead: only the text that the change itself wrote counts as read.
func TestAnEditOfTheFileDuringAChangeIsStillRead(t *testing.T) {
	file := write(t, filepath.Join(t.TempDir(), "f.yaml"), "first")
	f := newFollower(file)
	defer f.close()
	write(t, file, "of the change")
	if f.wrote([]byte("of the change")); f.changed() {
		t.Error("the text that a change has put in force is read again")
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	read := make(chan bool, 1)
	go f.follow(ctx, slog.New(slog.DiscardHandler), func() { read <- true }, func() {})
	if err := f.do(ctx, func() { write(t, file, "of the operator") }); err != nil {
		t.Fatal(err)
	}
	select {
	case <-read:
	case <-time.After(time.Minute):
		t.Error("the edit is not read")
	}
}

// TestAPanicOfAChangeIsAnErrorAndTheNextChangeIsMade.
func TestAPanicOfAChangeIsAnErrorAndTheNextChangeIsMade(t *testing.T) {
	f := newFollower("")
	defer f.close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go f.follow(ctx, slog.New(slog.DiscardHandler), func() {}, func() {})
	if err := f.do(ctx, func() { panic("broken") }); err == nil {
		t.Error("a panic is no error")
	}
	made := false
	if err := f.do(ctx, func() { made = true }); err != nil || !made {
		t.Errorf("the next change: %v, %v", made, err)
	}
}
