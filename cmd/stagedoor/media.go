package main

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"time"

	"stagedoor/actors/videojob"
	"stagedoor/cmd/stagedoor/config"
	"stagedoor/cmd/stagedoor/datadir"
	"stagedoor/http/media"
	"stagedoor/providers/dialogue"
	"stagedoor/state/blobs"
	"stagedoor/state/journal"
	"stagedoor/state/journal/postgres"
	"stagedoor/state/ownership"
)

// maxContent returns a setting in MiB as bytes. A setting of 0 sets no bound.
func maxContent(mebibytes int) int64 {
	if mebibytes <= 0 || int64(mebibytes) > math.MaxInt64>>20 {
		return math.MaxInt64
	}
	return int64(mebibytes) << 20
}

// storage has the content: in the data directory, in the database of a cluster, in a directory of all its gateways or,
// if nothing is to be kept, in a directory that is gone with the process.
type storage struct {
	content *blobs.Store
	scratch string          // for uploads under way
	remove  string          // the directory to remove at the end; "": none
	rows    *postgres.Files // the content, if it is in a database
}

// openStorage opens the content for a gateway whose state is in store.
func openStorage(ctx context.Context, c *config.Config, store journal.Store) (*storage, error) {
	s, data := &storage{}, c.Data
	if data == "memory" {
		dir, err := os.MkdirTemp("", "stagedoor-")
		if err != nil {
			return nil, datadir.Unavailable(err)
		}
		data, s.remove = dir, dir
	}
	s.scratch = filepath.Join(data, "scratch")
	err := ownership.MkdirAll(s.scratch, 0o700)
	if err == nil {
		var backend blobs.Backend
		if backend, err = s.openBackend(ctx, c.Cluster.Files, filepath.Join(data, "content"), store); err == nil {
			s.content, err = blobs.New(backend, maxContent(c.Limits.ContentMiB), time.Now())
		}
	}
	if err != nil {
		s.close()
		return nil, datadir.Unavailable(err)
	}
	return s, nil
}

// openBackend opens the place of the contents: a directory that all gateways have, if one is configured, or else the
// database of the state, or else a directory of this gateway's own. It moves contents that are in the own directory
// into the database.
func (s *storage) openBackend(ctx context.Context, common, own string, store journal.Store) (blobs.Backend, error) {
	shared := datadir.SharedStore(store)
	switch {
	case common != "":
		return blobs.Directory(common, true)
	case shared == nil:
		return blobs.Directory(own, false)
	}
	var err error
	if s.rows, err = shared.Files(ctx); err != nil {
		return nil, err
	}
	if _, err := os.Stat(own); errors.Is(err, fs.ErrNotExist) {
		return s.rows, nil
	}
	// A gateway whose state was moved into the database, or of a version that kept files outside it.
	before, err := blobs.Directory(own, false)
	if err == nil {
		err = blobs.Move(before, s.rows, time.Now())
	}
	return s.rows, err
}

// sweep removes what has expired.
func (s *storage) sweep() error {
	_, err := s.content.Sweep(time.Now())
	return err
}

// close closes the content. It may be called on a nil storage, of a gateway that failed before it had one.
func (s *storage) close() {
	if s == nil {
		return
	}
	if s.rows != nil {
		s.rows.Close()
	}
	if s.remove != "" {
		_ = os.RemoveAll(s.remove) // the program ends, so an error has no use
	}
}

// videoTimes returns the times and the number of video jobs that the configuration sets.
func videoTimes(c *config.Videos) videojob.Config {
	return videojob.Config{Deadline: time.Duration(c.Deadline), Keep: time.Duration(c.Keep),
		Wait: time.Duration(c.Wait), Most: c.Most}
}

// mediaHandlers returns the handlers of images and videos.
func (g *gateway) mediaHandlers(ctx context.Context, c *config.Config, env *dialogue.Env) (*media.Handlers, error) {
	secret, err := g.state.Secret(ctx, "content", 32)
	if err != nil {
		return nil, datadir.Unavailable(err)
	}
	return media.New(media.Options{Logger: g.logger, Env: env, Auth: g.auth, Images: g.runtime.Images(),
		Videos: g.runtime.Videos(), State: g.state, Catalog: g.runtime.Catalog,
		Limits: g.runtime.Keys(), Watchers: g.watchers, Ledger: g.runtime.Ledger(),
		Content: media.NewContent(g.storage.content, secret, c.OAuth.Issuer, time.Now),
		Scratch: g.storage.scratch, Heartbeat: time.Duration(c.Heartbeat), Attach: g.attach,
		Flow: g.flow, Recorder: g.runtime.Text().Recorder()}), nil
}
