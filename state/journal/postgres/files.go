package postgres

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"stagedoor/state/blobs"
	"stagedoor/state/journal"
)

//go:embed files.sql
var filesSQL string

const (
	// filePart is the size of the rows of a file. A file that is written has one in memory.
	filePart = 1 << 20
	// fileWindow is the part of a file that a reader has in memory. It divides filePart.
	fileWindow = 256 << 10
	// fileConnections bounds those for files, so that long transfers do not keep a node from its log.
	fileConnections = 2
)

// Files keeps the contents of blobs as rows in the database. It implements blobs.Backend for all nodes of the database
// together. Close ends it.
type Files struct {
	store *Store
	pool  *pgxpool.Pool
}

// Files returns the files of the database, whose tables it makes if they are not there. Any number of nodes may use
// them, and they do not depend on the node's epoch.
func (s *Store) Files(ctx context.Context) (*Files, error) {
	pool, err := s.Connections(fileConnections, nil)
	if err != nil {
		return nil, fmt.Errorf("open the files of the shared store: %w", err)
	}
	f := &Files{s, pool}
	err = f.do(func(ctx context.Context, conn *pgxpool.Conn) error {
		return MakeTables(ctx, conn.Conn(), "to_regclass('stagedoor.file_part') IS NOT NULL", filesSQL)
	})
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("open the files of the shared store: %w", err)
	}
	return f, nil
}

// Close closes the connections for files.
func (f *Files) Close() { f.pool.Close() }

// do runs statements that may run twice. They are tried again for a short while if the connection breaks, as all
// connections have when the database was started again.
func (f *Files) do(statements func(context.Context, *pgxpool.Conn) error) error {
	deadline := time.Now().Add(patience)
	for wait := 10 * time.Millisecond; ; wait *= 2 {
		err := f.once(statements)
		switch refused := refusedBy(err); {
		case err == nil, errors.Is(err, blobs.ErrNotFound):
			return err
		case refused != nil:
			return refused
		case time.Now().After(deadline):
			return fmt.Errorf("%w: %w", blobs.ErrUnavailable, err)
		}
		select {
		case <-f.store.running.Done():
			return journal.ErrClosed
		case <-time.After(wait):
		}
	}
}

// once runs statements on one connection of the pool, within the time in which the database must answer.
func (f *Files) once(statements func(context.Context, *pgxpool.Conn) error) error {
	ctx, cancel := context.WithTimeout(f.store.running, f.store.options.AnswerWait)
	defer cancel()
	conn, err := f.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	return statements(ctx, conn)
}

// exec runs one statement that may run twice, and returns the number of its rows.
func (f *Files) exec(sql string, values ...any) (rows int64, err error) {
	err = f.do(func(ctx context.Context, conn *pgxpool.Conn) error {
		done, err := conn.Exec(ctx, sql, values...)
		rows = done.RowsAffected()
		return replicated(conn.Conn(), err)
	})
	return rows, err
}

// Shared implements blobs.Backend.
func (f *Files) Shared() bool { return true }

// fileRow is a row of a finished file.
type fileRow struct {
	ID, Media, Owner string
	Expires, Size    int64
}

// info returns the row as the content's information.
func (r fileRow) info() blobs.Info {
	return blobs.Info{ID: blobs.ID(r.ID), MediaType: r.Media, Owner: r.Owner, Expires: time.Unix(r.Expires, 0),
		Size: r.Size}
}

const selectFiles = "SELECT id, media, owner, expires, size FROM stagedoor.file WHERE size IS NOT NULL"

// List implements blobs.Backend. The age of what was not finished is measured by the database's clock.
func (f *Files) List(time.Time) (all []blobs.Info, err error) {
	_, err = f.exec("DELETE FROM stagedoor.file WHERE size IS NULL AND added < clock_timestamp() - interval '1 hour'")
	if err != nil {
		return nil, err
	}
	err = f.do(func(ctx context.Context, conn *pgxpool.Conn) error {
		all = nil
		rows, err := conn.Query(ctx, selectFiles)
		if err != nil {
			return err
		}
		var r fileRow
		_, err = pgx.ForEachRow(rows, []any{&r.ID, &r.Media, &r.Owner, &r.Expires, &r.Size}, func() error {
			all = append(all, r.info())
			return nil
		})
		return err
	})
	return all, err
}

// Find implements blobs.Backend.
func (f *Files) Find(id blobs.ID) (blobs.Info, error) {
	var r fileRow
	err := f.do(func(ctx context.Context, conn *pgxpool.Conn) error {
		err := conn.QueryRow(ctx, selectFiles+" AND id = $1", string(id)).
			Scan(&r.ID, &r.Media, &r.Owner, &r.Expires, &r.Size)
		if errors.Is(err, pgx.ErrNoRows) {
			return blobs.ErrNotFound
		}
		return err
	})
	return r.info(), err
}

