package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tidwall/gjson"
	"pgregory.net/rapid"

	"stagedoor/cmd/stagedoor/config"
	"stagedoor/http/settings"
)

const (
	adminToken = "a-token-of-administration-for-tests"
	vendorKey  = "vendor-key-that-is-never-shown-9XyZ"
)

// editable is a configuration with comments that changes must keep.
const editable = `listen: "127.0.0.1:0"   # any port
data: data
keys: [{key: one, name: n}]
admin: {token: ` + adminToken + `}
# Upstreams.
providers:
  p: {shape: sandbox}   # the simulator

models:
  a: {targets: [{provider: p, model: x}]} # first
`

func editing(t *testing.T) (p *program, file string) {
	t.Helper()
	dir := directory(t)
	file = write(t, filepath.Join(dir, "f.yaml"), editable)
	return launch(t, dir, "serve", "--config", "f.yaml"), file
}

// configure sends a request to the API of administration and returns the reply.
func (p *program) configure(method, path, body string, status int) gjson.Result {
	p.t.Helper()
	req, err := http.NewRequest(method, p.URL+"/admin/v1"+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+adminToken)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != status {
		p.t.Fatalf("%s %s: %d, %v, want %d\n%s", method, path, res.StatusCode, err, status, text)
	}
	if strings.Contains(string(text), vendorKey) {
		p.t.Errorf("%s %s shows the key: %s", method, path, text)
	}
	return gjson.ParseBytes(text)
}

func contents(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

const newModel = `{"edits":[{"path":["models","b"],"value":{"targets":[{"provider":"p","model":"y"}]}}]}`

// TestAChangeIsWrittenToTheFileAndUndone shows that a change by the API keeps comments, owner and mode of the file, is
// in force when it is answered, and is taken back by one request.
func TestAChangeIsWrittenToTheFileAndUndone(t *testing.T) {
	p, file := editing(t)
	if err := os.Chmod(file, 0o640); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(file, 1234, 1234); err != nil {
			t.Fatal(err)
		}
	}
	review := p.configure("POST", "/configuration/review", newModel, 200)
	if got := contents(t, file); got != editable || review.Get("place").String() != "file" ||
		!strings.Contains(review.Get(`diff.#(sign=="+").text`).String(), "b:") {
		t.Errorf("the review says %s, and the file is\n%s", review, got)
	}
	saved := p.configure("POST", "/configuration/changes", newModel, 200)
	if got := p.ask("one", "b"); got != 200 || !saved.Get("saved").Bool() {
		t.Errorf("the new model is answered %d, saved: %s", got, saved)
	}
	want := editable + "  b:\n    targets: [{provider: p, model: \"y\"}]\n"
	if got := contents(t, file); got != want {
		t.Errorf("the file is\n%s\nwant\n%s", got, want)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("the mode is %v, %v", info.Mode(), err)
	}
	if os.Geteuid() == 0 && !strings.Contains(fmt.Sprintf("%+v", info.Sys()), "Uid:1234 Gid:1234") {
		t.Errorf("the owner has changed: %+v", info.Sys())
	}
	status := p.configure("GET", "/configuration", "", 200)
	if status.Get("version").String() != saved.Get("version").String() || status.Get("undo.by").String() != "API" ||
		status.Get("undo.what.0").String() != "+models.b" {
		t.Errorf("status %s", status)
	}
	record := p.configure("GET", "/audit?limit=1", "", 200).Get("data.0")
	lines := record.Get(`changes.#(field=="lines").after`).String()
	if lines != "  b:\n    targets: [{provider: p, model: \"y\"}]" || record.Get("target.id").String() != "+models.b" {
		t.Errorf("the audit log has %s", record)
	}
	p.configure("POST", "/configuration/undo", "{}", 200)
	if got := contents(t, file); got != editable {
		t.Errorf("undone, the file is\n%s", got)
	}
	if got := p.ask("one", "b"); got != 404 {
		t.Errorf("undone, the new model is answered %d", got)
	}
	p.configure("POST", "/configuration/undo", "{}", 200)
	if got := contents(t, file); got != want {
		t.Errorf("undone twice, the file is\n%s", got)
	}
	p.stop()
}

