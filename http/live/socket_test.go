package live_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"stagedoor/http/live"
)

func TestASocketWatchesOneSomeOrAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		first, second := s.job(me), s.job(me)
		c := s.socket()

		say(t, c, `{"type":"subscribe","ids":"all"}`)
		for _, want := range []string{first.ID, second.ID} {
			if m := hear(t, c, "snapshot"); m.Job["id"] != want || len(m.Job) != 13 {
				t.Errorf("%+v, want %s", m, want)
			}
		}
		hear(t, c, "ready")
		third := s.job(me)
		if m := hear(t, c, "job"); m.Job["id"] != third.ID || m.Revision != third.Changed {
			t.Errorf("%+v", m)
		}

		say(t, c, fmt.Sprintf(`{"type":"subscribe","ids":[%q]}`, second.ID))
		if m := hear(t, c, "snapshot"); m.Job["id"] != second.ID {
			t.Errorf("%+v", m)
		}
		hear(t, c, "ready")
		s.progress(first, 5)
		second = s.progress(second, 7)
		if m := hear(t, c, "job"); m.Job["id"] != second.ID || m.Job["progress"] != 7.0 {
			t.Errorf("%+v, want the other job", m)
		}

		say(t, c, `{"type":"unsubscribe"}`)
		time.Sleep(pause) // it is heard after a rest
		second.Deleted = time.Now()
		s.put(second)
		time.Sleep(time.Second)
		say(t, c, fmt.Sprintf(`{"type":"subscribe","ids":"all","after":%d}`, third.Changed))
		hear(t, c, "ready")
		if m := hear(t, c, "job"); m.Job["id"] != first.ID {
			t.Errorf("%+v", m)
		}
		if m := hear(t, c, "deleted"); m.Job["id"] != second.ID {
			t.Errorf("%+v", m)
		}
	})
}

// A page that asks now and then whether its connection is alive does not receive
// everything again each time, however long ago anything changed.
func TestASilentWatcherResumesFromItsLastAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		v := s.job(me)
		c := s.socket()
		say(t, c, `{"type":"subscribe","ids":"all"}`)
		hear(t, c, "snapshot")
		last := hear(t, c, "ready").Revision
		go func() {
			for range 5 {
				time.Sleep(25 * time.Minute)
				say(t, c, fmt.Sprintf(`{"type":"subscribe","ids":"all","after":%d}`, last))
				synctest.Wait()
			}
			s.progress(v, 5)
		}()
		for range 5 {
			last = hear(t, c, "ready").Revision
		}
		if m := hear(t, c, "job"); m.Job["progress"] != 5.0 {
			t.Errorf("%+v", m)
		}
	})
}

func TestASocketSaysWhatIsWrongAndStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		theirs, mine, gone := s.job("user:bob"), s.job(me), s.job(me)
		gone.Deleted = time.Now()
		s.put(gone)
		c := s.socket()
		many := `"` + strings.Repeat(`x","`, live.MaxIDs) + `y"`
		for text, says := range map[string]string{
			`{"type":`:                          "invalid_json",
			`{"type":"dance"}`:                  "invalid_value",
			`[]`:                                "invalid_value",
			`{"type":"subscribe"}`:              "invalid_value",
			`{"type":"subscribe","ids":[]}`:     "invalid_value",
			`{"type":"subscribe","ids":[1]}`:    "invalid_value",
			`{"type":"subscribe","ids":"some"}`: "invalid_value",
			`{"type":"subscribe","ids":"all","after":-1}`:  "invalid_value",
			`{"type":"subscribe","ids":"all","after":"1"}`: "invalid_value",
			`{"type":"subscribe","ids":[` + many + `]}`:    "invalid_value",
		} {
			say(t, c, text)
			if m := hear(t, c, "error"); m.Error["code"] != says {
				t.Errorf("%.60s: %+v", text, m)
			}
		}
		if err := c.WriteMessage(websocket.BinaryMessage, []byte(`{"type":"unsubscribe"}`)); err != nil {
			t.Fatal(err)
		}
		hear(t, c, "error")
		say(t, c, fmt.Sprintf(`{"type":"subscribe","ids":[%q,%q]}`, theirs.ID, mine.ID))
		if m := hear(t, c, "error"); m.Error["code"] != "video_not_found" ||
			!strings.Contains(m.Error["message"].(string), theirs.ID) {
			t.Errorf("%+v", m)
		}
		if m := hear(t, c, "snapshot"); m.Job["id"] != mine.ID {
			t.Errorf("%+v", m)
		}
		hear(t, c, "ready")
		say(t, c, fmt.Sprintf(`{"type":"subscribe","ids":[%q]}`, gone.ID))
		if m := hear(t, c, "error"); m.Error["code"] != "video_not_found" {
			t.Errorf("%+v", m)
		}
	})
}

func TestOriginAndKeyAreCheckedBeforeTheUpgrade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.user = "ann"
		for _, c := range []struct {
			name    string
			headers http.Header
			status  int
		}{
			{"key", http.Header{"Authorization": {"Bearer " + key}}, 101},
			{"no key", nil, 401},
			{"own page", http.Header{"Cookie": {"session=1"}, "Origin": {"https://gateway.example"}}, 101},
			{"foreign page", http.Header{"Cookie": {"session=1"}, "Origin": {"https://evil.example"}}, 403},
			{"wrong scope", http.Header{"Authorization": {"Bearer " + noVideos}}, 403},
		} {
			conn, reply, err := s.dial(c.headers)
			if reply == nil || reply.StatusCode != c.status {
				t.Errorf("%s: %v, %v, want %d", c.name, reply, err, c.status)
			}
			if conn != nil {
				conn.Close()
			}
		}
	})
}

