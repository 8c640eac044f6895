package journal

import (
	"encoding/binary"

	"stagedoor/state/journal/redo"
)

// A frame of the redo log holds the changes of one commit. A change is
//
//	length 1 | table | uvarint length | key | uvarint 1+length, or 0 if the record is removed | sealed value

// changeHeader is about what a change takes besides its key and value.
const changeHeader = 32

// addCommit puts the changes of a logged commit into an overlay. The checksum of the frame was right, so an error
// means that another program wrote the frame.
func addCommit(o *overlay, c redo.Commit) error {
	for rest := c.Changes; len(rest) > 0; {
		table, c1, n := readChange(rest)
		if n == 0 {
			return damaged("has a redo log with an unknown change in commit %d", c.LSN)
		}
		o.put(table, c1)
		rest = rest[n:]
	}
	o.lsn = c.LSN
	return nil
}

// appendChangeKey appends the beginning of a change.
func appendChangeKey(b []byte, t Table, key []byte) []byte {
	b = append(append(b, byte(len(t))), t...)
	b = binary.AppendUvarint(b, uint64(len(key)))
	return append(b, key...)
}

// readChange reads the change at the beginning of b. It returns the index of the change's table and the length of the
// change, which is 0 if b does not begin with one.
func readChange(b []byte) (table int, c change, n int) {
	name, rest, ok := splitAt(b[1:], uint64(b[0]))
	table = Table(name).index()
	if !ok || table < 0 {
		return 0, change{}, 0
	}
	length, n := binary.Uvarint(rest)
	if c.key, rest, ok = splitAt(rest[max(n, 0):], length); n <= 0 || !ok {
		return 0, change{}, 0
	}
	length, n = binary.Uvarint(rest)
	if rest = rest[max(n, 0):]; n <= 0 {
		return 0, change{}, 0
	}
	if length > 0 {
		if c.sealed, rest, ok = splitAt(rest, length-1); !ok {
			return 0, change{}, 0
		}
	}
	return table, c, len(b) - len(rest)
}

// splitAt returns the first n bytes of b and the rest, or false if b is shorter.
func splitAt(b []byte, n uint64) (first, rest []byte, ok bool) {
	if n > uint64(len(b)) {
		return nil, nil, false
	}
	return b[:n:n], b[n:], true
}
