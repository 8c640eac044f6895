package journal

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
)

// ErrImport is returned for a text that is not a whole export.
var ErrImport = errors.New("not a whole export")

// Import makes a store in dir of what Export wrote. The directory must have none;
// it gets one only if every line arrived as its header says and check, if there is
// one, finds nothing wrong with the store they make.
func Import(ctx context.Context, dir string, r io.Reader, check func(Store) error) (Header, error) {
	if err := makeDir(dir); err != nil {
		return Header{}, fmt.Errorf("import: %w", err)
	}
	path := filepath.Join(dir, FileName)
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		return Header{}, fmt.Errorf("import: there is a store in %s: choose an empty directory", dir)
	}
	if err := noRedo(dir); err != nil {
		return Header{}, fmt.Errorf("import: %w", err)
	}
	var h Header
	err := installFile(path, os.Link, func(tmp *os.File) error {
		b, err := open(tmp.Name(), Options{LowWater: -1, bare: true}.filled())
		if err != nil {
			return err
		}
		h, err = Fill(ctx, b, r)
		if err == nil && check != nil {
			err = check(b)
		}
		return errors.Join(err, b.Close())
	})
	if err != nil {
		return Header{}, fmt.Errorf("import: %w", err)
	}
	return h, nil
}

// Fill puts what Export wrote into an empty store. The checksum is known only at the end of the
// text, when most of it has been committed. After an error the store therefore has a part of the
// export and must be thrown away.
func Fill(ctx context.Context, s Store, r io.Reader) (Header, error) {
	in := bufio.NewReaderSize(r, 1<<20)
	head, err := readLine(in)
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("%w: it is empty", ErrImport)
	}
	if err != nil {
		return Header{}, err
	}
	h, err := parseHeader(head)
	if err != nil {
		return Header{}, err
	}
	f := filler{store: s, tables: map[Table]int64{}}
	sum := sha256.New()
	for n := int64(2); ; n++ {
		line, err := readLine(in)
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			sum.Write(line)
			err = f.add(ctx, line)
		}
		if err != nil {
			return Header{}, fmt.Errorf("line %d: %w", n, err)
		}
	}
	if err := f.commit(ctx); err != nil {
		return Header{}, err
	}
	switch {
	case f.records != h.Records || !maps.Equal(f.tables, h.Tables):
		return Header{}, fmt.Errorf("%w: it has %d records of the %d that its header tells of", ErrImport, f.records, h.Records)
	case hex.EncodeToString(sum.Sum(nil)) != h.SHA256:
		return Header{}, fmt.Errorf("%w: its checksum is not that of its header", ErrImport)
	}
	return h, nil
}

// parseHeader reads the first line. An export of another version is refused, since its records may
// have another form.
func parseHeader(line []byte) (Header, error) {
	var h Header
	if err := strict(line, &h); err != nil || h.Format != exportFormat {
		return Header{}, fmt.Errorf("%w: its first line is no header of one", ErrImport)
	}
	if h.Version != exportVersion || h.Schema != schemaVersion {
		return Header{}, fmt.Errorf("%w: export version %d, schema %d", ErrSchema, h.Version, h.Schema)
	}
	return h, nil
}

// maxLine is the longest line of an export: the largest value in base64.
const maxLine = MaxValue/3*4 + 1<<16

// readLine reads a line with its end. One without an end was cut off.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case err == nil:
			return line, nil
		case errors.Is(err, io.EOF) && len(line) == 0:
			return nil, io.EOF
		case errors.Is(err, io.EOF):
			return nil, fmt.Errorf("%w: it ends in the middle of a line", ErrImport)
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		case len(line) > maxLine:
			return nil, fmt.Errorf("%w: a line of more than %d bytes", ErrImport, maxLine)
		}
	}
}

// filler writes records in few commits.
type filler struct {
	store   Store
	ops     []Op
	bytes   int
	records int64
	tables  map[Table]int64
	last    Op
}

// Bounds of one commit of an import.
const (
	fillRecords = 10_000
	fillBytes   = 16 << 20
)

// add reads a line and commits when enough have been read. Records must be in the order of their
// tables and keys, which also finds a record that occurs twice.
func (f *filler) add(ctx context.Context, line []byte) error {
	op, err := parseLine(line)
	if err != nil {
		return err
	}
	if f.last.Table == op.Table && bytes.Compare(f.last.Key, op.Key) >= 0 {
		return fmt.Errorf("%w: %s/%q is not in its place", ErrImport, op.Table, op.Key)
	}
	f.last = op
	f.ops = append(f.ops, op)
	f.records++
	f.tables[op.Table]++
	f.bytes += len(op.Key) + len(op.Value)
	if len(f.ops) < fillRecords && f.bytes < fillBytes {
		return nil
	}
	return f.commit(ctx)
}

// commit writes the records that add has collected.
func (f *filler) commit(ctx context.Context) error {
	_, err := f.store.Commit(ctx, []Batch{{Ops: f.ops}})
	f.ops, f.bytes = f.ops[:0], 0
	return err
}

// parseLine reads the line of one record, which has its key and its value either as text or in
// base64.
func parseLine(line []byte) (Op, error) {
	var e exported
	if err := strict(line, &e); err != nil {
		return Op{}, fmt.Errorf("%w: not a record", ErrImport)
	}
	op := Op{Kind: Put, Table: e.Table, Key: e.Key64, Value: e.Value}
	if (e.Key != nil) == (e.Key64 != nil) || (e.Value != nil) == (e.Value64 != nil) {
		return Op{}, fmt.Errorf("%w: not one key and one value", ErrImport)
	}
	if e.Key != nil {
		op.Key = []byte(*e.Key)
	}
	if e.Value64 != nil {
		op.Value = *e.Value64
	}
	return op, nil
}

// strict decodes JSON and refuses unknown members: an export of a later version could have some
// that must not be lost.
func strict(line []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	return d.Decode(into)
}
