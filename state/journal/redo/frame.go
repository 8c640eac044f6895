package redo

import (
	"encoding/binary"
	"hash/crc32"
)

const (
	fileMagic = "sdredo1\n"

	// HeaderSize is the number of bytes before the first frame of a file.
	HeaderSize = 32

	frameMagic  = 0x53445246
	frameHeader = 4 + 4 + 8 + 8
	endSize     = frameHeader // zeros behind the last frame
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ID distinguishes a store from all others, so that the log of another store is never taken for its own.
type ID [16]byte

// checksum begins with the ID, so that a client that chooses the values of records cannot forge a frame in them.
func (id ID) checksum(b []byte) uint32 {
	return crc32.Update(crc32.Checksum(id[:], castagnoli), castagnoli, b)
}

// header returns the beginning of a file of the log.
func header(id ID) []byte {
	head := append([]byte(fileMagic), id[:]...)
	head = binary.BigEndian.AppendUint32(head, crc32.Checksum(head, castagnoli))
	return append(head, make([]byte, HeaderSize-len(head))...)
}

// NewFrame returns a frame to which a commit appends its changes, without reallocation up to size bytes of them.
func NewFrame(size int) []byte { return make([]byte, frameHeader, frameHeader+size+8+endSize) }

// Changes returns the changes that were appended to a frame.
func Changes(frame []byte) []byte { return frame[frameHeader:] }

// sealFrame completes the header of a frame.
func sealFrame(id ID, lsn uint64, frame []byte) []byte {
	binary.BigEndian.PutUint32(frame, frameMagic)
	binary.BigEndian.PutUint64(frame[8:], lsn)
	binary.BigEndian.PutUint64(frame[16:], uint64(len(frame)-frameHeader))
	for len(frame)%8 != 0 {
		frame = append(frame, 0)
	}
	binary.BigEndian.PutUint32(frame[4:], id.checksum(frame[8:]))
	return frame
}

// readFrame reads the frame at the beginning of data, with its size in the file, or returns false if there is none.
func readFrame(data []byte, id ID) (c Commit, size int, ok bool) {
	lsn, ok := claimedLSN(data)
	if !ok {
		return Commit{}, 0, false
	}
	length := binary.BigEndian.Uint64(data[16:])
	if length > uint64(len(data)-frameHeader) {
		return Commit{}, 0, false
	}
	size = (frameHeader + int(length) + 7) &^ 7
	if size > len(data) || binary.BigEndian.Uint32(data[4:]) != id.checksum(data[8:size]) {
		return Commit{}, 0, false
	}
	return Commit{LSN: lsn, Changes: data[frameHeader : frameHeader+int(length)]}, size, true
}

// claimedLSN returns the LSN in the header of a frame whose checksum nothing has compared yet.
func claimedLSN(data []byte) (lsn uint64, ok bool) {
	if len(data) < frameHeader || binary.BigEndian.Uint32(data) != frameMagic {
		return 0, false
	}
	return binary.BigEndian.Uint64(data[8:]), true
}
