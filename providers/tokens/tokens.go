// Package tokens counts tokens with a common vocabulary (o200k). For models of other vendors
// the count is an estimate. It is good enough to reserve limits and to answer the routes that
// count tokens, and it is not for bills, which use the counts of the upstream. The vocabulary
// is embedded in the program and loaded at its first use.
//
// All functions are safe for concurrent use.
//
// # Cost
//
// The memory of the vocabulary stays once it is loaded. The time to count grows with the text, so
// Split cuts a long text by its length and not into tokens.
//
// # Vocabularies
//
// o200k is the vocabulary of the vendor's present models, and cl100k_base that of its models for embeddings.
// Both are lists of byte sequences in the order in which pairs are joined. A text is first cut into words by
// the vocabulary's rule (numbers, letters, spaces, signs). The bytes of each word are then joined, the first
// pair of the list first.
package tokens

import (
	"unicode/utf8"

	"stagedoor/providers/dialogue"
)

// Costs in tokens of content that is not text, from the vendors' documents.
const (
	perMessage = 4    // role and separators of a turn
	perReply   = 3    // tokens that begin the answer
	perTool    = 8    // name and separators of a declared tool
	perImage   = 765  // an image of medium size in high detail
	perPage    = 1500 // any other file
)

// Count returns the number of tokens of s. It takes memory for longestLookup bytes of s however long s is.
func Count(s string) int64 {
	var n int64
	e := newEncoder()
	for s != "" {
		var piece string
		piece, s = cutPiece(s)
		n += e.tokens(piece)
	}
	return n
}

// longestLookup is the longest text that is looked up in the vocabulary at once. The lookup
// takes about fifty bytes of memory for each byte of a word without blanks.
const longestLookup = 8 << 10

// cutPiece divides s behind a piece of at most longestLookup bytes. The piece ends before a
// blank and a letter if it can, because every token that has a blank before a letter begins
// there. Elsewhere the cut may add a token or two.
func cutPiece(s string) (piece, rest string) {
	if len(s) <= longestLookup {
		return s, ""
	}
	for i := longestLookup - 1; i > longestLookup/2; i-- {
		if s[i] == ' ' && isLetter(s[i+1]) && s[i-1] > ' ' {
			return s[:i], s[i:]
		}
	}
	end := longestLookup
	for end > longestLookup-utf8.UTFMax && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end], s[end:]
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// Estimate returns a number of tokens by the rule of four bytes each. Use it where Count would
// take too long.
func Estimate(bytes int) int64 { return int64(bytes+3) / 4 }

// mediaTokens stands for a picture or a document, whose size says little of its tokens.
const mediaTokens = 1000

// EstimateParts returns a number of tokens of the parts of a turn, as Estimate does. Results of calls count with what
// is in them.
func EstimateParts(parts []dialogue.Part) int64 {
	bytes, media := 0, 0
	var count func(parts []dialogue.Part)
	count = func(parts []dialogue.Part) {
		for i := range parts {
			p := &parts[i]
			bytes += len(p.Text)
			switch {
			case p.Media != nil:
				bytes += len(p.Media.Text)
				media++
			case p.Call != nil:
				bytes += len(p.Call.Name) + len(p.Call.Args)
			case p.Result != nil:
				bytes += len(p.Result.Object)
				count(p.Result.Parts)
			case p.Thinking != nil:
				bytes += len(p.Thinking.Encrypted)
				if p.Text == "" { // decoders set both to the same text
					bytes += len(p.Thinking.Text)
				}
			default:
				bytes += len(p.Opaque)
			}
		}
	}
	count(parts)
	return Estimate(bytes) + int64(media)*mediaTokens
}

// maxCounted bounds the bytes of one request that are counted with the vocabulary.
const maxCounted = 1 << 20

// counter adds up the texts of one request.
type counter struct{ bytes, tokens int64 }

// countText counts the tokens of a text. The vocabulary is slow, so at most maxCounted bytes of a
// request are counted with it, and the rest is taken to have as many tokens per byte as the text
// before it.
func (c *counter) countText(s string) int64 {
	known := s
	if left := maxCounted - c.bytes; int64(len(s)) > left {
		known = s[:left]
	}
	n := Count(known)
	c.bytes, c.tokens = c.bytes+int64(len(known)), c.tokens+n
	if rest := int64(len(s) - len(known)); rest > 0 {
		n += rest * c.tokens / c.bytes
	}
	return n
}

// CountRequest returns the number of input tokens of a request. Text beyond the first
// maxCounted bytes is taken to have as many tokens for each byte as the text before it.
func CountRequest(r *dialogue.Request) int64 {
	var c counter
	n := int64(perReply)
	for _, p := range r.System {
		n += perMessage + c.countText(p.Text)
	}
	for _, t := range r.Turns {
		n += perMessage + c.countParts(t.Parts, 0)
	}
	for _, t := range r.Tools {
		n += perTool + c.countText(t.Name) + c.countText(t.Description) + c.countText(string(t.Schema))
	}
	for _, raw := range r.Prompts {
		text, _ := dialogue.PromptText(raw)
		n += c.countText(text)
	}
	return n + c.countText(string(r.Output.Schema))
}

// countParts counts the tokens of parts. Depth is 0 for the parts of a turn and 1 for those of a tool's result, in
// which further results are not counted.
func (c *counter) countParts(ps []dialogue.Part, depth int) int64 {
	var n int64
	for _, p := range ps {
		n += c.countText(p.Text)
		if p.Call != nil {
			n += perTool + c.countText(p.Call.Name) + c.countText(p.Call.Args)
		}
		if p.Result != nil && depth == 0 {
			n += perTool + c.countParts(p.Result.Parts, 1) + c.countText(string(p.Result.Object))
		}
		if p.Thinking != nil {
			n += c.countText(p.Thinking.Text)
		}
		if p.Media != nil {
			n += c.countMedia(p.Media)
		}
	}
	return n
}

// countMedia returns the tokens of a medium. Pictures and pages are not decoded for it, so each has
// a fixed count.
func (c *counter) countMedia(m *dialogue.Media) int64 {
	switch {
	case m.Text != "":
		return c.countText(m.Text)
	case m.Kind == dialogue.Image:
		return perImage
	default:
		return perPage
	}
}
