package tokens

import (
	"fmt"
	"strings"
	"sync"
)

// embeddingTokens are the texts of the vocabulary of the vendor's models for embeddings, which clients use to make
// token lists.
var embeddingTokens = sync.OnceValue(func() []string { return readTokens(cl100kBase) })

// Decode returns the text of a list of token ids in the vocabulary cl100k_base. Clients that count tokens themselves
// send such lists for embeddings, and not every upstream takes them. It returns an error for an id that the vocabulary
// does not have.
func Decode(ids []uint) (string, error) {
	texts := embeddingTokens()
	var out strings.Builder
	for _, id := range ids {
		if id >= uint(len(texts)) {
			return "", fmt.Errorf("%d is no token of cl100k_base", id)
		}
		out.WriteString(texts[id])
	}
	return out.String(), nil
}
