package embedded

import (
	"fmt"
	"strconv"
	"strings"
)

// span is a part of an asset.
type span struct{ start, length int64 }

// of is the part as Content-Range says it.
func (s span) of(size int64) string {
	return fmt.Sprintf("bytes %d-%d/%d", s.start, s.start+s.length-1, size)
}

// parseRange reads a Range of one part (RFC 9110 14.1.2). ok is false for what is
// to be ignored, several parts among it; a part of no length is beyond the end.
func parseRange(text string, size int64) (s span, ok bool) {
	from, to, ok := strings.Cut(strings.TrimPrefix(text, "bytes="), "-")
	if !ok || !strings.HasPrefix(text, "bytes=") {
		return s, false
	}
	if from == "" {
		n, ok := position(to)
		n = min(n, size)
		return span{size - n, n}, ok
	}
	first, ok := position(from)
	if !ok {
		return s, false
	}
	last := size - 1
	if to != "" {
		end, ok := position(to)
		if !ok || end < first {
			return s, false
		}
		last = min(last, end)
	}
	return span{first, max(last-first+1, 0)}, true
}

func position(text string) (int64, bool) {
	n, err := strconv.ParseUint(text, 10, 63)
	return int64(n), err == nil
}
