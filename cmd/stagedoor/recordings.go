package main

import (
	"path/filepath"
	"time"

	"stagedoor/actors/recording"
	"stagedoor/cmd/stagedoor/config"
	"stagedoor/http/web/portal"
	"stagedoor/state/identity"
	"stagedoor/state/journal"
	"stagedoor/state/recordings"
)

// recordingsDir is the directory below data of what is kept of keys that are recorded.
const recordingsDir = "recordings"

// startKeeper has the exchanges of keys that are recorded kept for the pages of their requests. Without a data
// directory nothing is kept.
func (g *gateway) startKeeper(c *config.Config) {
	if c.Data == "memory" {
		return
	}
	access, data := identity.AccessOf(g.state), c.Data
	g.keeper = recording.StartKeeper(recording.KeeperOptions{Logger: g.logger, Recorder: g.runtime.Text().Recorder(),
		Dir: filepath.Join(data, recordingsDir), Limits: recordingLimits(c), Recorded: access.Recorded,
		Changed: access.WatchAccess, Room: func() int64 { return logRoom(data) }, Now: time.Now,
		Stays: func(id string) bool {
			k, err := identity.FindKey(g.state.View(), id)
			return err == nil && k.Revoked.IsZero()
		}})
}

// recordings returns what the pages read of recordings, or nil if nothing is ever kept.
func (g *gateway) recordings() portal.Recordings {
	if g.keeper == nil {
		return nil // and not an interface with a nil inside
	}
	return g.keeper
}

// recordingStats returns how many exchanges of recorded keys were kept, and how many were not.
func (g *gateway) recordingStats() (kept, dropped int64) {
	if g.keeper == nil {
		return 0, 0
	}
	return g.keeper.Stats()
}

// nodeName returns the name of this gateway among those of one database, or "" if it has none.
func (g *gateway) nodeName() string {
	shared, ok := g.store.(journal.Shared)
	if !ok {
		return ""
	}
	name, _, _ := shared.Members().Self()
	return name
}

// recordingLimits returns the bounds of what is kept.
func recordingLimits(c *config.Config) recordings.Limits {
	return recordings.Limits{Keep: time.Duration(c.Recorded.Keep), Bytes: int64(c.Recorded.MiB) << 20,
		Exchanges: c.Recorded.Exchanges}
}