// ended reads until the socket ends and tells its close code, after how long.
func ended(t *testing.T, c *websocket.Conn) (code int, after time.Duration) {
	t.Helper()
	began := time.Now()
	for {
		if _, _, err := c.ReadMessage(); err != nil {
			var closed *websocket.CloseError
			if errors.As(err, &closed) {
				code = closed.Code
			}
			return code, time.Since(began)
		}
	}
}

func TestASocketLivesAsLongAsItsPeerAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		c := s.socket()
		pings := 0
		answer := c.PingHandler()
		c.SetPingHandler(func(data string) error {
			if pings++; pings > 20 {
				return nil
			}
			return answer(data)
		})
		if _, after := ended(t, c); after < 10*time.Minute || after > 12*time.Minute {
			t.Errorf("a peer that answered 20 pings was left after %s", after)
		}
	})
}

func TestASocketEndsWhenItsKeyIsTakenAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		c := s.socket()
		s.keys(foreign)
		if code, after := ended(t, c); code != websocket.ClosePolicyViolation || after > 31*time.Second {
			t.Errorf("closed with %d after %s", code, after)
		}
	})
}

func TestAMessageIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		c := s.socket()
		go c.WriteMessage(websocket.TextMessage, make([]byte, 1<<20)) // fails when the socket ends
		if code, _ := ended(t, c); code != websocket.CloseMessageTooBig {
			t.Errorf("closed with %d", code)
		}
	})
}

func TestAStopTellsSocketsAndWaitsForThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		polite, deaf := s.socket(), s.socket()
		_ = deaf // never reads
		s.handlers.Drain()
		if code, _ := ended(t, polite); code != websocket.CloseGoingAway {
			t.Errorf("closed with %d", code)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := s.handlers.Wait(ctx); err != nil || s.handlers.Watching() != 0 {
			t.Errorf("%v, %d left", err, s.handlers.Watching())
		}
		if _, reply, _ := s.dial(http.Header{"Authorization": {"Bearer " + key}}); reply == nil ||
			reply.StatusCode != 503 {
			t.Errorf("got %v while shutting down", reply)
		}
	})
}

// A peer that reads nothing waits alone, then hears the newest, or is left.
func TestASlowSocketHearsTheNewestOrIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		v := s.job(me)
		slow, quick := s.socket(), s.socket()
		for _, c := range []*websocket.Conn{slow, quick} {
			say(t, c, `{"type":"subscribe","ids":"all"}`)
			hear(t, c, "snapshot")
			hear(t, c, "ready")
		}
		for percent := 1; percent <= 90; percent++ {
			v = s.progress(v, percent)
			time.Sleep(100 * time.Millisecond)
			if m := hear(t, quick, "job"); m.Job["progress"] != float64(percent) {
				t.Fatalf("%+v, want %d %%", m, percent)
			}
		}
		if m := hear(t, slow, "job"); m.Job["progress"] != 1.0 {
			t.Errorf("%+v", m)
		}
		if m := hear(t, slow, "job"); m.Job["progress"] != 90.0 {
			t.Errorf("%+v, want the newest", m)
		}
		time.Sleep(pause)
		s.progress(v, 91)
		hear(t, quick, "job")
		time.Sleep(20 * time.Second)
		if _, after := ended(t, slow); after > time.Second || s.handlers.Watching() != 1 {
			t.Errorf("a peer that took nothing for 20 s was left after %s more, %d watch", after, s.handlers.Watching())
		}
	})
}

// pause is longer than a socket rests between two looks.
const pause = time.Second

// counter is a source of an operator's page: it sends a number whenever there is
// another one.
type counter struct {
	news  chan struct{}
	heard string
}

func (c *counter) Receive(message []byte) { c.heard = string(message) }

func (c *counter) Next(send func([]byte) error) (<-chan struct{}, error) {
	if c.heard == "" {
		return c.news, nil
	}
	err := send([]byte(c.heard))
	c.heard = ""
	return c.news, err
}

func TestAnySourceCanBeServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.page = func(w http.ResponseWriter, r *http.Request) {
			s.handlers.Serve(w, r, live.Watcher{Owner: "admin", Still: func() error { return nil }},
				&counter{news: make(chan struct{})})
		}
		c, _, err := s.dialPath("/page", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		say(t, c, `{"type":"tick"}`)
		hear(t, c, "tick")
	})
}

func TestOneOwnerHasHalfOfTheFreeWatchers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		n, leave := s.handlers.Fill(me)
		defer leave()
		if n != 50 {
			t.Errorf("one owner has %d of 100 watchers", n)
		}
		reply, body := s.get("/v1/videos/events", key)
		if text, _ := body.ReadString('}'); reply.StatusCode != 429 || reply.Header.Get("Retry-After") == "" ||
			!strings.Contains(text, "watchers_share_exceeded") {
			t.Errorf("got %d, %s", reply.StatusCode, text)
		}
		if reply, _ := s.get("/v1/videos/events", foreign); reply.StatusCode != 200 {
			t.Errorf("another user gets %d", reply.StatusCode)
		}
	})
}
