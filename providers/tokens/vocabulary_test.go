package tokens_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"testing"

	"stagedoor/providers/tokens"
)

// The sums are those that the vendor's library expects of the files o200k_base.tiktoken and cl100k_base.tiktoken, which
// have a line for each token: its bytes in base64, a blank and its id.
func TestVocabulariesAreThoseOfTheVendor(t *testing.T) {
	for name, want := range map[string]string{
		"o200k_base":  "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
		"cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
	} {
		text, err := os.ReadFile(name + ".tokens")
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.New()
		for id := 0; len(text) > 0; id++ {
			end := 1 + int(text[0])
			fmt.Fprintf(sum, "%s %d\n", base64.StdEncoding.EncodeToString(text[1:end]), id)
			text = text[end:]
		}
		if got := hex.EncodeToString(sum.Sum(nil)); got != want {
			t.Errorf("the sum of %s is %s, want %s", name, got, want)
		}
	}
}

// Each text has a form of words that the vendor's expression names, and words that are several tokens.
func TestTextsAreSplitAsTheVendorSplitsThem(t *testing.T) {
	for _, want := range [][]string{
		{"Hello", ",", " World", "!"},
		{" don't", " we've", " I'", "LL", " she'd", " Z", "'e"},
		{"HTML", "Parser", "XY", " i", "OS", "\ufb01", "Ab"},
		{"st", "raw", "berry", " Strawberry", " raspberry", " ant", "idis", "est", "ablishment", "arian", "ism"},
		{"123", "456", "7", " ", "12", "½", "٣"},
		{"a", " {\n\n", "//\n", " \"", "x", "\":", "\u007f", "b"},
		{"a", "  ", " b", "\t\n\n", " \n", "  ", " c", " \n", "\td", "  "},
		{"a", "\u00a0", "\u2003", "\u3000", "b"},
		{"你", "好吗", "का", " e", "\u0301", "t", " ", "\u0301", "A"},
	} {
		text := ""
		for _, piece := range want {
			text += piece
		}
		if got := tokens.Split(text); !slices.Equal(got, want) {
			t.Errorf("%q is split to %q, want %q", text, got, want)
		}
	}
}

func TestTokensOfEmbeddingsHaveTheirText(t *testing.T) {
	text, err := tokens.Decode([]uint{15339, 1917, 100255})
	if err != nil || text != "hello world Conveyor" {
		t.Errorf("%q, %v", text, err)
	}
	if text, err := tokens.Decode([]uint{15339, 100256}); err == nil {
		t.Errorf("an id that the vocabulary does not have is %q", text)
	}
}
