package main

import (
	"stagedoor/actors/alerts"
	"stagedoor/state/journal"
)

// startAlerts looks for alerts until the watcher is closed. A gateway without the setting alerts sends none.
func (g *gateway) startAlerts() *alerts.Watcher {
	return alerts.Start(alerts.Options{Logger: g.logger, State: g.state, Providers: g.runtime.Providers,
		Disk: func() (free, refused int64, ok bool) {
			free = g.store.Stats().DiskFree
			return free, journal.DefaultLowWater, free >= 0
		}})
}
