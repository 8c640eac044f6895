package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/sourcegraph/conc/pool"

	"stagedoor/cmd/stagedoor/config"
	"stagedoor/cmd/stagedoor/doctor"
	"stagedoor/http/settings"
	"stagedoor/providers/catalog"
	"stagedoor/state"
	"stagedoor/state/journal/fsync"
	"stagedoor/state/ownership"
)

// layerName is the file in the data directory with the changes that could not be written to the configuration file. It
// also has what undoes the last change. It is readable by its owner only, because both have secrets.
const layerName = "configuration.json"

// Bounds of that file. The configuration of an earlier version is in it. Each reload makes all changes in it again.
const (
	maxLayer = 8 << 20
	maxKept  = 500
)

// layer has what pages and the API keep beside the configuration file. It exists because the file cannot
// always be written: it may be mounted read-only into a container. Once there are edits in the layer, later
// ones go there, too, because the layer is applied on top of the file.
type layer struct {
	Edits []settings.Edit `json:"edits,omitempty"`
	Undo  *earlier        `json:"undo,omitempty"`
}

// earlier is the configuration before the last change. Text is nil if the change did not touch the file. Undo
// then restores only the edits.
type earlier struct {
	settings.LastSaved
	// After is the version of the configuration that the change made. Another one cannot be undone.
	After string          `json:"after"`
	Text  []byte          `json:"text,omitempty"` // of the file
	Edits []settings.Edit `json:"edits,omitempty"`
}

// sources has what the configuration is made of at one moment.
type sources struct {
	file  []byte // its text; DefaultText if there is no file
	layer layer
	data  string
}

// text returns the text in force: that of the file with the changes of the layer.
func (c *sources) text() ([]byte, error) { return config.ApplyEdits(c.file, c.layer.Edits) }

// version returns a short hash of the file and the changes, by which a page notices that another administrator was
// faster.
func (c *sources) version() string {
	sum := sha256.New()
	sum.Write(c.file)
	edits, _ := json.Marshal(c.layer.Edits, json.Deterministic(true)) // all of it was read from JSON
	sum.Write(append([]byte{0}, edits...))
	return hex.EncodeToString(sum.Sum(nil)[:12])
}

// readConfiguration reads the file and what is kept beside it.
func (o *overrides) readConfiguration(env func(string) (string, bool)) (*sources, error) {
	c := &sources{file: []byte(config.DefaultText)}
	var err error
	if o.file != "" {
		if c.file, err = config.Read(o.file); err != nil {
			return nil, err
		}
	}
	if c.data, err = o.dataDirectory(c.file, env); err != nil {
		return nil, err
	}
	if c.data == "memory" {
		if kept := o.kept.Load(); kept != nil {
			c.layer = *kept
		}
		return c, nil
	}
	path := filepath.Join(c.data, layerName)
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return c, nil // where data is no directory, opening the state says so
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", state.ErrUnavailable, err)
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > maxLayer {
		return nil, fmt.Errorf("%s is larger than %d bytes", path, maxLayer)
	}
	if err := json.UnmarshalRead(f, &c.layer); err != nil {
		// The message of the decoder could quote a secret.
		return nil, fmt.Errorf("%s cannot be read: expected the JSON that the gateway wrote; move it away to go on "+
			"without the changes in it", path)
	}
	return c, nil
}

// settingsStore implements settings.Store over the configuration file. A change runs on the goroutine of the
// follower, the part of the gateway that also takes over changes made by hand.
type settingsStore struct {
	gateway *gateway
	mu      sync.Mutex // one change at a time
	// The others are set before the gateway serves.
	env       func(string) (string, bool)
	overrides *overrides
	follower  *follower
	reload    func(context.Context) error // puts in force what the files say
}

// read returns what the configuration is made of now. It is read from disk each time, because the file may be changed
// by hand at any moment.
func (s *settingsStore) read() (*sources, error) {
	return s.overrides.readConfiguration(s.env)
}

// Status implements settings.Store.
func (s *settingsStore) Status() (settings.Status, error) {
	c, err := s.read()
	if err != nil {
		return settings.Status{}, err
	}
	status := settings.Status{File: s.overrides.file, Version: c.version(), Place: s.place(c), Kept: len(c.layer.Edits),
		Read: s.gateway.read.Load().UTC()}
	inForce := s.gateway.config.Load()
	status.Editable, status.Models = inForce.Admin.Configure, []string{}
	for _, m := range inForce.Models {
		status.Models = append(status.Models, m.Name)
	}
	if u := c.layer.Undo; u != nil && u.After == status.Version {
		status.Undo = &u.LastSaved
	}
	return status, nil
}

