package recording

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/shapes"
	"stagedoor/state"
	"stagedoor/state/recordings"
)

// tested is a keeper that records the key k for an hour.
type tested struct {
	*Keeper
	recorder Recorder
	dir      string
	log      bytes.Buffer
	gone     bool // the key
	room     int64
}

func startTested(t *testing.T, l recordings.Limits) *tested {
	t.Helper()
	k := &tested{dir: filepath.Join(t.TempDir(), "recordings"), room: 1 << 40}
	until := time.Now().Add(time.Hour)
	changed := make(chan struct{})
	k.Keeper = StartKeeper(KeeperOptions{Logger: slog.New(slog.NewTextHandler(&k.log, nil)), Recorder: &k.recorder,
		Dir: k.dir, Limits: l, Now: time.Now, Room: func() int64 { return k.room },
		Recorded: func() map[string]time.Time {
			if !time.Now().Before(until) {
				return nil
			}
			return map[string]time.Time{"k": until}
		},
		Stays: func(string) bool { return !k.gone }, Changed: func() <-chan struct{} { return changed }})
	synctest.Wait()
	return k
}

var day = recordings.Limits{Keep: 24 * time.Hour, Bytes: 64 << 20, Exchanges: 100}

// send records a request of a key with one attempt, and reports whether it was recorded.
func (k *tested) send(key, id, prompt string) bool {
	d := k.recorder.Begin(key)
	if d == nil {
		return false
	}
	in := shapes.Params{Header: http.Header{"Authorization": {"Bearer sd-client-secret"}}}
	d.Client(id, Client{Shape: "chat"}, in, []byte(prompt))
	d.Env(&dialogue.Env{Now: time.Now, ID: func() string { return "id" }}).Now()
	d.Attempt([]string{"sk-vendor-secret"})
	c := d.Call(&shapes.Call{Path: "/chat/completions", Body: []byte(prompt + " with sk-vendor-secret")})
	c.Reply(http.StatusOK, http.Header{"X-Account": {"sk-vendor-secret"}}, errors.New("dial tcp 192.0.2.1:443"))
	d.Deliver([]byte("the reply to sd-client-secret"), false)
	d.AttemptEnded(Attempt{})
	d.End(Reply{})
	synctest.Wait()
	return true
}

// find returns an exchange that was kept just now, or nil.
func (k *tested) find(t *testing.T, id string) *Exchange {
	t.Helper()
	x, err := k.Find("k", id, time.Now().Add(-time.Minute), time.Now().Add(time.Minute))
	if err != nil && !errors.Is(err, state.ErrNotFound) {
		t.Fatal(err)
	}
	return x
}

// TestAKeyIsKeptUntilItsTimeIsOver, without credentials, and only while exchanges are not too old.
func TestAKeyIsKeptUntilItsTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := startTested(t, day)
		defer k.Close()
		if !k.send("k", "a", "hello") || k.send("other", "b", "hello") {
			t.Error("another key is recorded, or this one is not")
		}
		x := k.find(t, "a")
		if x == nil || string(x.Client.Body) != "hello" || string(x.Reply.Body) != "the reply to [redacted]" ||
			string(x.Attempts[0].Calls[0].Body) != "hello with [redacted]" {
			t.Fatalf("got %+v", x)
		}
		all, err := filepath.Glob(filepath.Join(k.dir, "k", "*"))
		if err != nil || len(all) != 1 {
			t.Fatal(all, err)
		}
		if text, err := os.ReadFile(all[0]); err != nil || strings.Contains(string(text), "-secret") ||
			strings.Contains(string(text), "192.0.2.1") {
			t.Errorf("the file has a credential or an address: %s, %v", text, err)
		}
		began := time.Now()
		time.Sleep(time.Hour)
		synctest.Wait()
		if k.send("k", "c", "hello") || k.recorder.active.Load() != nil {
			t.Error("the key is recorded after its time")
		}
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		if _, err := os.Stat(k.dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("what is too old was not removed: %v", err)
		}
		_, err = k.Find("k", "a", began.Add(-time.Minute), began.Add(time.Minute))
		if !errors.Is(err, state.ErrNotFound) {
			t.Errorf("got %v", err)
		}
	})
}

// TestNothingIsKeptWithoutARetention: what was kept before leaves when the setting changes.
func TestNothingIsKeptWithoutARetention(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := startTested(t, day)
		defer k.Close()
		k.send("k", "a", "hello")
		k.Limit(recordings.Limits{Bytes: 1, Exchanges: 1})
		synctest.Wait()
		if _, err := os.Stat(k.dir); !errors.Is(err, os.ErrNotExist) || k.send("k", "b", "x") || k.find(t, "a") != nil {
			t.Errorf("something is kept: %v", err)
		}
	})
}

