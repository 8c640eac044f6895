package journal

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Export writes every record of a store as text: a header, then one JSON object a
// line, table by table in key order. The same records make the same bytes. What
// is not kept is what a store knows about itself: revisions and its LSN.
//
// The header comes first and describes what follows, so the store is read twice;
// where records changed meanwhile, Export fails.
func Export(ctx context.Context, s Store, w io.Writer) (Header, error) {
	h := Header{Format: exportFormat, Version: exportVersion, Schema: schemaVersion, Tables: map[Table]int64{}}
	sum := sha256.New()
	if err := lines(ctx, s, func(t Table, line []byte) error {
		h.Records++
		h.Tables[t]++
		sum.Write(line)
		return nil
	}); err != nil {
		return Header{}, fmt.Errorf("export: %w", err)
	}
	h.SHA256 = hex.EncodeToString(sum.Sum(nil))
	head, err := json.Marshal(h)
	if err != nil {
		return Header{}, fmt.Errorf("export: %w", err)
	}
	out := bufio.NewWriterSize(w, 1<<20)
	out.Write(append(head, '\n')) // the first error is Flush's too
	sum.Reset()
	err = lines(ctx, s, func(_ Table, line []byte) error {
		sum.Write(line)
		_, err := out.Write(line)
		return err
	})
	if err == nil && hex.EncodeToString(sum.Sum(nil)) != h.SHA256 {
		err = fmt.Errorf("%w: records changed meanwhile", ErrConflict)
	}
	if err == nil {
		err = out.Flush()
	}
	if err != nil {
		return Header{}, fmt.Errorf("export: %w", err)
	}
	return h, nil
}

// Header is the first line of an export.
type Header struct {
	Format  string          `json:"format"`
	Version int             `json:"version"` // of the lines
	Schema  int             `json:"schema"`  // of what they hold
	Records int64           `json:"records"`
	Tables  map[Table]int64 `json:"tables"` // records of each that has any
	SHA256  string          `json:"sha256"` // of all lines after this one
}

const (
	exportFormat  = "stagedoor-state"
	exportVersion = 1
)

// exported is a record of an export. Of Key and Key64, and of Value and Value64,
// one is there: the second, in base64, for what is not text and not JSON.
type exported struct {
	Table   Table           `json:"table"`
	Key     *string         `json:"key,omitempty"`
	Key64   []byte          `json:"key64,omitempty"`
	Value   json.RawMessage `json:"value,omitempty"`
	Value64 *[]byte         `json:"value64,omitempty"`
}

// lines calls fn with the line of each record. fn must not keep the line, which is overwritten by
// the next one.
func lines(ctx context.Context, s Store, fn func(Table, []byte) error) error {
	var line []byte
	_, err := s.Load(ctx, Tables(), func(t Table, r Record) (err error) {
		if line, err = appendLine(line[:0], t, r); err != nil {
			return err
		}
		return fn(t, line)
	})
	return err
}

// appendLine appends the line of a record. Most values are JSON and go into the line byte for byte,
// so that an import restores exactly the same bytes; others are in base64.
func appendLine(b []byte, t Table, r Record) ([]byte, error) {
	e := exported{Table: t}
	if key := string(r.Key); printable(key) {
		e.Key = &key
	} else {
		e.Key64 = r.Key
	}
	raw := oneLine(r.Value)
	if !raw {
		e.Value64 = &r.Value
	}
	rest, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	if !raw {
		return append(append(b, rest...), '\n'), nil
	}
	// json.Marshal would write the value in its own spelling.
	b = append(b, rest[:len(rest)-1]...)
	b = append(append(b, `,"value":`...), r.Value...)
	return append(b, '}', '\n'), nil
}

// printable reports whether a key is text that JSON restores exactly. Other keys are in base64.
func printable(key string) bool {
	return utf8.ValidString(key) && strings.IndexFunc(key, func(c rune) bool { return c < ' ' || c == 0x7f || c == utf8.RuneError }) < 0
}

// oneLine reports whether a value is JSON that can be part of a line as it is.
func oneLine(v []byte) bool {
	return len(v) > 0 && !bytes.ContainsAny(v, "\r\n") && len(bytes.TrimSpace(v)) == len(v) && utf8.Valid(v) && json.Valid(v)
}
