package sqlite

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"stagedoor/state/requestlog"
)

// The room is that of the file here: SQLite reports a file that may not grow as a full disk.
func TestALogWhoseDiskWasFullGoesOn(t *testing.T) {
	log, err := Open(Options{Path: filepath.Join(t.TempDir(), FileName), Now: time.Now, Logger: slog.Default(),
		Limits: func() requestlog.Limits { return requestlog.Limits{Keep: time.Hour, Bytes: 1 << 30} },
		Room:   func() int64 { return 0 }})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if _, err := log.write.Exec("PRAGMA max_page_count = 60"); err != nil {
		t.Fatal(err)
	}
	add := func() error {
		return log.Append(context.Background(), []requestlog.Record{{Began: time.Now(), ID: "req_1", Owner: "key:a"}})
	}
	for err == nil {
		err = add()
	}
	if codeOf(err) != codeFull {
		t.Fatal(err)
	}
	_, err = log.Prune(t.Context())
	if err = errors.Join(err, add()); err != nil {
		t.Errorf("a full disk is a trap: %v", err)
	}
}
