package journal

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// An incremental backup is a file with the chunks of a store's file that no backup before it has. It begins with
// those chunks and ends with a table of all chunks of the store, which tells where each is found: in this file or in
// an earlier one in the same directory.
//
//	chunks | for each chunk of the store: SHA-256 32, file 4, place 4 | names, each with a NUL | footer
//
// Files are numbered: 0 is this one, then the names. A place counts chunks from the beginning of its file. The
// footer is
//
//	size of the store 8 | chunks in this file 4 | length of the names 4 | SHA-256 of the table, names and these 32 | magic 8
//
// A backup is never changed, so what is done to a directory of them while one is written leaves the others whole.

const (
	// chunkSize is the size of bbolt's pages in new files. Pages stay where they are until they change.
	chunkSize   = pageSize
	chunkEntry  = sha256.Size + 4 + 4
	backupMagic = "sdback1\n"
	footerSize  = 8 + 4 + 4 + sha256.Size + int64(len(backupMagic))
	// maxBackupFiles bounds the files that one backup may need, so that there is a full one at times.
	maxBackupFiles = 4096
)

// ChangesBackup describes the file that BackupChanges wrote.
type ChangesBackup struct {
	Size    int64 // of the store
	Written int64 // bytes of the new file
}

// BackupChanges writes an incremental backup of s to path, on top of the one of the path before ("": a full one).
// Both are in one directory. Where the backup before is damaged, or its files together have more than twice the
// bytes of the store, the new one is full, so that old files can go. The file has its name only once it is whole and
// durable.
// The new file appears under its name by a link that fails if the name is taken, so two backups at
// a time cannot overwrite each other.
func BackupChanges(ctx context.Context, s Store, path, before string) (made ChangesBackup, err error) {
	if err := makeDir(filepath.Dir(path)); err != nil {
		return made, fmt.Errorf("back up: %w", err)
	}
	w := newChunkWriter(before)
	err = installFile(path, os.Link, func(tmp *os.File) error {
		w.out = bufio.NewWriterSize(tmp, 1<<20)
		err := s.Backup(ctx, w)
		if b, ok := s.(*Bolt); ok && errors.Is(err, ErrReadOnly) {
			err = b.copyTo(ctx, w, filepath.Dir(path))
		}
		if err != nil {
			return err
		}
		if err := errors.Join(w.finish(), tmp.Sync()); err != nil {
			return err
		}
		info, err := tmp.Stat()
		if err == nil {
			made = ChangesBackup{Size: w.size, Written: info.Size()}
		}
		return err
	})
	if err != nil {
		return ChangesBackup{}, fmt.Errorf("back up to %s: %w", path, err)
	}
	return made, nil
}

// copyTo writes to w what the store holds. It is for a store whose file has no room for what is in the redo log, or
// that is only read: a whole copy is made in dir first.
func (b *Bolt) copyTo(ctx context.Context, w io.Writer, dir string) error {
	tmp, err := os.CreateTemp(dir, unfinished)
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	defer tmp.Close()
	if err := b.copy(ctx, tmp); err != nil {
		return err
	}
	if _, err := tmp.Seek(0, io.SeekStart); err != nil {
		return err
	}
	_, err = io.Copy(w, tmp)
	return err
}

// chunkAt locates a chunk.
type chunkAt struct{ file, place uint32 }

// chunkWriter cuts the file of a store into chunks and writes those that are not known.
// It is a Writer, so that the store writes its backup as it always does and knows nothing of
// increments.
type chunkWriter struct {
	out   *bufio.Writer
	part  []byte // of the chunk that is not whole yet
	size  int64
	own   uint32 // chunks in this file
	table []byte
	names []string
	known map[[sha256.Size]byte]chunkAt
}

// newChunkWriter returns a writer that knows the chunks of the backup before. If there is none, or
// it is damaged, or it needs too many bytes or files, no chunk is known, and the new backup is
// full.
// An increment on top of a damaged backup would be damaged too, and that would be noticed only at a
// restore.
func newChunkWriter(before string) *chunkWriter {
	w := &chunkWriter{known: map[[sha256.Size]byte]chunkAt{}}
	if before == "" {
		return w
	}
	b, err := readBackup(before)
	if err != nil || b.total() > 2*b.size || len(b.names) >= maxBackupFiles {
		return w
	}
	// This backup may need the files that the backup before needs, and that one itself as the last of them.
	w.names = append(slices.Clone(b.names), filepath.Base(before))
	for at := range b.chunks() {
		hash, from := b.chunk(at)
		if from.file == 0 {
			from.file = uint32(len(w.names))
		}
		w.known[hash] = from
	}
	return w
}

