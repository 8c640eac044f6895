//go:build !race

// The race detector takes time and memory of its own, so these are measured without it, by
// make test-program.

package main

import (
	"flag"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"stagedoor/cmd/stagedoor/config"
	"stagedoor/providers/shapes/imagegen"
	"stagedoor/test/sizes"
)

// sizeOfInput is the smaller of the two sizes of an input.
var sizeOfInput = flag.Int("sizes.bytes", sizes.Short/8, "bytes of the smaller input; the other one has eight times as many")

const sizesBoundary = "b0undary"

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
			`{"model":"m","messages":[` + user + `],"x":%}`, `{"model":"m","messages":[{"role":"user","content":%}]}`, `{"model":"m","messages":%}`,
			`{"model":"m","messages":[` + user + `],"response_format":{"type":"json_schema","json_schema":{"name":"s","schema":{"type":"object","properties":{"a":{"enum":%}}}}}}`,
			`{"model":"m","stream":true,"messages":[` + user + `],"tools":[{"type":"function","function":{"name":"f","parameters":%}}]}`}},
		{"completions", "POST", "/v1/completions", "", []string{`{"model":"m","prompt":%}`, `{"model":"m","prompt":"hi","x":%}`}},
		{"messages", "POST", "/v1/messages", "", []string{
			`{"model":"m","max_tokens":9,"messages":[` + user + `],"x":%}`, `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":%}]}`}},
		{"count of tokens", "POST", "/v1/messages/count_tokens", "", []string{`{"model":"m","messages":[{"role":"user","content":%}]}`}},
		{"responses", "POST", "/v1/responses", "", []string{`{"model":"m","store":false,"input":%}`, `{"model":"m","input":"hi","x":%}`,
			`{"model":"m","store":false,"input":"hi","tools":%}`}},
		{"count of input tokens", "POST", "/v1/responses/input_tokens", "", []string{`{"model":"m","input":%}`}},
		{"generateContent", "POST", "/v1beta/models/m:generateContent", "", []string{`{"contents":[{"role":"user","parts":[{"text":%}]}]}`, `{"contents":%}`}},
		{"countTokens", "POST", "/v1beta/models/m:countTokens", "", []string{`{"contents":[{"role":"user","parts":[{"text":%}]}]}`}},
		{"images", "POST", "/v1/images/generations", "", []string{`{"model":"gen-image-1","prompt":%}`, `{"model":"gen-image-1","prompt":"hi","x":%}`}},
		{"edits of images", "POST", "/v1/images/edits", "", []string{`{"model":"gen-image-1","prompt":"hi","images":%}`}},
		{"videos", "POST", "/v1/videos", "", []string{`{"model":"video-2","prompt":%}`, `{"model":"video-2","prompt":"hi","x":%}`}},
		{"remixes of videos", "POST", "/v1/videos/video_x/remix", "", []string{`{"prompt":%}`}},
		{"apps", "POST", "/api/oauth_apps", "", []string{`{"name":%,"redirect_uri":"https://a.test/"}`}},
		{"administration", "POST", "/admin/v1/keys", "", []string{`{"name":%}`, `{"name":"n","models":%}`}},
		{"changes of administration", "PATCH", "/admin/v1/keys/key_x", "", []string{`{"name":%}`}},
	}
	for i := range jsonRoutes {
		jsonRoutes[i].kind = "application/json"
	}
	forms := []large{
		{"OAuth forms", "POST", "/api/oauth2/token", "application/x-www-form-urlencoded", []string{`grant_type=authorization_code&code=%`, `%=1&grant_type=x`}},
		{"forms of edits", "POST", "/v1/images/edits", "multipart/form-data", []string{part("prompt", "%"), part("%", "x"), part("image[]", "%")}},
		{"forms of videos", "POST", "/v1/videos", "multipart/form-data", []string{part("prompt", "%"), part("input_reference", "%")}},
	}
	for _, route := range imagegen.Routes {
		l := large{"imagegen", "POST", imagegen.Prefix + route.Path, "multipart/form-data", []string{part("image_request", "%"), part("prompt", "%")}}
		if route.Encoding&imagegen.JSON != 0 {
			l.kind, l.templates = "application/json", []string{`{"image_request":{"prompt":%}}`, `{"prompt":%}`}
		}
		forms = append(forms, l)
	}
	return append(jsonRoutes, forms...)
}

func part(name, value string) string {
	return "--" + sizesBoundary + "\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + value + "\r\n--" + sizesBoundary + "--\r\n"
}

// TestEveryHandlerCostsWhatTheSizeOfItsRequestIsWorth sends deep, wide, long and repetitive bodies to every route.
func TestEveryHandlerCostsWhatTheSizeOfItsRequestIsWorth(t *testing.T) {
	const key, admin = "sd-sizes", "sd-sizes-admin-token-of-some-length"
	c := config.Default()
	c.Keys = []config.Key{{Key: key, Name: "sizes"}}
	c.Admin.Token = admin
	g, err := assemble(t.Context(), c, "http://127.0.0.1", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer g.close(t.Context())
	var subjects []sizes.Subject
	for _, l := range larges() {
		for _, template := range l.templates {
			subjects = append(subjects, sizes.Subject{Name: l.name, Input: func(value string) string {
				if l.kind == "application/x-www-form-urlencoded" {
					value = url.QueryEscape(value)
				}
				return strings.ReplaceAll(template, "%", value)
			}, Read: func(input string) {
				r := httptest.NewRequestWithContext(t.Context(), l.method, l.path, strings.NewReader(input))
				r.Header.Set("Content-Type", l.kind)
				if l.kind == "multipart/form-data" {
					r.Header.Set("Content-Type", l.kind+"; boundary="+sizesBoundary)
				}
				r.Header.Set("Authorization", "Bearer "+key)
				if strings.HasPrefix(l.path, "/admin/") {
					r.Header.Set("Authorization", "Bearer "+admin)
				}
				r.Header.Set("X-Sandbox", "pace=max")
				w := httptest.NewRecorder()
				w.Body = nil
				g.server.Handler().ServeHTTP(w, r)
				if w.Code == 0 || w.Code >= http.StatusInternalServerError && w.Code != http.StatusServiceUnavailable {
					t.Errorf("%s %s, %d bytes %.40q: status %d", l.method, l.path, len(input), input, w.Code)
				}
			}})
		}
	}
	sizes.Table(t, sizes.Check(t, *sizeOfInput, subjects))
}
