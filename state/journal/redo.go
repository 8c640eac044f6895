package journal

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
)

// The redo log is where a commit becomes durable: one write and one sync, at the end
// of a file whose blocks are there already. bbolt needs two syncs and writes every
// page of a table that a commit touched, so it gets the changes of many commits at
// once (see checkpoint.go).
//
// There are two files, which take turns: while the changes of one go into bbolt's
// file, commits go on in the other. Each begins with a header:
//
//	magic 8 | store's id 16 | CRC32C of both 4 | zeros 4
//
// and holds frames, each of one commit:
//
//	magic 4 | CRC32C of the rest 4 | LSN 8 | length of the changes 8 | changes | zeros to a multiple of 8
//
// behind the last of which are 24 zeros, until it is followed by another. A change is
//
//	length 1 | table | uvarint length | key | uvarint 1+length, 0: removed | sealed value
//
// The file is written from its beginning again once all that it holds is in bbolt's.
// What is left of older frames has LSNs that say so.

// redoNames are the redo log's files.
var redoNames = [2]string{"redo-0.log", "redo-1.log"}

const (
	redoMagic  = "sdredo1\n"
	redoHeader = 32

	frameMagic  = 0x53445246
	frameHeader = 4 + 4 + 8 + 8
	frameEnd    = frameHeader // zeros

	opHeader = 32 // about what an operation takes besides its key and value

	// redoSize is how long a file of the log gets, unless one commit is longer;
	// redoStep by how much it grows until it is.
	redoSize = 8 << 20
	redoStep = 1 << 20
)

// storeID tells a store's redo log from another's.
type storeID [16]byte

// checksum is that of a frame. It begins with the id, so that nobody who writes into
// values can make something that passes for a frame.
func (id storeID) checksum(b []byte) uint32 {
	return crc32.Update(crc32.Checksum(id[:], castagnoli), castagnoli, b)
}

// redoLog is one of the two files.
type redoLog struct {
	path string
	id   storeID
	most int64 // see redoSize
	open func(name string, flag int, mode os.FileMode) (*os.File, error)
	file *os.File // nil until there is something to write
	size int64    // of the file
	at   int64    // where the next frame goes
}

// errNoSpace: the log could not grow; no frame was written.
var errNoSpace = errors.New("the redo log cannot grow")

// used tells how many bytes of frames there are.
func (l *redoLog) used() int64 { return max(l.at-redoHeader, 0) }

// append makes a commit durable. The frame has room for its header; what is behind
// it is zeros.
func (l *redoLog) append(lsn uint64, frame []byte) error {
	frame = sealFrame(l.id, lsn, frame)
	n := len(frame)
	frame = append(frame, make([]byte, frameEnd)...)
	if err := l.grow(int64(len(frame))); err != nil {
		return err
	}
	if _, err := l.file.WriteAt(frame, l.at); err != nil {
		return err
	}
	if err := datasync(l.file); err != nil {
		return err
	}
	l.at += int64(n)
	return nil
}

// sealFrame completes the header of a frame.
func sealFrame(id storeID, lsn uint64, frame []byte) []byte {
	binary.BigEndian.PutUint32(frame, frameMagic)
	binary.BigEndian.PutUint64(frame[8:], lsn)
	binary.BigEndian.PutUint64(frame[16:], uint64(len(frame)-frameHeader))
	for len(frame)%8 != 0 {
		frame = append(frame, 0)
	}
	binary.BigEndian.PutUint32(frame[4:], id.checksum(frame[8:]))
	return frame
}

// grow sees to it that the blocks of the next n bytes are there: a sync is cheap
// where the file system has nothing to note.
func (l *redoLog) grow(n int64) error {
	if l.file == nil {
		if err := l.create(); err != nil {
			return fmt.Errorf("%w: %w", errNoSpace, err)
		}
	}
	if l.at+n <= l.size {
		return nil
	}
	to := max(min(l.size+redoStep, l.most), l.at+n)
	if _, err := l.file.WriteAt(make([]byte, to-l.size), l.size); err != nil {
		return fmt.Errorf("%w: %w", errNoSpace, err)
	}
	l.size = to
	return nil
}

// create opens the file, making it if need be, and writes its header.
func (l *redoLog) create() (err error) {
	file, err := l.open(l.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, file.Close())
		}
	}()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if _, err := file.WriteAt(redoHead(l.id), 0); err != nil {
		return err
	}
	if err := errors.Join(file.Sync(), syncDir(filepath.Dir(l.path))); err != nil {
		return err
	}
	l.file, l.size, l.at = file, max(info.Size(), redoHeader), redoHeader
	return nil
}

// rewind lets the file be written from its beginning: all that it holds is
// elsewhere. One that a long commit made long is cut.
func (l *redoLog) rewind() error {
	if l.file == nil {
		return nil
	}
	l.at = redoHeader
	if l.size <= l.most {
		return nil
	}
	l.size = l.most
	return l.file.Truncate(l.size)
}

func (l *redoLog) close() error {
	if l.file == nil {
		return nil
	}
	err := l.file.Close()
	l.file = nil
	return err
}

// closeRedo closes the log and, where all that it holds is in the file, removes what
// this process made of it: others may have their own there, if the file under this
// name is another one by now (see Compact).
func (b *Bolt) closeRedo(folded bool) error {
	var err error
	var made []string
	for i := range b.redo {
		if b.redo[i].file != nil {
			made = append(made, b.redo[i].path)
		}
		err = errors.Join(err, b.redo[i].close())
	}
	if err != nil || !folded {
		return err
	}
	return b.removeRedo(made)
}

