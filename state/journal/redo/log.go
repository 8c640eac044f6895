package redo

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"stagedoor/state/journal/fsync"
	"stagedoor/state/ownership"
)

// Names are the names of the log's files in the store's directory.
var Names = [2]string{"redo-0.log", "redo-1.log"}

// Paths returns the files of the log in dir, whether they exist or not.
func Paths(dir string) []string {
	var paths []string
	for _, name := range Names {
		paths = append(paths, filepath.Join(dir, name))
	}
	return paths
}

// Size is the length of a file of the log, unless a single commit is longer.
const Size = 8 << 20

// growth is the number of bytes allocated at once, up to the size of a file.
const growth = 1 << 20

// Options of New. The zero value is what a server wants.
type Options struct {
	Size     int64                                                           // 0: Size
	OpenFile func(name string, flag int, mode os.FileMode) (*os.File, error) // nil: os.OpenFile
}

// Log is the two files of a redo log.
type Log struct {
	dir     string
	size    int64
	files   [len(Names)]file
	current int
}

// New returns the log of the store id in dir. It creates no file before the first Append.
func New(dir string, id ID, o Options) *Log {
	o.Size = cmp.Or(o.Size, Size)
	if o.OpenFile == nil {
		o.OpenFile = os.OpenFile
	}
	l := &Log{dir: dir, size: o.Size}
	for i, path := range Paths(dir) {
		l.files[i] = file{path: path, id: id, most: o.Size, open: o.OpenFile}
	}
	return l
}

// ErrNoSpace means that the log could not grow and that nothing was written.
var ErrNoSpace = errors.New("the redo log cannot grow")

// Append makes a commit durable. The frame comes from NewFrame and must not be used afterwards. After an error it is
// unknown whether the commit is in the file, so the store must not go on with this log.
func (l *Log) Append(lsn uint64, frame []byte) error { return l.files[l.current].append(lsn, frame) }

// Used returns how many bytes of frames the current file holds.
func (l *Log) Used() int64 { return max(l.files[l.current].at-HeaderSize, 0) }

// Fits reports whether a frame still fits into the current file. Every frame fits into an empty one, which is made
// longer for it.
func (l *Log) Fits(frame []byte) bool {
	return l.Used() == 0 || l.files[l.current].at+int64(len(frame))+endSize <= l.size
}

// Switch lets commits go on at the beginning of the other file. The store must have taken over all that the other file
// holds. A crash in between is harmless: what the old file holds is in the store, and Read skips commits that the store
// has.
func (l *Log) Switch() error {
	l.current = 1 - l.current
	return l.files[l.current].rewind()
}

// Close closes the files. If remove is set, because the store has taken over all that they hold, it also removes the
// files that this Log created. It leaves other files of the same name alone, because another process may have created
// them after the store's own file was replaced.
func (l *Log) Close(remove bool) error {
	var err error
	var created []string
	for i := range l.files {
		if l.files[i].file != nil {
			created = append(created, l.files[i].path)
		}
		err = errors.Join(err, l.files[i].close())
	}
	if err != nil || !remove {
		return err
	}
	return removeFiles(l.dir, created)
}

// Remove removes the log in dir. The store must have taken over all that it holds.
func Remove(dir string) error { return removeFiles(dir, Paths(dir)) }

// removeFiles removes the files that exist. The sync of the directory makes the removal durable.
func removeFiles(dir string, paths []string) error {
	var err error
	removed := false
	for _, path := range paths {
		switch e := os.Remove(path); {
		case e == nil:
			removed = true
		case !errors.Is(e, os.ErrNotExist):
			err = errors.Join(err, e)
		}
	}
	if removed {
		err = errors.Join(err, fsync.Dir(dir))
	}
	return err
}

// file is one of the two files.
type file struct {
	path string
	id   ID
	most int64 // Options.Size
	open func(name string, flag int, mode os.FileMode) (*os.File, error)
	file *os.File // nil until there is something to write
	size int64    // of the file
	at   int64    // where the next frame goes
}

// append writes a frame with the zeros that mark the end, in one write, and syncs the data. The
// next frame begins at the zeros.
func (f *file) append(lsn uint64, frame []byte) error {
	frame = sealFrame(f.id, lsn, frame)
	n := len(frame)
	frame = append(frame, make([]byte, endSize)...)
	if err := f.grow(int64(len(frame))); err != nil {
		return err
	}
	if _, err := f.file.WriteAt(frame, f.at); err != nil {
		return err
	}
	if err := fsync.Data(f.file); err != nil {
		return err
	}
	f.at += int64(n)
	return nil
}

// grow allocates the blocks of the next n bytes, because a sync is cheap where the file system has no metadata to
// write.
func (f *file) grow(n int64) error {
	if f.file == nil {
		if err := f.create(); err != nil {
			return fmt.Errorf("%w: %w", ErrNoSpace, err)
		}
	}
	if f.at+n <= f.size {
		return nil
	}
	to := max(min(f.size+growth, f.most), f.at+n)
	if _, err := f.file.WriteAt(make([]byte, to-f.size), f.size); err != nil {
		return fmt.Errorf("%w: %w", ErrNoSpace, err)
	}
	f.size = to
	return nil
}

// create opens or creates the file and writes its header.
func (f *file) create() (err error) {
	opened, err := f.open(f.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, opened.Close())
		}
	}()
	info, err := opened.Stat()
	if err != nil {
		return err
	}
	if _, err := opened.WriteAt(header(f.id), 0); err != nil {
		return err
	}
	if err := errors.Join(ownership.File(opened), opened.Sync(), fsync.Dir(filepath.Dir(f.path))); err != nil {
		return err
	}
	f.file, f.size, f.at = opened, max(info.Size(), HeaderSize), HeaderSize
	return nil
}

// rewind lets the file be written from its beginning. A file that a long commit made longer is cut.
func (f *file) rewind() error {
	if f.file == nil {
		return nil
	}
	f.at = HeaderSize
	if f.size <= f.most {
		return nil
	}
	f.size = f.most
	return f.file.Truncate(f.size)
}

// close closes the file if it is open.
func (f *file) close() error {
	if f.file == nil {
		return nil
	}
	err := f.file.Close()
	f.file = nil
	return err
}
