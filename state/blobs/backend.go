package blobs

import (
	"errors"
	"io"
	"time"
)

// Backend keeps the contents of blobs for a Store: in a directory, or in a database. The Store decides what may be kept
// and what has expired. All methods may be called at the same time, also by Stores of several processes if Shared.
type Backend interface {
	// Shared reports whether other processes put and remove blobs, too.
	Shared() bool
	// List returns all blobs that are there, whether they have expired or not. Before that it removes what was begun
	// and never finished, because its process died. If no other process puts blobs, that is all that is not finished.
	List(now time.Time) ([]Info, error)
	// Find returns a blob that another process may have put. The error is ErrNotFound if there is none.
	Find(ID) (Info, error)
	// Create begins a blob, which is not there until Finish.
	Create(Info) (Unfinished, error)
	// Open opens a blob, which the caller closes. The error is ErrNotFound if it was removed.
	Open(Info) (io.ReadSeekCloser, error)
	// Remove removes a blob. One that is not there is no error.
	Remove(Info) error
}

// Unfinished is a blob that is being written. Either Finish or Discard ends it. After an error of Finish nothing is
// left of it, and Discard need not be called.
type Unfinished interface {
	io.Writer
	// Finish makes the blob durable, and then found.
	Finish() error
	Discard() error
}

// abandonedAfter is the age at which an unfinished blob of a shared backend is taken for one of a process that died.
const abandonedAfter = time.Hour

// Move moves all blobs to another backend, where they have the same ids, and those that have expired nowhere. What was
// moved before an error is there, and calling Move again moves the rest.
func Move(from, to Backend, now time.Time) error {
	all, err := from.List(now)
	for _, info := range all {
		if now.Before(info.Expires) {
			err = errors.Join(err, copyTo(from, to, info))
		}
		if err != nil {
			return err
		}
		err = from.Remove(info)
	}
	return err
}

// copyTo copies one content. An unfinished copy is discarded.
func copyTo(from, to Backend, info Info) error {
	r, err := from.Open(info)
	if err != nil {
		return err
	}
	defer r.Close()
	w, err := to.Create(info)
	if err != nil {
		return err
	}
	if _, err := io.Copy(w, r); err != nil {
		return errors.Join(err, w.Discard())
	}
	return w.Finish()
}
