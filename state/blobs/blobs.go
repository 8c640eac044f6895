package blobs

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"sync"
	"time"

	"stagedoor/state/share"
)

// Errors of a Store.
var (
	// ErrFull means that the blobs that are kept leave no room.
	ErrFull = errors.New("the store of blobs is full")
	// ErrTooLarge means that one blob is larger than it may be.
	ErrTooLarge = errors.New("blob is too large")
	// ErrNotFound means that there is no blob with this id, or that it was removed or has expired.
	ErrNotFound = errors.New("no such blob")
	// ErrUnavailable means that a shared backend cannot be reached.
	ErrUnavailable = errors.New("the blobs cannot be reached")
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

// Store keeps blobs in a Backend, within bounds. It counts what is there in memory, and what other processes have put
// since the last Sweep only once it is asked for. It is safe for concurrent use.
type Store struct {
	backend Backend

	room  *share.Pool // bytes of blobs, and of those being written
	files *share.Pool // blobs, and those being written

	mu    sync.Mutex
	blobs map[ID]Info
}

// readersMayTake is the time for which an expired blob of a shared backend stays for readers that have begun. A file in
// a directory of one's own stays as long as it is open.
const readersMayTake = 10 * time.Minute

// Open returns a Store in a directory that no other process uses; see New.
func Open(dir string, max int64, now time.Time) (*Store, error) {
	d, err := Directory(dir, false)
	if err != nil {
		return nil, err
	}
	return New(d, max, now)
}

// New returns a Store of the blobs in a backend, from which it removes what was left half-written or has expired. max
// bounds the bytes of all blobs, of which one owner may have its share. It lists the backend once and keeps what it
// found in memory, so that later questions about size and expiry do not reach the backend. The error comes from the
// backend.
func New(b Backend, max int64, now time.Time) (*Store, error) {
	s := &Store{backend: b, room: share.New(share.Content, max, leastContent), files: share.New(share.Files, 0, 1),
		blobs: make(map[ID]Info)}
	if err := s.refresh(now); err != nil {
		return nil, err
	}
	_, err := s.removeExpired(now)
	return s, err
}

// refresh makes the index that of the backend. A blob that this process puts or deletes meanwhile is not touched.
func (s *Store) refresh(now time.Time) error {
	s.mu.Lock()
	before := maps.Clone(s.blobs)
	s.mu.Unlock()
	all, err := s.backend.List(now)
	if err != nil {
		return err
	}
	for _, info := range all {
		if _, known := before[info.ID]; !known {
			s.adopt(info)
		}
		delete(before, info.ID)
	}
	for id := range before {
		s.forget(id)
	}
	return nil
}

// adopt counts a blob that is there, unless it is known.
func (s *Store) adopt(info Info) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.blobs[info.ID]; !known {
		s.blobs[info.ID] = info
		s.room.Adopt(info.Owner, info.Size)
		s.files.Adopt(info.Owner, 1)
	}
}

// forget takes a blob out of the index, and reports whether it was in it.
func (s *Store) forget(id ID) (Info, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	info, ok := s.blobs[id]
	if ok {
		delete(s.blobs, id)
		s.room.Give(info.Owner, info.Size)
		s.files.Give(info.Owner, 1)
	}
	return info, ok
}

// find returns a blob of the index, or else one that another process has put.
func (s *Store) find(id ID) (Info, error) {
	s.mu.Lock()
	info, ok := s.blobs[id]
	s.mu.Unlock()
	switch {
	case ok:
		return info, nil
	case !s.backend.Shared():
		return info, ErrNotFound
	}
	info, err := s.backend.Find(id)
	if err == nil {
		s.adopt(info)
	}
	return info, err
}

