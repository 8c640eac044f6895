// Package vector is the neutral form of requests for embeddings, which turn each of several inputs into one vector. A
// Dialect is one vendor's form of such requests. Both the requests and the vectors stay in the bytes in which they
// arrived for as long as the two sides of the gateway write them in the same way, because a reply may have millions of
// numbers and must not be rounded on its way.
//
// # Usage
//
//	Inbound.Check     reads a client's request
//	Outbound.Batch    divides it into calls that the upstream takes
//	Outbound.Encode   writes one of these calls
//	Outbound.Decode   finds the vectors of a reply
//	Request.Form      writes one vector as the client asked for it
//	Write             writes a reply for the client, piece by piece
//	Tap               watches a reply that passes through unchanged
//
// # Concurrency
//
// A Dialect keeps no state. A Request is not changed after Check. A Tap belongs to one goroutine.
package vector

import (
	"bytes"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/tokens"
)

// MaxInputs is the most inputs of one request.
const MaxInputs = 2048

// Request is a client's request for embeddings. Its slices point into Body.
type Request struct {
	Inbound dialogue.Shape
	// Model is the model's name as the client wrote it.
	Model string
	// Body is the request as the client sent it. An upstream of the same shape gets it unchanged but for the model.
	Body   []byte
	Inputs []Input
	// Base64 asks for vectors as base64 of little-endian 32-bit floats instead of lists of numbers.
	Base64 bool
	// Single says that the reply has one vector instead of a list of them.
	Single bool
	// Lost lists the members that only upstreams of the client's own shape get.
	Lost []string
}

// Input is the source of one vector: Text, Tokens or Media.
type Input struct {
	Text   []byte // a JSON string
	Tokens []byte // a JSON list of token ids
	// Media is the place of the first part that is not text, or "".
	Media string
	// Raw is the input's own request, in shapes that have one for each.
	Raw []byte
	// Dimensions is the length that the vector is cut to. 0 is the model's own length.
	Dimensions int64
	// Purpose and Title are optional. Title is the title of a document.
	Purpose Purpose
	Title   string
}

// Purpose names a use of vectors. Some models make different vectors of one text for different uses.
type Purpose string

// The purposes that clients of each shape can name.
const (
	Query          Purpose = "query"
	Document       Purpose = "document"
	Classification Purpose = "classification"
	Clustering     Purpose = "clustering"
	Similarity     Purpose = "similarity"
)

// mediaTokens stands for the unknown number of tokens of an input that is not text.
const mediaTokens = 1500

// maxCounted is the longest request whose text is counted with the vocabulary.
const maxCounted = 1 << 20

// CountTokens returns the tokens of some of the inputs for upstreams that report none. Lists of tokens count exactly.
// Text is counted with the vocabulary of providers/tokens, or as a token for every four bytes in a long request.
func (r *Request) CountTokens(b Batch) (n int64) {
	for _, in := range r.Inputs[b.From:b.To] {
		switch {
		case in.Tokens != nil:
			n += countIDs(in.Tokens)
		case in.Media != "":
			n += mediaTokens
		case len(r.Body) > maxCounted:
			n += tokens.Estimate(len(in.Text))
		default:
			text, _ := dialogue.PromptText(in.Text)
			n += tokens.Count(text)
		}
	}
	return n
}

// EstimateTokens returns a cheap number of tokens for the limits: one for every four bytes, and those of token lists.
func (r *Request) EstimateTokens() int {
	n := int64(0)
	for _, in := range r.Inputs {
		if in.Tokens != nil {
			n += countIDs(in.Tokens)
		}
	}
	return int(max(n, tokens.Estimate(len(r.Body))))
}

// countIDs counts the tokens in a list of token numbers by its commas. The list has been checked
// and is not empty.
func countIDs(list []byte) int64 { return int64(bytes.Count(list, []byte{','})) + 1 }

// Batch is a part of the inputs: those from From up to, but without, To.
type Batch struct{ From, To int }

// Len returns the number of inputs.
func (b Batch) Len() int { return b.To - b.From }

// Whole reports whether the batch has all inputs of a request.
func (b Batch) Whole(r *Request) bool { return b.From == 0 && b.To == len(r.Inputs) }
