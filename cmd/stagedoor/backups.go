package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// backupName is the name of a copy: in the order of time, without what a file
// system may not take.
const backupName = "stagedoor-20060102T150405Z.db"

// backupCheck is how often it is looked whether a copy is due.
const backupCheck = 15 * time.Second

// keepBackups makes the copies that the configuration asks for, until ctx ends.
func keepBackups(ctx context.Context, g *gateway) {
	tick := time.NewTicker(backupCheck)
	defer tick.Stop()
	for {
		c := g.config.Load()
		if c.Backups.Dir != "" && c.Data != "memory" {
			b := backups{dir: c.Backups.Dir, every: time.Duration(c.Backups.Every), keep: c.Backups.Keep}
			switch made, err := b.make(time.Now(), func(path string) error {
				_, err := g.state.Backup(ctx, path)
				return err
			}); {
			case ctx.Err() != nil:
				return
			case err != nil:
				g.logger.Error("the store was not backed up", "cause", err)
			case made != "":
				g.logger.Info("the store was backed up", "file", made)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// backups is a directory of copies.
type backups struct {
	dir   string
	every time.Duration
	keep  int
}

// make makes a copy if one is due, and then removes the oldest ones beyond those
// to keep. Which there are the directory tells, so that restarts neither make more
// of them nor put one off. Other files are left alone.
func (b backups) make(now time.Time, backup func(path string) error) (made string, err error) {
	have, err := b.list()
	if err != nil {
		return "", err
	}
	// Copies of the future are of a clock that was set back.
	name, earliest := now.UTC().Format(backupName), now.Add(-b.every).UTC().Format(backupName)
	if slices.ContainsFunc(have, func(n string) bool { return n > earliest && n <= name }) {
		return "", nil
	}
	if err := backup(filepath.Join(b.dir, name)); err != nil {
		return "", err
	}
	have = append(have, name)
	slices.Sort(have)
	var errs []error
	for ; len(have) > b.keep; have = have[1:] {
		if have[0] != name {
			errs = append(errs, os.Remove(filepath.Join(b.dir, have[0])))
		}
	}
	return name, errors.Join(errs...)
}

// list is the names of the copies there are, oldest first.
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
