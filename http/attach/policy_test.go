package attach

import (
	"net/http/httptest"
	"strings"
	"testing"

	"stagedoor/actors/kept"
	"stagedoor/state/identity"
)

// What a client says about its disconnection goes before what its key and its model say. A client with an idempotency
// key that says nothing finishes.
func TestWhatBecomesOfARequestWithoutItsClient(t *testing.T) {
	for _, c := range []struct {
		said, key, configured string
		want                  kept.Policy
		refused               bool
	}{
		{"", "", "", kept.Cancel, false},
		{"", "k", "", kept.Finish, false},
		{"", "k", "cancel", kept.Cancel, false},
		{"", "", "detach", kept.Detach, false},
		{"finish", "", "cancel", kept.Finish, false},
		{"cancel", "k", "detach", kept.Cancel, false},
		{"Cancel", "", "", 0, true},
	} {
		r := httptest.NewRequest("POST", "/", nil)
		if c.said != "" {
			r.Header.Set(policyHeader, c.said)
		}
		if got, err := policyOf(r, c.key, c.configured); (err != nil) != c.refused || !c.refused && got != c.want {
			t.Errorf("%+v: got %v, %v", c, got, err)
		}
	}
	if got := Configured(&identity.Key{OnDisconnect: identity.DisconnectDetach}, "finish"); got != "detach" {
		t.Errorf("the key's policy goes before that of the model: got %q", got)
	}
	if got := Configured(&identity.Key{}, "finish"); got != "finish" {
		t.Errorf("without one of the key, that of the model counts: got %q", got)
	}
}

func TestIdempotencyKeysAreBounded(t *testing.T) {
	for key, ok := range map[string]bool{
		"":                       true,
		"a b~":                   true,
		strings.Repeat("k", 255): true,
		strings.Repeat("k", 256): false,
		"ä":                      false,
		"a\x7f":                  false,
	} {
		r := httptest.NewRequest("POST", "/", nil)
		r.Header[keyHeader] = []string{key}
		if got, err := Key(r); (err == nil) != ok || ok && got != key {
			t.Errorf("%.20q: got %.20q, %v", key, got, err)
		}
		if !Wanted(r) {
			t.Errorf("%.20q: the header is there", key)
		}
	}
	if Wanted(httptest.NewRequest("POST", "/", nil)) {
		t.Error("a request without the headers wants nothing of this package")
	}
}
