package tokens_test

import (
	"strings"
	"testing"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/tokens"
)

func TestTextIsCountedByTheVocabulary(t *testing.T) {
	for text, want := range map[string]int64{"": 0, "hello world": 2, "hello hello hello": 3} {
		if got := tokens.Count(text); got != want {
			t.Errorf("%q has %d tokens, want %d", text, got, want)
		}
	}
}

// TestLongRequestsAreCountedByTheirBeginning, because looking up 32 MB would take seconds.
func TestLongRequestsAreCountedByTheirBeginning(t *testing.T) {
	request := func(n int) *dialogue.Request {
		part := dialogue.Part{Kind: dialogue.TextPart, Text: strings.Repeat("hello world ", n)}
		return &dialogue.Request{Turns: []dialogue.Turn{{Parts: []dialogue.Part{part, part}}}}
	}
	short, long := tokens.CountRequest(request(40_000)), tokens.CountRequest(request(400_000))
	if ratio := float64(long) / float64(short); ratio < 9.9 || ratio > 10.1 {
		t.Errorf("%d tokens, ten times the text has %d", short, long)
	}
	few := testing.AllocsPerRun(1, func() { tokens.CountRequest(request(80_000)) })
	if many := testing.AllocsPerRun(1, func() { tokens.CountRequest(request(800_000)) }); many > 2*few {
		t.Errorf("%v allocations, %v for ten times the text", few, many)
	}
}

// TestTextsAreLookedUpInBoundedPieces holds the pieces of a long text: words are kept whole, so
// that the count is that of the words, and a text without blanks takes no more memory.
func TestTextsAreLookedUpInBoundedPieces(t *testing.T) {
	for _, word := range []string{" hello", " strawberry", " 你好a", " don't"} {
		one := tokens.Count(strings.Repeat(word, 100))
		if got := tokens.Count(strings.Repeat(word, 10_000)); got != 100*one {
			t.Errorf("10000 times %q has %d tokens, 100 times has %d", word, got, one)
		}
	}
	few, many := tokens.Count(strings.Repeat("x", 16<<10)), tokens.Count(strings.Repeat("x", 1<<20))
	if many < 63*few || many > 65*few {
		t.Errorf("%d tokens, 64 times the text has %d", few, many)
	}
	for _, text := range []string{strings.Repeat("\u4f60", 20_000), strings.Repeat("x", 50_000)} {
		if strings.Join(tokens.Split(text), "") != text {
			t.Errorf("the pieces of %d times %q do not join to it", len(text), text[:4])
		}
	}
}

// Decoders set the text of a part and that of its thinking to the same.
func TestThinkingIsEstimatedOnce(t *testing.T) {
	text := strings.Repeat("think ", 1000)
	for name, part := range map[string]dialogue.Part{
		"both":     {Kind: dialogue.ThinkingPart, Text: text, Thinking: &dialogue.Thinking{Text: text}},
		"thinking": {Kind: dialogue.ThinkingPart, Thinking: &dialogue.Thinking{Text: text}},
	} {
		if got := tokens.EstimateParts([]dialogue.Part{part}); got != tokens.Estimate(len(text)) {
			t.Errorf("%s: %d bytes are estimated as %d tokens", name, len(text), got)
		}
	}
}

func TestEverythingInARequestCounts(t *testing.T) {
	text := dialogue.Part{Kind: dialogue.TextPart, Text: "hello world"}
	base := dialogue.Request{Turns: []dialogue.Turn{{Role: dialogue.User, Parts: []dialogue.Part{text}}}}
	least := tokens.CountRequest(&base)
	more := map[string]dialogue.Request{
		"system": {System: []dialogue.Part{text}, Turns: base.Turns},
		"tools":  {Turns: base.Turns, Tools: []dialogue.Tool{{Name: "f", Schema: []byte(`{"type":"object"}`)}}},
		"image": {Turns: []dialogue.Turn{{Parts: []dialogue.Part{text,
			{Kind: dialogue.MediaPart, Media: &dialogue.Media{Kind: dialogue.Image, URL: "https://h/x.png"}}}}}},
		"result": {Turns: []dialogue.Turn{{Parts: []dialogue.Part{text,
			{Kind: dialogue.ResultPart, Result: &dialogue.Result{Parts: []dialogue.Part{text}}}}}}},
	}
	for name, r := range more {
		if got := tokens.CountRequest(&r); got <= least {
			t.Errorf("%s: %d tokens, without it %d", name, got, least)
		}
	}
}