// TestAChangeForAnotherVersionIsAConflict shows that a file that was changed on disk meanwhile is kept.
func TestAChangeForAnotherVersionIsAConflict(t *testing.T) {
	p, file := editing(t)
	version := p.configure("GET", "/configuration", "", 200).Get("version").String()
	other := editable + "# by hand\n"
	write(t, file, other)
	draft := fmt.Sprintf(`{"version":%q,%s`, version, newModel[1:])
	if !p.configure("POST", "/configuration/review", draft, 200).Get("conflict").Bool() {
		t.Error("the review reports no conflict")
	}
	code := p.configure("POST", "/configuration/changes", draft, 409).Get("error.code").String()
	if got := contents(t, file); got != other || code != "configuration_changed" {
		t.Errorf("code %s, and the file is\n%s", code, got)
	}
	p.configure("POST", "/configuration/undo", "{}", 409)
	p.stop()
}

// TestAReadOnlyFileStaysAndTheStoreAboveItCounts shows that a change of a file without permission to write is kept in
// the data directory, holds after a restart, and is undone.
func TestAReadOnlyFileStaysAndTheStoreAboveItCounts(t *testing.T) {
	p, file := editing(t)
	if err := os.Chmod(file, 0o444); err != nil {
		t.Fatal(err)
	}
	if place := p.configure("POST", "/configuration/changes", newModel, 200).Get("place").String(); place != "store" {
		t.Errorf("it is kept in the %s", place)
	}
	p.stop()
	dir := filepath.Dir(file)
	if info, err := os.Stat(filepath.Join(dir, "data", layerName)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the store above the file: %v, %v", info, err)
	}
	p = launch(t, dir, "serve", "--config", "f.yaml")
	if got := p.ask("one", "b"); got != 200 || contents(t, file) != editable {
		t.Errorf("after a restart the new model is answered %d, and the file is\n%s", got, contents(t, file))
	}
	if n := p.configure("GET", "/configuration", "", 200).Get("kept").Int(); n != 1 {
		t.Errorf("%d changes are shown above the file, want 1", n)
	}
	p.configure("POST", "/configuration/undo", "{}", 200)
	if got := p.ask("one", "b"); got != 404 {
		t.Errorf("undone, the new model is answered %d", got)
	}
	p.stop()
}

// TestAKeyOfAChangeIsNeverShown neither in the review nor in the log, nor sent to another address than it was entered
// for.
func TestAKeyOfAChangeIsNeverShown(t *testing.T) {
	p, file := editing(t)
	add := `{"edits":[{"path":["providers","v"],"value":{"shape":"chat","base_url":"http://127.0.0.1:9","api_keys":["` +
		vendorKey + `"]}}]}`
	review := p.configure("POST", "/configuration/review", add, 200)
	if !strings.Contains(review.Raw, "…9XyZ") || review.Get("addresses.v").String() != "http://127.0.0.1:9/v1" {
		t.Errorf("the review is %s", review)
	}
	p.configure("POST", "/configuration/changes", add, 200)
	p.configure("GET", "/configuration", "", 200)
	p.configure("POST", "/providers/v/test", "{}", 200)
	edit := func(path, value string) string { return `{"edits":[{"path":[` + path + `],"value":` + value + `}]}` }
	move := func(more string) string {
		return `{"edits":[{"path":["providers","v","base_url"],"value":"http://127.0.0.1:8/v1"}` + more + `]}`
	}
	for _, c := range [][2]string{
		{move(""), "the address changes"},
		{move(`,{"path":["providers","v","api_keys","1"],"value":"another-key-of-the-vendor"}`), "the address changes"},
		{edit(`"providers","v","base_url"`, `"http://127.0.0.1:9/other"`), "the address changes"},
		{edit(`"providers","v","base_url"`, `"http://user:word@127.0.0.1:9"`), "without user and password"},
		{edit(`"providers","v","api_keys","0"`, `"${HOME}"`), "without ${"},
		{edit(`"providers","v","headers"`, `{"X":"file:f.yaml"}`), "without ${"},
		{edit(`"providers","v","base_url"`, `"http://x/${HOME}"`), "without ${"},
		{edit(`"admin","token"`, `"another-token"`), "expected providers or models"},
		{edit(`"providers","v\n"`, `{"shape":"chat"}`), "control characters"},
		{edit(`"providers","a b"`, `{"shape":"sandbox"}`), "without spaces"},
		{edit(`"providers","v","base_url"`, `"javascript:alert(1)"`), "expected the provider's address"},
		{edit(`"models","a","targets","0","provider"`, `"none"`), "is no provider of this file"},
		{`{"edits":[{"path":["providers","p"]}]}`, "is no provider of this file"},
		{`{"edits":[]}`, "expected 1 to"},
	} {
		body, want := c[0], c[1]
		got := p.configure("POST", "/configuration/changes", body, 400).Get("error.message").String()
		if !strings.Contains(got, want) {
			t.Errorf("%s is refused with %q, want %q", body, got, want)
		}
	}
	p.configure("POST", "/configuration/changes", move(`,{"path":["providers","v","api_keys"]}`), 200)
	if log := p.errOut.String(); strings.Contains(log, vendorKey) || strings.Contains(contents(t, file), vendorKey) {
		t.Errorf("the key is still there:\n%s", log)
	}
	if log := p.configure("GET", "/audit", "", 200).Raw; strings.Contains(log, vendorKey) ||
		!strings.Contains(log, "…9XyZ") {
		t.Errorf("the audit log has %s", log)
	}
	p.stop()
}