// place returns where the next change is kept.
func (s *settingsStore) place(c *sources) string {
	switch {
	case len(c.layer.Edits) == 0 && s.overrides.file != "" && writable(s.overrides.file):
		return "file"
	case c.data == "memory":
		return "memory"
	}
	return "store"
}

// writable reports whether a file can be replaced. One without any permission to write is left alone, also by
// root. The directory must be writable, too, because the file is replaced by another one and not written in
// place.
func writable(file string) bool {
	real, err := filepath.EvalSymlinks(file)
	if err != nil {
		return false
	}
	info, err := os.Stat(real)
	if err != nil || info.Mode()&0o222 == 0 {
		return false
	}
	const writeAndSearch = 3 // W_OK and X_OK of access(2)
	return syscall.Access(filepath.Dir(real), writeAndSearch) == nil
}

// Settings implements settings.Store.
func (s *settingsStore) Settings(kind, name string) ([]settings.Setting, error) {
	c, err := s.read()
	if err != nil {
		return nil, err
	}
	text, err := c.text()
	if err != nil {
		return nil, err
	}
	all, found, err := config.EntrySettings(text, kind, name)
	if err == nil && !found {
		err = state.ErrNotFound
	}
	return all, err
}

// candidate is a change that was applied to texts and is not in force.
type candidate struct {
	settings.Review
	before        *sources
	text          []byte // with the change
	config, inUse *config.Config
}

// Review implements settings.Store.
func (s *settingsStore) Review(d settings.Draft) (settings.Review, error) {
	c, err := s.candidate(d)
	if err != nil {
		return settings.Review{}, err
	}
	return c.Review, nil
}

// candidate applies a draft and collects what is wrong with the result. It returns an error only if the draft could
// not be judged. A draft with mistakes is a candidate whose config may be nil.
func (s *settingsStore) candidate(d settings.Draft) (*candidate, error) {
	if !s.gateway.config.Load().Admin.Configure {
		return nil, settings.ErrOff
	}
	before, err := s.read()
	if err != nil {
		return nil, err
	}
	c := &candidate{before: before, Review: settings.Review{Version: before.version(), Place: s.place(before),
		Mistakes: []string{}, Warnings: []string{}, Diff: []settings.Line{}, Addresses: map[string]string{}}}
	c.Conflict = d.Version != "" && d.Version != c.Version
	text, err := before.text()
	if err == nil {
		err = config.CheckEdits(d.Edits)
	}
	if err == nil {
		c.text, err = config.ApplyEdits(text, d.Edits)
	}
	if err != nil {
		c.Mistakes = append(c.Mistakes, describeMistakes(err)...)
		return c, nil
	}
	if c.config, err = s.overrides.parse(c.text, before.data, s.env); err != nil {
		c.Mistakes = append(c.Mistakes, describeMistakes(err)...)
		return c, nil // a text with mistakes may have secrets at places that are not known, so it is not shown
	} else if c.inUse, err = s.overrides.parse(text, before.data, s.env); err == nil {
		c.Mistakes = append(c.Mistakes, config.CheckAddresses(c.inUse, c.config)...)
		known := describeMistakes(c.inUse.Warnings)
		for _, w := range describeMistakes(c.config.Warnings) {
			if !slices.Contains(known, w) {
				c.Warnings = append(c.Warnings, w)
			}
		}
		for _, p := range c.config.Providers {
			if was, _ := c.inUse.Providers.Get(p.Name); was.BaseURL != p.Value.BaseURL {
				if better := config.SuggestAddress(p.Value.Shape, p.Value.BaseURL); better != "" {
					c.Addresses[p.Name] = better
				}
			}
		}
	} else {
		c.Mistakes = append(c.Mistakes, "the file in use has mistakes; mend them first")
		return c, nil
	}
	old, err := config.Masked(text)
	var masked []byte
	if err == nil {
		masked, err = config.Masked(c.text)
	}
	if err != nil {
		c.Warnings = append(c.Warnings, err.Error())
		return c, nil
	}
	c.Diff = config.Diff(old, masked)
	return c, nil
}

