package media_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// TestAddressesOfPicturesDoNotRepeatTheClientsHost: without a configured address they
// name the listener that the request came to, whatever the client says.
func TestAddressesOfPicturesDoNotRepeatTheClientsHost(t *testing.T) {
	g := open(t, func(http.ResponseWriter, *http.Request) { t.Error("the upstream was asked") })
	r, err := http.NewRequestWithContext(t.Context(), "POST", g.url+"/v1/images/generations",
		strings.NewReader(`{"model":"sandbox-1","prompt":"a cat","response_format":"url"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "evil.example"
	r.Header.Set("Authorization", "Bearer "+g.secret)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Forwarded-Host", "evil.example")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if url := gjson.GetBytes(body, "data.0.url").Str; res.StatusCode != 200 ||
		!strings.HasPrefix(url, g.url+"/v1/images/content/") {
		t.Errorf("%d %s, want an address at %s", res.StatusCode, body, g.url)
	}
}
