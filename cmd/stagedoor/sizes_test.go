//go:build !race

// The race detector takes time and memory of its own, so these are measured without it, by
// make test-program.

package main

import (
	"context"
	"encoding/json"
	"flag"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"stagedoor/cmd/stagedoor/config"
	"stagedoor/providers/memory"
	"stagedoor/providers/shapes/imagegen"
	"stagedoor/test/sizes"
)

// sizeOfInput is the smaller of the two sizes of an input.
var sizeOfInput = flag.Int("sizes.bytes", sizes.Short/4,
	"bytes of the smaller input; the other one has eight times as many")

const (
	sizesBoundary = "b0undary"
	formType      = "application/x-www-form-urlencoded"
	sizesKey      = "sd-sizes"
	sizesAdmin    = "sd-sizes-admin-token-of-some-length"
)

// A large is a request with places for a value.
type large struct {
	name, method, path, kind string
	templates                []string
}

// larges are all routes that take a body.
func larges() []large {
	const user = `{"role":"user","content":"hi"}`
	jsonRoutes := []large{
		{"chat", "POST", "/v1/chat/completions", "", []string{
			`{"model":"m","messages":[` + user + `],"x":%}`, `{"model":"m","messages":[{"role":"user","content":%}]}`,
			`{"model":"m","messages":%}`,
			`{"model":"m","messages":[` + user + `],"response_format":{"type":"json_schema","json_schema":{"name":"s","schema":{"type":"object","properties":{"a":{"enum":%}}}}}}`,
			`{"model":"m","stream":true,"messages":[` + user +
				`],"tools":[{"type":"function","function":{"name":"f","parameters":%}}]}`}},
		{"completions", "POST", "/v1/completions", "",
			[]string{`{"model":"m","prompt":%}`, `{"model":"m","prompt":"hi","x":%}`}},
		{"messages", "POST", "/v1/messages", "", []string{
			`{"model":"m","max_tokens":9,"messages":%}`,
			`{"model":"m","max_tokens":9,"messages":[` + user + `],"x":%}`,
			`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":%}]}`}},
		{"count of tokens", "POST", "/v1/messages/count_tokens", "",
			[]string{`{"model":"m","messages":[{"role":"user","content":%}]}`}},
		{"responses", "POST", "/v1/responses", "",
			[]string{`{"model":"m","store":false,"input":%}`, `{"model":"m","input":"hi","x":%}`,
				`{"model":"m","store":false,"input":"hi","tools":%}`}},
		{"count of input tokens", "POST", "/v1/responses/input_tokens", "", []string{`{"model":"m","input":%}`}},
		{"compaction", "POST", "/v1/responses/compact", "", []string{`{"model":"m","input":%}`}},
		{"conversations", "POST", "/v1/conversations", "",
			[]string{`{"items":%}`, `{"items":[` + user + `],"metadata":%}`}},
		{"changes of conversations", "POST", "/v1/conversations/conv_x", "", []string{`{"metadata":%}`}},
		{"items of conversations", "POST", "/v1/conversations/conv_x/items", "", []string{`{"items":%}`}},
		{"translation", "POST", "/v1/translate", "",
			[]string{`{"model":"m","input":%}`, `{"model":"m","max_tokens":9,"messages":%}`}},
		{"generateContent", "POST", "/v1beta/models/m:generateContent", "",
			[]string{`{"contents":[{"role":"user","parts":[{"text":%}]}]}`, `{"contents":%}`}},
		{"streamGenerateContent", "POST", "/v1beta/models/m:streamGenerateContent", "",
			[]string{`{"contents":%}`}},
		{"embedContent", "POST", "/v1beta/models/m:embedContent", "",
			[]string{`{"content":{"parts":[{"text":%}]}}`, `{"content":%}`}},
		{"countTokens", "POST", "/v1beta/models/m:countTokens", "",
			[]string{`{"contents":[{"role":"user","parts":[{"text":%}]}]}`}},
		{"embeddings", "POST", "/v1/embeddings", "",
			[]string{`{"model":"m","dimensions":8,"input":%}`, `{"model":"m","input":"hi","x":%}`}},
		{"batchEmbedContents", "POST", "/v1beta/models/m:batchEmbedContents", "",
			[]string{`{"requests":[{"outputDimensionality":8,"content":{"parts":[{"text":%}]}}]}`, `{"requests":%}`,
				`{"requests":[{"content":{"parts":%}}]}`}},
		{"images", "POST", "/v1/images/generations", "",
			[]string{`{"model":"gen-image-1","prompt":%}`, `{"model":"gen-image-1","prompt":"hi","x":%}`}},
		{"edits of images", "POST", "/v1/images/edits", "",
			[]string{`{"model":"gen-image-1","prompt":"hi","images":%}`}},
		{"videos", "POST", "/v1/videos", "",
			[]string{`{"model":"video-2","prompt":%}`, `{"model":"video-2","prompt":"hi","x":%}`}},
		{"remixes of videos", "POST", "/v1/videos/video_x/remix", "", []string{`{"prompt":%}`}},
		{"models of images", "POST", "/v1/images/generations", "", []string{`{"model":%,"prompt":"hi"}`}},
		{"models of videos", "POST", "/v1/videos", "", []string{`{"model":%,"prompt":"hi"}`}},
		{"edits of videos", "POST", "/v1/videos/edits", "",
			[]string{`{"model":"video-2","prompt":%,"video":{"id":%}}`}},
		{"extensions of videos", "POST", "/v1/videos/extensions", "",
			[]string{`{"model":"video-2","prompt":%,"video":{"id":%}}`}},
		{"apps", "POST", "/api/oauth_apps", "",
			[]string{`{"name":%,"redirect_uri":"https://a.test/"}`, `{"name":"n","redirect_uris":%}`, `{"x":%}`}},
		{"administration of keys", "POST", "/admin/v1/keys", "",
			[]string{`{"name":%}`, `{"name":"n","models":%}`, `%`}},
		{"changes of keys", "PATCH", "/admin/v1/keys/key_x", "", []string{`{"name":%}`, `{"scopes":%}`}},
		{"administration of users", "POST", "/admin/v1/users", "",
			[]string{`{"username":%}`, `{"username":"n","x":%}`}},
		{"administration of groups", "POST", "/admin/v1/groups", "", []string{`{"name":%}`, `{"name":"n","models":%}`}},
		{"administration of apps", "POST", "/admin/v1/apps", "",
			[]string{`{"name":%}`, `{"name":"n","redirect_uris":%}`}},
		{"redeem codes", "POST", "/admin/v1/redeem-codes", "", []string{`{"amount":%}`, `{"count":1,"x":%}`}},
		{"credits", "POST", "/admin/v1/accounts/a/credits", "", []string{`{"amount":%}`, `{"note":%}`}},
	}
	for _, route := range []string{"PATCH /apps/1", "POST /apps/1/erase", "POST /apps/1/secret", "PATCH /groups/1",
		"POST /groups/1/members", "POST /invitations", "POST /keys/key_x/secret", "PATCH /users/1",
		"POST /users/1/developer-tokens", "POST /users/1/erase", "POST /users/1/link", "POST /providers/p/pause",
		"POST /providers/p/resume", "POST /providers/p/test", "POST /configuration/changes",
		"POST /configuration/review", "POST /configuration/undo"} {
		method, path, _ := strings.Cut(route, " ")
		jsonRoutes = append(jsonRoutes, large{"administration", method, "/admin/v1" + path, "", []string{`{"name":%}`}})
	}
	for i := range jsonRoutes {
		jsonRoutes[i].kind = "application/json"
	}
	forms := []large{
		{"OAuth forms", "POST", "/api/oauth2/token", formType,
			[]string{`grant_type=authorization_code&code=%`, `%=1&grant_type=x`}},
		{"OAuth revocations", "POST", "/api/oauth2/revoke", formType, []string{`token=%`, `%=1`}},
		{"OAuth introspections", "POST", "/api/oauth2/introspect", formType, []string{`token=%`, `%=1`}},
		{"sign-in", "POST", "/oauth2/signin", formType, []string{`username=%&password=%`, `%=1`}},
		{"forms of the account", "POST", "/account/keys", formType, []string{`name=%`, `%=1`}},
		{"forms of administration", "POST", "/admin/groups", formType, []string{`name=%`, `%=1`}},
		{"forms of edits", "POST", "/v1/images/edits", "multipart/form-data",
			[]string{part("prompt", "%"), part("%", "x"), part("image[]", "%"),
				part("mask", "\x89PNG\r\n\x1a\n%")}},
		{"forms of videos", "POST", "/v1/videos", "multipart/form-data",
			[]string{part("prompt", "%"), part("input_reference", "%")}},
		{"forms of edited videos", "POST", "/v1/videos/edits", "multipart/form-data",
			[]string{part("prompt", "%"), part("video", "\x00\x00\x00\x0cftypisom%")}},
	}
	for _, route := range imagegen.Routes {
		l := large{"imagegen", "POST", imagegen.Prefix + route.Path, "multipart/form-data",
			[]string{part("image_request", "%"), part("prompt", "%")}}
		if route.Encoding&imagegen.JSON != 0 {
			l.kind, l.templates = "application/json", []string{`{"image_request":{"prompt":%}}`, `{"prompt":%}`}
		}
		forms = append(forms, l)
	}
	return append(jsonRoutes, forms...)
}

