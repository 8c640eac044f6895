package chunks_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/tidwall/gjson"

	"stagedoor/providers/chunks"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/shapes"
)

func newTap(o shapes.TapOptions) *chunks.Tap {
	return &chunks.Tap{Options: o, Content: func(c gjson.Result) bool { return c.Get("text").Str != "" }}
}

func TestTapTakesWholeRepliesAsServersWriteThem(t *testing.T) {
	rows := map[string]bool{
		`{"choices":[]}`:                                                true,
		`{"error":null,"choices":[{}]}`:                                 true,
		` {"choices":[1,null],"usage":0} `:                              true,
		`{"id":1,"id":2,"choices":[{"finish_reason":null,"index":-1}]}`: true,
		`{"choices":[{"text":"\ud83d"}]}`:                               true, // half a character
		"{\"choices\":[{\"text\":\"\xff\"}]}":                           true,
		`{"choices":[{"finish_reason":"stop","index":1000000}]}`:        true,
		`{}`:                            false,
		`{"choices":null}`:              false,
		`{"choices":{}}`:                false,
		`{"choices":[]`:                 false,
		`{"choices":[]}x`:               false,
		`{"choices":[],"error":"busy"}`: false,
		`[]`:                            false,
		`<html>`:                        false,
		``:                              false,
	}
	for body, want := range rows {
		if out, err := newTap(shapes.TapOptions{}).Body([]byte(body)); (err == nil) != want ||
			want && string(out) != body {
			t.Errorf("%s: got %s and %v", body, out, err)
		}
	}
}

func TestUsageIsReadWhereverItStands(t *testing.T) {
	u := chunks.Usage(
		gjson.Parse(
			`{"completion_tokens_details":{"reasoning_tokens":1,"audio_tokens":2,"x":9},"prompt_cache_hit_tokens":3,
		"prompt_tokens_details":{"audio_tokens":4,"cache_write_tokens":5},"completion_tokens":6,"prompt_tokens":7,"total_tokens":13}`,
		),
	)
	if u.Reasoning != 1 || u.AudioOut != 2 || u.CacheRead != 3 || u.AudioIn != 4 || u.CacheWrite != 5 ||
		u.OutputTotal != 6 ||
		u.InputTotal != 7 {
		t.Errorf("got %+v", u)
	}
	u = chunks.Usage(
		gjson.Parse(
			`{"prompt_tokens":-1,"completion_tokens":"5","prompt_tokens_details":{"cached_tokens":8},"prompt_cache_hit_tokens":3}`,
		),
	)
	if u.InputTotal != dialogue.NegativeCount || u.OutputTotal != -1 || u.CacheRead != 8 {
		t.Errorf("got %+v", u)
	}
}

func FuzzTapBody(f *testing.F) {
	f.Add([]byte(`{"choices":[{"finish_reason":"stop","index":0}],"model":"m","usage":{"prompt_tokens":1}}`))
	f.Add([]byte(`{"model":"a","choices":[],"model":"b"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		given := bytes.Clone(body)
		out, err := newTap(shapes.TapOptions{Model: "mine"}).Body(body)
		if !bytes.Equal(given, body) {
			t.Fatal("the reply was written to")
		}
		if err == nil && !json.Valid(out) {
			t.Fatalf("%q became %q", body, out)
		}
	})
}
