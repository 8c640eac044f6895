package conformance

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"stagedoor/state/journal"
)

// exported returns the export of a store.
func exported(t interface {
	Helper()
	Fatal(...any)
}, s journal.Store) []byte {
	t.Helper()
	var text bytes.Buffer
	if _, err := journal.Export(ctx, s, &text); err != nil {
		t.Fatal(err)
	}
	return text.Bytes()
}

// testExport checks that a store filled from an export exports the same bytes, and has the same
// records, whatever they are.
func testExport(t *testing.T, s Store) {
	odd := []string{"", "{}", "null", " {}", "{}\n", "{ \"a\" : 1.50 }", "\xff", "\"\xff\"", "text", "\"<&>\u2028\""}
	rapid.Check(t, func(rt *rapid.T) {
		first, second := s.New(t), s.New(t)
		defer first.Close()
		defer second.Close()
		tables := journal.Tables()
		for range rapid.IntRange(0, 20).Draw(rt, "records") {
			key := rapid.SliceOfN(rapid.Byte(), 1, 12).Draw(rt, "key")
			if rapid.Bool().Draw(rt, "text") {
				key = []byte(rapid.StringN(1, 8, 30).Draw(rt, "key"))
			}
			value := rapid.OneOf(rapid.SampledFrom(odd), rapid.String()).Draw(rt, "value")
			commit(t, first, put(rapid.SampledFrom(tables).Draw(rt, "table"), string(key), value))
		}
		text := exported(rt, first)
		if _, err := journal.Fill(ctx, second, bytes.NewReader(text)); err != nil {
			rt.Fatalf("%v in\n%s", err, text)
		}
		if again := exported(rt, second); !bytes.Equal(again, text) {
			rt.Fatalf("exported\n%s\nthen\n%s", text, again)
		}
		if want, have := contents(t, first), contents(t, second); want != have {
			rt.Fatalf("had\n%s\nnow\n%s", want, have)
		}
	})
}

// contents returns all records of a store as text to compare, without their revisions.
func contents(t testing.TB, s journal.Store) string {
	t.Helper()
	var all bytes.Buffer
	if _, err := s.Load(ctx, journal.Tables(), func(table journal.Table, r journal.Record) error {
		fmt.Fprintf(&all, "%s %q %q\n", table, r.Key, r.Value)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return all.String()
}

// testDamagedExports checks that Fill refuses an export that was cut, changed or mixed up.
func testDamagedExports(t *testing.T, s Store) {
	store := open(t, s)
	commit(t, store, put(journal.Key, "a", `{"n":1}`), put(journal.Key, "b", `{"n":2}`), put(journal.Body, "a", "text"))
	text := exported(t, store)
	lines := bytes.SplitAfter(text, []byte{'\n'})
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	for name, c := range map[string]struct {
		text []byte
		want error
	}{
		"nothing":         {nil, journal.ErrImport},
		"a line short":    {join(lines[:3]...), journal.ErrImport},
		"cut in a line":   {text[:len(text)-3], journal.ErrImport},
		"without an end":  {text[:len(text)-1], journal.ErrImport},
		"another value":   {bytes.Replace(text, []byte(`"n":2`), []byte(`"n":3`), 1), journal.ErrImport},
		"another table":   {bytes.Replace(text, []byte(`{"table":"resp"`), []byte(`{"table":"user"`), 1), journal.ErrImport},
		"no such table":   {bytes.Replace(text, []byte(`{"table":"resp"`), []byte(`{"table":"none"`), 1), journal.ErrInvalid},
		"out of order":    {join(lines[0], lines[2], lines[1], lines[3]), journal.ErrImport},
		"a line twice":    {join(lines[0], lines[1], lines[1], lines[2], lines[3]), journal.ErrImport},
		"no header":       {join(lines[1:]...), journal.ErrImport},
		"not JSON":        {[]byte("hello\n"), journal.ErrImport},
		"unknown members": {bytes.Replace(text, []byte(`{"table":"key"`), []byte(`{"extra":1,"table":"key"`), 1), journal.ErrImport},
		"newer schema":    {bytes.Replace(text, []byte(`"schema":`), []byte(`"schema":99`), 1), journal.ErrSchema},
	} {
		empty := s.New(t)
		if _, err := journal.Fill(ctx, empty, bytes.NewReader(c.text)); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
		if err := empty.Close(); err != nil {
			t.Error(err)
		}
	}
}
