package main

import (
	"path/filepath"
	"time"

	"stagedoor/actors/requests"
	"stagedoor/cmd/stagedoor/config"
	"stagedoor/cmd/stagedoor/sqlite"
	"stagedoor/state/requestlog"
)

// startRequestLog has the requests that end written to the log of requests. Nothing is opened before the first of them.
func (g *gateway) startRequestLog(c *config.Config) {
	path := filepath.Join(c.Data, sqlite.FileName)
	g.requests = requests.Start(requests.Options{Logger: g.logger, Limits: requestLimits(c),
		Open: func() (requestlog.Store, error) {
			log, err := sqlite.Open(path, g.requests.Limits(), time.Now, g.logger)
			if err != nil {
				return nil, err // without a nil *Log, which would count as a store
			}
			return log, nil
		},
		Key: func(id string) string {
			key, err := g.auth.ByID(id)
			if err != nil { // it was removed meanwhile, or its user was disabled
				return ""
			}
			return key.Name
		}})
	g.flow.SetRecorder(g.requests.Add)
}

// requestLimits returns the bounds of the log. Without a data directory there is no log.
func requestLimits(c *config.Config) requestlog.Limits {
	l := requestlog.Limits{Keep: time.Duration(c.Requests.Keep), Bytes: int64(c.Requests.MiB) << 20}
	if c.Data == "memory" {
		l.Keep = 0
	}
	return l
}