// TestWhatCannotBeKeptIsCounted and fails no request: of a key that is gone, on a disk that is full and in a directory
// that cannot be written. All the room is free again afterwards.
func TestWhatCannotBeKeptIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := startTested(t, day)
		defer k.Close()
		k.gone = true
		k.send("k", "a", "hello")
		k.gone, k.room = false, 10
		k.send("k", "b", "hello")
		k.room = 1 << 40
		if err := os.WriteFile(k.dir, nil, 0o600); err != nil { // where the directory would be
			t.Fatal(err)
		}
		k.send("k", "c", "hello")
		k.send("k", "d", strings.Repeat("x", room))
		written, dropped := k.Stats()
		if written != 0 || dropped != 4 || k.sink.room.Load() != room ||
			!strings.Contains(k.log.String(), "were not kept") {
			t.Errorf("%d written, %d dropped, %d bytes left\n%s", written, dropped, k.sink.room.Load(), k.log.String())
		}
	})
}

// TestLongBodiesAreCut and say so.
func TestLongBodiesAreCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := startTested(t, day)
		defer k.Close()
		k.send("k", "a", strings.Repeat("x", maxText+1234))
		x := k.find(t, "a")
		if x == nil || !x.Shortened || len(x.Client.Body) > maxText+100 ||
			!strings.HasSuffix(string(x.Client.Body), "[recording: 1234 further bytes were not kept]") ||
			string(x.Reply.Body) != "the reply to [redacted]" {
			t.Errorf("got %+v", x)
		}
	})
}

// TestAKeyIsRecordedForAFileAndForItsPagesAtATime.
func TestAKeyIsRecordedForAFileAndForItsPagesAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := startTested(t, day)
		defer k.Close()
		rec, err := k.recorder.Start("k")
		if err != nil {
			t.Fatal(err)
		}
		k.send("k", "a", "hello")
		k.recorder.Stop("k")
		var out bytes.Buffer
		if err := rec.Write(t.Context(), &out, func() error { return nil }, time.Hour, 1<<20); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), `"body":"hello"`) || !strings.Contains(out.String(), `"exchanges":1`) ||
			strings.Contains(out.String(), "-secret") || k.find(t, "a") == nil {
			t.Errorf("got %s", out.String())
		}
		if k.sink.room.Load() != room || rec.room.Load() != room {
			t.Error("room is missing")
		}
	})
}

// TestOfTwoExchangesOfARequestOneIsKept: that of the target which served it.
func TestOfTwoExchangesOfARequestOneIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := startTested(t, day)
		defer k.Close()
		for id, forkServes := range map[string]bool{"a": true, "b": false} {
			d := k.recorder.Begin("k")
			d.Client(id, Client{Shape: "chat"}, shapes.Params{Header: http.Header{}}, []byte("hello"))
			env := d.Env(&dialogue.Env{Now: time.Now, ID: func() string { return "id" }})
			d.Attempt(nil)
			d.Call(&shapes.Call{Path: "/slow"})
			fork, _ := d.Fork(env)
			fork.Attempt(nil)
			fork.Call(&shapes.Call{Path: "/fast"})
			loser, path := fork, "/slow"
			if forkServes {
				loser, path = d, "/fast"
				d = fork
			}
			loser.Drop()
			d.End(Reply{})
			synctest.Wait()
			x := k.find(t, id)
			if x == nil || len(x.Attempts) != 1 || x.Attempts[0].Calls[0].Path != path ||
				string(x.Client.Body) != "hello" {
				t.Errorf("got %+v", x)
			}
		}
		if k.sink.room.Load() != room {
			t.Error("room is missing")
		}
	})
}

// TestNoExchangeBeginsAfterTheTimeOfItsKey, also where the keeper is late.
func TestNoExchangeBeginsAfterTheTimeOfItsKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r Recorder
		var s sink
		s.open()
		r.keep(&s, map[string]time.Time{"k": time.Now().Add(time.Hour)})
		time.Sleep(time.Hour - time.Nanosecond)
		if r.Begin("k") == nil {
			t.Error("the key is not recorded within its time")
		}
		if time.Sleep(time.Nanosecond); r.Begin("k") != nil {
			t.Error("the key is recorded after its time")
		}
	})
}
