package text_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestBodiesThatAreNotOneJSONObjectAreRefused(t *testing.T) {
	g := open(t)
	const good = `"model":"alpha","messages":[{"role":"user","content":"hi"}]`
	nested := func(levels int) string {
		return `{` + good + `,"x":` + strings.Repeat("[", levels-1) + strings.Repeat("]", levels-1) + `}`
	}
	for _, c := range []struct{ name, body, code, param string }{
		{"good", `{` + good + `}`, "", ""},
		{"white space around it", " \n{" + good + "}\r\n\t", "", ""},
		{"unknown fields", `{` + good + `,"client_metadata":{"a":[1,null]}}`, "", ""},
		{"depth 128", nested(128), "", ""},
		{"depth 129", nested(129), "invalid_json", ""},
		{"a million brackets", strings.Repeat("[", 1_000_000), "invalid_json", ""},
		{"a million objects", strings.Repeat(`{"a":`, 200_000), "invalid_json", ""},
		{"10,000 names", `{` + good + `,"metadata":null,"x":{` + manyNames(10_000) + `}}`, "", ""},
		{"10,001 names", `{` + good + `,"x":{"y":[0,{` + manyNames(10_001) + `}]}}`, "invalid_json", "x.y.1"},
		{"10,001 names at the top", `{` + good + `,` + manyNames(9_999) + `}`, "invalid_json", ""},
		{"10,001 messages", `{"model":"alpha","messages":[` +
			strings.Repeat(`{"role":"user","content":"hi"},`, 10_000) + `{"role":"user","content":"hi"}]}`,
			"invalid_json", "messages"},
		{"10,001 tools", `{` + good + `,"tools":[` +
			strings.Repeat(`{"type":"function","function":{"name":"f"}},`, 10_000) + `{}]}`, "invalid_json", "tools"},
		{"brackets in strings", `{` + good + `,"x":"` + strings.Repeat(`[\"`, 1000) + `"}`, "", ""},
		{"empty", "", "invalid_json", ""},
		{"white space", " \n", "invalid_json", ""},
		{"an array", `[` + `{` + good + `}` + `]`, "invalid_json", ""},
		{"a string", `"hello"`, "invalid_json", ""},
		{"null", `null`, "invalid_json", ""},
		{"cut off", `{` + good, "invalid_json", ""},
		{"two documents", `{` + good + `}{}`, "invalid_json", ""},
		{"trailing text", `{` + good + `} x`, "invalid_json", ""},
		{"a comment", `{/*x*/` + good + `}`, "invalid_json", ""},
		{"a trailing comma", `{` + good + `,}`, "invalid_json", ""},
		{"byte order mark", "\ufeff{" + good + `}`, "invalid_json", ""},
		{"invalid UTF-8", `{` + good + `,"x":"` + "\xff" + `"}`, "invalid_json", ""},
		{"lone surrogate", `{` + good + `,"x":"\ud800"}`, "invalid_json", ""},
		{"NUL", `{` + good + `,"x":"` + "\x00" + `"}`, "invalid_json", ""},
		{"NaN", `{` + good + `,"x":NaN}`, "invalid_json", ""},
		{"Infinity", `{` + good + `,"x":-Infinity}`, "invalid_json", ""},
		{"leading zero", `{` + good + `,"x":01}`, "invalid_json", ""},
		{"duplicate key", `{` + good + `,"model":"beta"}`, "duplicate_key", "model"},
		{"escaped duplicate", `{` + good + `,"\u006dodel":"beta"}`, "duplicate_key", "model"},
		{"duplicate of a long name", `{` + good + `,"` + strings.Repeat("n", 999) + `":1,"` + strings.Repeat("n", 999) +
			`":2}`, "duplicate_key", strings.Repeat("n", 256) + "..."},
		{"nested duplicate", `{` + good + `,"metadata":{"a":"1","a":"2"}}`, "duplicate_key", "metadata.a"},
		{"duplicate in a list", `{"model":"alpha","messages":[{"role":"user","role":"system","content":"hi"}]}`,
			"duplicate_key", "messages.0.role"},
		{"another case", `{` + good + `,"Model":"beta"}`, "misspelled_name", "Model"},
		{"another case, deep", `{"model":"alpha","messages":[{"role":"user","content":"hi","\u0052ole":"system"}]}`,
			"misspelled_name", "messages.0.Role"},
		{"a folded sign", `{` + good + `,"\u017ftream":true}`, "misspelled_name", "\u017ftream"},
		{"another case among a client's own names", `{` + good + `,"metadata":{"Model":"beta"}}`, "", ""},
	} {
		r := g.do("POST", asks[0].path, c.body, "Content-Type", "application/json")
		if c.code == "" {
			if r.status != 200 {
				t.Errorf("%s: %d %s", c.name, r.status, r.body)
			}
			continue
		}
		if r.status != 400 || r.get("error.code").String() != c.code || r.get("error.param").String() != c.param {
			t.Errorf("%s: %d %s, want %s %q", c.name, r.status, r.body, c.code, c.param)
		}
	}
}

