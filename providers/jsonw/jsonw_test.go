package jsonw_test

import (
	"encoding/json"
	"strings"
	"testing"

	"stagedoor/providers/jsonw"
)

func TestWriterWritesJSON(t *testing.T) {
	var w jsonw.Writer
	w.Object().Key("a").Int(-1).Key("b").Array().String("x\"\n").Null().Bool(true).Float(0.5).Object().End().End()
	w.KeyOf("k\"").StringOrNull("").Key("n").RawString("").Key("bad").String("\xff").End()
	const want = `{"a":-1,"b":["x\"\n",null,true,0.5,{}],"k\"":null,"n":null,"bad":"\ufffd"}`
	if !json.Valid(w.Buf) {
		t.Fatalf("not JSON: %s", w.Buf)
	}
	if got := string(w.Buf); got != want &&
		got != `{"a":-1,"b":["x\"\n",null,true,0.5,{}],"k\"":null,"n":null,"bad":"`+"\ufffd"+`"}` {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// An event whose data has a line end in it is cut there by every client.
func TestRawIsOneLine(t *testing.T) {
	var w jsonw.Writer
	w.Object().Key("tools").Raw([]byte("[\r\n  {\"a\": \"x\\ny\"}\n]")).Key("s").RawString("{\n}").End()
	if got, want := string(w.Buf), `{"tools":[  {"a": "x\ny"}],"s":{}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestLongStringsAreWrittenIntoABufferOfTheirLength holds that nothing is allocated twice.
func TestLongStringsAreWrittenIntoABufferOfTheirLength(t *testing.T) {
	for _, piece := range []string{"x", `"`, `\`, "\n\t\r\b\f", "\x00\x1f", "\u4f60", "\x7f"} {
		text := strings.Repeat(piece, 100_000)
		got := jsonw.AppendString([]byte("["), text)
		var back string
		if err := json.Unmarshal(got[1:], &back); err != nil || back != text {
			t.Errorf("%q: read back %.20q, %v", piece, back, err)
		}
		if cap(got)-len(got) > 8<<10 {
			t.Errorf("%q: a string of %d bytes is in a buffer of %d", piece, len(got), cap(got))
		}
		if n := testing.AllocsPerRun(3, func() { jsonw.AppendString(nil, text) }); n > 1 {
			t.Errorf("%q: %v allocations", piece, n)
		}
	}
}
