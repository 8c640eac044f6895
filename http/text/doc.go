// Package text holds the doors of the five text shapes: they read a request as
// far as routing needs it, hand it to actors/text and write back what comes.
// Beside them stand the models lists, the token counts and the life after the
// reply that the responses shape has: retrieve, cancel, delete, resume. What a
// request means is the shapes' business; what happens to it, that of actors/text.
package text
