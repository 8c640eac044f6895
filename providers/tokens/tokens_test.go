package tokens_test

import (
	"testing"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/tokens"
)

func TestTextIsCountedByTheVocabulary(t *testing.T) {
	for text, want := range map[string]int64{"": 0, "hello world": 2, "hello hello hello": 3} {
		if got := tokens.Text(text); got != want {
			t.Errorf("%q has %d tokens, want %d", text, got, want)
		}
	}
}

func TestEverythingInARequestCounts(t *testing.T) {
	text := dialogue.Part{Kind: dialogue.TextPart, Text: "hello world"}
	base := dialogue.Request{Turns: []dialogue.Turn{{Role: dialogue.User, Parts: []dialogue.Part{text}}}}
	least := tokens.Request(&base)
	more := map[string]dialogue.Request{
		"system": {System: []dialogue.Part{text}, Turns: base.Turns},
		"tools":  {Turns: base.Turns, Tools: []dialogue.Tool{{Name: "f", Schema: []byte(`{"type":"object"}`)}}},
		"image": {Turns: []dialogue.Turn{{Parts: []dialogue.Part{text,
			{Kind: dialogue.MediaPart, Media: &dialogue.Media{Kind: dialogue.Image, URL: "https://h/x.png"}}}}}},
		"result": {Turns: []dialogue.Turn{{Parts: []dialogue.Part{text,
			{Kind: dialogue.ResultPart, Result: &dialogue.Result{Parts: []dialogue.Part{text}}}}}}},
	}
	for name, r := range more {
		if got := tokens.Request(&r); got <= least {
			t.Errorf("%s: %d tokens, without it %d", name, got, least)
		}
	}
}
