package redo

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// Commit is one commit as the log holds it.
type Commit struct {
	LSN     uint64
	Changes []byte
}

// Logged holds the contents of a log.
type Logged struct {
	Commits []Commit // those that follow the store's last commit, in order
	// Torn reports that a part of one more commit follows. A power cut leaves that of a commit that was not
	// acknowledged.
	Torn bool
}

// DamageError says that commits may be missing from the log.
type DamageError struct{ Reason string }

// Error completes a sentence whose subject is the store's file.
func (e *DamageError) Error() string { return e.Reason }

// damaged returns the error of a log that may lack a commit.
func damaged(format string, args ...any) error { return &DamageError{fmt.Sprintf(format, args...)} }

// Read returns the commits in dir that follow the commit lsn. A log that another store wrote, or that has a gap or
// damage before its last commit, is a *DamageError, because the log is the only record of those commits.
func Read(dir string, id ID, lsn uint64) (Logged, error) {
	var logs []contents
	for _, name := range Names {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return Logged{}, err
		}
		if len(data) < HeaderSize || len(bytes.TrimLeft(data[HeaderSize:], "\x00")) == 0 {
			continue // the process ended while it created the file
		}
		if !bytes.Equal(data[:HeaderSize], header(id)) {
			return Logged{}, damaged("and %s do not belong together, or that is damaged", name)
		}
		logs = append(logs, readContents(data[HeaderSize:], id, lsn))
	}
	slices.SortFunc(logs, func(a, b contents) int { return cmp.Compare(a.firstLSN(), b.firstLSN()) })
	var found Logged
	for _, log := range logs {
		for _, c := range log.commits {
			if c.LSN != lsn+1 {
				return Logged{}, damaged("ends with commit %d, and the redo log beside it goes on with %d "+
					"(a backup belongs into an empty directory)", lsn, c.LSN)
			}
			lsn = c.LSN
			found.Commits = append(found.Commits, c)
		}
	}
	for _, log := range logs {
		if log.newest > lsn {
			return Logged{}, damaged("has a redo log that is damaged behind commit %d of %d", lsn, log.newest)
		}
		found.Torn = found.Torn || log.torn == lsn+1
	}
	return found, nil
}

// contents holds the commits of one file of the log.
type contents struct {
	commits []Commit // those that follow a commit, in order
	torn    uint64   // the commit of which a part follows them, or 0
	newest  uint64   // the newest whole commit anywhere in the file
}

// firstLSN returns the number of the first commit in a file of the log, or 0 if there is none.
func (c *contents) firstLSN() uint64 {
	if len(c.commits) == 0 {
		return 0
	}
	return c.commits[0].LSN
}

// readContents reads the frames that follow the commit lsn.
func readContents(data []byte, id ID, lsn uint64) contents {
	var found contents
	at := 0
	for {
		c, size, ok := readFrame(data[at:], id)
		if !ok || (found.newest != 0 && c.LSN != found.newest+1) {
			break
		}
		if found.newest = c.LSN; c.LSN > lsn {
			found.commits = append(found.commits, c)
		}
		at += size
	}
	// Zeros follow the last frame, unless the last write was cut off or the file is damaged there.
	if claimed, ok := claimedLSN(data[at:]); ok {
		found.torn = claimed
	}
	for ; at < len(data); at += 8 {
		if claimed, ok := claimedLSN(data[at:]); !ok || claimed <= found.newest {
			continue
		}
		if c, _, ok := readFrame(data[at:], id); ok {
			found.newest = c.LSN
		}
	}
	return found
}
