package main

import (
	"path/filepath"
	"time"

	"stagedoor/actors/requests"
	"stagedoor/cmd/stagedoor/config"
	"stagedoor/cmd/stagedoor/sqlite"
	"stagedoor/state/journal"
	"stagedoor/state/requestlog"
)

// logMargin is the space of the disk that the log of requests leaves free beside what the journal needs to go on.
const logMargin = 64 << 20

// startRequestLog has the requests that end written to the log of requests. Nothing is opened before the first of them.
func (g *gateway) startRequestLog(c *config.Config) {
	data := c.Data
	path := filepath.Join(data, sqlite.FileName)
	o := requests.Options{Logger: g.logger, Limits: requestLimits(c),
		Open: func(limits func() requestlog.Limits) (requestlog.Store, error) {
			log, err := sqlite.Open(sqlite.Options{Path: path, Limits: limits, Now: time.Now, Logger: g.logger,
				Room: func() int64 { return logRoom(data) }})
			return requestlog.Store{Reader: log, Writer: log}, err
		},
		Key: g.keyName, Group: g.groupName}
	if data != "memory" {
		o.Remove = func() error { return sqlite.Remove(path) }
	}
	g.requests = requests.Start(o)
	g.flow.SetRecorder(g.requests.Add, g.requests.Keeps)
}

// requestLogStats returns how many requests the log of requests has got, and how many are missing there: those that it
// could not take, and refused requests of keys that had too many.
func (g *gateway) requestLogStats() (written, dropped int64) {
	written, dropped = g.requests.Stats()
	return written, dropped + g.flow.LeftOut()
}

// logRoom returns how many bytes of the disk the log of requests may still take, so that it never stops the journal.
func logRoom(data string) int64 {
	free, err := journal.FreeSpace(data)
	if err != nil {
		return 0 // unknown on this system
	}
	return free - journal.DefaultLowWater - logMargin
}

// requestLimits returns the bounds of the log. Without a data directory there is no log.
func requestLimits(c *config.Config) requestlog.Limits {
	l := requestlog.Limits{Keep: time.Duration(c.Requests.Keep), Bytes: int64(c.Requests.MiB) << 20}
	if c.Data == "memory" {
		l.Keep = 0
	}
	return l
}
