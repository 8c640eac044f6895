package harness

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// Send asks for something with the gateway's key; a body is JSON. The body of the
// answer is the caller's to close.
func (g *Gateway) Send(method, path, body string) (*http.Response, error) {
	req, err := http.NewRequest(method, g.URL+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+g.Key)
	req.Header.Set("Content-Type", "application/json")
	return http.DefaultClient.Do(req)
}

// Ask is Send to a gateway that must answer, whatever the status, and reads all of
// the answer.
func (g *Gateway) Ask(t testing.TB, method, path, body string) (status int, reply []byte) {
	t.Helper()
	res, err := g.Send(method, path, body)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if reply, err = io.ReadAll(res.Body); err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, reply
}
