package main

import (
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// TestAnEchoOfASignalIsNotASecondOne: a graceful stop stays one where the signal
// comes twice at once, as from timeout(1).
func TestAnEchoOfASignalIsNotASecondOne(t *testing.T) {
	for name, test := range map[string]struct {
		signals []time.Duration // after the first
		done    time.Duration
		want    bool
	}{
		"none":           {done: time.Second},
		"echo":           {signals: []time.Duration{0, 99 * time.Millisecond}, done: time.Second},
		"second":         {signals: []time.Duration{100 * time.Millisecond}, done: time.Second, want: true},
		"echo and third": {signals: []time.Duration{time.Millisecond, 300 * time.Millisecond}, done: time.Second, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				signals, done := make(chan os.Signal, 2), make(chan struct{})
				for _, after := range test.signals {
					time.AfterFunc(after, func() { signals <- syscall.SIGTERM })
				}
				time.AfterFunc(test.done, func() { close(done) })
				began := time.Now()
				if got := secondSignal(signals, done); got != test.want {
					t.Errorf("got %t after %s", got, time.Since(began))
				}
			})
		})
	}
}
