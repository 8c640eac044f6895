package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"time"

	"github.com/go-json-experiment/json"

	"stagedoor/actors/recording"
	"stagedoor/cmd/stagedoor/config"
	"stagedoor/http/nodes"
	"stagedoor/http/web/portal"
	"stagedoor/state"
	"stagedoor/state/identity"
	"stagedoor/state/journal"
	"stagedoor/state/recordings"
)

// recordingsDir is the directory below data of what is kept of keys that are recorded.
const recordingsDir = "recordings"

// startKeeper starts the keeper, which keeps the exchanges of recorded keys for the pages of their requests. Without a
// data directory nothing is kept.
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
	return keptAnywhere{g.keeper, g}
}

const (
	// recordingTime bounds the wait for another gateway.
	recordingTime = 5 * time.Second
	// maxRecording bounds the bytes of its answer. An exchange that is kept has at most 4 MiB of bodies.
	maxRecording = 64 << 20
)

// keptAnywhere finds what any gateway over the database keeps.
type keptAnywhere struct {
	*recording.Keeper
	gateway *gateway
}

// Find implements portal.Recordings.
func (k keptAnywhere) Find(ctx context.Context, node, key, id string, from, to time.Time) (*recording.Exchange, error) {
	others := k.gateway.nodes
	switch {
	case node == "" || node == k.gateway.nodeName():
		return k.Keeper.Find(key, id, from, to)
	case others == nil:
		return nil, portal.ErrSilent // there is no way to ask it
	}
	ctx, cancel := context.WithTimeout(ctx, recordingTime)
	defer cancel()
	at := url.Values{"key": {key}, "id": {id}, "from": {from.Format(time.RFC3339Nano)},
		"to": {to.Format(time.RFC3339Nano)}}
	answers, err := nodes.Ask(ctx, others, node, "/recordings", at, func(r io.Reader) (recording.Exchange, error) {
		var x recording.Exchange
		err := json.UnmarshalRead(io.LimitReader(r, maxRecording), &x)
		return x, err
	})
	switch {
	case err != nil || len(answers) == 0:
		return nil, portal.ErrSilent
	case errors.Is(answers[0].Err, nodes.StatusError(http.StatusNotFound)):
		return nil, state.ErrNotFound
	case answers[0].Err != nil:
		return nil, portal.ErrSilent
	}
	return answers[0].Value, nil
}

// serveRecording sends another gateway an exchange that this one keeps.
func (g *gateway) serveRecording(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	from, err := time.Parse(time.RFC3339Nano, q.Get("from"))
	to, errTo := time.Parse(time.RFC3339Nano, q.Get("to"))
	if err = errors.Join(err, errTo); err != nil || g.keeper == nil {
		http.Error(w, "nothing is kept here", http.StatusNotFound)
		return
	}
	x, err := g.keeper.Find(q.Get("key"), q.Get("id"), from, to)
	switch {
	case errors.Is(err, state.ErrNotFound):
		http.Error(w, "nothing is kept here", http.StatusNotFound)
	case err != nil:
		g.logger.Error("read a recording for another gateway", "request_id", q.Get("id"), "cause", err)
		http.Error(w, "the recording cannot be read", http.StatusInternalServerError)
	default:
		_ = json.MarshalWrite(w, x) // the other gateway says that this one does not answer
	}
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
