package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"stagedoor/state/journal"
)

// backupName is the layout of the names of backups, which sort by time and have no characters that a file system may
// refuse.
const backupName = "stagedoor-20060102T150405Z.backup"

// backupCheck is the interval between checks for a due backup.
const backupCheck = 15 * time.Second

// keepBackups makes the backups that the configuration asks for, until ctx ends.
func keepBackups(ctx context.Context, g *gateway) {
	tick := time.NewTicker(backupCheck)
	defer tick.Stop()
	for {
		// The configuration is read in every round, so that a reload can begin, change or end backups.
		c := g.config.Load()
		if c.Backups.Dir != "" && c.Data != "memory" {
			b := backups{dir: c.Backups.Dir, every: time.Duration(c.Backups.Every), keep: c.Backups.Keep,
				needs: journal.BackupNeeds}
			var size journal.ChangesBackup
			switch made, err := b.makeDue(time.Now(), func(path, before string) (err error) {
				size, err = g.state.BackupChanges(ctx, path, before)
				return err
			}); {
			case ctx.Err() != nil:
				return
			case err != nil:
				g.logger.Error("the store was not backed up", "cause", err)
			case made != "":
				g.logger.Info("the store was backed up", "file", made, "bytes", size.Size, "written", size.Written)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// backups is a directory of incremental backups.
type backups struct {
	dir   string
	every time.Duration
	keep  int
	// needs returns the names of the earlier files that a backup needs.
	needs func(path string) ([]string, error)
}

// makeDue makes a backup if one is due, and returns its name, or "" if none is. It calls backup with the path of the
// new backup and that of the newest existing one, from which it continues. Then it removes the oldest backups beyond
// those to keep, except for those that a kept one needs. It reads the existing backups from the directory, so that
// restarts neither make more of them nor put one off. It leaves other files alone.
func (b backups) makeDue(now time.Time, backup func(path, before string) error) (made string, err error) {
	have, err := b.list()
	if err != nil {
		return "", err
	}
	// Backups of the future are of a clock that was set back.
	name, earliest := now.UTC().Format(backupName), now.Add(-b.every).UTC().Format(backupName)
	if slices.ContainsFunc(have, func(n string) bool { return n > earliest && n <= name }) {
		return "", nil
	}
	before := ""
	if len(have) > 0 {
		before = filepath.Join(b.dir, have[len(have)-1])
	}
	if err := backup(filepath.Join(b.dir, name), before); err != nil {
		return "", err
	}
	have = append(have, name)
	slices.Sort(have)
	return name, b.remove(have, name)
}

// remove removes the oldest of the backups have beyond those to keep, except for made and for those that a kept one
// needs.
func (b backups) remove(have []string, made string) error {
	old := have[:max(len(have)-b.keep, 0)]
	keep := map[string]bool{made: true}
	for _, name := range append(slices.Clone(have[len(old):]), made) {
		keep[name] = true
		needed, err := b.needs(filepath.Join(b.dir, name))
		if err != nil {
			return err // what a damaged one needs is not known, so all stay
		}
		for _, n := range needed {
			keep[n] = true
		}
	}
	var errs []error
	for _, name := range old {
		if !keep[name] {
			errs = append(errs, os.Remove(filepath.Join(b.dir, name)))
		}
	}
	return errors.Join(errs...)
}

// list returns the names of the existing backups, oldest first.
func (b backups) list() ([]string, error) {
	entries, err := os.ReadDir(b.dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if _, err := time.Parse(backupName, e.Name()); err == nil && e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}