// Save implements settings.Store. It runs on the follower's goroutine, which also reads the file when it is changed by
// hand, so that neither sees half of the other's change.
func (s *settingsStore) Save(ctx context.Context, d settings.Draft, by string) (review settings.Review, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	done := s.follower.do(ctx, func() {
		var c *candidate
		if c, err = s.candidate(d); err != nil {
			return
		}
		review = c.Review
		if c.Conflict || len(c.Mistakes) > 0 {
			return
		}
		next := &sources{file: c.before.file, data: c.before.data, layer: layer{Edits: c.before.layer.Edits}}
		if c.Place == "file" {
			next.file = c.text
		} else {
			next.layer.Edits = compact(append(slices.Clone(next.layer.Edits), d.Edits...))
		}
		what := config.Changed(c.inUse, c.config)
		review, err = s.exchange(ctx, c.before, next, &review, by, what)
		// A file that is mounted alone into a container cannot be replaced, which shows only when it is tried. The
		// change is then kept in the data directory.
		if c.Place == "file" && c.before.data != "memory" && cannotReplace(err) {
			next = &sources{file: c.before.file, data: c.before.data, layer: layer{Edits: d.Edits}}
			review.Place = "store"
			review, err = s.exchange(ctx, c.before, next, &review, by, what)
		}
	})
	return review, errors.Join(done, err)
}

// cannotReplace reports whether a file was not written because the system does not let it be replaced, as a file that
// is mounted alone.
func cannotReplace(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.EBUSY) ||
		errors.Is(err, syscall.EXDEV)
}

// compact drops changes that a later one of the same setting, or of one around it, makes needless. The number of a
// list's element means another element after a removal, so a change of one replaces nothing. A removal of what is
// around the later one stays, and it needs the earlier one, without which there may be nothing to remove.
func compact(edits []settings.Edit) (out []settings.Edit) {
	for i, e := range edits {
		replaced, removed := false, len(e.Path)
		for _, later := range edits[i+1:] {
			n := len(later.Path)
			switch around := n <= len(e.Path) && slices.Equal(later.Path, e.Path[:n]); {
			case !around:
			case later.Value == nil:
				removed = min(removed, n)
			case n <= removed:
				replaced = replaced ||
					!slices.ContainsFunc(later.Path[2:], func(name string) bool { return name[:1] <= "9" })
			}
		}
		if !replaced {
			out = append(out, e)
		}
	}
	return out
}

// Undo implements settings.Store.
func (s *settingsStore) Undo(ctx context.Context, by string) (review settings.Review, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	done := s.follower.do(ctx, func() {
		var before *sources
		if !s.gateway.config.Load().Admin.Configure {
			err = settings.ErrOff
			return
		}
		if before, err = s.read(); err != nil {
			return
		}
		u := before.layer.Undo
		if u == nil || u.After != before.version() {
			err = settings.ErrNoUndo
			return
		}
		next := &sources{file: u.Text, data: before.data, layer: layer{Edits: u.Edits}}
		// The last change was not one of the file, so the file stays.
		if u.Text == nil {
			next.file = before.file
		}
		review, err = s.exchange(ctx, before, next, &settings.Review{Place: s.place(next)}, by, u.What)
	})
	return review, errors.Join(done, err)
}

// exchange keeps the next configuration and puts it in force. If that fails, the earlier one is kept again.
// Mistakes that show only when the gateway takes the configuration over, such as a port that is in use, are
// in the result and not in the error.
func (s *settingsStore) exchange(ctx context.Context, before, next *sources, r *settings.Review, by string,
	what []string) (settings.Review, error) {
	saved := settings.LastSaved{At: time.Now().UTC().Truncate(time.Second), By: by, What: what}
	next.layer.Undo = &earlier{LastSaved: saved, After: next.version(), Edits: before.layer.Edits}
	if string(before.file) != string(next.file) {
		next.layer.Undo.Text = before.file
	}
	if text, err := json.Marshal(&next.layer); err != nil {
		return *r, err
	} else if len(text) > maxLayer || len(next.layer.Edits) > maxKept {
		r.Mistakes = append(r.Mistakes, fmt.Sprintf("expected at most %d changes and %d bytes above the configuration "+
			"file; write them into the file by hand, and move %s away", maxKept, maxLayer, layerName))
		return *r, nil
	}
	if err := s.keep(before, next); err != nil {
		return *r, err
	}
	ctx = context.WithoutCancel(ctx) // a change that is written is also put in force
	if err := s.reload(ctx); err != nil {
		if err := s.keep(next, before); err != nil {
			return *r, fmt.Errorf("the change is not in force, and the earlier file could not be restored: %w", err)
		}
		r.Mistakes = describeMistakes(err)
		return *r, s.reload(ctx)
	}
	r.Saved, r.Version = true, next.version()
	s.gateway.logger.Info("configuration changed by an administrator", "by", by, "changed", what, "place", r.Place)
	return *r, nil
}

