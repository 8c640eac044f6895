package tokens

import (
	_ "embed" // the vocabularies
	"math"
	"slices"
	"sync"
)

// The vocabularies that a vendor publishes, without their special tokens. Each token, in the order of the ids, is a
// byte with its length and its bytes. As a table of a program, the tokens would be hundreds of thousands of symbols,
// which take a linker longer than all the rest of the program.
var (
	//go:embed o200k_base.tokens
	o200kBase string
	//go:embed cl100k_base.tokens
	cl100kBase string
)

// countingVocabulary is the vocabulary that texts are counted and split with. It is large, so it is read at its first
// use and not at the start of the program.
var countingVocabulary = sync.OnceValue(func() map[string]uint32 {
	texts := readTokens(o200kBase)
	ids := make(map[string]uint32, len(texts))
	for id, text := range texts {
		ids[text] = uint32(id)
	}
	return ids
})

// readTokens returns the texts of the tokens of a vocabulary by their ids.
func readTokens(vocabulary string) []string {
	var texts []string
	for vocabulary != "" {
		end := 1 + int(vocabulary[0])
		texts, vocabulary = append(texts, vocabulary[1:end]), vocabulary[end:]
	}
	return texts
}

// encoder cuts words into tokens. One goroutine uses it.
type encoder struct {
	ids   map[string]uint32
	parts []part
}

// part is a part of a word from a byte to the beginning of the next part.
type part struct {
	begin  int
	joined uint32 // id of the token that it and the next part are together, or noToken
}

const noToken = math.MaxUint32

func newEncoder() *encoder { return &encoder{ids: countingVocabulary()} }

// tokens returns the number of tokens of a text.
func (e *encoder) tokens(text string) int64 {
	var n int64
	for text != "" {
		end := wordEnd(text)
		n += int64(len(e.cut(text[:end])) - 1)
		text = text[end:]
	}
	return n
}

// cut returns the tokens of a word, and behind them a part at its end. They are valid until the next call.
func (e *encoder) cut(word string) []part {
	if _, ok := e.ids[word]; ok {
		e.parts = append(e.parts[:0], part{begin: 0}, part{begin: len(word)})
		return e.parts
	}
	parts := e.parts[:0]
	for i := range len(word) + 1 {
		parts = append(parts, part{begin: i})
	}
	for i := range parts {
		parts[i].joined = e.join(word, parts[i:])
	}
	for {
		// Of all pairs of neighbours, the one whose token has the lowest id becomes one part, the first of them if
		// there are several.
		least := 0
		for i := range parts {
			if parts[i].joined < parts[least].joined {
				least = i
			}
		}
		if parts[least].joined == noToken {
			e.parts = parts
			return parts
		}
		parts = slices.Delete(parts, least+1, least+2)
		parts[least].joined = e.join(word, parts[least:])
		if least > 0 {
			parts[least-1].joined = e.join(word, parts[least-1:])
		}
	}
}

// join returns the id of the token that the first two parts are together.
func (e *encoder) join(word string, parts []part) uint32 {
	if len(parts) > 2 {
		if id, ok := e.ids[word[parts[0].begin:parts[2].begin]]; ok {
			return id
		}
	}
	return noToken
}
