package dialogue_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"stagedoor/providers/dialogue"
)

// Clients that decode a sealed value as base64 may write it again in another alphabet. It opens in
// each of them.
func TestASealInBase64OpensInEveryAlphabet(t *testing.T) {
	sealer := dialogue.NewSealer([]byte("s"))
	want := dialogue.Thinking{Encrypted: "E?>~", Text: "t\u2028", Origin: "responses"}
	v := sealer.SealBase64(&want)
	raw, err := base64.StdEncoding.DecodeString(v)
	if err != nil {
		t.Fatalf("%q is not standard base64: %v", v, err)
	}
	for _, form := range []string{v, sealer.Seal(&want), base64.RawStdEncoding.EncodeToString(raw),
		base64.URLEncoding.EncodeToString(raw), base64.RawURLEncoding.EncodeToString(raw)} {
		got, ok := sealer.Open(form)
		if !ok || *got != want || !dialogue.Sealed(form) || !dialogue.HasSeal([]byte(`{"a":"`+form+`"}`)) {
			t.Errorf("%q: %+v, %t", form, got, ok)
		}
	}
	for _, bad := range []string{"", v[:len(v)-8], "c2QxL!", strings.Replace(v, v[20:22], "AA", 1)} {
		if _, ok := sealer.Open(bad); ok {
			t.Errorf("%q opened", bad)
		}
	}
}
