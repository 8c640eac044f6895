package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"stagedoor/cmd/stagedoor/config"
)

// sink counts writes, and takes none while it is stuck.
type sink struct {
	mu     sync.Mutex
	buf    bytes.Buffer
	writes int
	stuck  chan struct{}
}

func (s *sink) Write(p []byte) (int, error) {
	if s.stuck != nil {
		<-s.stuck
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes++
	return s.buf.Write(p)
}

func (s *sink) read() (text string, writes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String(), s.writes
}

func TestLinesAreWrittenTogetherAndSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &sink{}
		b := newLogBuffer(out)
		defer b.Close()
		for range 3 {
			io.WriteString(b, "line\n")
		}
		time.Sleep(logDelay - time.Millisecond)
		if _, n := out.read(); n != 0 {
			t.Errorf("%d writes before the delay was over", n)
		}
		time.Sleep(2 * time.Millisecond)
		if text, n := out.read(); n != 1 || text != "line\nline\nline\n" {
			t.Errorf("%d writes: %q", n, text)
		}
		io.WriteString(b, "later\n")
		time.Sleep(2 * logDelay)
		if text, n := out.read(); n != 2 || !strings.HasSuffix(text, "later\n") {
			t.Errorf("%d writes: %q", n, text)
		}
	})
}

func TestManyLinesDoNotWaitForTheDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &sink{}
		b := newLogBuffer(out)
		defer b.Close()
		line := strings.Repeat("x", 1023) + "\n"
		for range logFlushAt / len(line) {
			io.WriteString(b, line)
		}
		synctest.Wait()
		if text, n := out.read(); n != 1 || len(text) != logFlushAt {
			t.Errorf("%d writes of %d bytes", n, len(text))
		}
	})
}

func TestWarningsAreWrittenAtOnce(t *testing.T) {
	out := &sink{}
	b := newLogBuffer(out)
	defer b.Close()
	log, err := logger(config.Log{Level: "info", Format: "json"}, b)
	if err != nil {
		t.Fatal(err)
	}
	log.With("a", 1).WithGroup("g").Info("first")
	log.With("a", 1).WithGroup("g").Warn("second")
	text, writes := out.read()
	if writes != 1 || strings.Count(text, "\n") != 2 || !strings.Contains(text, "second") {
		t.Errorf("%d writes: %q", writes, text)
	}
}

func TestNothingIsLostAtTheEnd(t *testing.T) {
	out := &sink{}
	b := newLogBuffer(out)
	io.WriteString(b, "last\n")
	b.Close()
	io.WriteString(b, "after\n")
	if text, _ := out.read(); text != "last\nafter\n" {
		t.Errorf("got %q", text)
	}
}

func TestAStuckLogStopsNobodyAndSaysWhatItLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &sink{stuck: make(chan struct{})}
		b := newLogBuffer(out)
		log, err := logger(config.Log{Level: "info", Format: "json"}, b)
		if err != nil {
			t.Fatal(err)
		}
		log.Info("first")
		time.Sleep(2 * logDelay) // the write is under way, and stuck
		blob := strings.Repeat("y", 64<<10)
		for range 2 * logMost / len(blob) {
			log.Warn("more", "blob", blob)
		}
		b.mu.Lock()
		size, dropped := len(b.lines), b.dropped
		b.mu.Unlock()
		if size > logMost || dropped == 0 {
			t.Errorf("%d bytes wait, %d lines dropped", size, dropped)
		}
		close(out.stuck)
		time.Sleep(3 * logDelay)
		text, _ := out.read()
		lines := strings.Split(strings.TrimSpace(text), "\n")
		var last struct {
			Msg   string
			Count int
		}
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil || last.Count != dropped {
			t.Errorf("the last line is %q, %v; want a count of %d", lines[len(lines)-1], err, dropped)
		}
		b.Close()
	})
}

func TestAStuckLogDoesNotKeepTheProgramFromEnding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &sink{stuck: make(chan struct{})}
		b := newLogBuffer(out)
		io.WriteString(b, "never read\n")
		start := time.Now()
		b.Close()
		if d := time.Since(start); d > logCloseTime {
			t.Errorf("the end took %s", d)
		}
		close(out.stuck)
	})
}

func TestLinesOfManyGoroutinesStayWhole(t *testing.T) {
	out := &sink{}
	b := newLogBuffer(out)
	log, err := logger(config.Log{Level: "info", Format: "text"}, b)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 200 {
				log.LogAttrs(context.Background(), slog.LevelInfo, "request", slog.Int("n", i))
			}
		})
	}
	wg.Wait()
	b.Close()
	text, writes := out.read()
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) != 1600 {
		t.Errorf("%d lines", len(lines))
	}
	for _, l := range lines {
		if !strings.HasPrefix(l, "time=") || strings.Count(l, "time=") != 1 {
			t.Fatalf("a torn line: %q", l)
		}
	}
	if writes > 400 {
		t.Errorf("%d writes for 1600 lines", writes)
	}
}
