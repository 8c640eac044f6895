package main

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"time"
)

const (
	// logDelay limits the time that a line waits to be written with others, because
	// a system call per request would cost more than the request.
	logDelay = 100 * time.Millisecond
	// logFlushAt is the number of bytes written at once, logMost the number that may wait for a
	// writer that takes nothing. Further lines are dropped and counted: a full
	// pipe must not stop the gateway (faults.md P20).
	logFlushAt = 32 << 10
	logMost    = 1 << 20
	// logCloseTime limits the time that the end of the program waits for the last lines.
	logCloseTime = 2 * time.Second
)

// logBuffer collects log lines and writes them together. Safe for concurrent use.
type logBuffer struct {
	out   io.Writer
	timer *time.Timer
	// lost, if set, is called with the number of lines that were dropped.
	lost func(count int)

	mu      sync.Mutex
	lines   []byte
	dropped int
	closed  bool

	writing sync.Mutex // held while out is written to; guards spare
	spare   []byte
}

// newLogBuffer returns a buffer that writes to out. Its timer runs only while lines wait.
func newLogBuffer(out io.Writer) *logBuffer {
	b := &logBuffer{out: out}
	b.timer = time.AfterFunc(time.Hour, b.flush)
	b.timer.Stop()
	return b
}

// Write implements io.Writer. p is one line.
func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return b.out.Write(p)
	}
	if len(b.lines)+len(p) > logMost {
		b.dropped++
		return len(p), nil
	}
	before := len(b.lines)
	b.lines = append(b.lines, p...)
	switch {
	case before == 0:
		b.timer.Reset(logDelay)
	case before < logFlushAt && len(b.lines) >= logFlushAt:
		b.timer.Reset(0)
	}
	return len(p), nil
}

// flush writes what has been collected.
func (b *logBuffer) flush() {
	b.writing.Lock()
	defer b.writing.Unlock()
	b.write()
}

// flushUnlessBusy flushes unless a write is in progress. The rest then waits for the timer, so
// that no caller waits for a writer that is stuck.
func (b *logBuffer) flushUnlessBusy() {
	if b.writing.TryLock() {
		defer b.writing.Unlock()
		b.write()
	}
}

// write takes the lines out of the buffer and writes them. b.writing must be held.
func (b *logBuffer) write() {
	b.mu.Lock()
	lines, dropped := b.lines, b.dropped
	b.lines, b.dropped = b.spare[:0], 0
	b.mu.Unlock()
	if len(lines) > 0 {
		_, _ = b.out.Write(lines) // where would one say that the log cannot be written
	}
	b.spare = lines
	if dropped > 0 && b.lost != nil {
		b.lost(dropped)
	}
}

// Close writes the remaining lines, waiting at most logCloseTime for a slow reader.
// Later lines are written without a buffer.
func (b *logBuffer) Close() {
	b.timer.Stop()
	written := make(chan struct{})
	time.AfterFunc(0, func() {
		defer close(written)
		b.flush()
		b.flush() // what the first one had to say of lost lines
	})
	select {
	case <-written:
	case <-time.After(logCloseTime):
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
}

// urgent is a handler whose warnings and errors are written at once.
type urgent struct {
	slog.Handler
	buffer *logBuffer
}

// Handle implements slog.Handler.
func (u urgent) Handle(ctx context.Context, r slog.Record) error {
	err := u.Handler.Handle(ctx, r)
	if r.Level >= slog.LevelWarn {
		u.buffer.flushUnlessBusy()
	}
	return err
}

// WithAttrs implements slog.Handler.
func (u urgent) WithAttrs(attrs []slog.Attr) slog.Handler {
	return urgent{u.Handler.WithAttrs(attrs), u.buffer}
}

// WithGroup implements slog.Handler.
func (u urgent) WithGroup(name string) slog.Handler {
	return urgent{u.Handler.WithGroup(name), u.buffer}
}
