package jsonw_test

import (
	"encoding/json"
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
	if got := string(
		w.Buf,
	); got != want &&
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