func part(name, value string) string {
	return "--" + sizesBoundary + "\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + value +
		"\r\n--" + sizesBoundary + "--\r\n"
}

// input makes a body of one of the route's templates.
func (l *large) input(template, value string) string {
	if l.kind == formType {
		value = url.QueryEscape(value)
	}
	return strings.ReplaceAll(template, "%", value)
}

// send sends a body to the route, and fails the test if the gateway fails.
func (l *large) send(t *testing.T, g *gateway, input string) { l.sendTo(t, g, input, false) }

// sendTo is send where an upstream may be at fault.
func (l *large) sendTo(t *testing.T, g *gateway, input string, upstream bool) {
	r := httptest.NewRequestWithContext(t.Context(), l.method, l.path, strings.NewReader(input))
	r.Header.Set("Content-Type", l.kind)
	if l.kind == "multipart/form-data" {
		r.Header.Set("Content-Type", l.kind+"; boundary="+sizesBoundary)
	}
	r.Header.Set("Authorization", "Bearer "+sizesKey)
	if strings.HasPrefix(l.path, "/admin/") {
		r.Header.Set("Authorization", "Bearer "+sizesAdmin)
	}
	r.Header.Set("X-Sandbox", "pace=max")
	w := httptest.NewRecorder()
	w.Body = nil
	g.server.Handler().ServeHTTP(w, r)
	fine := w.Code > 0 && w.Code < http.StatusInternalServerError || w.Code == http.StatusServiceUnavailable
	if !fine && !(upstream && w.Code == http.StatusBadGateway) {
		t.Errorf("%s %s, %d bytes %.40q: status %d", l.method, l.path, len(input), input, w.Code)
	}
}

