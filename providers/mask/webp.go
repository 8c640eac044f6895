package mask

import (
	"encoding/binary"
	"io"
)

// checkWebP reads the container's header and the one of its first chunk (RFC 9649
// 2.4 to 2.7). A file that is shorter than it says is refused here, before
// anybody makes room for its pixels.
func checkWebP(r io.Reader, size int64) error {
	var b [21]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return Truncated
	}
	riff, chunk := int64(binary.LittleEndian.Uint32(b[4:])), int64(binary.LittleEndian.Uint32(b[16:]))
	switch {
	case riff+8 > size || chunk+20 > size:
		return Truncated
	case string(b[12:16]) == "VP8X" && b[20]&0x02 != 0:
		return Animated
	}
	return nil
}
