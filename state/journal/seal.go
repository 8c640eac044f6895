package journal

import (
	"encoding/binary"
	"hash/crc32"
	"slices"
)

// A value on disk:
//
//	version 1 | flags 1 | CRC32C 4 | revision 8 | payload
//
// The checksum covers table, key and everything but itself: pages of bbolt have
// none, and its own check looks at the tree, not at what hangs on it. With the
// key inside, a record that turns up under another key is noticed too.
const (
	sealVersion = 1
	sealHeader  = 1 + 1 + 4 + 8
)

// castagnoli is the table of CRC32C, for which processors have instructions.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendSealed appends the value of a record as it is on disk, with its revision and a checksum.
func appendSealed(b []byte, t Table, key []byte, rev uint64, payload []byte) []byte {
	n := len(b)
	b = append(b, sealVersion, 0, 0, 0, 0, 0)
	b = binary.BigEndian.AppendUint64(b, rev)
	b = append(b, payload...)
	binary.BigEndian.PutUint32(b[n+2:], checksum(t, key, b[n:]))
	return b
}

// unseal returns the revision and the payload of a value on disk. The payload is a part of v and not a copy. The error
// is a *CorruptError if the checksum or the format is wrong.
func unseal(t Table, key, v []byte) (rev uint64, payload []byte, err error) {
	if len(v) < sealHeader {
		return 0, nil, &CorruptError{t, clone(key), "is too short"}
	}
	if binary.BigEndian.Uint32(v[2:]) != checksum(t, key, v) {
		return 0, nil, &CorruptError{t, clone(key), "has a wrong checksum"}
	}
	// No flag is defined. One that is set belongs to a version that knows what
	// it means, and reading past it would misread the value.
	if v[0] != sealVersion || v[1] != 0 {
		return 0, nil, &CorruptError{t, clone(key), "has an unknown format"}
	}
	return binary.BigEndian.Uint64(v[6:]), v[sealHeader:], nil
}

// checksum covers the table, the key and v without the four bytes of the checksum itself.
func checksum(t Table, key, v []byte) uint32 {
	sum := crc32.Update(t.seed(), castagnoli, key)
	sum = crc32.Update(sum, castagnoli, v[:2])
	return crc32.Update(sum, castagnoli, v[6:])
}

// seeds are the checksums of the tables' names, with which all others begin.
var seeds = func() (sums [len(tables)]uint32) {
	for i, t := range tables {
		sums[i] = crc32.Checksum([]byte(t), castagnoli)
	}
	return sums
}()

// seed is the checksum of a table's name.
func (t Table) seed() uint32 {
	if i := slices.Index(tables[:], t); i >= 0 {
		return seeds[i]
	}
	return crc32.Checksum([]byte(t), castagnoli)
}

// clone copies b; an empty slice stays different from none.
func clone(b []byte) []byte { return append([]byte{}, b...) }
