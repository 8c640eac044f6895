package main

import (
	"cmp"
	"context"
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
	"stagedoor/state/ownership"
)

// maxContent is a setting in bytes: 0 is no bound.
func maxContent(mebibytes int) int64 {
	if mebibytes <= 0 || int64(mebibytes) > math.MaxInt64>>20 {
		return math.MaxInt64
	}
	return int64(mebibytes) << 20
}

// storage has the content: in the data directory, in one of all gateways of a database or, if nothing is to be kept, in
// one that is gone with the process.
type storage struct {
	content *blobs.Store
	scratch string // for uploads under way
	remove  string // the directory to remove at the end; "": none
}

// openStorage opens the content in a directory, or in the data directory if content is empty.
func openStorage(data, content string, most int64) (*storage, error) {
	s := &storage{}
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
		s.content, err = blobs.Open(cmp.Or(content, filepath.Join(data, "content")), most, time.Now())
	}
	if err != nil {
		s.close()
		return nil, datadir.Unavailable(err)
	}
	return s, nil
}

// sweep removes what has expired.
func (s *storage) sweep() error {
	_, err := s.content.Sweep(time.Now())
	return err
}

func (s *storage) close() {
	if s != nil && s.remove != "" {
		_ = os.RemoveAll(s.remove) // the program ends, so an error has no use
	}
}

// videoTimes are the times of video jobs.
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
		Scratch: g.storage.scratch, Heartbeat: time.Duration(c.Heartbeat), Attach: g.attach}), nil
}