// TestChangesCanBeSwitchedOff by the operator of the machine.
func TestChangesCanBeSwitchedOff(t *testing.T) {
	dir := directory(t)
	before := strings.Replace(editable, "admin: {", "admin: {configure: false, ", 1)
	file := write(t, filepath.Join(dir, "f.yaml"), before)
	p := launch(t, dir, "serve", "--config", "f.yaml")
	p.configure("POST", "/configuration/review", newModel, 403)
	p.configure("POST", "/configuration/changes", newModel, 403)
	p.configure("POST", "/configuration/undo", "{}", 403)
	if contents(t, file) != before {
		t.Error("the file has changed")
	}
	p.stop()
}

// TestAChangeWithoutAFileIsKeptAboveTheSimulator for the first provider of a gateway that was started without a file.
func TestAChangeWithoutAFileIsKeptAboveTheSimulator(t *testing.T) {
	t.Setenv("STAGEDOOR_DATA", "")
	o := &overrides{data: t.TempDir()}
	env := func(string) (string, bool) { return "", false }
	c, err := o.loadWithData(env)
	if err != nil || c.Data != o.data || len(c.Providers) != 1 {
		t.Fatalf("%+v, %v", c, err)
	}
	text := `{"edits":[{"path":["providers","local"],"value":{"shape":"chat","base_url":"http://127.0.0.1/v1"}}]}`
	if err := os.WriteFile(filepath.Join(o.data, layerName), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err = o.loadWithData(env); err != nil || c.Data != o.data || len(c.Providers) != 2 || len(c.Models) != 2 {
		t.Fatalf("%+v, %v", c, err)
	}
	if err := os.WriteFile(filepath.Join(o.data, layerName), []byte("{secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err = o.loadWithData(env); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("a broken store above the file is %v", err)
	}
}

// TestAFailureBeforeTheExchangeLeavesTheOldFile shows that the file is whole after a crash or a failure between writing
// the new text and exchanging it, and that what a crash left is removed by the next change.
func TestAFailureBeforeTheExchangeLeavesTheOldFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "f.yaml")
	write(t, file, "old")
	left := filepath.Join(dir, ".f.yaml.stagedoor-new-123")
	write(t, left, "half")
	failed := errors.New("failed")
	err := replaceFile(file, []byte("new"), 0o600, func(made *os.File) error {
		if text := contents(t, made.Name()); text != "new" || contents(t, file) != "old" {
			t.Errorf("before the exchange the file has %q and the new one %q", contents(t, file), text)
		}
		return failed
	})
	if !errors.Is(err, failed) || contents(t, file) != "old" {
		t.Errorf("%v, and the file has %q", err, contents(t, file))
	}
	all, err := filepath.Glob(filepath.Join(dir, ".*"))
	if err != nil || len(all) != 0 {
		t.Errorf("left behind: %v, %v", all, err)
	}
	if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what a crash left is still there: %v", err)
	}
}

// TestAReloadThatFailsLeavesTheFileAsBefore also where the failure shows only when the change is put in force.
func TestAReloadThatFailsLeavesTheFileAsBefore(t *testing.T) {
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "f.yaml"), editable)
	refused, reloads := errors.New("it cannot be put in force"), 0
	s := &settingsStore{gateway: &gateway{logger: slog.New(slog.DiscardHandler)}, overrides: &overrides{file: file},
		follower: &follower{}, env: func(string) (string, bool) { return "", false },
		reload: func(context.Context) error {
			if reloads++; contents(t, file) != editable {
				return refused
			}
			return nil
		}}
	before, err := s.read()
	if err != nil {
		t.Fatal(err)
	}
	before.data = dir
	next := &sources{file: []byte("models: {}\n"), data: dir}
	r, err := s.exchange(t.Context(), before, next, &settings.Review{}, "anna", nil)
	if err != nil || r.Saved || len(r.Mistakes) != 1 || reloads != 2 || contents(t, file) != editable {
		t.Errorf("%+v, %v after %d reloads, and the file is\n%s", r, err, reloads, contents(t, file))
	}
}

