package admin

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"

	"stagedoor/providers/dialogue"
	"stagedoor/state"
)

// Backup is a copy of the store that was asked for, and what became of it.
type Backup struct {
	Path  string `json:"path"` // absolute: the gateway may have been started elsewhere
	Bytes int64  `json:"bytes,omitempty"`
}

func backup(s *state.State) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var b Backup
		err := readBody(r, &b)
		if err != nil || !filepath.IsAbs(b.Path) {
			answer(w, nil, dialogue.Invalid("path", "must be an absolute path"))
			return
		}
		b.Bytes, err = s.Backup(r.Context(), b.Path)
		if err != nil {
			err = &refused{backupStatus(err), err.Error(), err}
		}
		answer(w, b, err)
	}
}

// backupStatus: a path that cannot be written to is the operator's mistake.
func backupStatus(err error) int {
	if errors.As(err, new(*os.PathError)) || errors.As(err, new(*os.LinkError)) || errors.Is(err, os.ErrExist) {
		return http.StatusBadRequest
	}
	return http.StatusInternalServerError
}

// Backup has the gateway write a copy of its store. It takes as long as the store
// is large.
func (c *Client) Backup(ctx context.Context, path string) (b Backup, err error) {
	patient := *c
	patient.http.Timeout = 0
	return b, patient.do(ctx, http.MethodPost, "/backups", Backup{Path: path}, &b)
}
