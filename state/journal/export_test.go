package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Busy is busy for the tests of package journal_test.
var Busy = busy

// ReadMemory returns a store with what Backup wrote. A key that the store would not accept is an error, because the
// text may have been edited.
func ReadMemory(r io.Reader) (*Memory, error) {
	m := NewMemory()
	dec := json.NewDecoder(r)
	for {
		var l line
		err := dec.Decode(&l)
		if errors.Is(err, io.EOF) {
			return m, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read backup: %w", err)
		}
		if l.Table == "" {
			m.lsn = l.LSN
			continue
		}
		if err := CheckKey(l.Table, l.Key); err != nil {
			return nil, fmt.Errorf("read backup: %w", err)
		}
		m.trees[l.Table], _, _ = m.trees[l.Table].Insert(l.Key, cell{clone(l.Value), l.Rev}) // nil, where it was empty, is not a value
	}
}
