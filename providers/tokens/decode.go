package tokens

import (
	"sync"

	"github.com/tiktoken-go/tokenizer"
)

// embeddingCodec is the vocabulary of the vendor's models for embeddings, which clients use to make token lists.
var embeddingCodec = sync.OnceValues(func() (tokenizer.Codec, error) { return tokenizer.Get(tokenizer.Cl100kBase) })

// Decode returns the text of a list of token ids in the vocabulary cl100k_base. Clients that count tokens themselves
// send such lists for embeddings, and not every upstream takes them. It returns an error for an id that the vocabulary
// does not have.
func Decode(ids []uint) (string, error) {
	c, err := embeddingCodec()
	if err != nil {
		return "", err
	}
	return c.Decode(ids)
}
