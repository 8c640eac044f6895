package sandbox

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/tokens"
)

// sentences are what the simulator talks about when it has said what it saw.
// Each begins with a space, so that its tokens do not depend on what precedes.
var sentences = []string{
	" The house lights go down and the orchestra finds its note.",
	" A prompter waits in the wings with the script in hand.",
	" Every door backstage leads to a different stage.",
	" The second act begins where the first one hesitated.",
	" Someone has moved the ladder again, and nobody admits it.",
	" Ropes, weights and pulleys keep the painted sky in place.",
	" The understudy knows every line, including the ones that were cut.",
	" A lamp is left burning when the theatre is empty.",
	" The audience listens more closely to silence than to speech.",
	" Costumes hang in the order in which they will be needed.",
	" The stage manager counts the seconds between two cues.",
	" Thunder is a sheet of metal, and rain is a handful of peas.",
	" The trap door opens only when three people agree.",
	" Nothing is as heavy as a piano on a narrow stair.",
	" The curtain call is rehearsed as carefully as the duel.",
	" Tomorrow the same words will mean something slightly different.",
}

// cut holds the pieces of the sentences.
var cut = sync.OnceValue(func() [][]string {
	out := make([][]string, len(sentences))
	for i, s := range sentences {
		out[i] = tokens.Split(s)
	}
	return out
})

// dice are the simulator's only source of chance: they fall the same way for
// the same request.
func dice(req *dialogue.Request, p prompt, choice int) *rand.Rand {
	h := fnv.New64a()
	for _, s := range []string{req.Model, "\x00", p.text, "\x00", string(req.Seed), "\x00", strconv.Itoa(choice), "\x00"} {
		h.Write([]byte(s))
	}
	for _, s := range p.results {
		h.Write([]byte(s))
	}
	return rand.New(rand.NewPCG(h.Sum64(), uint64(choice)))
}

// talk makes the pieces of a free answer.
func talk(p prompt, r *rand.Rand, length int) []string {
	pieces := tokens.Split(opening(p))
	if length == 0 {
		length = len(pieces) + 12 + r.IntN(36)
		for len(pieces) < length {
			pieces = append(pieces, cut()[r.IntN(len(sentences))]...)
		}
		return pieces
	}
	for len(pieces) < length {
		pieces = append(pieces, cut()[r.IntN(len(sentences))]...)
	}
	return pieces[:length]
}

const (
	quoted   = 80  // characters of the prompt that are repeated
	answered = 400 // characters of a tool's result
	repeated = 32  // results and media that are named
)

func opening(p prompt) string {
	var b strings.Builder
	for _, result := range p.results[:min(len(p.results), repeated)] {
		fmt.Fprintf(&b, "The tool answered: %s. ", clipped(result, answered))
	}
	for _, kind := range p.media[:min(len(p.media), repeated)] {
		fmt.Fprintf(&b, "I have received your %s. ", kind)
	}
	switch text := strings.TrimSpace(p.text); {
	case text != "":
		fmt.Fprintf(&b, "You said: %q.", clipped(text, quoted))
	case b.Len() == 0:
		b.WriteString("You said nothing.")
	}
	return strings.TrimRight(b.String(), " ")
}

// muse makes the pieces of a thought.
func muse(r *rand.Rand, length int) []string {
	pieces := tokens.Split("Let me see what is wanted here.")
	for len(pieces) < length {
		pieces = append(pieces, cut()[r.IntN(len(sentences))]...)
	}
	return pieces[:length]
}