// Put keeps what r brings, at most limit bytes, until expires. It counts for an owner.
// When it returns without an error, the blob survives a crash. Errors are ErrTooLarge,
// ErrFull, a *share.Refused if the owner's share is used up, or what r or the backend says;
// nothing is left behind then.
func (s *Store) Put(owner string, r io.Reader, mediaType string, limit int64, expires time.Time) (Info, error) {
	info := Info{ID: newID(), MediaType: mediaType, Expires: expires.Truncate(time.Second), Owner: OwnerTag(owner)}
	if _, ok := info.name(); !ok {
		return Info{}, fmt.Errorf("media type %q cannot be kept", mediaType)
	}
	if err := s.files.Take(info.Owner, 1); err != nil {
		return Info{}, refusal(err)
	}
	w := &writer{room: s.room, owner: info.Owner, limit: limit}
	if err := s.fill(w, r, info); err != nil {
		s.room.Give(info.Owner, w.n)
		s.files.Give(info.Owner, 1)
		return Info{}, err
	}
	info.Size = w.n
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, listed := s.blobs[info.ID]; listed { // by refresh, which has counted it, too
		s.room.Give(info.Owner, w.n)
		s.files.Give(info.Owner, 1)
	}
	s.blobs[info.ID] = info
	return info, nil
}

// fill writes a blob whole, or nothing of it.
func (s *Store) fill(w *writer, r io.Reader, info Info) error {
	to, err := s.backend.Create(info)
	if err != nil {
		return err
	}
	w.Writer = to
	if _, err := io.Copy(w, r); err != nil {
		return errors.Join(err, to.Discard())
	}
	return to.Finish()
}

// Open opens a blob for reading; the caller closes it. What has expired is ErrNotFound, also before the sweep has
// removed it. ErrUnavailable means that the backend cannot be reached.
func (s *Store) Open(id ID, now time.Time) (io.ReadSeekCloser, Info, error) {
	info, err := s.find(id)
	if err == nil && !now.Before(info.Expires) {
		err = ErrNotFound
	}
	if err != nil {
		return nil, Info{}, err
	}
	content, err := s.backend.Open(info)
	if errors.Is(err, ErrNotFound) {
		s.forget(id) // it was removed meanwhile
	}
	return content, info, err
}

// Delete removes a blob. One that is not there is no error. Readers that have a file of a directory open read on.
func (s *Store) Delete(id ID) error {
	info, err := s.find(id)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if _, mine := s.forget(id); !mine {
		return nil // another call removes it
	}
	return s.backend.Remove(info)
}

// Sweep removes the blobs that have expired and returns their number. It only frees space, because an expired blob is
// not found any more in any case. It also finds out what other processes have put and removed. In a shared backend it
// leaves each blob for readersMayTake, because another process may have begun to read it.
func (s *Store) Sweep(now time.Time) (int, error) {
	if s.backend.Shared() {
		if err := s.refresh(now); err != nil {
			return 0, err
		}
		now = now.Add(-readersMayTake)
	}
	return s.removeExpired(now)
}

// removeExpired deletes what has expired and returns how many there were.
func (s *Store) removeExpired(now time.Time) (int, error) {
	return s.deleteEach(func(i Info) bool { return !now.Before(i.Expires) })
}

// DeleteOwner removes all blobs of an owner, for the erasure of a user. In a shared backend it looks again first,
// because another process may have put blobs that this one has not seen. It goes on after a blob that cannot be
// removed, so a second call has only those left.
func (s *Store) DeleteOwner(owner string) error {
	if s.backend.Shared() {
		if err := s.refresh(time.Now()); err != nil {
			return err
		}
	}
	tag := OwnerTag(owner)
	_, err := s.deleteEach(func(i Info) bool { return i.Owner == tag })
	return err
}

// deleteEach deletes what chosen selects. It does not hold the lock meanwhile, because deleting is slow.
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

// refusal returns ErrFull for a refusal because the whole store is full, and any other error as it is.
func refusal(err error) error {
	var refused *share.Refused
	if errors.As(err, &refused) && !refused.Share {
		return ErrFull
	}
	return err
}

// newID returns a random id, which cannot be guessed.
func newID() ID {
	var b [16]byte
	rand.Read(b[:])
	return ID(hex.EncodeToString(b[:]))
}
