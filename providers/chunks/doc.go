// Package chunks is what the chat and completions shapes have in common on the
// wire: the fields of requests that both have, the usage object, the error
// envelope, finish words, and replies that are data-only server-sent events ended
// by [DONE]. The two shapes are one family,
// and neither package may import the other. It knows nothing of messages,
// prompts or choices' contents.
package chunks