// removeRedo removes files of the log.
func (b *Bolt) removeRedo(paths []string) error {
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
		err = errors.Join(err, syncDir(b.dir))
	}
	return err
}

func redoHead(id storeID) []byte {
	head := append([]byte(redoMagic), id[:]...)
	head = binary.BigEndian.AppendUint32(head, crc32.Checksum(head, castagnoli))
	return append(head, make([]byte, redoHeader-len(head))...)
}

// frame is a commit as the log has it.
type frame struct {
	lsn     uint64
	changes []byte
	size    int // of all of it
}

// readFrame reads the frame at the beginning of data; false: there is none.
func readFrame(data []byte, id storeID) (frame, bool) {
	lsn, ok := claims(data)
	if !ok {
		return frame{}, false
	}
	length := binary.BigEndian.Uint64(data[16:])
	if length > uint64(len(data)-frameHeader) {
		return frame{}, false
	}
	size := (frameHeader + int(length) + 7) &^ 7
	if size > len(data) || binary.BigEndian.Uint32(data[4:]) != id.checksum(data[8:size]) {
		return frame{}, false
	}
	return frame{lsn, data[frameHeader : frameHeader+int(length)], size}, true
}

// addTo puts the changes of a commit into an overlay. The frame's sum was right, so
// an error is of a program that wrote something else.
func (f *frame) addTo(o *overlay) error {
	for rest := f.changes; len(rest) > 0; {
		table, c, n := readChange(rest)
		if n == 0 {
			return damaged("has a redo log with an unknown change in commit %d", f.lsn)
		}
		o.put(table, c)
		rest = rest[n:]
	}
	o.lsn = f.lsn
	return nil
}

// readChange reads the change at the beginning of b, of which table it is, and its
// length; 0: there is none.
func readChange(b []byte) (table int, c change, n int) {
	name, rest, ok := take(b[1:], uint64(b[0]))
	table = Table(name).index()
	if !ok || table < 0 {
		return 0, change{}, 0
	}
	length, n := binary.Uvarint(rest)
	if c.key, rest, ok = take(rest[max(n, 0):], length); n <= 0 || !ok {
		return 0, change{}, 0
	}
	length, n = binary.Uvarint(rest)
	if rest = rest[max(n, 0):]; n <= 0 {
		return 0, change{}, 0
	}
	if length > 0 {
		if c.sealed, rest, ok = take(rest, length-1); !ok {
			return 0, change{}, 0
		}
	}
	return table, c, len(b) - len(rest)
}

func take(b []byte, n uint64) (taken, rest []byte, ok bool) {
	if n > uint64(len(b)) {
		return nil, nil, false
	}
	return b[:n:n], b[n:], true
}

// kept is what the files of a redo log hold.
type kept struct {
	commits []frame // that bbolt's file does not have, in order
	torn    bool    // there is a part of one more
}

// readRedo reads the redo log in dir: what follows the commit lsn. What was written
// by another store, or is not there any more, is a *CorruptError: nobody else tells
// of those commits.
func readRedo(dir string, id storeID, lsn uint64) (kept, error) {
	var logs []tape
	for _, name := range redoNames {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return kept{}, err
		}
		if len(data) < redoHeader || len(bytes.TrimLeft(data[redoHeader:], "\x00")) == 0 {
			continue // it was just being made
		}
		if !bytes.Equal(data[:redoHeader], redoHead(id)) {
			return kept{}, damaged("and %s do not belong together, or that is damaged", name)
		}
		logs = append(logs, readTape(data[redoHeader:], id, lsn))
	}
	slices.SortFunc(logs, func(a, b tape) int { return cmp.Compare(a.first(), b.first()) })
	var k kept
	for _, t := range logs {
		for _, f := range t.frames {
			if f.lsn != lsn+1 {
				return kept{}, damaged("ends with commit %d, and the redo log beside it goes on with %d (a backup belongs into an empty directory)", lsn, f.lsn)
			}
			lsn = f.lsn
			k.commits = append(k.commits, f)
		}
	}
	for _, t := range logs {
		if t.newest > lsn {
			return kept{}, damaged("has a redo log that is damaged behind commit %d of %d", lsn, t.newest)
		}
		k.torn = k.torn || t.torn == lsn+1
	}
	return k, nil
}

// tape is one file of the log, as it was read.
type tape struct {
	frames []frame // those that follow a commit, in order
	torn   uint64  // the commit of which there is a part behind them; 0: none
	newest uint64  // the newest whole commit in the file, wherever it is
}

func (t *tape) first() uint64 {
	if len(t.frames) == 0 {
		return 0
	}
	return t.frames[0].lsn
}

// readTape reads the frames that follow the commit lsn.
func readTape(data []byte, id storeID, lsn uint64) tape {
	var t tape
	at := 0
	for {
		f, ok := readFrame(data[at:], id)
		if !ok || (t.newest != 0 && f.lsn != t.newest+1) {
			break
		}
		if t.newest = f.lsn; f.lsn > lsn {
			t.frames = append(t.frames, f)
		}
		at += f.size
	}
	// Behind them are zeros, unless the last write was cut off, or what is damaged.
	if claimed, ok := claims(data[at:]); ok {
		t.torn = claimed
	}
	for ; at < len(data); at += 8 {
		if claimed, ok := claims(data[at:]); !ok || claimed <= t.newest {
			continue
		}
		if f, ok := readFrame(data[at:], id); ok {
			t.newest = f.lsn
		}
	}
	return t
}

// claims tells which commit data says that it begins with.
func claims(data []byte) (lsn uint64, ok bool) {
	if len(data) < frameHeader || binary.BigEndian.Uint32(data) != frameMagic {
		return 0, false
	}
	return binary.BigEndian.Uint64(data[8:]), true
}