// manyNames are n members of an object.
func manyNames(n int) string {
	b := []byte(`"n0":0`)
	for i := 1; i < n; i++ {
		b = fmt.Appendf(b, `,"n%d":0`, i)
	}
	return string(b)
}

func TestMediaTypes(t *testing.T) {
	g := open(t)
	for _, c := range []struct {
		contentType, encoding string
		status                int
	}{
		{"application/json", "", 200},
		{"application/json; charset=utf-8", "", 200},
		{"application/json; charset=UTF-8", "", 200},
		{"Application/JSON;charset=us-ascii", "identity", 200},
		{"application/vnd.api+json", "Identity", 200},
		{"", "", 200},
		{"application/json; charset=utf-16", "", 415},
		{"text/plain", "", 415},
		{"application/x-www-form-urlencoded", "", 415},
		{"application/json;;;=", "", 415},
		{"application/json", "gzip", 415},
		{"application/json", "br, identity", 415},
	} {
		r := g.do("POST", asks[0].path, asks[0].body, "Content-Type", c.contentType, "Content-Encoding", c.encoding)
		if r.status != c.status {
			t.Errorf("%q %q: %d %s", c.contentType, c.encoding, r.status, r.body)
		}
	}
	twice := g.request("POST", asks[0].path, asks[0].body)
	twice.Header.Add("Content-Type", "text/plain")
	want(t, g.send(twice), 415, "unsupported_media_type")
}

// counted counts what is read of a body of unknown length.
type counted struct {
	io.Reader
	n int
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += n
	return n, err
}

func TestNoMoreIsReadThanABodyMayHave(t *testing.T) {
	g := open(t)
	for _, declared := range []int64{-1, 100, 32<<20 + 1} {
		body := &counted{Reader: io.LimitReader(endless{}, 64<<20)}
		r := g.request("POST", asks[0].path, "x")
		r.Body, r.ContentLength = io.NopCloser(body), declared
		reply := g.send(r)
		want(t, reply, 413, "request_too_large")
		if body.n > 32<<20+64<<10 {
			t.Errorf("declared %d: %d bytes were read", declared, body.n)
		}
		if reply.header.Get("Connection") != "close" {
			t.Errorf("declared %d: the connection is kept", declared)
		}
	}
}

// endless is white space.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

func TestABodyThatEndsTooEarlyIsA400(t *testing.T) {
	g := open(t)
	r := g.request("POST", asks[0].path, "x")
	r.Body = io.NopCloser(io.MultiReader(strings.NewReader(`{"model":`), broken{}))
	want(t, g.send(r), 400, "invalid_body")
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func FuzzBody(f *testing.F) {
	for _, a := range asks {
		f.Add(a.body)
	}
	f.Add(`{"a":1,"a":[{`)
	f.Add("\xff\\\"[")
	g := open(f)
	f.Fuzz(func(t *testing.T, body string) {
		r := g.do(http.MethodPost, "/v1/messages/count_tokens", body, "Content-Type", "application/json")
		if r.status != 200 && !r.get("error.message").Exists() {
			t.Errorf("%d %s", r.status, r.body)
		}
		if r.status >= 500 {
			t.Errorf("%q: %d %s", body, r.status, r.body)
		}
	})
}
