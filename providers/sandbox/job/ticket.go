package job

import (
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"strings"
	"time"

	"stagedoor/providers/sandbox/clip"
	"stagedoor/providers/video"
)

// Ending is the way in which a job ends.
type Ending uint8

// The endings.
const (
	Done     Ending = iota
	Fails           // with an error
	Blocked         // by moderation
	Freezes         // never: its progress stops
	Vanishes        // the job becomes unknown
	endings
)

// ticket is the content of a job's id.
type ticket struct {
	Start                        int64  // Unix time in milliseconds
	Takes                        uint32 // milliseconds
	Keeps                        uint32 // seconds
	Mark                         uint64 // of the clip
	Width, Height                uint16
	Seconds                      uint8
	Ending                       Ending
	At                           uint8 // percent of progress at which Ending comes
	Busy, CutPolls, CutDownloads uint8
	Nonce                        uint64
}

const idPrefix = "job_"

// id returns the ticket as an id, with a checksum that a mistyped id does not have.
func (t *ticket) id() string {
	// Appending a value of fixed size to a slice cannot fail.
	b, _ := binary.Append(nil, binary.BigEndian, t)
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	return idPrefix + base64.RawURLEncoding.EncodeToString(b)
}

// readTicket decodes an id that the id method has made. ok is false for all other strings.
func readTicket(id string) (t ticket, ok bool) {
	text, ok := strings.CutPrefix(id, idPrefix)
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	sum := binary.Size(t)
	if !ok || err != nil || len(b) != sum+4 || binary.BigEndian.Uint32(b[sum:]) != crc32.ChecksumIEEE(b[:sum]) {
		return ticket{}, false
	}
	_, err = binary.Decode(b, binary.BigEndian, &t)
	return t, err == nil && t.Ending < endings
}

// clip returns the video that the job makes.
func (t *ticket) clip() clip.Spec {
	return clip.Spec{Width: int(t.Width), Height: int(t.Height), Seconds: int(t.Seconds), Mark: t.Mark}
}

const queuedUntil = 10 // percent of its time that a job waits before it makes progress

// status returns the state of the job at a time. known is false after the job has vanished.
func (t *ticket) status(now time.Time) (s Status, known bool) {
	start, takes := time.UnixMilli(t.Start), time.Duration(t.Takes)*time.Millisecond
	s.Created = start
	percent := 100
	if takes > 0 {
		percent = int(min(max(now.Sub(start)*100/takes, 0), 100))
	}
	switch {
	case t.Ending != Done && percent >= int(t.At):
		s.State, s.Progress, s.Ended = video.Failed, min(int(t.At), 99), start.Add(takes*time.Duration(t.At)/100)
		switch t.Ending {
		case Freezes:
			s.State, s.Ended = video.InProgress, time.Time{}
		case Blocked:
			s.Error = &video.Fault{Code: "moderation_blocked",
				Message: "the sandbox's moderation blocked the video as requested"}
		case Fails:
			s.Error = &video.Fault{Code: "video_generation_failed",
				Message: "the sandbox failed to make the video as requested"}
		}
		return s, t.Ending != Vanishes
	case percent == 100:
		s.State, s.Progress, s.Ended = video.Completed, 100, start.Add(takes)
		s.Expires = s.Ended.Add(time.Duration(t.Keeps) * time.Second)
	case percent < queuedUntil:
		s.State = video.Queued
	default:
		s.State, s.Progress = video.InProgress, percent
	}
	return s, true
}
