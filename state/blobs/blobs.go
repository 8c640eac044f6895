package blobs

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"stagedoor/state/ownership"
	"stagedoor/state/share"
)

// Errors of a Store.
var (
	// ErrFull: what is kept already leaves no room.
	ErrFull = errors.New("the store of blobs is full")
	// ErrTooLarge: one blob is larger than it may be.
	ErrTooLarge = errors.New("blob is too large")
	// ErrNotFound: there is none with this id, or none any more.
	ErrNotFound = errors.New("no such blob")
)

// ID names a blob: 128 random bits.
type ID string

// Info describes a blob.
type Info struct {
	ID        ID
	MediaType string
	Size      int64
	Expires   time.Time
	// Owner is the OwnerTag of the owner whose share the blob uses.
	Owner string
}

// OwnerTag is the tag of an owner: part of a hash, since it is in names of files.
func OwnerTag(owner string) string {
	sum := sha256.Sum256([]byte(owner))
	return hex.EncodeToString(sum[:8])
}

// leastContent is the number of bytes that an owner may keep while that is free, even
// where its share is smaller. It fits one video of the largest size.
const leastContent = 100 << 20

// Store keeps blobs in a directory of its own. Safe for concurrent use.
type Store struct {
	dir string

	room  *share.Pool // bytes of blobs, and of those being written
	files *share.Pool // blobs, and those being written

	mu    sync.Mutex
	blobs map[ID]Info
}

// Open reads the directory, made if it is missing, and removes what was left
// half-written or has expired by now. max bounds the bytes of all blobs, of which one
// owner may have its share.
func Open(dir string, max int64, now time.Time) (*Store, error) {
	if err := ownership.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	s := &Store{dir: dir, room: share.New(share.Content, max, leastContent), files: share.New(share.Files, 0, 1), blobs: make(map[ID]Info)}
	for _, e := range entries {
		// A file may be gone by now if another process that has the directory is about to end.
		if err := s.adopt(e, now); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return s, nil
}

// adopt takes over a file of an earlier process. What has no name of a blob is
// not this store's, except for its own temporary files.
func (s *Store) adopt(e os.DirEntry, now time.Time) error {
	path := filepath.Join(s.dir, e.Name())
	if half, _ := filepath.Match(halfPattern, e.Name()); half {
		return os.Remove(path)
	}
	info, ok := parseName(e.Name())
	if !ok || !e.Type().IsRegular() {
		return nil
	}
	if !now.Before(info.Expires) {
		return os.Remove(path)
	}
	stat, err := e.Info()
	if err != nil {
		return err
	}
	info.Size = stat.Size()
	s.blobs[info.ID] = info
	s.room.Adopt(info.Owner, info.Size)
	s.files.Adopt(info.Owner, 1)
	return nil
}

// Put keeps what r brings, at most limit bytes, until expires. It counts for an owner.
// When it returns without an error, the blob survives a crash. Errors are ErrTooLarge,
// ErrFull, a *share.Refused if the owner's share is used up, or what r or the disk says;
// nothing is left behind then.
func (s *Store) Put(owner string, r io.Reader, mediaType string, limit int64, expires time.Time) (Info, error) {
	info := Info{ID: newID(), MediaType: mediaType, Expires: expires.Truncate(time.Second), Owner: OwnerTag(owner)}
	name, ok := info.name()
	if !ok {
		return Info{}, fmt.Errorf("media type %q cannot be kept", mediaType)
	}
	if err := s.files.Take(info.Owner, 1); err != nil {
		return Info{}, refusal(err)
	}
	file, err := os.CreateTemp(s.dir, halfPattern)
	if err != nil {
		s.files.Give(info.Owner, 1)
		return Info{}, err
	}
	w := &writer{room: s.room, files: s.files, owner: info.Owner, file: file, limit: limit}
	if err = ownership.File(file); err == nil {
		err = w.fill(r)
	}
	if err != nil {
		return Info{}, w.discard(err)
	}
	if err := os.Rename(file.Name(), filepath.Join(s.dir, name)); err != nil {
		return Info{}, w.discard(err)
	}
	info.Size = w.n
	s.mu.Lock()
	s.blobs[info.ID] = info
	s.mu.Unlock()
	if err := syncDir(s.dir); err != nil {
		return Info{}, errors.Join(err, s.Delete(info.ID))
	}
	return info, nil
}

// Open opens a blob for reading; the caller closes the file.
func (s *Store) Open(id ID, now time.Time) (*os.File, Info, error) {
	s.mu.Lock()
	info, ok := s.blobs[id]
	s.mu.Unlock()
	if !ok || !now.Before(info.Expires) {
		return nil, Info{}, ErrNotFound
	}
	name, _ := info.name()
	file, err := os.Open(filepath.Join(s.dir, name))
	if errors.Is(err, os.ErrNotExist) {
		return nil, Info{}, ErrNotFound // it was removed meanwhile
	}
	return file, info, err
}

// Delete removes a blob. One that is not there is no error. Readers that have it
// open read on.
func (s *Store) Delete(id ID) error {
	s.mu.Lock()
	info, ok := s.blobs[id]
	if ok {
		delete(s.blobs, id)
		s.room.Give(info.Owner, info.Size)
		s.files.Give(info.Owner, 1)
	}
	s.mu.Unlock()
	if !ok {
		return nil
	}
	name, _ := info.name()
	if err := os.Remove(filepath.Join(s.dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// Sweep removes what has expired and tells how many blobs that were. It only
// frees space: what has expired is not found from that moment on.
func (s *Store) Sweep(now time.Time) (int, error) {
	return s.deleteEach(func(i Info) bool { return !now.Before(i.Expires) })
}

// DeleteOwner removes all blobs of an owner, for the erasure of a user.
func (s *Store) DeleteOwner(owner string) error {
	tag := OwnerTag(owner)
	_, err := s.deleteEach(func(i Info) bool { return i.Owner == tag })
	return err
}

func (s *Store) deleteEach(chosen func(Info) bool) (int, error) {
	var doomed []ID
	s.mu.Lock()
	for id, info := range s.blobs {
		if chosen(info) {
			doomed = append(doomed, id)
		}
	}
	s.mu.Unlock()
	var errs []error
	for _, id := range doomed {
		errs = append(errs, s.Delete(id))
	}
	return len(doomed), errors.Join(errs...)
}

// SetMax bounds the bytes of all blobs anew. What is over stays until it expires.
func (s *Store) SetMax(max int64) { s.room.Resize(max) }

// Used returns the number of bytes that are kept.
func (s *Store) Used() int64 { return s.room.Used() }

// SetMaxFiles bounds the number of all blobs; 0, as at first: any number. One owner may have
// its share of them.
func (s *Store) SetMaxFiles(max int64) { s.files.Resize(max) }

// Pools returns the pools of the store's bytes and files, for metrics.
func (s *Store) Pools() (bytes, files *share.Pool) { return s.room, s.files }

// Room returns the error that Put would return for n bytes of an owner, because its
// share is used up or there is no room.
func (s *Store) Room(owner string, n int64) error {
	tag := OwnerTag(owner)
	if err := s.files.Check(tag, 1); err != nil {
		return refusal(err)
	}
	return refusal(s.room.Check(tag, n))
}

// refusal is ErrFull where the whole store is full.
func refusal(err error) error {
	var refused *share.Refused
	if errors.As(err, &refused) && !refused.Share {
		return ErrFull
	}
	return err
}

func newID() ID {
	var b [16]byte
	rand.Read(b[:])
	return ID(hex.EncodeToString(b[:]))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