// Write implements io.Writer.
func (w *chunkWriter) Write(p []byte) (int, error) {
	n := len(p)
	w.size += int64(n)
	for len(p) > 0 {
		take := min(chunkSize-len(w.part), len(p))
		w.part = append(w.part, p[:take]...)
		p = p[take:]
		if len(w.part) == chunkSize {
			if err := w.chunk(); err != nil {
				return 0, err
			}
		}
	}
	return n, nil
}

// chunk ends a chunk: it writes the bytes unless a backup has them, and adds the place to the
// table.
func (w *chunkWriter) chunk() error {
	hash := sha256.Sum256(w.part)
	at, ok := w.known[hash]
	if !ok {
		at = chunkAt{0, w.own}
		w.own++
		w.known[hash] = at
		if _, err := w.out.Write(w.part); err != nil {
			return err
		}
	}
	w.table = append(w.table, hash[:]...)
	w.table = binary.BigEndian.AppendUint32(w.table, at.file)
	w.table = binary.BigEndian.AppendUint32(w.table, at.place)
	w.part = w.part[:0]
	return nil
}

// finish writes the last chunk, filled with zeros, and the table.
func (w *chunkWriter) finish() error {
	if len(w.part) > 0 {
		w.part = append(w.part, make([]byte, chunkSize-len(w.part))...)
		if err := w.chunk(); err != nil {
			return err
		}
	}
	w.prune()
	end := w.table
	for _, name := range w.names {
		end = append(append(end, name...), 0)
	}
	names := len(end) - len(w.table)
	end = binary.BigEndian.AppendUint64(end, uint64(w.size))
	end = binary.BigEndian.AppendUint32(end, w.own)
	end = binary.BigEndian.AppendUint32(end, uint32(names))
	sum := sha256.Sum256(end)
	_, err := w.out.Write(append(append(end, sum[:]...), backupMagic...))
	return errors.Join(err, w.out.Flush())
}

// prune takes out the names of files that have no chunk of the store any more, so that these can be removed.
// Without it, a chain of increments would need every file since the last full backup, even those of
// which every page has changed.
func (w *chunkWriter) prune() {
	table := changesBackup{table: w.table}
	now := make([]uint32, len(w.names)+1)
	for n := range table.chunks() {
		_, at := table.chunk(n)
		now[at.file] = 1
	}
	var names []string
	for i, name := range w.names {
		if now[i+1] != 0 {
			names = append(names, name)
			now[i+1] = uint32(len(names))
		}
	}
	now[0], w.names = 0, names
	for n := range table.chunks() {
		_, at := table.chunk(n)
		binary.BigEndian.PutUint32(w.table[n*chunkEntry+sha256.Size:], now[at.file])
	}
}

// changesBackup is an incremental backup without its chunks.
type changesBackup struct {
	path  string
	size  int64
	table []byte
	names []string
}

// chunks returns the number of chunks of the store.
func (b *changesBackup) chunks() int { return len(b.table) / chunkEntry }

// chunk returns the checksum of chunk n and the place where its bytes are.
func (b *changesBackup) chunk(n int) (hash [sha256.Size]byte, at chunkAt) {
	entry := b.table[n*chunkEntry:]
	copy(hash[:], entry)
	return hash, chunkAt{binary.BigEndian.Uint32(entry[sha256.Size:]), binary.BigEndian.Uint32(entry[sha256.Size+4:])}
}

// total returns the bytes of the files that the backup needs. If a file is missing, it returns more than any store has,
// so that nothing is built on the backup.
func (b *changesBackup) total() (bytes int64) {
	for _, name := range append([]string{filepath.Base(b.path)}, b.names...) {
		info, err := os.Stat(filepath.Join(filepath.Dir(b.path), name))
		if err != nil {
			return 1 << 62
		}
		bytes += info.Size()
	}
	return bytes
}

// IsChangesBackup reports whether a file ends as an incremental backup does.
func IsChangesBackup(path string) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	end := make([]byte, len(backupMagic))
	_, err = file.Seek(-int64(len(end)), io.SeekEnd)
	if err == nil {
		_, err = io.ReadFull(file, end)
	}
	return err == nil && string(end) == backupMagic
}

