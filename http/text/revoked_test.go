package text_test

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidwall/gjson"

	"stagedoor/actors/flow"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue/dialoguetest"
	"stagedoor/state"
	"stagedoor/state/identity"
)

// guarded opens a gateway that ends what is under way with keys that are revoked.
func guarded(t *testing.T) *gateway {
	g := open(t)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { g.auth.EndRevoked(ctx, g.flow) })
	t.Cleanup(wg.Wait)
	t.Cleanup(cancel)
	return g
}

// ended holds the reply to a request that was sent with a key.
type ended struct {
	status int
	body   string
	at     time.Time
}

// begin sends a request with a key and returns how it ends.
func (w *web) begin(t *testing.T, key, method, path, body string) <-chan ended {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://gateway"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+w.g.secrets[key])
	end := make(chan ended, 1)
	go func() {
		res, err := w.client.Do(r)
		if err != nil {
			end <- ended{body: err.Error(), at: time.Now()}
			return
		}
		defer res.Body.Close()
		b, _ := io.ReadAll(res.Body) // what came is judged
		end <- ended{res.StatusCode, string(b), time.Now()}
	}()
	return end
}

const stalls = `[sandbox: stall=2]`

// within fails the test unless a request ends within a second of began.
func within(t *testing.T, name string, began time.Time, end <-chan ended) ended {
	t.Helper()
	select {
	case e := <-end:
		if took := e.at.Sub(began); took < 0 || took > time.Second {
			t.Errorf("%s: ended %s after the key", name, took)
		}
		return e
	case <-time.After(5 * time.Second):
		t.Errorf("%s: still open 5 s after the key has ended", name)
		return ended{}
	}
}

// Whatever is under way with a key ends within a second of the key, with the error
// event of its shape if it is a stream and with a status if it is not.
func TestRequestsOfARevokedKeyEndWithinASecond(t *testing.T) {
	for _, c := range []struct {
		name, path, body string
		status           int
		end              string // what the last event has; a bar divides two possible ends
	}{
		{"chat stream", "/v1/chat/completions", `{"model":"alpha","stream":true,"messages":[{"role":"user","content":"` + stalls + `"}]}`, 200, `"code":"invalid_api_key"`},
		{"completions stream", "/v1/completions", `{"model":"alpha","stream":true,"prompt":"` + stalls + `"}`, 200,
			`"code":"invalid_api_key"`},
		{"responses stream", "/v1/responses", `{"model":"alpha","stream":true,"input":"` + stalls + `"}`, 200,
			`"type":"response.failed"`},
		{"messages stream", "/v1/messages", `{"model":"alpha","stream":true,"max_tokens":64,"messages":[{"role":"user","content":"` + stalls + `"}]}`, 200, `"type":"error"`},
		{"gemini stream", "/v1beta/models/alpha:streamGenerateContent?alt=sse", `{"contents":[{"parts":[{"text":"` +
			stalls + `"}]}]}`, 200, `"code":401`},
		{"chat", "/v1/chat/completions", `{"model":"alpha","messages":[{"role":"user","content":"` + stalls + `"}]}`,
			401, `"code":"invalid_api_key"`},
		{"messages", "/v1/messages", `{"model":"alpha","max_tokens":64,"messages":[{"role":"user","content":"` +
			stalls + `"}]}`, 401, `"code":"invalid_api_key"`},
		{"background stream", "/v1/responses", `{"model":"alpha","stream":true,"background":true,"input":"` + stalls +
			`"}`, 200, `"type":"error"|"type":"response.failed"`}, // the response may end before its stream
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := guarded(t)
				w := g.listen(t)
				g.key("gone", nil)
				end := w.begin(t, "gone", "POST", c.path, c.body)
				other := w.begin(t, "all", "POST", c.path, c.body)
				time.Sleep(5 * time.Second)
				began := time.Now()
				if _, err := identity.RevokeKey(t.Context(), g.state, "key_gone"); err != nil {
					t.Fatal(err)
				}
				e := within(t, c.name, began, end)
				has := func(end string) bool { return strings.Contains(e.body, end) }
				if e.status != c.status || !slices.ContainsFunc(strings.Split(c.end, "|"), has) {
					t.Errorf("ended with %d %s", e.status, e.body)
				}
				select {
				case e := <-other:
					t.Errorf("the request of another key ended, too: %s", e.body)
				default:
				}
				synctest.Wait()
				if n := g.runtime.Engine().InFlight(); n != 1 {
					t.Errorf("%d requests are under way", n)
				}
			})
		})
	}
}

