package server

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestErrorsOfNetHTTPAreInTheEnvelope: net/http answers requests that it cannot read, and its plain texts are replaced.
func TestErrorsOfNetHTTPAreInTheEnvelope(t *testing.T) {
	const post = "POST /v1/messages HTTP/1.1\r\nHost: a\r\n"
	eachTransport(t, func(t *testing.T, secure bool) {
		s, config := newServerOver(t, secure)
		address := loopback(t, s)
		for name, c := range map[string]struct {
			request string
			status  int
			code    string
		}{
			"a long header":  {post + "X: " + strings.Repeat("a", 40<<10) + "\r\n\r\n", 431, "too_many_headers"},
			"a long path":    {"GET /" + strings.Repeat("a", 40<<10) + " HTTP/1.1\r\n\r\n", 431, "too_many_headers"},
			"no host":        {"GET /v1/models HTTP/1.1\r\n\r\n", 400, "malformed_request"},
			"no HTTP":        {"GET /v1/models\r\n\r\n", 400, "malformed_request"},
			"a newer HTTP":   {"GET /v1/models HTTP/3.0\r\nHost: a\r\n\r\n", 505, "malformed_request"},
			"an odd coding":  {post + "Transfer-Encoding: x\r\n\r\n", 501, "malformed_request"},
			"an expectation": {post + "Expect: more\r\nContent-Length: 0\r\n\r\n", 417, "malformed_request"},
		} {
			conn := connect(t, address, config)
			_, _ = io.WriteString(conn, c.request) // fails if the reply comes before the end
			res, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			body, err := io.ReadAll(res.Body)
			var reply struct{ Error map[string]any }
			if err != nil || json.Unmarshal(body, &reply) != nil || len(reply.Error) != 4 ||
				reply.Error["code"] != c.code {
				t.Errorf("%s: %v %s", name, err, body)
			}
			id := res.Header.Get("X-Request-Id")
			if res.StatusCode != c.status || !res.Close || res.Header.Get("Content-Type") != "application/json" ||
				id == "" || id != res.Header.Get("Request-Id") {
				t.Errorf("%s: %s %v", name, res.Status, res.Header)
			}
			conn.Close()
		}
	})
}
