package live_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"stagedoor/state/work"
)

func TestAStreamOfOneJobEndsWithItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		v := s.job(me)
		reply, events := s.get("/v1/videos/"+v.ID+"/events", key)
		h := reply.Header
		if reply.StatusCode != 200 || h.Get("Content-Type") != "text/event-stream" ||
			h.Get("X-Accel-Buffering") != "no" ||
			h.Get("Cache-Control") != "no-cache" {
			t.Fatalf("%d %v", reply.StatusCode, h)
		}
		if e := expect(t, events, "snapshot"); e.job["id"] != v.ID || e.job["status"] != "queued" || len(e.job) != 13 {
			t.Errorf("%+v", e)
		}
		v = s.progress(v, 10)
		if e := expect(t, events, "status"); e.job["status"] != "in_progress" {
			t.Errorf("%+v", e)
		}
		v = s.progress(v, 20)
		expect(t, events, "progress")
		s.complete(v)
		if e := expect(t, events, "terminal"); e.job["status"] != "completed" || e.job["progress"] != 100.0 {
			t.Errorf("%+v", e)
		}
		if e, err := next(t, events); !errors.Is(err, io.EOF) {
			t.Errorf("after the end: %+v, %v", e, err)
		}
	})
}

// A client that reconnects receives the end once, whenever the connection was lost.
func TestAStreamIsResumedWithoutAGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		v := s.job(me)
		path := "/v1/videos/" + v.ID + "/events"
		_, events := s.get(path, key)
		seen := expect(t, events, "snapshot").id
		v = s.complete(s.progress(v, 10))

		_, events = s.get(path, key, "Last-Event-ID", seen)
		end := expect(t, events, "terminal")
		if _, err := next(t, events); !errors.Is(err, io.EOF) {
			t.Error("the stream goes on")
		}
		if reply, _ := s.get(path, key, "Last-Event-ID", end.id); reply.StatusCode != http.StatusNoContent {
			t.Errorf("who knows the end gets %d", reply.StatusCode)
		}
		_, events = s.get(path, key)
		if e := expect(t, events, "snapshot"); e.id != "" {
			t.Errorf("the snapshot of a finished job can be resumed from %q: its end would be missed", e.id)
		}
		if e := expect(t, events, "terminal"); e.id != end.id {
			t.Errorf("%+v", e)
		}
		_, events = s.get(path, key, "Last-Event-ID", "9000000000000000") // of another gateway
		expect(t, events, "snapshot", "terminal")
	})
}

func TestAStreamOfAllJobsBeginsWithASnapshotAndGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		first, second := s.job(me), s.job(me)
		s.job("user:bob")
		gone := s.job(me)
		gone.Deleted = time.Now()
		s.put(gone)
		_, events := s.get("/v1/videos/events", key)
		for _, want := range []string{first.ID, second.ID} {
			if e := expect(t, events, "snapshot"); e.job["id"] != want {
				t.Errorf("%+v, want %s", e, want)
			}
		}
		seen := expect(t, events, "ready").id

		first = s.progress(first, 10)
		expect(t, events, "status")
		first = s.progress(first, 20)
		if e := expect(t, events, "progress"); e.job["id"] != first.ID {
			t.Errorf("%+v", e)
		}
		s.complete(first)
		expect(t, events, "terminal")
		third := s.job(me)
		if e := expect(t, events, "status"); e.job["id"] != third.ID {
			t.Errorf("%+v", e)
		}
		second.Deleted = time.Now()
		s.put(second)
		if e := expect(t, events, "deleted"); e.job["id"] != second.ID || e.job["deleted"] != true {
			t.Errorf("%+v", e)
		}

		_, events = s.get("/v1/videos/events", key, "Last-Event-ID", seen)
		expect(t, events, "ready")
		for _, want := range []string{first.ID, third.ID, second.ID} {
			if e, err := next(t, events); err != nil || e.job["id"] != want {
				t.Errorf("%+v, %v, want %s", e, err, want)
			}
		}
		time.Sleep(time.Hour)
		_, events = s.get("/v1/videos/events", key, "Last-Event-ID", seen)
		expect(t, events, "snapshot", "snapshot", "ready") // what was deleted may be forgotten by now
	})
}

func TestASnapshotHasThousandsInPieces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		for range 1100 {
			s.job(me)
		}
		_, events := s.get("/v1/videos/events", key)
		count := 0
		for {
			e, err := next(t, events)
			if err != nil {
				t.Fatal(err)
			}
			if e.name == "ready" {
				break
			}
			count++
		}
		if count != 1000 {
			t.Errorf("%d jobs, want the last 1000", count)
		}
	})
}

func TestASilentStreamIsKeptAliveAndEndsWithTheDoors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		_, events := s.get("/v1/videos/events", key)
		expect(t, events, "ready")
		began := time.Now()
		if line, err := events.ReadString('\n'); err != nil || !strings.HasPrefix(line, ": ") ||
			time.Since(began) > 16*time.Second {
			t.Errorf("%q, %v after %s", line, err, time.Since(began))
		}
		s.handlers.Drain()
		if _, err := io.ReadAll(events); err != nil {
			t.Error(err)
		}
		if reply, _ := s.get("/v1/videos/events", key); reply.StatusCode != 503 {
			t.Errorf("got %d while shutting down", reply.StatusCode)
		}
	})
}