// Create implements blobs.Backend.
func (f *Files) Create(info blobs.Info) (blobs.Unfinished, error) {
	_, err := f.exec(`INSERT INTO stagedoor.file (id, media, owner, expires) VALUES ($1, $2, $3, $4)
		ON CONFLICT DO NOTHING`, string(info.ID), info.MediaType, info.Owner, info.Expires.Unix())
	if err != nil {
		return nil, err
	}
	return &unfinishedFile{files: f, info: info}, nil
}

// Remove implements blobs.Backend. A reader that has begun gets an error at its next part.
func (f *Files) Remove(info blobs.Info) error {
	_, err := f.exec("DELETE FROM stagedoor.file WHERE id = $1", string(info.ID))
	return err
}

// unfinishedFile is a file that is written, part by part.
type unfinishedFile struct {
	files *Files
	info  blobs.Info
	part  []byte
	size  int64
}

// Write implements io.Writer.
func (u *unfinishedFile) Write(p []byte) (n int, err error) {
	for len(p) > 0 {
		if u.part == nil {
			u.part = make([]byte, 0, min(filePart, max(len(p), fileWindow/8)))
		}
		more := min(len(p), filePart-len(u.part))
		u.part, p = append(u.part, p[:more]...), p[more:]
		n, u.size = n+more, u.size+int64(more)
		if len(u.part) == filePart {
			if err := u.flush(); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

// flush writes the part. A file that was tidied away meanwhile is refused by the database.
func (u *unfinishedFile) flush() error {
	if len(u.part) == 0 {
		return nil
	}
	_, err := u.files.exec(`INSERT INTO stagedoor.file_part (id, part, value) VALUES ($1, $2, $3)
		ON CONFLICT DO NOTHING`, string(u.info.ID), (u.size-1)/filePart, u.part)
	u.part = u.part[:0]
	return err
}

// Finish implements blobs.Unfinished.
func (u *unfinishedFile) Finish() error {
	err := u.flush()
	if err == nil {
		var rows int64
		rows, err = u.files.exec("UPDATE stagedoor.file SET size = $2 WHERE id = $1", string(u.info.ID), u.size)
		if err == nil && rows == 0 {
			err = blobs.ErrNotFound
		}
	}
	if err != nil {
		return errors.Join(err, u.Discard())
	}
	return nil
}

// Discard implements blobs.Unfinished.
func (u *unfinishedFile) Discard() error { return u.files.Remove(u.info) }

// Open implements blobs.Backend. The reader has no connection while it is not read from.
func (f *Files) Open(info blobs.Info) (io.ReadSeekCloser, error) {
	r := &openFile{files: f, info: info}
	if info.Size == 0 {
		_, err := f.Find(info.ID)
		return r, err
	}
	if err := r.load(); err != nil {
		return nil, err
	}
	return r, nil
}

// openFile is a file that is read, window by window.
type openFile struct {
	files  *Files
	info   blobs.Info
	at     int64
	window []byte
	start  int64 // of the window
}

// load reads the window at the present position.
func (r *openFile) load() error {
	start := r.at - r.at%fileWindow
	part, offset := start/filePart, start%filePart
	err := r.files.do(func(ctx context.Context, conn *pgxpool.Conn) error {
		err := conn.QueryRow(ctx, `SELECT substring(value FROM $3 FOR $4) FROM stagedoor.file_part
			WHERE id = $1 AND part = $2`, string(r.info.ID), part, int32(offset+1), int32(fileWindow)).Scan(&r.window)
		if errors.Is(err, pgx.ErrNoRows) {
			return blobs.ErrNotFound
		}
		return err
	})
	if err == nil && int64(len(r.window)) != min(fileWindow, r.info.Size-start) {
		err = fmt.Errorf("file %s has not as many bytes as it should: %w", r.info.ID, io.ErrUnexpectedEOF)
	}
	r.start = start
	return err
}

// Read implements io.Reader.
func (r *openFile) Read(p []byte) (int, error) {
	switch {
	case r.at >= r.info.Size:
		return 0, io.EOF
	case r.at < r.start || r.at >= r.start+int64(len(r.window)):
		if err := r.load(); err != nil {
			r.window = nil
			return 0, err
		}
	}
	n := copy(p, r.window[r.at-r.start:])
	r.at += int64(n)
	return n, nil
}

// Seek implements io.Seeker.
func (r *openFile) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += r.at
	case io.SeekEnd:
		offset += r.info.Size
	}
	if offset < 0 {
		return r.at, fmt.Errorf("%w: position %d", journal.ErrInvalid, offset)
	}
	r.at = offset
	return offset, nil
}

// Close implements io.Closer.
func (r *openFile) Close() error { return nil }