// keep replaces what differs between two configurations, on disk or in memory. What undoes a change is kept
// before the change, so that it is there after a crash between both; it counts only for the version that the
// change makes. The caller holds mu and runs on the follower's goroutine.
func (s *settingsStore) keep(before, next *sources) error {
	if next.data == "memory" {
		kept := next.layer
		s.overrides.kept.Store(&kept)
	} else {
		text, err := json.Marshal(&next.layer, json.Deterministic(true))
		if err != nil {
			return err
		}
		path := filepath.Join(next.data, layerName)
		if err := replaceFile(path, text, 0o600, nil); err != nil {
			return fmt.Errorf("the change is not kept: %w", err)
		}
	}
	if string(before.file) == string(next.file) {
		return nil
	}
	err := s.replaceConfiguration(before.file, next.file)
	if err == nil {
		s.follower.wrote(next.file)
	}
	return err
}

// replaceConfiguration writes the configuration file with the owner and the mode that it has. Another text than the
// expected one on disk is a conflict.
func (s *settingsStore) replaceConfiguration(expected, text []byte) error {
	real, err := filepath.EvalSymlinks(s.overrides.file)
	if err != nil {
		return err
	}
	info, err := os.Stat(real)
	if err != nil {
		return err
	}
	return replaceFile(real, text, info.Mode().Perm(), func(f *os.File) error {
		if uid, gid, ok := ownership.Of(info); ok {
			if made, err := f.Stat(); err != nil {
				return err
			} else if u, g, _ := ownership.Of(made); u != uid || g != gid {
				if err := f.Chown(int(uid), int(gid)); err != nil {
					return err
				}
			}
		}
		now, err := os.ReadFile(real)
		if err == nil && string(now) != string(expected) {
			err = settings.ErrConflict
		}
		return err
	})
}

// Test implements settings.Store. It reads what is in force or drafted and keeps nothing, so it needs no lock. What is
// in force is also tested where changes are switched off, and a draft only where Review is allowed.
func (s *settingsStore) Test(ctx context.Context, provider string, d *settings.Draft) ([]settings.Check, error) {
	c := s.gateway.config.Load()
	if d == nil && provider == "" {
		return checksOfAll(ctx, c.CatalogProviders()), nil
	}
	if d != nil {
		next, err := s.candidate(*d)
		if err != nil {
			return nil, err
		}
		if c = next.config; c == nil || len(next.Mistakes) > 0 {
			return nil, state.ErrInvalid
		}
	}
	for _, p := range c.CatalogProviders() {
		if p.Name == provider {
			return checksOf(ctx, &p), nil
		}
	}
	return nil, state.ErrNotFound
}

// mostTests is the number of providers that are tested at a time.
const mostTests = 8

// checksOfAll tests providers, several at a time.
func checksOfAll(ctx context.Context, all []catalog.Provider) []settings.Check {
	results := make([][]settings.Check, len(all))
	tests := pool.New().WithMaxGoroutines(mostTests)
	for i := range all {
		tests.Go(func() { results[i] = checksOf(ctx, &all[i]) })
	}
	tests.Wait()
	return slices.Concat(results...)
}

// checksOf tests a provider with each of its keys.
func checksOf(ctx context.Context, p *catalog.Provider) (out []settings.Check) {
	for _, check := range doctor.Provider(ctx, p) {
		out = append(out, settings.Check{Name: check.Name, Status: string(check.Status), Detail: check.Detail,
			Advice: check.Advice})
	}
	return out
}

// replaceFile writes a file as a whole: a reader finds the old text or the new one, also after a crash. check, if not
// nil, may stop it just before the exchange. Files that a crash left behind are removed.
func replaceFile(path string, text []byte, mode fs.FileMode, check func(*os.File) error) error {
	const made = ".stagedoor-new-"
	prefix := "." + filepath.Base(path) + made
	left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), prefix+"*")) // nothing, if a name has a bracket
	for _, name := range left {
		_ = os.Remove(name) // another attempt is made the next time
	}
	f, err := os.CreateTemp(filepath.Dir(path), prefix+"*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // of a failure: a file that was renamed is not there
	_, err = f.Write(text)
	err = cmp.Or(err, ownership.File(f), f.Chmod(mode))
	if err == nil && check != nil {
		err = check(f)
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return fsync.Dir(filepath.Dir(path))
}
