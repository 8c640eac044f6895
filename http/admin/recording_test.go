package admin_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"stagedoor/actors/recording"
	"stagedoor/http/admin"
	"stagedoor/test/harness"
)

func recordings() *admin.Recordings {
	return &admin.Recordings{Recorder: new(recording.Recorder), Key: func(id string) error {
		if id != "key_1" {
			return errors.New("unknown")
		}
		return nil
	}}
}

// A recording lasts until its client stops it. A second client cannot record the same key
// meanwhile.
func TestAKeyIsRecordedThroughTheSocket(t *testing.T) {
	c, err := admin.Dial(serve(t, open(t)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var out harness.Buffer
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	wg.Go(func() {
		if err := c.Record(ctx, "key_1", time.Hour, 1<<20, &out); err != nil {
			t.Error(err)
		}
	})
	for deadline := time.Now().Add(time.Minute); out.String() == ""; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the recording does not begin")
		}
	}
	if err := c.Record(t.Context(), "key_1", time.Hour, 1<<20, new(bytes.Buffer)); err == nil ||
		!strings.Contains(err.Error(), "recorded already") {
		t.Errorf("a second recording: %v", err)
	}
	stop()
	wg.Wait()
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 || !strings.HasPrefix(lines[0], `{"stagedoor_recording":1,"key":"key_1"`) ||
		lines[1] != `{"end":"stopped","exchanges":0,"dropped":0,"unfinished":0}` {
		t.Errorf("got %q", lines)
	}
	if err := c.Record(t.Context(), "key_1", time.Millisecond, 1<<20, new(bytes.Buffer)); err != nil {
		t.Errorf("a recording after the first: %v", err)
	}
}

// The error names the parameter.
func TestARecordingOutOfBoundsIsRefused(t *testing.T) {
	c, err := admin.Dial(serve(t, open(t)))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []struct {
		key  string
		d    time.Duration
		size int64
		want string
	}{
		{"key_2", time.Hour, 1 << 20, "key with this id"},
		{"key_1", 0, 1 << 20, "a time"},
		{"key_1", admin.MaxRecordingTime + 1, 1 << 20, "a time"},
		{"key_1", time.Hour, admin.MinRecordingSize - 1, "must be from"},
		{"key_1", time.Hour, admin.MaxRecordingSize + 1, "must be from"},
	} {
		if err := c.Record(t.Context(), r.key, r.d, r.size, new(bytes.Buffer)); err == nil ||
			!strings.Contains(err.Error(), r.want) {
			t.Errorf("%+v: got %v", r, err)
		}
	}
}
