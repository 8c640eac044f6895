package transfer_test

import (
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"stagedoor/providers/video"
	"stagedoor/providers/video/transfer"
)

// store opens files of text and counts those that are open.
type store struct {
	files  map[string]string
	open   atomic.Int32
	opened atomic.Int32
}

func (s *store) Open(id string) (io.ReadCloser, error) {
	text, ok := s.files[id]
	if !ok {
		return nil, os.ErrNotExist
	}
	s.open.Add(1)
	s.opened.Add(1)
	return &loan{Reader: strings.NewReader(text), store: s}, nil
}

type loan struct {
	io.Reader
	store *store
}

func (l *loan) Close() error {
	l.store.open.Add(-1)
	return nil
}

func body(s *store) *transfer.Body {
	b := &transfer.Body{Files: s.Open}
	b.Text("<")
	b.File(&video.File{ID: "a", Size: 4})
	b.Text("|")
	b.Base64(&video.File{ID: "b", Size: 4})
	b.Text(">")
	return b
}

func TestABodyIsItsPiecesAsOftenAsItIsOpened(t *testing.T) {
	s := &store{files: map[string]string{"a": "aaaa", "b": "bbbb"}}
	b := body(s)
	for range 2 {
		r, err := b.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if want := "<aaaa|YmJiYg==>"; err != nil || string(text) != want || b.Len() != int64(len(want)) {
			t.Errorf("got %q of %d bytes, %v, want %q", text, b.Len(), err, want)
		}
		if err := r.Close(); err != nil || s.open.Load() != 0 {
			t.Errorf("%v, %d files are open", err, s.open.Load())
		}
	}
}

// A transport that gives a call up closes its body while it may be read.
func TestAClosedBodyOpensNothing(t *testing.T) {
	s := &store{files: map[string]string{"a": "aaaa", "b": "bbbb"}}
	r, _ := body(s).Open()
	var first [1]byte
	if _, err := io.ReadFull(r, first[:]); err != nil {
		t.Fatal(err)
	}
	r.Close()
	if _, err := io.ReadAll(r); err == nil || s.opened.Load() != 0 {
		t.Errorf("read on: %v, %d files opened", err, s.opened.Load())
	}
	for range 100 {
		r, _ := body(s).Open()
		var both sync.WaitGroup
		both.Go(func() { _, _ = io.Copy(io.Discard, r) })
		both.Go(func() { r.Close() })
		both.Wait()
		r.Close()
	}
	if n := s.open.Load(); n != 0 {
		t.Errorf("%d files stay open", n)
	}
}

func TestAMissingFileEndsTheBody(t *testing.T) {
	s := &store{files: map[string]string{"a": "aaaa"}}
	r, _ := body(s).Open()
	defer r.Close()
	if text, err := io.ReadAll(r); err == nil || string(text) != "<aaaa|" {
		t.Errorf("got %q, %v", text, err)
	}
}