// readBackup reads the table of an incremental backup.
// Lengths in the footer are compared with the size of the file before they are used, because a
// damaged footer must not lead to a huge allocation.
func readBackup(path string) (*changesBackup, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	wrong := &CorruptError{Table: "file", Reason: "is not a whole backup"}
	if info.Size() < footerSize {
		return nil, wrong
	}
	footer := make([]byte, footerSize)
	if _, err := file.ReadAt(footer, info.Size()-footerSize); err != nil {
		return nil, err
	}
	b := &changesBackup{path: path, size: int64(binary.BigEndian.Uint64(footer))}
	own, names := int64(binary.BigEndian.Uint32(footer[8:])), int64(binary.BigEndian.Uint32(footer[12:]))
	end := info.Size() - footerSize - own*chunkSize
	if string(footer[footerSize-int64(len(backupMagic)):]) != backupMagic || end < names || (end-names)%chunkEntry != 0 {
		return nil, wrong
	}
	text := make([]byte, end)
	if _, err := file.ReadAt(text, own*chunkSize); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(append(slices.Clone(text), footer[:16]...))
	b.table = text[:end-names]
	if !bytes.Equal(sum[:], footer[16:16+sha256.Size]) || int64(b.chunks()) != (b.size+chunkSize-1)/chunkSize {
		return nil, wrong
	}
	for _, name := range bytes.Split(bytes.TrimSuffix(text[end-names:], []byte{0}), []byte{0}) {
		if len(name) > 0 {
			b.names = append(b.names, string(name))
		}
	}
	return b, nil
}

// BackupNeeds returns the names of the earlier files that an incremental backup needs. It reads only the end of path,
// where the lists are, so it is cheap for a large file. A file that is not a whole backup is a *CorruptError.
func BackupNeeds(path string) ([]string, error) {
	b, err := readBackup(path)
	if err != nil {
		return nil, fmt.Errorf("read backup %s: %w", path, err)
	}
	return b.names, nil
}

// Restore makes a store in dir of a backup, incremental or a copy of the store's file. The directory must have none;
// it gets one only if every chunk is the one that was backed up, every page of the store is sound and check, if
// there is one, finds nothing wrong.
// The store is verified under a temporary name first. A directory in which the restore failed
// therefore has no store, and not half of one.
func Restore(ctx context.Context, backup, dir string, check func(Store) error) error {
	if err := makeDir(dir); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	path := filepath.Join(dir, FileName)
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("restore: there is a store in %s: choose an empty directory", dir)
	}
	if err := noRedo(dir); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	err := installFile(path, os.Link, func(tmp *os.File) error {
		if err := errors.Join(unpack(ctx, backup, tmp), tmp.Sync()); err != nil {
			return err
		}
		b, err := ReadBolt(tmp.Name(), Options{})
		if err != nil {
			return err
		}
		if check != nil {
			err = check(b)
		}
		return errors.Join(err, b.Close())
	})
	if err != nil {
		return fmt.Errorf("restore %s: %w", backup, err)
	}
	return nil
}

// unpack writes the store's file that a backup is of.
// Each chunk is compared with its checksum, since a restore from a disk that returns wrong bytes
// must fail and not succeed.
func unpack(ctx context.Context, backup string, tmp *os.File) error {
	if !IsChangesBackup(backup) {
		file, err := os.Open(backup)
		if err != nil {
			return err
		}
		defer file.Close()
		_, err = io.Copy(untilDone{ctx, tmp}, file)
		return err
	}
	b, err := readBackup(backup)
	if err != nil {
		return err
	}
	files := make([]*os.File, 1+len(b.names))
	defer func() {
		for _, file := range files {
			file.Close() // of those that were not opened it is an error that does not matter
		}
	}()
	out := bufio.NewWriterSize(untilDone{ctx, tmp}, 1<<20)
	data := make([]byte, chunkSize)
	for n := range b.chunks() {
		hash, at := b.chunk(n)
		if int(at.file) >= len(files) {
			return damaged("has a chunk %d that is in no file", n)
		}
		name := append([]string{filepath.Base(backup)}, b.names...)[at.file]
		if files[at.file] == nil {
			if files[at.file], err = os.Open(filepath.Join(filepath.Dir(backup), name)); err != nil {
				return err
			}
		}
		if _, err := files[at.file].ReadAt(data, int64(at.place)*chunkSize); err != nil {
			return damaged("needs chunk %d of %s, which cannot be read (%v)", at.place, name, err)
		}
		if sha256.Sum256(data) != hash {
			return damaged("needs chunk %d of %s, which is damaged", at.place, name)
		}
		if _, err := out.Write(data[:min(chunkSize, b.size-int64(n)*chunkSize)]); err != nil {
			return err
		}
	}
	return out.Flush()
}
