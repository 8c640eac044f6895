package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestFullDiskIsToldOnceAndWhenItIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		why := func() error {
			if took := time.Since(began); took < time.Minute {
				return errors.New("4 bytes free")
			}
			return nil
		}
		var log bytes.Buffer
		var d disk
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			d.watch(ctx, slog.New(slog.NewTextHandler(&log, nil)), why)
			close(ended)
		}()
		synctest.Wait()
		if !d.full.Load() {
			t.Error("a disk that is full from the start is not reported")
		}
		time.Sleep(2 * time.Minute)
		cancel()
		<-ended
		if d.full.Load() || strings.Count(log.String(), "level=ERROR") != 1 || strings.Count(log.String(), "again") != 1 || !strings.Contains(log.String(), "4 bytes free") {
			t.Errorf("%v\n%s", d.full.Load(), log.String())
		}
	})
}

// TestWithoutKnownFreeSpaceThereIsRoom, because a bound of 0 would keep no recording at all.
func TestWithoutKnownFreeSpaceThereIsRoom(t *testing.T) {
	if room := logRoom(filepath.Join(t.TempDir(), "missing")); room < 1<<40 {
		t.Errorf("%d bytes", room)
	}
}