// A key ends by being revoked, disabled or removed, by its expiry, by its user and by
// the configuration. Each of them ends the streams that the key has.
func TestWhateverEndsAKeyEndsItsStreams(t *testing.T) {
	user := identity.User{Username: "ann", Status: identity.UserActive}
	for name, end := range map[string]func(*gateway) error{
		"disabled": func(g *gateway) error {
			_, err := identity.ChangeKey(context.Background(), g.state, "key_gone", func(k *identity.Key) error {
				k.Enabled = false
				return nil
			})
			return err
		},
		"removed": func(g *gateway) error { return identity.DeleteKey(context.Background(), g.state, "key_gone") },
		"user disabled": func(g *gateway) error {
			_, err := state.Do(context.Background(), g.state, func(tx *state.Tx) (struct{}, error) {
				u, _ := identity.FindUserByName(tx.View(), "ann")
				u.Status = identity.UserDisabled
				return struct{}{}, identity.PutUser(tx, u)
			})
			return err
		},
		"expired":       func(*gateway) error { time.Sleep(25 * time.Second); return nil }, // 30 s after its creation
		"configuration": func(g *gateway) error { g.auth.SetFixed(nil); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := guarded(t)
				if _, err := state.Do(t.Context(), g.state,
					func(tx *state.Tx) (identity.User, error) { return identity.AddUser(tx, user) }); err != nil {
					t.Fatal(err)
				}
				if name == "configuration" {
					g.secrets["gone"] = "sd-configured"
					g.auth.SetFixed(
						[]identity.Key{{ID: "cfg_gone", Hash: state.HashSecret("sd-configured"), Enabled: true}},
					)
				} else {
					g.key("gone", func(k *identity.Key) {
						k.User = "ann"
						if name == "expired" {
							k.Expires = time.Now().Add(30 * time.Second)
						}
					})
				}
				w := g.listen(t)
				stream := w.begin(
					t,
					"gone",
					"POST",
					"/v1/messages",
					`{"model":"alpha","stream":true,"max_tokens":64,"messages":[{"role":"user","content":"`+stalls+`"}]}`,
				)
				time.Sleep(5 * time.Second)
				began := time.Now()
				if err := end(g); err != nil {
					t.Fatal(err)
				}
				if name == "expired" {
					began = began.Add(25 * time.Second)
				}
				if e := within(t, name, began, stream); !strings.Contains(e.body, "event: error") {
					t.Errorf("ended with %d %s", e.status, e.body)
				}
			})
		})
	}
}

// A key that is revoked while the body of its request is on its way is noticed when
// the request begins.
func TestKeyThatIsRevokedDuringTheUploadIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := guarded(t)
		w := g.listen(t)
		body, rest := io.Pipe()
		r, err := http.NewRequestWithContext(t.Context(), "POST", "http://gateway/v1/chat/completions", body)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+g.secrets["all"])
		replied := make(chan string, 1)
		go func() {
			res, err := w.client.Do(r)
			if err != nil {
				replied <- err.Error()
				return
			}
			defer res.Body.Close()
			b, _ := io.ReadAll(res.Body) // what came is judged
			replied <- string(b)
		}()
		text := `{"model":"alpha","stream":true,"messages":[{"role":"user","content":"` + stalls + `"}]}`
		_, _ = io.WriteString(rest, text[:10])
		time.Sleep(time.Second)
		if _, err := identity.RevokeKey(t.Context(), g.state, "key_all"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		_, _ = io.WriteString(rest, text[10:])
		_ = rest.Close()
		time.Sleep(time.Second)
		select {
		case got := <-replied:
			if !strings.Contains(got, "invalid_api_key") {
				t.Errorf("ended with %s", got)
			}
		default:
			t.Error("the stream goes on")
		}
	})
}

// A reply that passes untouched ends in the same way.
func TestUntouchedStreamOfARevokedKeyEnds(t *testing.T) {
	u := newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(
			w,
			`data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"a"}}]}`+"\n\n",
		)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	g := open(t, func(g *gateway) {
		g.provider(catalog.Provider{Name: "up", Shape: dialoguetest.Chat, BaseURL: u.URL + "/v1"},
			catalog.Model{Pattern: "hangs", Targets: []catalog.Route{{Provider: "up", Model: "m"}}})
	})
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { g.auth.EndRevoked(ctx, g.flow) })
	defer wg.Wait()
	defer cancel()
	replied := make(chan reply, 1)
	go func() {
		replied <- g.do("POST", "/v1/chat/completions",
			`{"model":"hangs","stream":true,"messages":[{"role":"user","content":"hi"}]}`)
	}()
	for len(g.flow.Active(nil)) == 0 || g.flow.Active(nil)[0].Phase() != flow.Replying {
		time.Sleep(time.Millisecond)
	}
	if _, err := identity.RevokeKey(t.Context(), g.state, "key_all"); err != nil {
		t.Fatal(err)
	}
	if r := <-replied; r.status != 200 || !strings.Contains(string(r.body), `"code":"invalid_api_key"`) {
		t.Errorf("ended with %d %s", r.status, r.body)
	}
}

// A background response fails with the key that asked for it, and stays readable for
// other keys of the user.
func TestBackgroundResponseOfARevokedKeyFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := guarded(t)
		g.key("gone", func(k *identity.Key) { k.User = "ann" })
		g.key("kept", func(k *identity.Key) { k.User = "ann" })
		id := g.do("POST", "/v1/responses", `{"model":"alpha","background":true,"stream":false,"input":"`+stalls+`"}`,
			g.as("gone")...).
			get("id").
			Str
		time.Sleep(5 * time.Second)
		if _, err := identity.RevokeKey(t.Context(), g.state, "key_gone"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		r := g.do("GET", "/v1/responses/"+id, "", g.as("kept")...)
		if status := gjson.GetBytes(r.body, "status").Str; status != "failed" {
			t.Errorf("it is %q: %s", status, r.body)
		}
	})
}