// counted returns the bytes that the route counts against the memory of the process before it reads input.
func (l *large) counted(input string) int64 {
	if !strings.HasPrefix(l.path, "/v1") || l.kind != "application/json" {
		return 0
	}
	return memory.OfTranslation([]byte(input))
}

// newSizesGateway returns a gateway, with changes to its configuration. The caller closes it.
func newSizesGateway(t testing.TB, change func(*config.Config)) *gateway {
	t.Helper()
	c := config.Default()
	c.Keys = []config.Key{{Key: sizesKey, Name: "sizes"}}
	c.Admin.Token = sizesAdmin
	if change != nil {
		change(c)
	}
	g, err := assemble(context.Background(), c, "http://127.0.0.1", slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestEveryRouteWithABodyIsMeasured looks the routes up in the two descriptions of the API.
func TestEveryRouteWithABodyIsMeasured(t *testing.T) {
	g := newSizesGateway(t, nil)
	defer g.close(context.Background())
	found := 0
	for path, key := range map[string]string{"/openapi.json": sizesKey, "/admin/v1/openapi.json": sizesAdmin} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", path, nil)
		r.Header.Set("Authorization", "Bearer "+key)
		w := httptest.NewRecorder()
		g.server.Handler().ServeHTTP(w, r)
		var description struct {
			Paths map[string]map[string]struct {
				Body json.RawMessage `json:"requestBody"`
			} `json:"paths"`
		}
		if err := json.Unmarshal(w.Body.Bytes(), &description); err != nil {
			t.Fatal(err)
		}
		for path, methods := range description.Paths {
			pattern := regexp.MustCompile(`^` + wildcard.ReplaceAllString(regexp.QuoteMeta(path), `[^/]+`) + `$`)
			for method, operation := range methods {
				if operation.Body == nil {
					continue
				}
				found++
				if !slices.ContainsFunc(larges(), func(l large) bool {
					return strings.EqualFold(l.method, method) && pattern.MatchString(l.path)
				}) {
					t.Errorf("%s %s takes a body, and larges has no request for it", method, path)
				}
			}
		}
	}
	if found < 40 {
		t.Errorf("only %d routes were found", found)
	}
}

// TestTheRateOfAKeyIsCountedBeforeItsBodyIsRead: a key beyond its rate costs no more than its header.
func TestTheRateOfAKeyIsCountedBeforeItsBodyIsRead(t *testing.T) {
	g := newSizesGateway(t, func(c *config.Config) { c.Keys[0].Limits.RPM = 1 })
	defer g.close(context.Background())
	routes := slices.DeleteFunc(larges(), func(l large) bool {
		return !strings.HasPrefix(l.path, "/v1") && !strings.HasPrefix(l.path, "/imagegen")
	})
	routes[0].send(t, g, `{"model":"m","messages":[{"role":"user","content":"hi"}]}`) // the only one of the minute
	for _, l := range routes {
		body := strings.NewReader("{}")
		r := httptest.NewRequestWithContext(t.Context(), l.method, l.path, body)
		r.Header.Set("Content-Type", l.kind)
		r.Header.Set("Authorization", "Bearer "+sizesKey)
		w := httptest.NewRecorder()
		g.server.Handler().ServeHTTP(w, r)
		if w.Code != http.StatusTooManyRequests || body.Len() != 2 {
			t.Errorf("%s %s is answered %d, and %d bytes of 2 were not read", l.method, l.path, w.Code, body.Len())
		}
	}
}

// wildcard matches a variable part of a path that was quoted for a regular expression.
var wildcard = regexp.MustCompile(`\\\{\w+\\\}`)

// TestEveryHandlerCostsWhatTheSizeOfItsRequestIsWorth sends deep, wide, long and repetitive bodies to every route.
func TestEveryHandlerCostsWhatTheSizeOfItsRequestIsWorth(t *testing.T) {
	g := newSizesGateway(t, nil)
	defer g.close(context.Background())
	var subjects []sizes.Subject
	for _, l := range larges() {
		for _, template := range l.templates {
			subjects = append(subjects, sizes.Subject{Name: l.name, Counted: l.counted,
				Input: func(value string) string { return l.input(template, value) },
				Read:  func(input string) { l.send(t, g, input) }})
		}
	}
	const messages = `{"model":"m","max_tokens":9,"messages":%}`
	for _, l := range larges() {
		if l.name == "messages" {
			subjects = append(subjects, sizes.Subject{Name: "many messages", Counted: l.counted,
				Input: func(value string) string { return l.input(messages, value) },
				Forms: []sizes.Form{sizes.Items("small", func(int) string { return `{"role":"user","content":"hi"}` })},
				Read:  func(input string) { l.send(t, g, input) }})
		}
	}
	sizes.Table(t, sizes.Check(t, *sizeOfInput, subjects))
}

// FuzzSizesOfHandlers holds every route against bodies that the fuzzer describes by pattern,
// depth, width and length.
func FuzzSizesOfHandlers(f *testing.F) {
	routes := larges()
	for i := range routes {
		if !testing.Short() || i%4 == 0 {
			f.Add(uint8(i), uint8(i%3), uint8(i*9), uint32(i*4), uint32(500), uint32(20))
		}
	}
	g := newSizesGateway(f, nil)
	defer g.close(context.Background())
	f.Fuzz(func(t *testing.T, route, template, pattern uint8, depth, width, length uint32) {
		l := routes[int(route)%len(routes)]
		described := sizes.Shape{Pattern: pattern, Depth: int(depth), Width: int(width), Length: int(length)}
		value := sizes.Generated(described)
		input := l.input(l.templates[int(template)%len(l.templates)], value)
		var cost sizes.Cost
		for attempt := range 3 {
			cost = sizes.Measure(attempt, func() { l.send(t, g, input) })
			if cost.Within(len(input), l.counted(input)) {
				return
			}
		}
		t.Errorf("%s, %d bytes %.80q took %d bytes of memory and %v", l.name, len(input), input, cost.Peak, cost.CPU)
	})
}

// TestCommandsOfWatchersCostWhatTheirSizeIsWorth sends messages of every form over the
// WebSocket of video jobs, as large as they may be.
func TestCommandsOfWatchersCostWhatTheirSizeIsWorth(t *testing.T) {
	g := newSizesGateway(t, nil)
	defer g.close(context.Background())
	s := httptest.NewServer(g.server.Handler())
	defer s.Close()
	address := "ws" + strings.TrimPrefix(s.URL, "http") + "/v1/videos/live"
	say := func(input string) {
		header := http.Header{"Authorization": {"Bearer " + sizesKey}}
		conn, response, err := websocket.DefaultDialer.DialContext(t.Context(), address, header)
		if err != nil {
			t.Fatalf("%v, %+v", err, response)
		}
		defer conn.Close()
		_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
		if conn.WriteMessage(websocket.TextMessage, []byte(input)) != nil ||
			conn.WriteMessage(websocket.TextMessage, []byte(`{"type":"nothing"}`)) != nil {
			return
		}
		for {
			_, answer, err := conn.ReadMessage()
			if err != nil || strings.Contains(string(answer), "must be subscribe or unsubscribe") {
				return
			}
		}
	}
	var subjects []sizes.Subject
	for _, template := range []string{
		`{"type":"subscribe","ids":%}`, `{"type":"subscribe","ids":"all","after":%}`, `{"type":%}`, `%`,
	} {
		subjects = append(subjects, sizes.Subject{Name: "commands of watchers", Read: say,
			Input: func(value string) string { return strings.ReplaceAll(template, "%", value) }})
	}
	sizes.Table(t, sizes.Check(t, min(*sizeOfInput, 7<<10), subjects))
}
