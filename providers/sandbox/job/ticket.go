package job

import (
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"strings"
	"time"

	"stagedoor/providers/sandbox/clip"
)

// Ending is how a job ends.
type Ending uint8

// The endings.
const (
	Done     Ending = iota
	Fails           // with an error
	Blocked         // by moderation
	Freezes         // never: its progress stops
	Vanishes        // nobody knows it any more
	endings
)

// ticket is what an id says of its job.
type ticket struct {
	start                  time.Time
	takes, keeps           time.Duration
	clip                   clip.Spec
	ending                 Ending
	at                     int // percent of progress that ending comes at
	busy, cutPolls, cutGet uint8
	nonce                  uint64
}

const (
	prefix  = "job_"
	version = 1
	idLen   = 47 // bytes
)

// id writes the ticket down.
func (t *ticket) id() string {
	b := make([]byte, 0, idLen)
	b = append(b, version)
	b = binary.BigEndian.AppendUint64(b, uint64(t.start.UnixMilli()))
	b = binary.BigEndian.AppendUint32(b, uint32(t.takes.Milliseconds()))
	b = binary.BigEndian.AppendUint32(b, uint32(t.keeps.Seconds()))
	b = binary.BigEndian.AppendUint64(b, t.clip.Mark)
	b = binary.BigEndian.AppendUint16(b, uint16(t.clip.Width))
	b = binary.BigEndian.AppendUint16(b, uint16(t.clip.Height))
	b = append(b, uint8(t.clip.Seconds), uint8(t.ending), uint8(t.at), t.busy, t.cutPolls, t.cutGet)
	b = binary.BigEndian.AppendUint64(b, t.nonce)
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	return prefix + base64.RawURLEncoding.EncodeToString(b)
}

// read understands an id that id has written, and no other.
func read(id string) (ticket, bool) {
	text, ok := strings.CutPrefix(id, prefix)
	if !ok || len(text) != base64.RawURLEncoding.EncodedLen(idLen) {
		return ticket{}, false
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || b[0] != version || binary.BigEndian.Uint32(b[idLen-4:]) != crc32.ChecksumIEEE(b[:idLen-4]) {
		return ticket{}, false
	}
	t := ticket{
		start: time.UnixMilli(int64(binary.BigEndian.Uint64(b[1:]))),
		takes: time.Duration(binary.BigEndian.Uint32(b[9:])) * time.Millisecond,
		keeps: time.Duration(binary.BigEndian.Uint32(b[13:])) * time.Second,
		clip: clip.Spec{
			Mark:  binary.BigEndian.Uint64(b[17:]),
			Width: int(binary.BigEndian.Uint16(b[25:])), Height: int(binary.BigEndian.Uint16(b[27:])),
			Seconds: int(b[29]),
		},
		ending: Ending(b[30]), at: int(b[31]),
		busy: b[32], cutPolls: b[33], cutGet: b[34],
		nonce: binary.BigEndian.Uint64(b[35:]),
	}
	return t, t.ending < endings
}
