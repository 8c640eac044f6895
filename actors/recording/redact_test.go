package recording

import (
	"net/http"
	"strings"
	"testing"

	"stagedoor/providers/shapes"
)

// TestCredentialsAreNotKept in any of the forms in which clients, the proxies before the gateway and tools send them.
func TestCredentialsAreNotKept(t *testing.T) {
	for _, header := range []string{"Authorization", "Cookie", "X-Api-Key", "X-Goog-Api-Key", "Cf-Access-Jwt-Assertion",
		"X-Goog-Iap-Jwt-Assertion", "X-Amzn-Oidc-Data", "X-Auth", "X-Forwarded-Access-Token", "X-Client-Secret"} {
		in := shapes.Params{Header: http.Header{header: {"Bearer s3cret-value"}}}
		if text := keptOf(in, "they say s3cret-value"); strings.Contains(text, "s3cret-value") {
			t.Errorf("the header %s: %s", header, text)
		}
	}
	for _, body := range []string{
		`{"authorization":"s3cret-value"}`, `{"authorization_token": "s3cret-value"}`, `{"x-api-key":"s3cret-value"}`,
		`{"clientSecret":"s3cret-value"}`, `{"accessToken":"s3cret-value"}`, `{"idToken":"s3cret-value"}`,
		`{"credentialSecret":"s3cret-value"}`, `{"apiKeyString":"s3cret-value"}`, `{"privateKey":"s3cret-value"}`,
		`{"arguments":"{\"clientSecret\":\"s3cret-value\"}"}`,
		`{"server_url":"https://tools.example/mcp?a=1&api_key=s3cret-value&b=2"}`,
		`{"server_url":"https://tools.example/mcp?a=1\u0026apiKey=s3cret-value"}`,
		`{"server_url":"https://user:s3cret-value@tools.example/mcp"}`,
		`{"image_url":"https://bucket.example/a.png?X-Amz-Date=1&X-Amz-Signature=s3cret-value"}`,
		`{"image_url":"https://store.example/a.png?sv=1&sig=s3cret-value"}`,
	} {
		if text := keptOf(shapes.Params{}, body); strings.Contains(text, "s3cret-value") {
			t.Errorf("%s: %s", body, text)
		}
	}
	const plain = `{"max_tokens":"many tokens","key":"of a map","text":"see https://example.com:8443/path@home",` +
		`"url":"https://example.com/a?page=second-page&monkey=banana-tree"}`
	if text := keptOf(shapes.Params{}, plain); text != plain+"said again" {
		t.Errorf("not a secret: %s", text)
	}
}

// keptOf returns what is kept of a request, and of a reply that repeats the secret of the tests.
func keptOf(in shapes.Params, body string) string {
	d := newDraft("k", []target{{to: openSink()}})
	d.Client("req_1", Client{}, in, []byte(body))
	if strings.Contains(body, "s3cret-value") {
		d.Deliver([]byte("it was s3cret-value, "), false)
	}
	d.Deliver([]byte("said again"), false)
	d.End(Reply{})
	d.redactOnce()
	text := string(d.x.Client.Body) + string(d.x.Reply.Body)
	for _, values := range d.x.Client.Header {
		text += strings.Join(values, ",")
	}
	return text
}

// openSink returns a sink with room.
func openSink() *sink {
	s := &sink{}
	s.open()
	return s
}
