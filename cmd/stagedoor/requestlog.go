package main

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"time"

	"stagedoor/actors/requests"
	"stagedoor/cmd/stagedoor/config"
	"stagedoor/cmd/stagedoor/datadir"
	"stagedoor/cmd/stagedoor/sqlite"
	"stagedoor/state/journal"
	"stagedoor/state/requestlog"
	"stagedoor/state/requestlog/pglog"
)

// logMargin is the space of the disk that the log of requests leaves free beside what the journal needs to go on.
const logMargin = 64 << 20

// startRequestLog starts the recorder that writes ended requests to the log of requests. It opens nothing before the
// first of them.
func (g *gateway) startRequestLog(c *config.Config) {
	o := requests.Options{Logger: g.logger, Limits: requestLimits(c), Key: g.keyName, Group: g.groupName}
	path := filepath.Join(c.Data, sqlite.FileName)
	switch shared := datadir.SharedStore(g.store); {
	case shared != nil && c.RequestsInDatabase():
		o.Open = func(limits func() requestlog.Limits) (requestlog.Store, error) {
			return g.openDatabaseLog(shared, path, limits)
		}
		o.Remove = func() error {
			ctx, cancel := context.WithTimeout(context.Background(), removeTime)
			defer cancel()
			return errors.Join(pglog.Remove(ctx, shared), sqlite.Remove(path))
		}
	case c.Data == "memory":
		// The limits keep it from being opened.
	default:
		data := c.Data
		o.Open = func(limits func() requestlog.Limits) (requestlog.Store, error) {
			log, err := sqlite.Open(sqlite.Options{Path: path, Limits: limits, Now: time.Now, Logger: g.logger,
				Room: func() int64 { return logRoom(data) }})
			return requestlog.Store{Reader: log, Writer: log}, err
		}
		o.Remove = func() error { return sqlite.Remove(path) }
	}
	g.requests = requests.Start(o)
	g.flow.SetRecorder(g.requests.Add, g.requests.Keeps)
}

// removeTime bounds the time in which a log that is switched off is removed from the database.
const removeTime = 10 * time.Second

// openDatabaseLog opens the log of all gateways of the database. The file at path is that of a time before the log was
// in the database, or nothing.
func (g *gateway) openDatabaseLog(db pglog.Database, path string, limits func() requestlog.Limits) (requestlog.Store,
	error) {
	node, _, _ := g.store.(journal.Shared).Members().Self()
	log, err := pglog.Open(db, pglog.Options{Node: node, Limits: limits, Now: time.Now})
	if err != nil {
		return requestlog.Store{}, err
	}
	return requestlog.Store{Reader: log, Writer: &databaseLog{log, path, limits}}, nil
}

// databaseLog is a log in the database. It removes the file of this gateway that was in use before when its last
// request is too old. Nothing reads that file any more.
type databaseLog struct {
	*pglog.Log
	file   string
	limits func() requestlog.Limits
}

// Prune implements requestlog.Writer.
func (l *databaseLog) Prune(ctx context.Context) (more bool, err error) {
	if info, err := os.Stat(l.file); err == nil && time.Since(info.ModTime()) > l.limits().Keep {
		if err := sqlite.Remove(l.file); err != nil {
			return false, err
		}
	}
	return l.Log.Prune(ctx)
}

// requestLogStats returns how many requests the log of requests has got, and how many are missing there: those that it
// could not take, and refused requests of keys that had too many.
func (g *gateway) requestLogStats() (written, dropped int64) {
	written, dropped = g.requests.Stats()
	return written, dropped + g.flow.LeftOut()
}

// logRoom returns how many bytes of the disk the log of requests, or recordings, may still take, so that they never stop
// the journal. Where the free space is not known there is no bound.
func logRoom(data string) int64 {
	free, err := journal.FreeSpace(data)
	if err != nil {
		return math.MaxInt64
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