// TestKeptChangesCanBeMadeAgainInEverySequence of changes and removals: what is dropped from the kept ones is needless.
func TestKeptChangesCanBeMadeAgainInEverySequence(t *testing.T) {
	value := map[string]string{"providers.p": `{"shape":"chat"}`, "providers.p.headers": `{"Y":"y"}`,
		"providers.p.headers.X": `"x"`, "models.m": `{"targets":[{"provider":"p"}]}`,
		"models.m.targets": `[{"provider":"p"}]`, "models.m.targets.0.weight": "3"}
	paths := slices.Sorted(maps.Keys(value))
	base := []byte("providers:\n  p: {shape: sandbox}\n")
	rapid.Check(t, func(t *rapid.T) {
		var kept, all []settings.Edit
		for range rapid.IntRange(1, 8).Draw(t, "edits") {
			path := rapid.SampledFrom(paths).Draw(t, "path")
			e := settings.Edit{Path: strings.Split(path, ".")}
			if rapid.Bool().Draw(t, "set") {
				e.Value = []byte(value[path])
			}
			if _, err := config.ApplyEdits(base, append(slices.Clone(all), e)); err != nil {
				continue // such as the removal of what is not there
			}
			all, kept = append(all, e), compact(append(slices.Clone(kept), e))
		}
		want, err := config.ApplyEdits(base, all)
		if err != nil {
			t.Fatal(err)
		}
		got, err := config.ApplyEdits(base, kept)
		if err != nil || contentsOf(t, got) != contentsOf(t, want) {
			t.Errorf("%v, %s of\n%s\nmake\n%s\nwant\n%s", err, kept, all, got, want)
		}
	})
}

// contentsOf returns the settings of the entries that the test above changes.
func contentsOf(t *rapid.T, text []byte) string {
	var out string
	for _, kind := range []string{settings.Providers, settings.Models} {
		all, _, err := config.EntrySettings(text, kind, map[string]string{"providers": "p", "models": "m"}[kind])
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range all {
			if s.Value != "" {
				out += fmt.Sprintln(s.Path, s.Value)
			}
		}
	}
	return out
}

// TestAFileWithMistakesIsNotShown by a review: a key may stand in it at a place where none is known.
func TestAFileWithMistakesIsNotShown(t *testing.T) {
	text := strings.Replace(editable, "p: {shape: sandbox}", "p: {shape: sandbox, api_key: "+vendorKey+"}", 1)
	s := &settingsStore{gateway: &gateway{}, env: func(string) (string, bool) { return "", false },
		overrides: &overrides{data: t.TempDir(), file: write(t, filepath.Join(t.TempDir(), "f.yaml"), text)}}
	s.gateway.config.Store(config.Default())
	r, err := s.Review(settings.Draft{Edits: []settings.Edit{{Path: []string{"providers", "p", "retries"},
		Value: []byte("1")}}})
	if err != nil || len(r.Mistakes) == 0 || len(r.Diff) > 0 || strings.Contains(fmt.Sprint(r), vendorKey) {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestTheStoreAboveTheFileIsBounded before anything is written: a longer one would not be read at the next start.
func TestTheStoreAboveTheFileIsBounded(t *testing.T) {
	dir := t.TempDir()
	s := &settingsStore{}
	for name, next := range map[string]layer{"changes": {Edits: make([]settings.Edit, maxKept+1)},
		"bytes": {Edits: []settings.Edit{{Value: []byte(`"` + strings.Repeat("x", maxLayer) + `"`)}}}} {
		after := &sources{data: dir, layer: next}
		r, err := s.exchange(t.Context(), &sources{data: dir}, after, &settings.Review{}, "", nil)
		if err != nil || r.Saved || len(r.Mistakes) != 1 || !strings.Contains(r.Mistakes[0], "by hand") {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	if all, err := os.ReadDir(dir); err != nil || len(all) > 0 {
		t.Errorf("written: %v, %v", all, err)
	}
}

// TestChangesInMemoryAreReadWhileAnotherIsKept shows with the race detector that pages may read at any time.
func TestChangesInMemoryAreReadWhileAnotherIsKept(t *testing.T) {
	s := &settingsStore{overrides: &overrides{data: "memory"}}
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := s.read(); err != nil {
			t.Error(err)
		}
	})
	next := &sources{data: "memory", layer: layer{Edits: make([]settings.Edit, 1)}}
	err := s.keep(&sources{data: "memory"}, next)
	wg.Wait()
	if c, readErr := s.read(); err != nil || readErr != nil || len(c.layer.Edits) != 1 {
		t.Errorf("%+v, %v, %v", c, err, readErr)
	}
}
