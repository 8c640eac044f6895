package upstream

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
)

// Lengths of a part of a key that reveals it. A part at the key's beginning or end is recognised sooner, because
// keys are shortened that way for display.
const (
	edgePiece  = 8
	innerPiece = 10
)

// withoutSecrets replaces the keys in a text, including keys that are shortened or encoded (in base64 of either
// alphabet and any alignment, in hexadecimal, percent encoded or escaped as in JSON). It ignores case.
func withoutSecrets(text string, secrets []string) string {
	if len(secrets) == 0 || len(text) < shortestSecret {
		return text
	}
	f := finder{text: lower(text), hidden: make([]bool, len(text))}
	for _, s := range secrets {
		if len(s) < shortestSecret {
			continue
		}
		f.hideWhole(lower(s))
		f.hideEdges(lower(s))
		for _, form := range encodings(s) {
			f.hidePieces(lower(form))
		}
	}
	return f.redacted(text)
}

// encodings returns the forms in which a text may contain the key.
func encodings(key string) []string {
	quoted, _ := json.Marshal(key) // marshalling a string cannot fail
	inner := string(quoted[1 : len(quoted)-1])
	percent := make([]byte, 0, 3*len(key))
	for i := range len(key) {
		percent = fmt.Appendf(percent, "%%%02x", key[i])
	}
	forms := []string{key, inner, strings.ReplaceAll(inner, "/", `\/`), url.QueryEscape(key), url.PathEscape(key),
		string(percent), hex.EncodeToString([]byte(key))}
	for before := range 3 { // bytes of other text in the same group of three
		raw := append(make([]byte, before), key...)
		for _, alphabet := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			forms = append(forms, alphabet.EncodeToString(raw)[(8*before+5)/6:])
		}
	}
	return forms
}

// finder marks the parts of a text that must be hidden.
type finder struct {
	text   string
	hidden []bool
	places map[string][]int // where each piece of innerPiece bytes occurs
}

// hide marks n bytes from at.
func (f *finder) hide(at, n int) {
	for i := range n {
		f.hidden[at+i] = true
	}
}

// hideWhole hides each occurrence of s.
func (f *finder) hideWhole(s string) {
	for at := 0; ; at++ {
		i := strings.Index(f.text[at:], s)
		if i < 0 {
			return
		}
		at += i
		f.hide(at, len(s))
	}
}

// hideEdges hides every part of the text that equals the beginning or the end of key.
func (f *finder) hideEdges(key string) {
	if len(key) <= edgePiece {
		return
	}
	for at := range len(f.text) {
		n := 0
		for n < len(key) && at+n < len(f.text) && f.text[at+n] == key[n] {
			n++
		}
		if n >= edgePiece {
			f.hide(at, n)
		}
		n = 0
		for n < len(key) && n <= at && f.text[at-n] == key[len(key)-1-n] {
			n++
		}
		if n >= edgePiece {
			f.hide(at-n+1, n)
		}
	}
}

// hidePieces hides every piece of form.
func (f *finder) hidePieces(form string) {
	if f.places == nil {
		f.places = make(map[string][]int, len(f.text))
		for i := 0; i+innerPiece <= len(f.text); i++ {
			piece := f.text[i : i+innerPiece]
			f.places[piece] = append(f.places[piece], i)
		}
	}
	if len(form) < innerPiece {
		f.hideWhole(form)
		return
	}
	for i := 0; i+innerPiece <= len(form); i++ {
		for _, at := range f.places[form[i:i+innerPiece]] {
			f.hide(at, innerPiece)
		}
	}
}

// redacted returns text with each hidden part replaced.
func (f *finder) redacted(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if !f.hidden[i] {
			b.WriteByte(text[i])
			continue
		}
		for i+1 < len(text) && f.hidden[i+1] {
			i++
		}
		b.WriteString(redacted)
	}
	return b.String()
}

// lower changes ASCII letters to lower case. Unlike strings.ToLower it never changes the length of the text.
func lower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}