func TestAStreamEndsWhenItsKeyIsTakenAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		_, events := s.get("/v1/videos/events", key)
		expect(t, events, "ready")
		s.keys(foreign)
		began := time.Now()
		if _, err := io.ReadAll(events); err != nil || time.Since(began) > 31*time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
	})
}

func TestWhoMayWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.user = "ann"
		v := s.job(me)
		one := "/v1/videos/" + v.ID + "/events"
		for _, c := range []struct {
			name, path, key string
			headers         []string
			status          int
			says            string
		}{
			{"a key", one, key, nil, 200, ""},
			{"a browser", one, "", []string{"Cookie", "session=1"}, 200, ""},
			{"a page of the gateway", one, "", []string{"Cookie", "session=1", "Origin", "https://gateway.example"},
				200, ""},
			{"a page of the host", one, "", []string{"Cookie", "session=1", "Origin", "http://gateway"}, 200, ""},
			{"a page from elsewhere", one, "", []string{"Cookie", "session=1", "Origin", "https://evil.example"}, 403,
				"origin_not_allowed"},
			{"a page from nowhere", one, "", []string{"Cookie", "session=1", "Origin", "null"}, 403,
				"origin_not_allowed"},
			{"no key", one, "", nil, 401, "missing_api_key"},
			{"a key in the query", one + "?key=" + key, "", nil, 401, "missing_api_key"},
			{"an unknown key beside a session", one, "sd-unknown", []string{"Cookie", "session=1"}, 401,
				"invalid_api_key"},
			{"a key for other things", one, noVideos, nil, 403, "permission_denied"},
			{"another user", one, foreign, nil, 404, "video_not_found"},
			{"an unknown job", "/v1/videos/video_0/events", key, nil, 404, "video_not_found"},
			{"a bad place to resume", one, key, []string{"Last-Event-ID", "x"}, 400, "invalid_value"},
			{"a socket without upgrade", "/v1/videos/live", key, nil, 426, "upgrade_required"},
		} {
			reply, _ := s.get(c.path, c.key, c.headers...)
			if reply.StatusCode != c.status {
				t.Errorf("%s: %d, want %d", c.name, reply.StatusCode, c.status)
			}
			if c.status != 200 {
				if text := body(t, reply.Body); !strings.Contains(text, `"code":"`+c.says+`"`) {
					t.Errorf("%s: %s, want %s", c.name, text, c.says)
				}
			}
		}
	})
}

// RFC 6455 4.4: the refusal of a handshake says which version of the protocol is spoken.
func TestARefusedHandshakeNamesTheVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		reply, _ := s.get("/v1/videos/live", key, "Connection", "Upgrade", "Upgrade", "websocket",
			"Sec-WebSocket-Version", "8", "Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA==")
		text := body(t, reply.Body)
		if reply.StatusCode != 400 || reply.Header.Get("Sec-WebSocket-Version") != "13" ||
			!strings.Contains(text, `"code":"invalid_handshake"`) {
			t.Errorf("got %d %v %s", reply.StatusCode, reply.Header, text)
		}
	})
}

func TestADeletedJobEndsItsStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		v := s.job(me)
		_, events := s.get("/v1/videos/"+v.ID+"/events", key)
		expect(t, events, "snapshot")
		v.Phase, v.Error = work.VideoFailed, &work.VideoError{Code: "internal_error", Message: "it broke"}
		v = s.put(v)
		expect(t, events, "terminal")

		v = s.job(me)
		_, events = s.get("/v1/videos/"+v.ID+"/events", key)
		expect(t, events, "snapshot")
		v.Deleted = time.Now()
		s.put(v)
		expect(t, events, "deleted")
		if _, err := next(t, events); !errors.Is(err, io.EOF) {
			t.Error("the stream goes on")
		}
	})
}

// A client that reads nothing keeps only its own stream waiting, and then receives the
// newest state.
func TestASlowStreamHearsTheNewest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		v := s.job(me)
		_, slow := s.get("/v1/videos/"+v.ID+"/events", key)
		_, quick := s.get("/v1/videos/"+v.ID+"/events", key)
		expect(t, slow, "snapshot")
		expect(t, quick, "snapshot")
		for percent := 1; percent < 100; percent++ {
			v = s.progress(v, percent)
			time.Sleep(100 * time.Millisecond)
			if e, err := next(t, quick); err != nil || e.job["progress"] != float64(percent) {
				t.Fatalf("%+v, %v, want %d %%", e, err, percent)
			}
		}
		first, err := next(t, slow) // was being written when it stopped
		if err != nil || first.job["progress"] != 1.0 {
			t.Errorf("%+v, %v", first, err)
		}
		if e, err := next(t, slow); err != nil || e.job["progress"] != 99.0 {
			t.Errorf("%+v, %v, want the newest", e, err)
		}
	})
}
