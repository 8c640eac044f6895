package ops

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/tidwall/gjson"

	"stagedoor/test/harness"
)

// TestAStopFinishesAResponseOverAWebSocket: the program continues from a response that is not stored, and a stop lets
// what runs end before the connection is closed with 1012.
func TestAStopFinishesAResponseOverAWebSocket(t *testing.T) {
	g, err := harness.Launch(harness.Binary(t), sandbox("memory", "10s"))
	launch(t, g, err)
	address := "ws" + strings.TrimPrefix(g.URL, "http") + "/v1/responses"
	c, _, err := websocket.DefaultDialer.DialContext(t.Context(), address,
		http.Header{"Authorization": {"Bearer " + g.Key}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetReadDeadline(time.Now().Add(time.Minute))
	hear := func(last string) (m gjson.Result) {
		t.Helper()
		for m.Get("type").Str != last {
			_, text, err := c.ReadMessage()
			if err != nil {
				t.Fatal(err)
			}
			if m = gjson.ParseBytes(text); m.Get("type").Str == "error" {
				t.Fatal(m.Raw)
			}
		}
		return m
	}
	say := func(more string) {
		t.Helper()
		text := `{"type":"response.create","model":"m","store":false,"input":"hi [sandbox: pace=20 tokens=10]"`
		if err := c.WriteMessage(websocket.TextMessage, []byte(text+more+"}")); err != nil {
			t.Fatal(err)
		}
	}
	say("")
	first := hear("response.completed").Get("response.id").Str
	say(`,"previous_response_id":"` + first + `"`)
	hear("response.output_text.delta")
	stopped := make(chan struct{})
	go func() { defer close(stopped); stop(t, g) }()
	if m := hear("response.completed"); m.Get("response.previous_response_id").Str != first {
		t.Errorf("got %s", m.Raw)
	}
	var closed *websocket.CloseError
	if _, _, err := c.ReadMessage(); !errors.As(err, &closed) || closed.Code != websocket.CloseServiceRestart {
		t.Errorf("closed with %v", err)
	}
	<-stopped
}
