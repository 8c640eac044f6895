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

// Backup is a copy of the store. The command sends Path, and the gateway returns both fields.
type Backup struct {
	Path  string `json:"path"` // must be absolute, because the gateway may have another working directory
	Bytes int64  `json:"bytes,omitempty"`
}

// handleBackup handles POST /backups.
func handleBackup(s *state.State) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var b Backup
		err := readBody(r, &b)
		if err != nil || !filepath.IsAbs(b.Path) {
			writeReply(w, nil, dialogue.Invalid("path", "must be an absolute path"))
			return
		}
		b.Bytes, err = s.Backup(r.Context(), b.Path)
		if err != nil {
			err = &operatorError{backupStatus(err), err.Error(), err}
		}
		writeReply(w, b, err)
	}
}

// backupStatus returns the status for a backup that failed: 400 if the path cannot be written to or exists already,
// because the operator has chosen it, and 500 if the store cannot be read.
func backupStatus(err error) int {
	if errors.As(err, new(*os.PathError)) || errors.As(err, new(*os.LinkError)) || errors.Is(err, os.ErrExist) {
		return http.StatusBadRequest
	}
	return http.StatusInternalServerError
}

// Backup makes the gateway write a copy of its store to path. It has no time limit, because the duration depends on the
// size of the store. It returns when the copy is complete and checked. The gateway writes the file, so path is one of
// its file system and is made with the rights of its user.
func (c *Client) Backup(ctx context.Context, path string) (b Backup, err error) {
	unlimited := *c
	unlimited.http.Timeout = 0
	return b, unlimited.do(ctx, http.MethodPost, "/backups", Backup{Path: path}, &b)
}
